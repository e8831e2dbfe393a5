"""A state machine: the prefix cache over a memory that checks every call and knows what is right."""

import numpy as np
import psutil
import pytest
import xxhash
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from core.engine.prefix_cache import PrefixCache, root_key
from core.engine.protocol import CancelFlag
from core.engine.rates import Rates
from core.engine.snapshots import SnapshotStore
from core.engine.ssd_tier import SsdTier
from core.errors import Cancelled, EngineError
from core.index import ContextIndex
from core.prompt import lay_out
from core.types import Committed, Rooted, Segment, SegmentKind, Tier, Weighed

N_CTX = 2100
BYTES_PER_TOKEN = 8


class FakeMemory:
    """One live sequence. The "KV" of a position depends on all tokens and batches before it, as in a model."""

    def __init__(self, *, can_cut: bool) -> None:
        self.n_ctx = N_CTX
        self.can_cut = can_cut
        self.kv: list[int] = []
        self.n_prefilled = 0
        self.fail: type[Exception] | None = None

    def prefill(self, tokens, start, cancel):
        assert start == len(self.kv), "a gap or an overlap in the live sequence"
        assert 0 < len(tokens) <= 512
        assert start + len(tokens) <= self.n_ctx
        if self.fail is not None:
            error, self.fail = self.fail, None
            if error is EngineError or not self.can_cut:
                self.kv.clear()
            raise error("planted")
        self.kv += batch_kv(self.kv[-1] if self.kv else 0, tokens)
        self.n_prefilled += len(tokens)

    def decode(self, token, position, cancel):
        self.prefill(np.array([token], np.int32), position, cancel)

    def save(self, start, end):
        assert self.can_cut or (start, end) == (0, len(self.kv))
        assert 0 <= start < end <= len(self.kv)
        return np.array(self.kv[start:end], np.uint64).view(np.uint8)

    def load(self, snapshot, start, end):
        assert self.can_cut or start == 0
        assert start == len(self.kv), "a gap or an overlap in the live sequence"
        values = np.asarray(snapshot).view(np.uint64)
        if len(values) != end - start:
            return False
        self.kv += [int(value) for value in values]
        return True

    def cut(self, n):
        assert self.can_cut
        assert 0 < n <= len(self.kv)
        del self.kv[n:]

    def clear(self):
        self.kv.clear()


def batch_kv(before: int, tokens) -> list[int]:
    """Each value depends on what was before the batch, on the whole batch and on the place in it."""
    batch = xxhash.xxh3_64_intdigest(before.to_bytes(8, "little") + np.asarray(tokens, np.int32).tobytes())
    return [
        xxhash.xxh3_64_intdigest(batch.to_bytes(8, "little") + bytes([i % 256])) for i in range(len(tokens))
    ]


def cold(prompt) -> list[int]:
    kv: list[int] = []
    for chunk in prompt.chunks:
        kv += batch_kv(kv[-1] if kv else 0, chunk.tokens)
    return kv


def segment(kind: int) -> Segment:
    """Seven different segments, some longer than one chunk."""
    size = (5, 130, 300, 512, 513, 40, 7)[kind]
    return Segment(
        SegmentKind.BLOCK, np.arange(kind * 1000, kind * 1000 + size, dtype=np.int32), f"{kind:016x}"
    )


def prompt_of(root, kinds):
    return lay_out([segment(kind) for kind in kinds], root)


kinds = st.lists(st.integers(0, 6), min_size=1, max_size=4)


