"""A state machine over everything that answers: a real model, a real database, real files.

Whatever was asked, stopped, removed, compacted, damaged or started anew before: what the model says next is,
to the bit, what it would say if the same prompt were read cold; budgets hold; the index is the cache.
"""

import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from core.config import Settings
from core.engine.llama import LlamaEngine
from core.engine.protocol import CancelFlag
from core.engine.snapshots import SnapshotStore
from core.engine.ssd_tier import SsdTier
from core.errors import Cancelled, KnownError
from core.idle import keep_documents_warm, settle, warm_up
from core.ingest.library import ingest
from core.pipeline import answer
from core.retrieval.search import Searcher
from core.store.database import open_database
from core.types import Question, Scope
from core.workbench import Workbench

pytestmark = [pytest.mark.model, pytest.mark.slow]

RAM_BUDGET, SSD_BUDGET = 1 << 20, 2 << 20
TOPICS = ("rent", "dog", "cellar", "heating", "garden", "noise")
ENGINES: list[LlamaEngine] = []
"""The engine of the machine, and another one that reads every prompt cold."""


@pytest.fixture(scope="module", autouse=True)
def engines(tiny_model):
    ENGINES[:] = [LlamaEngine(tiny_model, Settings(n_ctx=1024)) for _ in range(2)]
    yield
    for engine in ENGINES:
        engine.close()


def write_documents(folder: Path) -> None:
    for number in range(3):
        paragraphs = [
            f"On the {topic} of house {number}: the tenant of house {number} asks the landlord about the {topic} "
            f"in writing, and he answers within {number + place + 2} days, as the law on the {topic} wants it."
            for place, topic in enumerate(TOPICS)
        ]
        (folder / f"house-{number}.txt").write_text("\n\n".join(paragraphs * 2))


class WorkbenchMachine(RuleBasedStateMachine):
    @initialize()
    def start(self):
        self.folder = tempfile.TemporaryDirectory()
        root = Path(self.folder.name)
        (root / "documents").mkdir()
        write_documents(root / "documents")
        self.db = open_database(root / "data")
        ingest([root / "documents"], self.db, cancel=threading.Event(), progress=lambda _: None)
        self.conversations: list[int] = []
        self.open()

    def open(self):
        self.ssd = SsdTier(SnapshotStore(Path(self.folder.name) / "kv", SSD_BUDGET, 10**12, pytest.fail))
        self.bench = Workbench(ENGINES[0], self.db, ram_budget=RAM_BUDGET, ssd=self.ssd)
        self.bench.cache.rates.loading_pays = lambda *_: True
        self.prefill = self.bench.cache.prefill
        self.bench.cache.prefill = self.checked
        warm_up(self.bench, CancelFlag())

    def checked(self, prompt, cancel, *, logits=True, **options):
        yield from self.prefill(prompt, cancel, logits=logits, **options)
        if logits:
            cold = ENGINES[1]
            cold.clear()
            for chunk in prompt.chunks:
                cold.prefill(chunk.tokens, chunk.start, CancelFlag())
            assert np.array_equal(ENGINES[0].logits(), cold.logits()), "not what a cold run gives"

    def put(self, topics, conversation, scope, stop_after=None):
        text = "What about the " + " and the ".join(topics) + "?"
        context = Searcher(self.db).search(text, scope=scope, limit=4, token_budget=400)
        cancel = CancelFlag()
        question = Question(text, conversation, scope, 8)
        try:
            for number, event in enumerate(answer(self.bench, 1, question, context, cancel)):
                if number == stop_after:
                    cancel.set()
                done = event
        except Cancelled:
            return
        if done.conversation_id not in self.conversations:
            self.conversations.append(done.conversation_id)

    topics = st.lists(st.sampled_from(TOPICS), min_size=1, max_size=2, unique=True)

    def documents(self):
        return [one.id for one in self.bench.documents.list_documents()]

    @rule(topics=topics, choice=st.integers(0, 9), within=st.booleans(), stop=st.integers(0, 40))
    def ask(self, topics, choice, within, stop):
        conversation = self.conversations[choice] if choice < len(self.conversations) else None
        ids = self.documents()
        scope = Scope(frozenset({ids[choice % len(ids)]})) if within and ids else Scope()
        self.put(topics, conversation, scope, stop_after=stop)

    @precondition(lambda self: self.conversations)
    @rule(choice=st.integers(0, 9))
    def settle(self, choice):
        settle(self.bench, self.conversations[choice % len(self.conversations)], CancelFlag())

    @precondition(lambda self: self.documents())
    @rule(choice=st.integers(0, 9), wanted=st.booleans())
    def keep_warm(self, choice, wanted):
        ids = self.documents()
        self.bench.documents.keep_warm(ids[choice % len(ids)], wanted=wanted)
        keep_documents_warm(self.bench, CancelFlag())

    @precondition(lambda self: len(self.documents()) > 1)
    @rule(choice=st.integers(0, 9))
    def remove(self, choice):
        ids = self.documents()
        gone = self.bench.documents.remove(ids[choice % len(ids)])
        self.bench.cache.forget(block_ids=gone)
        assert not gone & {node.block_id for node in self.bench.cache._tree.nodes.values()}
        assert not gone & self.ssd.block_ids()

    @precondition(lambda self: self.conversations)
    @rule(choice=st.integers(0, 9))
    def delete_conversation(self, choice):
        self.bench.conversations.delete(self.conversations.pop(choice % len(self.conversations)))
        with pytest.raises(KnownError):
            list(
                answer(
                    self.bench,
                    1,
                    Question("?", 10**6),
                    Searcher(self.db).search("?", scope=Scope(), limit=1, token_budget=9),
                    CancelFlag(),
                )
            )

    @rule(politely=st.booleans())
    def restart(self, politely):
        if politely:
            self.bench.cache.retire()
        self.ssd.close()
        self.open()

    @rule(choice=st.integers(0, 10**6), at=st.floats(0, 1))
    def damage_a_file(self, choice, at):
        files = sorted((Path(self.folder.name) / "kv").glob("*.kv"))
        if files:
            path = files[choice % len(files)]
            try:
                data = bytearray(path.read_bytes())
                data[int(at * (len(data) - 1))] ^= 0x55
                path.write_bytes(data)
            except FileNotFoundError:
                pass  # evicted by the writer thread at this moment

    @invariant()
    def budgets_hold_and_the_index_is_the_cache(self):
        nodes = self.bench.cache._tree.nodes.values()
        assert self.bench.cache.n_ram_bytes <= RAM_BUDGET
        assert self.ssd.n_bytes <= SSD_BUDGET
        assert len(self.bench.index) == sum(node.ends_segment for node in nodes)
        assert all(node.key in self.bench.index for node in nodes if node.ends_segment)

    def teardown(self):
        self.ssd.close()
        self.db.close()
        self.folder.cleanup()


WorkbenchMachine.TestCase.settings = settings(
    max_examples=30,
    stateful_step_count=14,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestWorkbenchMachine = WorkbenchMachine.TestCase
