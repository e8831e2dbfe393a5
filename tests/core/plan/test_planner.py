"""Plans lose no block, double none, move only new ones, and fit."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from core.index import ContextIndex
from core.plan import PlanRequest, Ridable, Rules, TimeLeft, expand, make, make_whole
from core.types import Block, Committed, Context, Passage, Place, Segment, SegmentKind, Weighed

ROOT = b"root"


def passage(number):
    block = Block.of(f"Text of block {number}.")
    return Passage(block, (Place(1, f"file{number % 3}.txt", "/f", number, 0, 1, None),), 1.0, "", 0)


def segment(passage, n):
    tokens = np.frombuffer(passage.block.id.encode(), np.uint8).astype(np.int32)
    return Segment(SegmentKind.BLOCK, np.resize(tokens, n), passage.block.id)


def request(numbers, held=(), room=10_000, size=lambda number: 20):
    passages = tuple(passage(number) for number in numbers)
    segments = {p.block.id: segment(p, size(n)) for p, n in zip(passages, numbers, strict=True)}
    held_ids = tuple(passage(number).block.id for number in sorted(held))
    return PlanRequest(Context(passages, len(passages), 0.0), segments, held_ids, ROOT, room)


def index_with(*paths):
    index, keys = ContextIndex(ROOT), {(): ROOT}
    for path in paths:
        for n in range(1, len(path) + 1):
            if path[:n] in keys:
                continue
            keys[path[:n]] = repr(path[:n]).encode()
            one = segment(passage(path[n - 1]), 20)
            index.apply(Committed(keys[path[:n]], keys[path[: n - 1]], one.element, 20, one.block_id))
    return index


numbers = st.lists(st.integers(0, 8), max_size=9)


@settings(max_examples=200)
@given(numbers, st.sets(st.integers(0, 8)), st.integers(0, 200), st.permutations(range(6)))
def test_a_plan_is_a_permutation_that_fits(asked, held, room, cached):
    ask = request(asked, held, room)
    plan = make(ask, index_with(tuple(cached)))
    blocks = [block.id for block in plan.blocks]
    references = [block.id for block in plan.references]
    assert len(blocks) == len(set(blocks))
    assert not set(blocks) & set(ask.held)
    assert set(references) == {p.block.id for p in ask.context.passages} & set(ask.held)
    assert sum(len(ask.segments[id_].tokens) for id_ in blocks) <= room
    assert {p.block.id for p in plan.passages} == {*blocks, *references}
    assert plan.n_left_out == len({p.block.id for p in ask.context.passages}) - len(plan.passages)
    order = [p.block.id for p in ask.context.passages]
    assert [p.block.id for p in plan.passages] == sorted(
        dict.fromkeys(p.block.id for p in plan.passages), key=order.index
    )
    assert plan == make(ask, index_with(tuple(cached)))


def test_the_longest_cached_path_comes_first_and_the_rest_keeps_relevance_order():
    plan = make(request([1, 2, 3, 4, 5]), index_with((4, 2), (1,), (5, 9, 3)))
    assert [block.text for block in plan.blocks] == [passage(n).block.text for n in (4, 2, 1, 3, 5)]
    assert plan.match.n_tokens == 40
    assert plan.moved
    assert f"Most relevant first: {passage(1).block.label} > {passage(2).block.label}" in plan.annotation


def test_nothing_moved_means_no_ranking_line():
    plan = make(request([1, 2]), index_with((1,)))
    assert not plan.moved
    assert "Most relevant" not in plan.annotation
    assert "file1.txt" in plan.annotation


def test_held_blocks_are_referenced_and_counted():
    plan = make(request([1, 2, 3], held=[2]), index_with())
    assert [block.text for block in plan.blocks] == [passage(1).block.text, passage(3).block.text]
    assert plan.n_deduplicated_tokens == 20
    assert f"Given earlier in this conversation: {passage(2).block.label}." in plan.annotation


def test_a_passage_that_does_not_fit_gives_way_to_smaller_ones_after_it():
    plan = make(request([1, 2, 3], room=50, size=lambda n: 60 if n == 2 else 20), index_with())
    assert [block.text for block in plan.blocks] == [passage(1).block.text, passage(3).block.text]
    assert plan.n_left_out == 1


def test_what_is_held_in_relevance_order_needs_no_ranking():
    assert "Most relevant" not in make(request([1, 2, 3], held=[1, 2]), index_with()).annotation
    moved = make(request([3, 1], held=[1]), index_with()).annotation
    assert f"Most relevant first: {passage(3).block.label} > {passage(1).block.label}." in moved
    assert make(request([]), index_with()).annotation == ""


def test_a_block_found_twice_in_one_question_is_put_once():
    plan = make(request([1, 2, 1]), index_with())
    assert [block.text for block in plan.blocks] == [passage(1).block.text, passage(2).block.text]


def test_one_question_plans_the_same_after_others():
    index = index_with((4, 2))
    first, other = request([1, 2, 4]), request([2, 3])
    plan = make(first, index)
    assert {passage.block.id for passage in make(other, index).passages} == {
        passage(n).block.id for n in (2, 3)
    }
    assert make(first, index) == plan


def test_ids_and_elements_of_64_bits_are_whole():
    plan = make(request(range(9)), index_with())
    assert any(name >= 1 << 63 for name in plan.considered.names)
    assert [f"{name:016x}" for name in plan.considered.names] == [block.id for block in plan.blocks]


def test_without_surroundings_blocks_stand_whole():
    plan = make(request([1, 2, 3], held=[2]), index_with())
    assert expand(plan.forms) == tuple(block.text for block in plan.blocks)
    assert not plan.n_shortened
    assert [segment.block_id for segment in plan.segments] == [block.id for block in plan.blocks]


def test_inputs_are_not_changed():
    ask = request([3, 1, 2])
    before = replace(ask)
    make(ask, index_with((1,)))
    assert ask == before


def test_file_names_are_one_short_line():
    named = passage(1)
    named = replace(named, places=(replace(named.place, title="a\nb " + "x" * 100),))
    segments = {named.block.id: segment(named, 5)}
    plan = make(PlanRequest(Context((named,), 1, 0.0), segments, (), ROOT, 100), index_with())
    assert "\n" not in plan.annotation
    assert len(plan.annotation) < 100


def test_it_can_be_told_not_to_align():
    index = index_with((2, 1))
    assert make(request([1, 2]), index).moved
    plain = make(replace(request([1, 2]), rules=Rules(align=False)), index)
    assert not plain.moved
    assert plain.match.order == ()


def test_an_order_can_be_given_and_its_ranking_left_out():
    index = index_with((2, 1))
    given = make(
        replace(request([1, 2, 3]), rules=Rules(arrange=lambda names: range(len(names))[::-1])), index
    )
    assert [block.id for block in given.blocks] == [passage(n).block.id for n in (3, 2, 1)]
    assert "Most relevant first" in given.annotation
    silent = make(replace(request([1, 2, 3]), rules=Rules(rank=False)), index)
    assert silent.moved
    assert "Most relevant first" not in silent.annotation
    aligned = make(replace(request([1, 2]), rules=Rules(arrange=lambda _names: None)), index)
    assert aligned.match.order == (1, 0), "no order given: it is aligned after all"


def test_as_found_is_relevance_order_whatever_else_the_rules_say():
    rules = Rules(arrange=lambda names: range(len(names))[::-1], rank=False).as_found()
    index = index_with((3, 9, 1, 2))
    plan = make(replace(request([1, 2, 3]), rules=rules, ridable=ridable()), index)
    assert plan.blocks == tuple(passage(n).block for n in (1, 2, 3))
    assert (plan.moved, plan.riders) == (False, ())
    assert not rules.rank, "what comparisons took away stays away"


def test_whole_documents_stand_in_their_own_order_and_hold_every_block_once():
    ask = request([3, 1], held=[2])
    scope = [passage(n) for n in (1, 2, 3, 4)]
    segments = {p.block.id: segment(p, 20) for p in scope}
    plan = make_whole(replace(ask, segments=segments), scope)
    assert [block.id for block in plan.blocks] == [passage(n).block.id for n in (1, 3, 4)]
    assert plan.references == (), "only what was found and stands there already is referenced"
    assert [p.block.id for p in plan.passages] == [passage(n).block.id for n in (3, 1)]
    again = make_whole(replace(request([3, 1], held=[3, 2]), segments=segments), scope)
    assert [block.id for block in again.references] == [passage(3).block.id]
    assert again.n_deduplicated_tokens == 20
    assert {p.block.id for p in plan.quotable} == {p.block.id for p in scope}
    assert plan.n_deduplicated_tokens == 0
    ranking = f"Most relevant first: {passage(3).block.label} > {passage(1).block.label}."
    assert plan.annotation.splitlines()[-1] == ranking


# --- riders ------------------------------------------------------------------------------------------------


def ridable(kept_room=10_000, allowed=frozenset(range(20)), size=20):
    known = {passage(n).block.id: passage(n) for n in allowed}
    return Ridable(
        kept_room, 0.001, lambda ids: [(known[i], segment(known[i], size)) for i in ids if i in known]
    )


def texts(blocks):
    return [block.text for block in blocks]


def test_a_cached_block_that_nobody_asked_for_rides_along_to_those_behind_it():
    ask = replace(request([1, 2, 3]), ridable=ridable())
    plan = make(ask, index_with((3, 9, 2), (1,)))
    assert texts(plan.blocks) == texts(passage(n).block for n in (3, 9, 2, 1))
    assert texts(plan.riders) == [passage(9).block.text]
    assert plan.match.weight == 40
    assert [plan.considered.names[i] for i in plan.match.order] == [
        int(passage(n).block.id, 16) for n in (3, 2)
    ]
    assert passage(9).block.label not in plan.annotation, "it is no source of this question"
    first, second = passage(1).block.label, passage(2).block.label
    assert f"Most relevant first: {first} > {second}" in plan.annotation
    assert plan.moved
    assert plan.passages == ask.context.passages
    assert texts(p.block for p in plan.quotable) == texts(passage(n).block for n in (1, 2, 3, 9))


def test_no_rider_where_it_saves_nothing_has_no_room_is_not_allowed_or_not_cached_as_it_is():
    index = index_with((3, 9, 2), (1,))
    plain = make(request([1, 2, 3]), index)
    for ask in (
        replace(request([1, 2, 3], room=70), ridable=ridable()),
        replace(request([1, 2, 3]), ridable=ridable(kept_room=70)),
        replace(request([1, 2, 3]), ridable=ridable(allowed=range(9))),
        replace(request([1, 2, 3]), ridable=ridable(size=19)),
        replace(request([1, 2, 3]), ridable=ridable(), rules=Rules(ride=False)),
    ):
        plan = make(ask, index)
        assert (plan.blocks, plan.annotation, plan.riders) == (plain.blocks, plain.annotation, ())
    assert not make(replace(request([9, 3]), ridable=ridable()), index).riders
    far = index_with((11, 12, 13, 14, 2), (1,))
    assert not make(replace(request([1, 2]), ridable=ridable()), far).riders, "80 tokens to spare 20"


def test_a_path_that_holds_a_block_in_a_shorter_form_is_not_taken():
    for short in (2, 9):
        index, key = ContextIndex(ROOT), ROOT
        for number in (3, short, 9 if short == 2 else 2, 1):
            one = segment(passage(number), 10 if number == short else 20)
            index.apply(Committed(key + b"+", key, one.element, len(one.tokens), one.block_id))
            key += b"+"
        plan = make(replace(request([1, 2, 3]), ridable=ridable()), index)
        assert not plan.riders
        assert texts(plan.blocks)[0] == passage(3).block.text


def test_room_for_the_next_turn_is_kept_only_where_the_passages_leave_some():
    ask = replace(request([1, 2, 3], room=80), ridable=ridable(kept_room=59))
    assert make(ask, index_with((3, 9, 2))).riders


def test_where_one_may_not_ride_another_path_is_looked_for():
    index = index_with((3, 9, 2, 8, 1), (3, 7, 2))
    ask = replace(request([1, 2, 3]), ridable=ridable(allowed={7, 8}))
    assert texts(make(ask, index).blocks) == texts(passage(n).block for n in (3, 7, 2, 1))
    many = index_with(*((3, n, 2) for n in range(10, 16)))
    assert not make(replace(ask, ridable=ridable(allowed={10})), many).riders, "it does not look for ever"


def test_what_loading_riders_takes_counts_against_them():
    index, key = ContextIndex(ROOT), ROOT
    for number in (9, 2):
        one = segment(passage(number), 20)
        index.apply(Committed(key + b"+", key, one.element, 20, one.block_id))
        key += b"+"
    ask = replace(request([2, 3]), ridable=ridable())
    assert make(ask, index).riders
    index.apply(Weighed(ROOT + b"+", 5))
    assert not make(ask, index).riders, "15 to load it and 6 of its price, to spare 20"


def test_riders_leave_a_time_alone_and_are_not_counted_among_what_was_asked():
    ask = replace(request([1, 2, 3]), ridable=ridable(), time_left=TimeLeft(0.0, 0.0, 0, 0))
    plan = make(ask, index_with((3, 9, 2)))
    assert texts(plan.blocks) == texts(passage(n).block for n in (3, 9, 2))
    assert plan.n_over_time == 1
    assert texts(p.block for p in plan.passages) == texts(passage(n).block for n in (2, 3))


@settings(max_examples=200)
@given(numbers, st.lists(st.permutations(range(9)), max_size=2), st.integers(0, 200))
def test_with_a_time_passages_are_whole_or_left_out_but_for_one(asked, cached, work):
    def excerpt_of(passage, room):
        return None if room < 5 else (passage.block.text[:5], segment(passage, min(room, 15)))

    ask = replace(request(asked), time_left=TimeLeft(work, 0.0, 0, 10, excerpt_of))
    index = index_with(*map(tuple, cached))
    plan, timeless = make(ask, index), make(replace(ask, time_left=None), index)
    n_cached = len(timeless.match.order)
    assert plan.blocks[:n_cached] == timeless.blocks[:n_cached], "these ride free"
    read = sum(len(one.tokens) for one in plan.segments[n_cached:])
    assert read <= max(0, work - 10) or len(plan.blocks) == 1
    assert len(plan.passages) + plan.n_over_time == len(timeless.passages)
    assert {block.id for block in plan.blocks} == {p.block.id for p in plan.passages}
    if plan.excerpt:
        assert plan.blocks[-1].id == plan.excerpt == plan.segments[-1].block_id
        assert plan.forms[-1].shown == plan.blocks[-1].text[:5]
    whole = len(plan.blocks) - bool(plan.excerpt)
    assert expand(plan.forms)[:whole] == tuple(block.text for block in plan.blocks[:whole])


@settings(max_examples=200)
@given(numbers, st.integers(0, 300), st.lists(st.permutations(range(12)), max_size=3), st.integers(0, 300))
def test_riders_change_nothing_else(asked, room, cached, kept_room):
    index = index_with(*map(tuple, cached))
    ask = request(asked, room=room)
    plain, plan = make(ask, index), make(replace(ask, ridable=ridable(kept_room)), index)
    assert plan.passages == plain.passages
    assert {b.id for b in plan.blocks} == {b.id for b in (*plain.blocks, *plan.riders)}
    assert len(plan.blocks) == len(plain.blocks) + len(plan.riders)
    assert sum(len(segment.tokens) for segment in plan.segments) <= room
    assert plan.match.weight >= plain.match.weight
    assert plan.n_left_out == plain.n_left_out
