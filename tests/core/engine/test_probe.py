"""What benchmarks ask of the model: moved KV is near and not equal, weighing a text leaves no trace."""

import numpy as np
import pytest

from core.bench.run.quality import divergence
from core.config import Settings
from core.engine.probe import ProbingEngine
from core.engine.protocol import CancelFlag

pytestmark = pytest.mark.model


@pytest.fixture
def engine(tiny_model):
    engine = ProbingEngine(tiny_model, Settings(n_ctx=512))
    yield engine
    engine.close()


def words(engine, text):
    return engine.tokenize(text, special=False)


def read(engine, *parts):
    at = 0
    engine.clear()
    for tokens in parts:
        engine.prefill(tokens, at, CancelFlag())
        at += len(tokens)
    return engine.logits().copy()


def test_every_row_is_what_reading_so_far_gives_and_nothing_stays(engine):
    head, tail = words(engine, "The rent of the house is"), words(engine, " nine hundred euros a month")
    whole = read(engine, head, tail)
    read(engine, head)
    rows = engine.logits_after(tail, len(head))
    assert rows.shape == (len(tail), len(whole))
    assert np.array_equal(rows[-1], whole)
    engine.prefill(tail, len(head), CancelFlag())
    assert np.array_equal(engine.logits(), whole), "the live sequence was left as it was"
    read(engine, head)
    engine.prefill(tail[:3], len(head), CancelFlag())
    assert divergence(engine.logits(), rows[2]) < 1e-3, "the same but for how it was batched"


def test_kv_that_stays_in_its_place_is_exact_and_moved_it_is_near(engine):
    head = words(engine, "You answer from the passages. ")
    block = words(engine, "The rent of the house is nine hundred euros a month, due on the third day. ")
    other = words(engine, "The garden is looked after by the tenant, who also pays for the water. ")
    ask = words(engine, "What is the rent?")
    read(engine, head, block)
    saved = engine.save(len(head), len(head) + len(block))

    exact = read(engine, head, block, ask)
    read(engine, head)
    assert engine.load_moved(saved, len(head), len(head), len(block))
    engine.prefill(ask, len(head) + len(block), CancelFlag())
    assert np.array_equal(engine.logits(), exact)

    exact = read(engine, head, other, block, ask)
    read(engine, head, other)
    at = len(head) + len(other)
    assert engine.load_moved(saved, len(head), at, len(block))
    engine.prefill(ask, at + len(block), CancelFlag())
    near = divergence(exact, engine.logits())
    assert 0 < near < divergence(exact, read(engine, head, other, ask)), "nearer than without the block"


def test_a_snapshot_of_another_place_is_refused(engine):
    head, block = words(engine, "A beginning. "), words(engine, "And something behind it.")
    read(engine, head, block)
    saved = engine.save(len(head), len(head) + len(block))
    expected = read(engine, head, block)
    read(engine, head)
    assert not engine.load_moved(saved, len(head) + 1, 40, len(block))
    engine.prefill(block, len(head), CancelFlag())
    assert np.array_equal(engine.logits(), expected)
