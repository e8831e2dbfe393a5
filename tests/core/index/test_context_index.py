"""The context index against a dictionary of paths and brute force over all of them."""

import random

import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import best_company_by_brute_force, best_path_by_brute_force

from core.errors import BugError
from core.index import ContextIndex
from core.types import Committed, Evicted, MissReason, Rooted, Weighed

ROOT = b"root"


def key(path: tuple[int, ...]) -> bytes:
    return ROOT + b"".join(element.to_bytes(8, "little") for element in path)


def tokens(element: int) -> int:
    return 10 + element % 97


def build(paths: set[tuple[int, ...]]) -> ContextIndex:
    index = ContextIndex(ROOT)
    for path in sorted(paths, key=len):
        index.apply(Committed(key(path), key(path[:-1]), path[-1], tokens(path[-1])))
    return index


def closed(paths: set[tuple[int, ...]]) -> set[tuple[int, ...]]:
    return {path[:n] for path in paths for n in range(1, len(path) + 1)}


elements = st.integers(0, 6) | st.sampled_from([2**31, 2**63 + 11, 2**64 - 1])
paths = st.lists(st.lists(elements, min_size=1, max_size=4, unique=True).map(tuple), max_size=12).map(set)


@settings(max_examples=300)
@given(paths, st.lists(elements, max_size=7, unique=True), st.booleans())
def test_best_path_is_the_best_of_all_paths(raw, wanted, below):
    tree = closed(raw)
    index = build(tree)
    start = next((path for path in sorted(tree) if len(path) == 1), ()) if below else ()
    match = index.best_path(key(start), wanted)
    expected = best_path_by_brute_force(tree, start, wanted, tokens)
    assert match.n_tokens == sum(tokens(wanted[i]) for i in match.order)
    assert match.n_tokens == expected
    assert (*start, *(wanted[i] for i in match.order)) in tree | {start}


@settings(max_examples=300)
@given(
    paths,
    st.lists(elements, max_size=5, unique=True),
    st.frozensets(elements),
    st.booleans(),
    st.integers(0, 300),
    st.sampled_from([0.0, 0.25, 1.0]),
)
def test_best_company_is_the_best_of_all_paths_of_blocks(raw, wanted, blocks, below, most, price):
    tree = closed(raw)
    blocks |= set(wanted)
    index = ContextIndex(ROOT)
    for path in sorted(tree, key=len):
        name = f"{path[-1]:x}" if path[-1] in blocks else ""
        index.apply(Committed(key(path), key(path[:-1]), path[-1], tokens(path[-1]), name))
    start = next((path for path in sorted(tree) if len(path) == 1), ()) if below else ()
    found = index.best_company(key(start), wanted, most_foreign=most, price=price)
    worth = best_company_by_brute_force(tree, start, wanted, blocks, tokens, most, price)
    assert found.weight - price * found.n_foreign_tokens == worth
    assert (*start, *found.elements) in tree | {start}
    assert found.block_ids == tuple(f"{element:x}" for element in found.elements)
    assert found.weight == sum(tokens(element) for element in found.elements if element in wanted)
    assert found.n_foreign_tokens == sum(tokens(e) for e in found.elements if e not in wanted) <= most
    assert not found.elements or found.elements[-1] in wanted
    barred = frozenset(found.elements) - set(wanted)
    again = index.best_company(key(start), wanted, most_foreign=most, price=price, without=barred)
    worth = best_company_by_brute_force(tree, start, wanted, blocks - barred, tokens, most, price)
    assert again.weight - price * again.n_foreign_tokens == worth
    assert index.best_company(key(start), wanted, most_foreign=most, price=price) == found


@settings(max_examples=200)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 10**6)), max_size=60))
def test_index_equals_a_set_of_paths_after_any_commits_and_evictions(steps):
    index, tree = ContextIndex(ROOT), set()
    for grow, choice in steps:
        if grow or not tree:
            parent = sorted(tree | {()})[choice % (len(tree) + 1)]
            element = choice % 7
            path = (*parent, element)
            if element in parent or path in tree:
                continue
            tree.add(path)
            index.apply(Committed(key(path), key(parent), element, tokens(element), f"{element}"))
        else:
            leaves = sorted(p for p in tree if not any(q[:-1] == p for q in tree))
            path = leaves[choice % len(leaves)]
            tree.remove(path)
            index.apply(Evicted(key(path)))
        assert len(index) == len(tree)
    wanted = list(range(7))
    assert index.best_path(ROOT, wanted).n_tokens == best_path_by_brute_force(tree, (), wanted, tokens)
    found = index.best_company(ROOT, [3], most_foreign=10**6, price=0.0)
    assert bool(found.elements) == any(3 in path for path in tree)
    assert found.elements in tree | {()}


