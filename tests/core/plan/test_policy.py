"""The policy leaves alone what saves little or risks much, and says why."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.plan.policy import SHORTEST_PART, Prospect, TimeLeft, Way, as_found, decide, kind_of, within_time
from core.types import CollectionInfo
from core.work import tokens_within

GOOD = Prospect("Who is the landlord?", 900, 300, 0.006, 1, 7_000_000_000, "")


def test_what_saves_seconds_at_no_risk_is_done():
    decision = decide(GOOD)
    assert decision.way is Way.ALIGN_AND_SHORTEN
    assert "7.2 s" in decision.reason
    assert decide(replace(GOOD, n_shortened_tokens=0)).way is Way.ALIGN


def test_small_prompts_are_left_alone():
    decision = decide(replace(GOOD, n_aligned_tokens=10, n_shortened_tokens=5))
    assert decision.way is Way.EXACT
    assert "too little" in decision.reason
    assert "nothing" in decide(replace(GOOD, n_aligned_tokens=0, n_shortened_tokens=0)).reason


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"question": "What are the steps after the first wash?"}, "order"),
        ({"question": "List all tenants."}, "all of something"),
        ({"question": "首先要做什么？"}, "order"),
        ({"ordered_content": "code"}, "code"),
        ({"best_moved_by": 7}, "moved far"),
        ({"n_parameters": 135_000_000}, "small"),
    ],
)
def test_each_risk_asks_for_more(change, reason):
    little = replace(GOOD, n_aligned_tokens=60, n_shortened_tokens=0)
    assert decide(little).way is Way.ALIGN
    risky = decide(replace(little, **change))
    assert risky.way is Way.EXACT
    assert reason in risky.reason
    assert decide(replace(GOOD, n_shortened_tokens=0, **change)).way is Way.ALIGN


def test_many_risks_are_too_many():
    many = replace(GOOD, question="List all steps in order", ordered_content="steps", n_aligned_tokens=10**6)
    assert decide(replace(many, n_shortened_tokens=0)).way is Way.EXACT


@given(
    st.integers(0, 5000),
    st.integers(0, 5000),
    st.sampled_from([0.0, 0.001, 0.01]),
    st.integers(0, 9),
    st.sampled_from([0, 135_000_000, 8_000_000_000]),
    st.sampled_from(["", "code", "dates"]),
)
def test_saving_more_never_turns_it_off(aligned, shortened, rate, moved, size, kind):
    prospect = Prospect("Who pays?", aligned, shortened, rate, moved, size, kind)
    more = replace(prospect, n_aligned_tokens=aligned + 500, n_shortened_tokens=shortened + 500)
    order = list(Way)
    assert order.index(decide(prospect).way) <= order.index(decide(more).way)
    assert decide(prospect).reason.endswith(".")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("def a():\n    return 1\n\n\nclass B:\n    x = 1\n", "code"),
        ("1. Open the door.\n2. Fill in salt.\n3. Close it.", "steps"),
        ("Ada: Hello.\nBob: Hello, Ada.\nAda: Shall we?", "dialogue"),
        ("Paid on 3 May 2024, on 2024-06-03 and on 3.7.2024.", "dates"),
        ("The tenant keeps the garden in good repair.", ""),
    ],
)
def test_content_whose_order_matters_is_known(text, kind):
    assert kind_of(text) == kind


@given(st.lists(st.tuples(st.integers(1, 500), st.booleans()), max_size=12), st.integers(0, 1500))
def test_cached_passages_ride_free_and_the_rest_keeps_to_the_time(passages, room):
    sizes, free = [size for size, _ in passages], [is_free for _, is_free in passages]
    taken = within_time(sizes, free, room)
    assert list(taken) == sorted(set(taken))
    assert {n for n, is_free in enumerate(free) if is_free} <= set(taken)
    paid = sum(sizes[n] for n in taken if not free[n])
    assert paid <= room or taken == (0,)
    assert bool(taken) == bool(passages)


@given(st.lists(st.tuples(st.integers(1, 500), st.booleans()), max_size=12), st.integers(0, 1500))
def test_of_the_first_passage_that_does_not_fit_a_part_is_read(passages, room):
    sizes, free = [size for size, _ in passages], [is_free for _, is_free in passages]
    parts = []

    def part_of(index, left):
        if left < 50:
            return 0
        parts.append((index, left))
        return left - 10

    taken = within_time(sizes, free, room, part_of)
    assert len(parts) <= 1
    whole = [n for n in taken if not free[n]]
    left_out = [n for n in range(len(sizes)) if n not in taken]
    if parts == [(0, SHORTEST_PART)] and room < 50:
        assert not taken, "an answer from nothing is none"
        assert not within_time(sizes, free, room, part_of, needed=False)
    elif parts:
        ((part, left),) = parts
        assert part == left_out[0], "relevance first"
        assert left == room - sum(sizes[n] for n in whole if n < part)
        assert sum(sizes[n] for n in whole) + left - 10 <= room
    else:
        for n in left_out:
            assert room - sum(sizes[one] for one in whole if one < n) < 50, "too little for a part"


def test_what_is_cached_makes_what_is_read_behind_it_dearer():
    left = TimeLeft(work=400.0, attention=0.001, before=100, after=50)
    assert left.room(0) == tokens_within(400.0, 100, 0.001) - 50
    assert left.room(2000) < left.room(0) / 3
    assert replace(left, attention=0.0).room(2000) == 350
    assert replace(left, after=500).room(0) == 0


def test_collections_that_leave_passages_as_found_are_named():
    tax, flat, work = (
        CollectionInfo(n, name, as_found=True) for n, name in enumerate(("Tax", "Flat", "Work"))
    )
    plain = CollectionInfo(9, "Plain", apart=True)
    assert as_found([plain]) == ""
    assert as_found([plain, tax]) == "Passages stand as found: the collection “Tax” is set so."
    assert as_found([tax, flat, work]).endswith("the collections “Tax”, “Flat” and “Work” are set so.")
