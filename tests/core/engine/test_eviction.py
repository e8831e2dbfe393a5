"""Eviction against a list that is scanned, and what it learns."""

import random

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from core.engine import eviction_kernels as kernels
from core.engine.eviction import MAX_STATE_BYTES, ROOT, LeafQueue
from core.errors import BugError, DamagedState


class Naive:
    """Nodes in a dictionary; the victim by looking at all of them."""

    def __init__(self, queue):
        self.queue = queue
        self.nodes = {}
        self.request = 0

    def leaves(self):
        parents = {node["parent"] for node in self.nodes.values()}
        return [slot for slot, node in self.nodes.items() if slot not in parents and not node["pins"]]

    def age_key(self, slot):
        return (self.nodes[slot]["used"], slot)

    def oldest(self):
        return min(self.leaves(), key=self.age_key, default=None)

    def learned(self):
        """The oldest leaf of each class, and of these the one of the lowest value."""
        classes = {}
        for slot in self.leaves():
            of = int(self.queue._nodes[slot, kernels.CLASS])
            if of not in classes or self.age_key(slot) < self.age_key(classes[of]):
                classes[of] = slot
        return min((classes[of] for of in sorted(classes)), key=self.queue.value, default=None)


class Machine(RuleBasedStateMachine):
    policy = "learned"

    def __init__(self):
        super().__init__()
        self.queue = LeafQueue(self.policy)
        self.naive = Naive(self.queue)

    def pick(self, choice):
        slots = sorted(self.naive.nodes)
        return slots[choice % len(slots)]

    @rule()
    def next_request(self):
        self.queue.next_request()
        self.naive.request += 1

    @rule(choice=st.integers(0, 10**6), count=st.integers(1, 7), seconds=st.sampled_from([0.1, 1.0, 9.0]))
    def insert(self, choice, count, seconds):
        parent = sorted({ROOT, *self.naive.nodes})[choice % (len(self.naive.nodes) + 1)]
        slot = self.queue.insert(parent, count=count, seconds=seconds, n_bytes=100)
        assert slot not in self.naive.nodes
        self.naive.nodes[slot] = {"parent": parent, "used": self.naive.request, "pins": 0}

    @precondition(lambda self: self.naive.nodes)
    @rule(choice=st.integers(0, 10**6), count=st.integers(0, 7))
    def use(self, choice, count):
        slot = self.pick(choice)
        self.queue.use(slot, count=count)
        self.naive.nodes[slot]["used"] = self.naive.request

    @precondition(lambda self: self.naive.nodes)
    @rule(choice=st.integers(0, 10**6))
    def pin(self, choice):
        slot = self.pick(choice)
        self.queue.pin(slot)
        self.naive.nodes[slot]["pins"] += 1

    @precondition(lambda self: self.naive.nodes)
    @rule(choice=st.integers(0, 10**6))
    def unpin(self, choice):
        slot = self.pick(choice)
        if self.naive.nodes[slot]["pins"]:
            self.queue.unpin(slot)
            self.naive.nodes[slot]["pins"] -= 1
        else:
            with pytest.raises(BugError):
                self.queue.unpin(slot)

    @precondition(lambda self: self.naive.nodes)
    @rule(choice=st.integers(0, 10**6))
    def remove(self, choice):
        slot = self.pick(choice)
        if any(node["parent"] == slot for node in self.naive.nodes.values()):
            with pytest.raises(BugError):
                self.queue.remove(slot)
        else:
            self.queue.remove(slot)
            del self.naive.nodes[slot]

    @rule(n=st.integers(1, 4))
    def evict(self, n):
        for _ in range(n):
            slot = self.queue.victim()
            if slot is None:
                return
            self.queue.remove(slot)
            del self.naive.nodes[slot]

    @invariant()
    def the_victim_is_the_naive_one(self):
        assert len(self.queue) == len(self.naive.nodes)
        expected = self.naive.oldest() if self.policy == "lru" else self.naive.learned()
        assert self.queue.victim() == expected


class LruMachine(Machine):
    policy = "lru"


TestLearned = Machine.TestCase
TestLru = LruMachine.TestCase
TestLearned.settings = TestLru.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_what_is_used_again_stays():
    queue = LeafQueue()
    hot = [queue.insert(ROOT, count=9) for _ in range(10)]
    for _ in range(300):
        queue.next_request()
        for slot in hot:
            queue.use(slot)
        queue.insert(ROOT, count=1)
        while len(queue) > 40:
            slot = queue.victim()
            assert slot not in hot
            queue.remove(slot)


def test_what_is_cheap_to_compute_goes_first():
    queue = LeafQueue()
    queue.next_request()
    dear = [queue.insert(ROOT, seconds=5.0, n_bytes=1000) for _ in range(5)]
    cheap = [queue.insert(ROOT, seconds=0.1, n_bytes=1000) for _ in range(5)]
    for _ in range(5):
        slot = queue.victim()
        assert slot in cheap
        queue.remove(slot)
    assert queue.value(dear[0]) > 0


def test_everything_pinned_leaves_no_victim():
    queue = LeafQueue()
    assert queue.victim() is None
    slot = queue.insert(ROOT)
    queue.pin(slot)
    queue.pin(slot)
    queue.unpin(slot)
    assert queue.victim() is None
    queue.unpin(slot)
    assert queue.victim() == slot


def test_slots_that_are_not_there_are_bugs():
    queue = LeafQueue()
    slot = queue.insert(ROOT)
    queue.remove(slot)
    for call in (queue.use, queue.remove, queue.pin, queue.unpin, queue.value, queue.insert):
        for wrong in (slot, -1, 10**9):
            with pytest.raises(BugError):
                call(wrong)
    with pytest.raises(BugError):
        queue.remove(ROOT)


def test_a_storm_of_evictions_keeps_memory_flat():
    rng = random.Random(3)
    queue = LeafQueue()
    children = {ROOT: {}}
    for number in range(20_000):
        queue.next_request()
        at = ROOT
        for depth in range(1 + number % 5):
            element = int(rng.paretovariate(0.7)) % 300
            below = children[at].get(element)
            if below is None:
                below = queue.insert(at, count=1 + depth)
                children[at][element] = below
                children[below] = {"up": (at, element)}
            else:
                queue.use(below)
            at = below
        while len(queue) > 500:
            slot = queue.victim()
            parent, element = children.pop(slot)["up"]
            del children[parent][element]
            queue.remove(slot)
        if number == 1000:
            size = queue.n_bytes
    assert queue.n_bytes == size
    assert len(queue) == 500
    assert np.isfinite(queue.state()["model"]).all()


def test_what_was_learned_survives_and_is_bounded():
    queue = LeafQueue()
    for _ in range(200):
        queue.next_request()
        slot = queue.insert(ROOT, seconds=2.0, n_bytes=50)
        queue.next_request()
        queue.use(slot)
    state = queue.state()
    assert sum(array.nbytes for array in state.values()) <= MAX_STATE_BYTES
    other = LeafQueue()
    assert not np.array_equal(other.state()["model"], state["model"])
    other.restore(state)
    assert all(np.array_equal(other.state()[name], state[name]) for name in state)
    for damage in (
        {"version": np.array(7)},
        {"model": np.zeros(3)},
        {"model": np.full_like(state["model"], np.nan)},
        {"mean": np.array(-1.0)},
        {"mean": "x"},
    ):
        with pytest.raises(DamagedState):
            other.restore({**state, **damage})
    with pytest.raises(ValueError):
        other.restore({})
    assert np.array_equal(other.state()["model"], state["model"])