def test_thousands_of_children_under_one_node():
    index = ContextIndex(ROOT)
    for element in range(5000):
        index.apply(Committed(key((element,)), ROOT, element, 1))
    assert index.best_path(ROOT, [4999, 17]).order == (0,)
    for element in range(5000):
        index.apply(Evicted(key((element,))))
    assert len(index) == 0
    assert index.best_path(ROOT, [4999, 17]).order == ()


def test_repeated_and_empty_and_long_contexts():
    index = build(closed({(1, 2, 3)}))
    assert index.best_path(ROOT, []).order == ()
    assert index.best_path(ROOT, [3, 3, 2, 1, 1, 2]).order == (3, 2, 0)
    assert index.best_company(ROOT, [3, 3], most_foreign=10**6, price=0.0).elements == ()  # no block ids
    long = [*random.Random(0).sample(range(10**6), 197), 2, 1, 3]
    assert index.best_path(ROOT, long).order == (198, 197, 199)
    assert index.best_path(b"unknown", [1]).order == ()


def test_a_question_between_two_blocks_is_never_skipped_over():
    question = 999
    index = build(closed({(1, question, 2)}))
    assert index.best_path(ROOT, [1, 2]).order == (0,)


def test_events_out_of_order_are_bugs():
    index = build(closed({(1, 2)}))
    for event in (
        Evicted(key((1,))),
        Evicted(b"?"),
        Committed(key((1,)), ROOT, 1, 1),
        Committed(b"x", b"?", 1, 1),
    ):
        with pytest.raises(BugError):
            index.apply(event)
    assert index.best_path(ROOT, [2, 1]).n_tokens == tokens(1) + tokens(2)


def test_misses_are_explained():
    index = ContextIndex(ROOT)
    assert index.why_missing(1) is MissReason.FIRST_QUESTION
    for event in build_events((1, 2)):
        index.apply(event)
    assert index.why_missing(3) is MissReason.NEVER_SEEN
    assert index.why_missing(2) is MissReason.OTHER_PREFIX
    index.apply(Evicted(key((1, 2))))
    assert index.why_missing(2) is MissReason.EVICTED


def build_events(path):
    return [Committed(key(path[:n]), key(path[: n - 1]), path[n - 1], 1) for n in range(1, len(path) + 1)]


@settings(max_examples=200)
@given(paths, st.lists(elements, max_size=6, unique=True), st.randoms(use_true_random=False))
def test_weights_and_the_runner_up(raw, wanted, rng):
    tree = closed(raw)
    index = build(tree)
    weights = {}
    for path in sorted(tree):
        weights[path] = rng.randrange(1, 1000)
        index.weigh(key(path), weights[path])
    match = index.best_path(ROOT, wanted)
    allowed = {path for path in tree if set(path) <= set(wanted)}
    total = {path: sum(weights[path[:n]] for n in range(1, len(path) + 1)) for path in allowed}
    best = tuple(wanted[i] for i in match.order)
    assert match.weight == max(total.values(), default=0) == total.get(best, 0)
    assert match.n_tokens == sum(tokens(element) for element in best)
    others = [value for path, value in total.items() if path != best[: len(path)]]
    assert match.runner_up == max(others, default=0)


@settings(max_examples=100)
@given(st.lists(st.lists(elements, min_size=1, max_size=5, unique=True), max_size=12), st.booleans())
def test_events_at_once_are_the_same_as_one_by_one(raw, long_keys):
    """Keys of 16 bytes take the short way, others the long one."""
    name = key if long_keys else (lambda path: xxhash.xxh3_128_digest(key(path)))
    events, tree = [], set()
    for path in map(tuple, raw):
        for n in range(1, len(path) + 1):
            if path[:n] not in tree:
                tree.add(path[:n])
                parent = name(path[: n - 1]) if n > 1 else ROOT
                events.append(Committed(name(path[:n]), parent, path[n - 1], tokens(path[n - 1])))
        if len(path) > 3:
            tree.remove(path)
            events.append(Evicted(name(path)))
    one_by_one, at_once = ContextIndex(ROOT), ContextIndex(ROOT)
    for event in events:
        one_by_one.apply(event)
    at_once.apply_all(events)
    wanted = [0, 1, 2, 3, 4, 5, 6, 2**31]
    assert len(at_once) == len(one_by_one) == len(tree)
    assert at_once.best_path(ROOT, wanted) == one_by_one.best_path(ROOT, wanted)
    for element in wanted:
        assert at_once.why_missing(element) == one_by_one.why_missing(element)