class CacheMachine(RuleBasedStateMachine):
    """Two programs' worth: with an SSD tier the machine may be started anew at any time."""

    def __init__(self):
        super().__init__()
        self.folder = None
        self.ssd = None

    @initialize(
        can_cut=st.booleans(),
        ram=st.sampled_from([0, 600, 3000, 100_000]),
        ssd=st.sampled_from([0, 4000, 10**6]),
    )
    def start(self, can_cut, ram, ssd):
        self.memory = FakeMemory(can_cut=can_cut)
        self.root = root_key(b"maker")
        self.roots = {"": self.root, "apart": root_key(b"maker", "apart")}
        self.secret = set()
        self.ram_tokens, self.ssd_bytes = ram, ssd
        if ssd:
            import tempfile

            self.folder = tempfile.TemporaryDirectory()
        self.open()

    def open(self):
        from pathlib import Path

        self.index = ContextIndex()
        self.held: dict[bytes, bytes] = {}
        if self.folder is not None:
            store = SnapshotStore(Path(self.folder.name), self.ssd_bytes, 10**9, lambda message: None)
            self.ssd = SsdTier(store)
        self.cache = PrefixCache(
            self.memory, self.root, self.follow, ram_budget=self.ram_tokens * BYTES_PER_TOKEN, ssd=self.ssd
        )
        self.cache.add_root(self.roots["apart"])
        self.decoded = 0

    def follow(self, event):
        self.index.apply(event)
        if isinstance(event, Rooted):
            assert event.key in self.roots.values()
        elif isinstance(event, Committed):
            assert event.parent in self.held or event.parent in self.roots.values()
            self.held[event.key] = event.parent
        elif isinstance(event, Weighed):
            assert event.key in self.held
            assert event.weight >= 1
        else:
            assert event.key not in self.held.values(), "evicted before what stands on it"
            del self.held[event.key]

    @rule(
        kinds=kinds,
        logits=st.booleans(),
        idle=st.integers(0, 4),
        namespace=st.sampled_from(["", "apart"]),
    )
    def ask(self, kinds, logits, idle, namespace):
        prompt = prompt_of(self.roots[namespace], kinds)
        located = self.cache.locate(prompt, len(prompt.chunks) - logits)
        before = self.memory.n_prefilled
        n_on_disk = next((n for n, kind in enumerate(kinds) if kind in self.secret), 1000)
        steps = list(self.cache.prefill(prompt, CancelFlag(), logits=logits, n_on_disk=n_on_disk))
        self.decoded = 0
        assert self.memory.kv == cold(prompt), "what is live is not what a cold run gives"
        if logits:
            assert steps[-1].chunk == len(prompt.chunks) - 1
            assert steps[-1].tier is Tier.PREFILLED, "the last chunk is always computed"
        computed = sum(len(prompt.chunks[s.chunk].tokens) for s in steps if s.tier is Tier.PREFILLED)
        assert self.memory.n_prefilled - before == computed
        counted = [step.chunk for step in steps]
        assert counted == list(range(len(prompt.chunks)))[len(prompt.chunks) - len(counted) :]
        if self.memory.can_cut:
            n_live = sum(tier is Tier.LIVE for tier in located)
            first = min(n_live, len(prompt.chunks) - 1) if logits else n_live
            assert [step.chunk for step in steps] == list(range(first, len(prompt.chunks)))
        for _ in range(idle):
            self.cache.tend()
        assert self.memory.kv == cold(prompt), "saving changed the live sequence"

    @rule(kinds=kinds, n=st.integers(0, 3), error=st.sampled_from([Cancelled, EngineError]))
    def ask_and_fail(self, kinds, n, error):
        prompt = prompt_of(self.root, kinds)
        n_on_disk = next((i for i, kind in enumerate(kinds) if kind in self.secret), 1000)
        steps = self.cache.prefill(prompt, CancelFlag(), n_on_disk=n_on_disk)
        for _ in range(n):
            if next(steps, None) is None:
                break
        self.decoded = 0
        self.memory.fail = error
        try:
            for _ in steps:
                pass
        except (Cancelled, EngineError):
            assert not self.memory.fail
        self.memory.fail = None
        if n == 0 and self.cache.n_positions != len(self.memory.kv):
            raise AssertionError("list and memory disagree")

    @precondition(lambda self: self.cache.n_positions < N_CTX - 5)
    @rule(n=st.integers(1, 5))
    def decode(self, n):
        for _ in range(n):
            self.cache.decode(77, CancelFlag())
        self.decoded += n

    @rule(kind=st.integers(0, 6))
    def forget(self, kind):
        self.cache.forget(block_ids={f"{kind:016x}"})
        element = segment(kind).element
        assert not self.index.best_path(self.root, [element]).order
        assert self.index.why_missing(element) != "read before, but after other passages"
        if self.ssd is not None:
            assert all(info.block_id != f"{kind:016x}" for info in self.ssd.open(self.root))
        self.decoded = self.cache.n_positions - self.cache.n_live_tokens

    @rule(kind=st.integers(0, 6))
    def keep_off_disk(self, kind):
        self.secret.add(kind)
        self.cache.keep_off_disk({f"{kind:016x}"})
        self.decoded = self.cache.n_positions - self.cache.n_live_tokens

    @rule(kinds=kinds)
    def pin(self, kinds):
        self.cache.pin([chunk.key for chunk in prompt_of(self.root, kinds).chunks])

    @rule()
    def forget_everything(self):
        self.cache.forget_everything()
        self.decoded = 0
        assert not self.held
        assert len(self.cache) == 0

    @precondition(lambda self: self.ssd is not None)
    @rule(politely=st.booleans())
    def restart(self, politely):
        if politely:
            self.cache.retire()
        self.ssd.close()
        self.open()

    @precondition(lambda self: self.folder is not None)
    @rule(choice=st.integers(0, 10**6), at=st.floats(0, 1))
    def damage_a_file(self, choice, at):
        from pathlib import Path

        files = sorted(Path(self.folder.name).glob("*.kv"))
        if files:
            path = files[choice % len(files)]
            try:
                data = bytearray(path.read_bytes())
                data[int(at * (len(data) - 1))] ^= 0x55
                path.write_bytes(data)
            except FileNotFoundError:
                pass  # evicted by the writer thread at this moment

    @invariant()
    def memory_is_the_list(self):
        assert self.cache.n_positions == len(self.memory.kv)
        assert self.cache.n_live_tokens == len(self.memory.kv) - self.decoded

    @invariant()
    def index_is_the_cache(self):
        nodes = self.cache._tree.nodes
        assert {key for key, node in nodes.items() if node.ends_segment} == set(self.held)
        assert len(self.index) == len(self.held)
        for node in nodes.values():
            assert node.has_tier
            parent = node.parent
            assert self.cache._tree.before(parent.key) is parent
            assert parent.root == node.root

    @invariant()
    def secrets_stay_off_the_disk(self):
        if self.ssd is not None:
            on_disk = {info.block_id for root in self.roots.values() for info in self.ssd.open(root)}
            assert not on_disk & {f"{kind:016x}" for kind in self.secret}

    @invariant()
    def budgets_hold(self):
        assert self.cache.n_ram_bytes == sum(
            len(node.ram) for node in self.cache._tree.nodes.values() if node.ram is not None
        )
        assert self.cache.n_ram_bytes <= self.ram_tokens * BYTES_PER_TOKEN
        if self.ssd is not None:
            assert self.ssd.n_bytes <= self.ssd_bytes

    def teardown(self):
        if self.ssd is not None:
            self.ssd.close()
        if self.folder is not None:
            self.folder.cleanup()


CacheMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=25, deadline=None)
TestCacheMachine = CacheMachine.TestCase


def test_a_prompt_that_does_not_fit_is_refused_before_anything_is_touched():
    memory = FakeMemory(can_cut=True)
    events = []
    cache = PrefixCache(memory, b"root", events.append)
    with pytest.raises(Exception, match="does not fit"):
        list(cache.prefill(prompt_of(b"root", [4] * 5), CancelFlag()))
    assert memory.kv == []
    assert events == [Rooted(b"root")]


def test_root_depends_on_maker_and_namespace():
    assert len({root_key(b"a"), root_key(b"b"), root_key(b"a", "x"), root_key(b"a", "y")}) == 4


def run(cache, kinds):
    return list(cache.prefill(prompt_of(cache.root, kinds), CancelFlag()))


def test_it_knows_which_chunks_are_cached():
    cache = PrefixCache(FakeMemory(can_cut=True), b"root", lambda _: None, ram_budget=10**6)
    run(cache, [1, 2, 0])
    keys = [chunk.key for chunk in prompt_of(cache.root, [1, 2, 3]).chunks]
    assert cache.knows(keys[:1])
    assert not cache.knows(keys)
    assert cache.knows([])


def test_switching_between_conversations_restores_from_ram():
    memory = FakeMemory(can_cut=True)
    cache = PrefixCache(memory, b"root", lambda _: None, ram_budget=10**6)
    cache.rates.loading_pays = lambda *_: True  # this memory computes faster than any real one
    for conversation in ([1, 2, 0], [3, 4, 0], [2, 1, 0]):
        run(cache, conversation)
    before = memory.n_prefilled
    for conversation in ([1, 2, 5], [3, 4, 5], [2, 1, 5]):
        steps = run(cache, conversation)
        assert [step.tier for step in steps[:-1]] == [Tier.RAM] * (len(steps) - 1)
    assert memory.n_prefilled - before == 3 * 40


def test_a_shared_beginning_that_stays_live_does_not_keep_the_rest_from_being_saved():
    memory = FakeMemory(can_cut=True)
    cache = PrefixCache(memory, b"root", lambda _: None, ram_budget=10**6)
    cache.rates.loading_pays = lambda *_: True
    run(cache, [6, 1, 2, 0])
    run(cache, [6, 3, 0])  # the first chunk is never cut
    assert [step.tier for step in run(cache, [6, 1, 2, 5])] == [Tier.RAM, Tier.RAM, Tier.PREFILLED]


def test_the_least_valuable_leaf_leaves_first():
    cache = PrefixCache(
        FakeMemory(can_cut=True), b"root", lambda _: None, ram_budget=(300 + 130 + 40 + 7) * 8
    )
    run(cache, [2, 1, 0])
    run(cache, [2, 5, 0])  # the shared first chunk is used again
    run(cache, [6])
    located = cache.locate(prompt_of(b"root", [2, 5, 0]))
    assert located[:2] == [Tier.RAM, Tier.RAM], "the shared and the newer one stay"


