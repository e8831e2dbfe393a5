import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.store.documents import DocumentStore, NewBlock, NewDocument
from core.store.vectors import VectorStore, quantized
from core.types import Block

N_DIMS = 8


def unit(*rows):
    found = np.array(rows, np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.fixture
def store(db):
    documents = DocumentStore(db)
    for name in ("one", "two", "three"):
        block = Block.of(f"Text of {name}.")
        documents.save(
            NewDocument(name, name, name, text=block.text, blocks=(NewBlock(block, 0, len(block.text), 5),))
        )
    return VectorStore(db, "embedder", N_DIMS)


@given(
    st.lists(st.lists(st.floats(-1, 1, width=32), min_size=N_DIMS, max_size=N_DIMS), min_size=1, max_size=5)
)
def test_quantizing_keeps_vectors_within_half_a_step(rows):
    vectors = np.array(rows, np.float32)
    whole, scales = quantized(vectors)
    assert whole.min() >= -127
    assert np.abs(whole * scales[:, None] - vectors).max() <= scales.max() * 0.51


def test_what_was_stored_comes_back(store):
    rows = store.missing(0, 10)
    assert len(rows) == 3
    rng = np.random.default_rng(0)
    windows = [unit(*rng.normal(size=(n, N_DIMS))) for n in (1, 3, 2)]
    store.add([(rowid, id_, found) for (rowid, id_, _), found in zip(rows, windows, strict=True)])
    assert store.missing(0, 10) == []
    assert store.count() == (3, 3)
    held = store.since(0)
    assert held.blocks.tolist() == [rows[0][0]] + [rows[1][0]] * 3 + [rows[2][0]] * 2
    assert np.abs(held.vectors * held.scales[:, None] - np.concatenate(windows)).max() < 0.01
    assert len(store.since(int(held.ids[-1]))) == 0


def test_vectors_go_with_their_block_and_their_number_is_never_used_again(store, db):
    rows = store.missing(0, 10)
    store.add([(rowid, id_, unit(np.ones(N_DIMS))) for rowid, id_, _ in rows])
    last = store.ids()[-1]
    DocumentStore(db).remove(3)
    assert store.count() == (2, 2)
    block = Block.of("Another text at the same rowid.")
    DocumentStore(db).save(
        NewDocument("four", "four", "four", text=block.text, blocks=(NewBlock(block, 0, len(block.text), 5),))
    )
    (new,) = store.missing(0, 10)
    assert new[0] == rows[-1][0]  # SQLite gave the rowid again
    store.add([(new[0], new[1], unit(np.ones(N_DIMS)))])
    assert store.ids()[-1] > last


def test_a_block_that_is_gone_or_another_by_now_gets_nothing(store):
    rowid, _, _ = store.missing(0, 1)[0]
    store.add([(rowid, "0123456789abcdef", unit(np.ones(N_DIMS))), (99, "x", unit(np.ones(N_DIMS)))])
    assert store.count() == (0, 3)


def test_another_embedder_starts_anew_and_can_clear_up(store, db):
    store.add([(rowid, id_, unit(np.ones(N_DIMS))) for rowid, id_, _ in store.missing(0, 10)])
    other = VectorStore(db, "other", N_DIMS)
    assert len(other.missing(0, 10)) == 3
    other.forget_others()
    assert store.count() == (0, 3)
