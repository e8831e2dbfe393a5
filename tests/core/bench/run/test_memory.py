"""Two policies on one model context: each finds its sequence as it left it, to the bit."""

import numpy as np
import pytest

from core.bench.run.memory import Seat, SharedEngine
from core.config import Settings
from core.engine.probe import ProbingEngine
from core.engine.protocol import CancelFlag
from core.errors import BugError

pytestmark = pytest.mark.model


@pytest.fixture
def engine(tiny_model):
    engine = ProbingEngine(tiny_model, Settings(n_ctx=1024))
    yield engine
    engine.close()


def chunk(seed, n=40):
    return np.random.default_rng(seed).integers(100, 20_000, n).astype(np.int32)


def read(seat, *seeds):
    at = seat.pieces[-1].end if seat.pieces else 0
    for seed in seeds:
        tokens = chunk(seed)
        seat.prefill(tokens, at, CancelFlag())
        at += len(tokens)
    return seat.logits().copy()


def test_what_a_policy_left_is_there_when_it_comes_back(engine):
    shared = SharedEngine(engine)
    one, other = Seat(shared), Seat(shared)
    shared.enter(one)
    read(one, 1, 2)
    shared.enter(other)
    read(other, 1, 5, 6)
    shared.enter(one)
    there = read(one, 3)
    shared.enter(other)
    other.cut(40)
    assert np.array_equal(read(other, 2, 3), there), "the same path under the other policy"
    cold = Seat(shared)
    shared.enter(cold)
    assert np.array_equal(read(cold, 1, 2, 3), there)
    assert shared.n_unequal == 0
    assert shared.seconds > 0


def test_equal_snapshots_are_one_array(engine):
    shared = SharedEngine(engine)
    seats = [Seat(shared), Seat(shared)]
    saved = []
    for seat in seats:
        shared.enter(seat)
        seat.clear()
        read(seat, 1, 2)
        saved.append(seat.save(40, 80))
    assert saved[0] is saved[1]


def test_a_policy_out_of_turn_is_a_bug(engine):
    shared = SharedEngine(engine)
    one, other = Seat(shared), Seat(shared)
    shared.enter(one)
    with pytest.raises(BugError, match="another one"):
        read(other, 1)
    read(one, 1)
    with pytest.raises(BugError, match="within a chunk"):
        one.cut(7)


def test_what_was_computed_once_is_recalled_and_the_clock_says_what_it_took(engine):
    shared = SharedEngine(engine)
    one, other = Seat(shared), Seat(shared)
    shared.recalling = True
    for seat in (one, other):
        seat.token_s = 1.0
        before = seat.clock()
        read(seat, 1, 2)
        assert 80 <= seat.clock() - before < 81
    assert one.pieces[1].snapshot is other.pieces[1].snapshot is not None
    shared.recalling = False
    shared.enter(other)
    recalled = read(other, 3)
    cold = Seat(shared)
    shared.enter(cold)
    assert np.array_equal(read(cold, 1, 2, 3), recalled)
