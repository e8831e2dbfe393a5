import numpy as np
import pytest

from core.engine.sampling import Sampler, repeats_itself, repeats_lines
from core.types import SamplingOptions

LOGITS = np.array([0.0, 3.0, 2.9, -5.0], np.float32)


def test_greedy_takes_the_largest_and_the_first_of_equals():
    sampler = Sampler(SamplingOptions())
    assert sampler.pick(LOGITS) == 1
    assert sampler.pick(np.array([1, 2, 2], np.float32)) == 1


def test_the_seed_decides_every_draw():
    def draws(seed):
        sampler = Sampler(SamplingOptions(temperature=1.0, top_p=1.0, seed=seed))
        return [sampler.pick(LOGITS) for _ in range(40)]

    assert draws(1) == draws(1)
    assert draws(1) != draws(2)


def test_frequencies_follow_the_softmax():
    sampler = Sampler(SamplingOptions(temperature=1.0, top_p=1.0))
    counts = np.bincount([sampler.pick(LOGITS) for _ in range(20_000)], minlength=4) / 20_000
    expected = np.exp(LOGITS) / np.exp(LOGITS).sum()
    assert counts == pytest.approx(expected, abs=0.02)


def test_top_p_keeps_the_smallest_set_that_reaches_it():
    sampler = Sampler(SamplingOptions(temperature=1.0, top_p=0.5))
    assert {sampler.pick(LOGITS) for _ in range(200)} == {1}
    sampler = Sampler(SamplingOptions(temperature=1.0, top_p=0.6))
    assert {sampler.pick(LOGITS) for _ in range(200)} == {1, 2}


def test_logits_are_not_changed():
    logits = LOGITS.copy()
    Sampler(SamplingOptions(temperature=0.5)).pick(logits)
    assert np.array_equal(logits, LOGITS)


def test_loops_are_noticed_and_lists_are_not():
    rng = np.random.default_rng(0)
    free = [int(t) for t in rng.integers(0, 1000, 200)]
    assert not repeats_itself(free)
    assert repeats_itself([*free, *[7] * 36])
    assert not repeats_itself([*free, *[7] * 20])
    piece = free[:20]
    assert repeats_itself([*free, *piece * 3])
    assert not repeats_itself([*free, *piece * 2])
    assert not repeats_itself([*piece * 3, 1])
    assert not repeats_itself([])


def test_runaway_lists_are_noticed():
    runaway = "".join(f"{n}. The deposit of flat 5 paid back.\n" for n in range(8, 11))
    assert repeats_lines(runaway)
    assert repeats_lines("A list:\n\n" + runaway)
    assert not repeats_lines(runaway[:-1]), "the last line may still become another"
    assert not repeats_lines(runaway + "11. Something else.\n")
    assert not repeats_lines("yes\nyes\nyes\n")
    assert not repeats_lines("")
