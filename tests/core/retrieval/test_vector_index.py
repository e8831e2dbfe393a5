import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.retrieval.vector_index import VectorIndex
from core.retrieval.vector_kernels import products
from core.store.database import open_database
from core.store.documents import DocumentStore, NewBlock, NewDocument
from core.store.vectors import VectorStore
from core.types import Block

N_DIMS = 16


def add(db, name):
    block = Block.of(f"Text of {name}.")
    new = NewBlock(block, 0, len(block.text), 5)
    return DocumentStore(db).save(NewDocument(name, name, name, text=block.text, blocks=(new,))).id


@pytest.fixture
def writer(tmp_path):
    with open_database(tmp_path) as db:
        yield db


@pytest.fixture
def reader(tmp_path, writer):
    with open_database(tmp_path) as db:
        yield db


def embed(db, rng):
    store = VectorStore(db, "e", N_DIMS)
    made = {}
    for rowid, id_, _ in store.missing(0, 1000):
        windows = rng.normal(size=(int(rng.integers(1, 4)), N_DIMS)).astype(np.float32)
        made[rowid] = windows / np.linalg.norm(windows, axis=1, keepdims=True)
        store.add([(rowid, id_, made[rowid])])
    return made


def naive(made, query, limit):
    best = {rowid: float((windows @ query).max()) for rowid, windows in made.items()}
    return sorted(best.items(), key=lambda item: -item[1])[:limit]


def test_nearest_blocks_as_a_naive_search_finds_them(writer, reader):
    rng = np.random.default_rng(3)
    for number in range(60):
        add(writer, f"d{number}")
    made = embed(writer, rng)
    index = VectorIndex(VectorStore(reader, "e", N_DIMS))
    index.refresh()
    assert len(index) == 60
    for _ in range(20):
        query = rng.normal(size=N_DIMS).astype(np.float32)
        query /= np.linalg.norm(query)
        found = index.nearest(query, 10)
        wanted = naive(made, query, 10)
        assert len(found) == 10
        assert list(found.values()) == sorted(found.values(), reverse=True)
        assert np.abs(np.array(list(found.values())) - [cosine for _, cosine in wanted]).max() < 0.02
        inside = np.array(sorted(made)[:7])
        assert set(index.nearest(query, 10, inside)) == set(inside.tolist())
        known = {rowid: made[rowid] for rowid in inside.tolist()}
        also = np.array(sorted(made)[5:12])  # two of them are inside
        more = index.nearest(query, 3, inside, also)
        assert set(more) == set(list(more)[:3]) | set(also[:2].tolist())
        assert abs(next(iter(more.values())) - naive(known, query, 1)[0][1]) < 0.02
        for rowid, cosine in more.items():
            assert abs(cosine - float((made[rowid] @ query).max())) < 0.02


def test_it_follows_what_is_stored_and_removed(writer, reader):
    rng = np.random.default_rng(4)
    index = VectorIndex(VectorStore(reader, "e", N_DIMS))
    query = np.ones(N_DIMS, np.float32) / 4
    index.refresh()
    assert index.nearest(query, 5) == {}
    first = add(writer, "one")
    embed(writer, rng)
    index.refresh()
    assert len(index) == 1
    DocumentStore(writer).remove(first)
    add(writer, "two")  # it gets the same rowid
    index.refresh()
    assert len(index) == 0
    embed(writer, rng)
    index.refresh()
    assert len(index) == 1
    assert len(index.nearest(query, 5)) == 1
    assert index.nearest(query, 5, np.array([999])) == {}


@given(st.integers(0, 5), st.integers(1, 70), st.randoms())
@settings(max_examples=40)
def test_products_are_what_numpy_says(n, n_dims, random):
    rng = np.random.default_rng(random.randrange(1 << 30))
    vectors = rng.integers(-127, 128, (n, n_dims)).astype(np.int8)
    scales = rng.random(n).astype(np.float32)
    query = rng.integers(-127, 128, n_dims).astype(np.int8)
    wanted = (vectors.astype(np.int64) @ query.astype(np.int64)) * scales.astype(np.float64)
    assert np.allclose(products(vectors, scales, query), wanted, rtol=1e-5)
