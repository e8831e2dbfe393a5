"""A state machine: the prefix cache over a memory that checks every call."""

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from core.engine.prefix_cache import PrefixCache, root_key
from core.engine.protocol import CancelFlag
from core.errors import Cancelled, EngineError
from core.index import ContextIndex
from core.prompt import lay_out
from core.types import Committed, Segment, SegmentKind

N_CTX = 2100


class FakeMemory:
    """One live sequence of tokens; refuses what a real context would get wrong in silence."""

    def __init__(self, *, can_cut: bool) -> None:
        self.n_ctx = N_CTX
        self.can_cut = can_cut
        self.tokens: list[int] = []
        self.n_prefilled = 0
        self.fail: type[Exception] | None = None

    def prefill(self, tokens, start, cancel):
        assert start == len(self.tokens), "a gap or an overlap in the live sequence"
        assert 0 < len(tokens) <= 512
        assert start + len(tokens) <= self.n_ctx
        if self.fail is not None:
            error, self.fail = self.fail, None
            if error is EngineError or not self.can_cut:
                self.tokens.clear()
            raise error("planted")
        self.tokens += [int(t) for t in tokens]
        self.n_prefilled += len(tokens)

    def decode(self, token, position, cancel):
        self.prefill(np.array([token]), position, cancel)

    def cut(self, n):
        assert self.can_cut
        assert 0 < n <= len(self.tokens)
        del self.tokens[n:]

    def clear(self):
        self.tokens.clear()


def segment(kind: int) -> Segment:
    """Seven different segments, some longer than one chunk."""
    size = (5, 130, 300, 512, 513, 40, 7)[kind]
    return Segment(SegmentKind.BLOCK, np.arange(kind * 1000, kind * 1000 + size, dtype=np.int32))


kinds = st.lists(st.integers(0, 6), min_size=1, max_size=4)


class CacheMachine(RuleBasedStateMachine):
    @initialize(can_cut=st.booleans())
    def start(self, can_cut):
        self.memory = FakeMemory(can_cut=can_cut)
        self.root = root_key(b"maker")
        self.index = ContextIndex(self.root)
        self.live: list[bytes] = []
        self.decoded = 0
        self.cache = PrefixCache(self.memory, self.root, self.follow)
        self.last = None

    def follow(self, event):
        self.index.apply(event)
        if isinstance(event, Committed):
            assert event.parent == (self.live[-1] if self.live else self.root)
            self.live.append(event.key)
        else:
            assert self.live.pop() == event.key, "evicted out of order"

    @rule(kinds=kinds, logits=st.booleans())
    def ask(self, kinds, logits):
        prompt = lay_out([segment(kind) for kind in kinds], self.root)
        cached = self.cache.n_cached_chunks(prompt)
        before = self.memory.n_prefilled
        steps = list(self.cache.prefill(prompt, CancelFlag(), logits=logits))
        self.decoded = 0
        assert self.memory.tokens == [int(t) for s in prompt.segments for t in s.tokens]
        if logits:
            assert steps[-1].chunk == len(prompt.chunks) - 1, "the last chunk is always computed"
        if self.memory.can_cut:
            first = min(cached, len(prompt.chunks) - 1) if logits else cached
            assert [step.chunk for step in steps] == list(range(first, len(prompt.chunks)))
            assert self.memory.n_prefilled - before == sum(len(c.tokens) for c in prompt.chunks[first:])
        self.last = prompt

    @rule(kinds=kinds, n=st.integers(0, 3), error=st.sampled_from([Cancelled, EngineError]))
    def ask_and_fail(self, kinds, n, error):
        prompt = lay_out([segment(kind) for kind in kinds], self.root)
        steps = self.cache.prefill(prompt, CancelFlag())
        self.decoded = 0
        for _ in range(n):
            if next(steps, None) is None:
                return
        self.memory.fail = error
        try:
            next(steps)
        except StopIteration:
            self.memory.fail = None
        except (Cancelled, EngineError):
            assert not self.memory.fail

    @precondition(lambda self: self.cache.n_positions < N_CTX - 5)
    @rule(n=st.integers(1, 5))
    def decode(self, n):
        for _ in range(n):
            self.cache.decode(77, CancelFlag())
        self.decoded += n

    @rule()
    def forget(self):
        self.cache.forget()
        self.decoded = 0
        assert self.live == []

    @invariant()
    def memory_is_the_list(self):
        assert self.cache.n_positions == len(self.memory.tokens)
        assert self.cache.n_live_tokens == len(self.memory.tokens) - self.decoded

    @invariant()
    def index_is_the_cache(self):
        assert len(self.index) == len(self.live)
        assert all(key in self.index for key in self.live)


CacheMachine.TestCase.settings = settings(max_examples=120, stateful_step_count=25, deadline=None)
TestCacheMachine = CacheMachine.TestCase


def test_a_prompt_that_does_not_fit_is_refused_before_anything_is_touched():
    memory = FakeMemory(can_cut=True)
    events = []
    cache = PrefixCache(memory, b"root", events.append)
    prompt = lay_out([segment(4)] * 5, b"root")
    with pytest.raises(Exception, match="does not fit"):
        list(cache.prefill(prompt, CancelFlag()))
    assert memory.tokens == [] and events == []


def test_root_depends_on_maker_and_namespace():
    assert len({root_key(b"a"), root_key(b"b"), root_key(b"a", "x"), root_key(b"a", "y")}) == 4
