"""The paper's alignment, question by question."""

from hypothesis import given
from hypothesis import strategies as st

from core.bench.run.pilot import Pilot


def arranged(pilot, blocks):
    return [blocks[place] for place in pilot.arrange(blocks)]


def test_the_first_question_keeps_its_order_and_the_next_follows_it():
    pilot = Pilot()
    assert arranged(pilot, [3, 1, 2]) == [3, 1, 2]
    assert arranged(pilot, [2, 9, 1, 3]) == [3, 1, 2, 9]
    assert arranged(pilot, [1, 3, 7]) == [3, 1, 7], "the path is left where the next block is not asked for"


def test_a_child_whose_first_block_is_not_asked_for_helps_nobody():
    pilot = Pilot()
    arranged(pilot, [5, 1, 2])
    assert arranged(pilot, [2, 1]) == [2, 1]


def test_of_two_paths_the_nearer_one_is_taken():
    pilot = Pilot()
    arranged(pilot, [1, 10, 11, 12])
    arranged(pilot, [2, 3, 4])
    assert arranged(pilot, [1, 4, 3, 2]) == [2, 3, 4, 1]


@given(st.lists(st.lists(st.integers(0, 8), unique=True, max_size=6), max_size=20))
def test_every_order_is_a_permutation(contexts):
    pilot = Pilot()
    for context in contexts:
        assert sorted(arranged(pilot, context)) == sorted(context)