def test_the_first_event_out_of_order_stops_the_others():
    index = ContextIndex(bytes(16))
    good, unknown, late = (
        Committed(b"%016d" % 1, bytes(16), 1, 5),
        Committed(b"%016d" % 2, b"%016d" % 9, 2, 5),
        Committed(b"%016d" % 3, bytes(16), 3, 5),
    )
    with pytest.raises(BugError):
        index.apply_all([good, unknown, late])
    assert len(index) == 1
    assert index.best_path(bytes(16), [3, 2, 1]).order == (2,)
    assert index.why_missing(2) is MissReason.NEVER_SEEN
    with pytest.raises(BugError):
        index.weigh(b"?", 5)


def test_a_storm_of_commits_and_evictions_keeps_memory_flat():
    rng = random.Random(4)
    index, held = ContextIndex(bytes(16)), []
    for number in range(20_000):
        name = (number + 1).to_bytes(16, "big")
        index.apply(Committed(name, bytes(16), rng.randrange(2**64), 5))
        held.append(name)
        while len(held) > 400:
            index.apply(Evicted(held.pop(rng.randrange(len(held)))))
        if number == 1000:
            size = index.n_bytes
    assert index.n_bytes == size
    assert len(index) == 400
    assert len(index._elements) <= 402


def test_namespaces_know_nothing_of_each_other():
    index = ContextIndex(ROOT)
    index.apply(Rooted(b"other"))
    index.apply(Committed(key((1,)), ROOT, 1, 10))
    index.apply(Committed(b"1 of other", b"other", 1, 10))
    index.apply(Committed(b"2 of other", b"1 of other", 2, 20))
    assert len(index) == 3
    assert index.best_path(ROOT, [2, 1]).order == (1,)
    assert index.best_path(b"other", [2, 1]).order == (1, 0)
    assert index.why_missing(2, b"other") is MissReason.OTHER_PREFIX
    assert index.why_missing(2, ROOT) is MissReason.NEVER_SEEN, "it was asked elsewhere only"
    index.apply(Evicted(b"2 of other"))
    assert index.why_missing(2, b"other") is MissReason.EVICTED
    assert index.why_missing(2, ROOT) is MissReason.NEVER_SEEN
    with pytest.raises(BugError):
        index.apply(Rooted(b"other"))
    with pytest.raises(BugError):
        index.apply(Evicted(b"other"))


def test_many_namespaces_survive_growing():
    index = ContextIndex()
    for number in range(40):
        index.apply(Rooted(f"root {number}".encode()))
        index.apply_all(
            [Committed(f"{number}/{i}".encode(), f"root {number}".encode(), i, 1) for i in range(20)]
        )
    for number in range(40):
        assert index.best_path(f"root {number}".encode(), [19]).order == (0,)
    assert len(index) == 800


def test_the_path_that_saves_most_where_it_is_now_wins():
    index = ContextIndex(ROOT)
    for event in (Committed(b"a", ROOT, 1, 100), Committed(b"b", ROOT, 2, 90)):
        index.apply(event)
    assert index.best_path(ROOT, [1, 2]).order == (0,)
    index.apply(Weighed(b"a", 80))  # it is on a slow disk only
    match = index.best_path(ROOT, [1, 2])
    assert (match.order, match.n_tokens, match.weight, match.runner_up) == ((1,), 90, 90, 80)


def test_company_knows_nothing_of_other_namespaces_and_of_questions():
    index = ContextIndex(ROOT)
    index.apply(Rooted(b"other"))
    for root in (ROOT, b"other"):
        index.apply(Committed(root + b"1", root, 1, 10, "a"))
        index.apply(Committed(root + b"12", root + b"1", 2, 20, "b"))
    index.apply(Committed(b"question", ROOT + b"1", 99, 5))
    index.apply(Committed(b"behind it", b"question", 3, 30, "c"))
    for root in (ROOT, b"other"):
        found = index.best_company(root, [2], most_foreign=10, price=0.0)
        assert (found.block_ids, found.elements, found.weight) == (("a", "b"), (1, 2), 20)
    assert index.best_company(ROOT, [3], most_foreign=10**6, price=0.0).block_ids == ()
    assert index.best_company(b"unknown", [2], most_foreign=10, price=0.0).block_ids == ()
    index.apply(Evicted(ROOT + b"12"))
    assert index.best_company(ROOT, [2], most_foreign=10, price=0.0).block_ids == ()
    assert index.best_company(b"other", [2], most_foreign=10, price=0.0).block_ids == ("a", "b")


def test_arrays_of_elements_grow_with_them():
    index = ContextIndex(ROOT)
    for number in range(1500):
        index.apply(Committed(f"{number}".encode(), ROOT, number, 5, f"{number:x}"))
    found = index.best_company(ROOT, [1499, 3], most_foreign=0, price=1.0)
    assert found.elements == (1499,)