def test_memory_pressure_shrinks_the_tier(monkeypatch):
    cache = PrefixCache(FakeMemory(can_cut=True), b"root", lambda _: None, ram_budget=10**6)
    run(cache, [1, 2, 0])
    run(cache, [3, 0])
    held = cache.n_ram_bytes
    assert held > 0
    real = psutil.virtual_memory()
    monkeypatch.setattr(psutil, "virtual_memory", lambda: real._replace(available=0))
    run(cache, [4, 0])
    assert cache.n_ram_bytes < held


def test_a_second_process_finds_what_the_first_one_read(tmp_path):
    memory = FakeMemory(can_cut=True)
    for number in range(2):
        ssd = SsdTier(SnapshotStore(tmp_path, 10**6, 10**9, pytest.fail))
        cache = PrefixCache(memory, b"r" * 16, lambda _: None, ram_budget=10**6, ssd=ssd)
        cache.rates.loading_pays = lambda *_: True
        steps = run(cache, [4, 3, 0])
        expected = [Tier.PREFILLED] * 4 if number == 0 else [Tier.SSD] * 3 + [Tier.PREFILLED]
        assert [step.tier for step in steps] == expected
        cache.retire()
        ssd.close()


def test_a_namespace_of_its_own_shares_nothing():
    memory = FakeMemory(can_cut=True)
    cache = PrefixCache(memory, b"root", lambda _: None, ram_budget=10**6)
    other = cache.add_root(b"other")
    run(cache, [1, 2, 0])
    before = memory.n_prefilled
    list(cache.prefill(prompt_of(other, [1, 2, 0]), CancelFlag()))
    assert memory.n_prefilled - before == 130 + 300 + 5, "another namespace's prompt is read anew"


def test_a_pinned_path_stays_when_room_is_made():
    cache = PrefixCache(FakeMemory(can_cut=True), b"root", lambda _: None, ram_budget=(130 + 5 + 512) * 8)
    run(cache, [1, 0])
    cache.pin([chunk.key for chunk in prompt_of(b"root", [1, 0]).chunks])
    for kind in (3, 2, 5, 3, 2, 5):
        run(cache, [kind, 6])
    assert cache.locate(prompt_of(b"root", [1, 0])) == [Tier.RAM, Tier.RAM]


def test_notes_of_the_writer_bring_nothing_back(tmp_path):
    """A file was written and then forgotten, or is another model's: the tree does not hear of it."""
    memory = FakeMemory(can_cut=True)
    ssd = SsdTier(SnapshotStore(tmp_path, 10**6, 10**9, pytest.fail))
    cache = PrefixCache(memory, b"r" * 16, lambda _: None, ram_budget=10**6, ssd=ssd)
    run(cache, [1, 2, 0])
    cache.retire()
    ssd._tasks.put(None)
    ssd._writer.join()  # its notes wait in the queue
    cache.forget(block_ids={f"{2:016x}"})
    assert cache.locate(prompt_of(cache.root, [1, 2, 0])) == [Tier.LIVE]
    other = PrefixCache(memory, b"s" * 16, lambda _: None, ram_budget=10**6, ssd=ssd)
    assert other.locate(prompt_of(other.root, [1])) == []
    assert ssd.open(cache.root), "another model's files stay"
    assert len(other) == 0


def test_a_model_that_cannot_be_cut_tells_every_chunk_even_where_loading_does_not_pay():
    memory = FakeMemory(can_cut=False)
    cache = PrefixCache(memory, b"root", lambda _: None, ram_budget=10**6)
    run(cache, [1, 2, 5])
    list(cache.prefill(prompt_of(b"root", [1]), CancelFlag(), logits=False))
    cache.rates.loading_pays = lambda *_: False
    prompt = prompt_of(b"root", [1, 2, 0])
    located = cache.locate(prompt, len(prompt.chunks) - 1)
    steps = list(cache.prefill(prompt, CancelFlag()))
    assert located == [Tier.LIVE]
    assert [step.chunk for step in steps] == [1, 2]


def test_a_slow_disk_counts_for_less_from_the_start(tmp_path):
    memory = FakeMemory(can_cut=True)
    events = []
    for number in range(2):
        ssd = SsdTier(SnapshotStore(tmp_path, 10**6, 10**9, pytest.fail))
        rates = Rates()
        rates.prefill_token_s.value, rates.ssd_byte_s.value = 1.0, 0.75 / BYTES_PER_TOKEN
        cache = PrefixCache(memory, b"r" * 16, events.append, ssd=ssd, rates=rates)
        if number == 0:
            run(cache, [2, 0])
            cache.retire()
            events.clear()
        ssd.close()
    first, second = prompt_of(b"r" * 16, [2, 0]).chunks
    weights = [event for event in events if isinstance(event, Weighed)]
    assert weights == [Weighed(first.key, 75), Weighed(second.key, 1)]
