"""What is done while nobody waits, on a real model: documents kept warm, apart and off the disk."""

from dataclasses import replace

import numpy as np
import pytest

from core.config import Settings
from core.draft import draft
from core.engine.llama import LlamaEngine
from core.engine.protocol import CancelFlag
from core.engine.snapshots import SnapshotStore
from core.engine.ssd_tier import SsdTier
from core.errors import Cancelled
from core.history import branch_of
from core.idle import keep_documents_warm, read_on, settle, warm_up, warmth
from core.ingest.library import ingest
from core.pipeline import answer
from core.retrieval.search import Searcher
from core.store.database import open_database
from core.types import CachePlace, Context, Question, Scope, Warmth
from core.workbench import Workbench

pytestmark = pytest.mark.model

RENT = "The rent of the flat is 900 euros a month, to be paid on the third day of the month."
CATS = "Cats may be kept; dogs need the landlord's consent in writing, which he gives within a week."
BIKES = "Bicycles stand in the cellar, not in the hall. The key of the cellar hangs beside the meters."


@pytest.fixture(scope="module")
def engine(tiny_model):
    engine = LlamaEngine(tiny_model, Settings(n_ctx=2048))
    yield engine
    engine.close()


@pytest.fixture
def db(tmp_path):
    import threading

    folder = tmp_path / "documents"
    folder.mkdir()
    clauses = "\n\n".join(
        f"Clause {n}: the tenant of house number {n} pays for repair {n}." for n in range(40)
    )
    (folder / "lease.txt").write_text(f"{RENT}\n\n{CATS}\n\n{BIKES}\n\n{clauses}\n")
    (folder / "long.txt").write_text(
        "\n\n".join(f"Paragraph {n} is about {n * 7} sheep." for n in range(900))
    )
    with open_database(tmp_path / "data") as database:
        ingest([folder], database, cancel=threading.Event(), progress=lambda _: None)
        yield database


@pytest.fixture
def ssd(tmp_path):
    tier = SsdTier(SnapshotStore(tmp_path / "snapshots", 50 << 20, 10**10, pytest.fail))
    yield tier
    tier.close()


@pytest.fixture
def bench(engine, db, ssd):
    bench = Workbench(engine, db, ram_budget=50 << 20, ssd=ssd)
    bench.cache.rates.loading_pays = lambda *_: True
    return bench


def document(bench, title):
    return next(one for one in bench.documents.list_documents() if one.title == title)


def ask(bench, text, scope, conversation=None):
    context = Searcher(bench.db).search(text, scope=scope, limit=4, token_budget=600)
    events = list(answer(bench, 1, Question(text, conversation, scope, 8), context, CancelFlag()))
    return events[-1].turn.answer, events[-1].conversation_id


def test_a_document_kept_warm_is_read_once_and_then_every_question_is_short(bench):
    lease = document(bench, "lease.txt")
    (before,) = warmth(bench, [lease.id])
    assert before.warmth is Warmth.COLD
    assert before.n_tokens > 600
    bench.documents.keep_warm(lease.id, wanted=True)
    (sentence,) = keep_documents_warm(bench, CancelFlag())
    assert sentence.startswith("lease.txt is warm")
    assert keep_documents_warm(bench, CancelFlag()) == [], "it is read once"
    (after,) = warmth(bench, [lease.id])
    assert after == replace(before, warmth=Warmth.WARM, n_cached_tokens=before.n_tokens, cold_s=0.0)
    for text in ("How much is the rent?", "May I keep a dog?", "What colour is the door?"):
        found, _ = ask(bench, text, Scope(frozenset({lease.id})))
        assert "Read whole, since it is kept warm." in found.plan
        assert found.metrics.n_prefilled_tokens < 130, "only the question and its annotation"
        assert found.metrics.n_cached_tokens >= before.n_tokens


def test_a_collection_is_kept_warm_as_a_whole_too(bench, tmp_path):
    import threading

    (tmp_path / "documents" / "rules.txt").write_text("Music is allowed until ten in the evening.\n" * 9)
    ingest([tmp_path / "documents"], bench.db, cancel=threading.Event(), progress=lambda _: None)
    flat = bench.collections.create("Flat")
    bench.collections.assign([document(bench, "lease.txt").id, document(bench, "rules.txt").id], flat)
    bench.collections.change(replace(bench.collections.find(flat), keep_warm=True))
    sentences = keep_documents_warm(bench, CancelFlag())
    assert sentences[0].startswith("Flat as a whole is warm")
    found, _ = ask(bench, "Until when is music allowed?", Scope(collection_id=flat))
    assert found.plan == ("Read whole, since it is kept warm.",)
    assert found.metrics.n_prefilled_tokens < 150


def test_a_document_too_long_is_said_to_be(bench):
    long = document(bench, "long.txt")
    bench.documents.keep_warm(long.id, wanted=True)
    assert keep_documents_warm(bench, CancelFlag()) == []
    assert warmth(bench, [long.id])[0].warmth is Warmth.TOO_LONG
    found, _ = ask(bench, "How many sheep are in paragraph 5?", Scope(frozenset({long.id})))
    assert "Too long to be read whole: the passages found were used." in found.plan


def test_too_little_memory_to_keep_it_is_found_out_once(engine, db):
    bench = Workbench(engine, db, ram_budget=1000)
    lease = document(bench, "lease.txt")
    bench.documents.keep_warm(lease.id, wanted=True)
    (sentence,) = keep_documents_warm(bench, CancelFlag())
    assert "cannot be kept warm" in sentence
    assert keep_documents_warm(bench, CancelFlag()) == []


def test_what_was_kept_warm_serves_without_being_asked(bench):
    lease = document(bench, "lease.txt")
    bench.documents.keep_warm(lease.id, wanted=True)
    keep_documents_warm(bench, CancelFlag())
    bench.documents.keep_warm(lease.id, wanted=False)
    scope = Scope(frozenset({lease.id}))
    found, _ = ask(bench, "Who pays for repair 31?", scope)
    assert any("read before and stay" in sentence for sentence in found.plan)
    assert found.metrics.n_prefilled_tokens < 160, "only the question and its annotation"
    bench.rules = replace(bench.rules, ride=False)
    found, _ = ask(bench, "Who pays for repair 29?", scope)
    assert found.plan == ("Read whole: that left less to read than the passages found.",)


def test_stopped_idle_work_keeps_what_it_had(bench):
    bench.documents.keep_warm(document(bench, "lease.txt").id, wanted=True)
    stopped = CancelFlag()
    stopped.set()
    with pytest.raises(Cancelled):
        keep_documents_warm(bench, stopped)
    assert keep_documents_warm(bench, CancelFlag()), "it goes on next time"


def test_a_collection_kept_apart_shares_nothing_with_the_rest(bench):
    lease = document(bench, "lease.txt")
    scope = Scope(frozenset({lease.id}))
    ask(bench, "How much is the rent?", scope)
    apart = bench.collections.create("Private")
    bench.collections.assign([lease.id], apart)
    bench.collections.change(replace(bench.collections.find(apart), apart=True))
    found, conversation = ask(bench, "How much is the rent?", Scope(collection_id=apart))
    assert found.metrics.n_cached_tokens == 0, "nobody can tell that it was asked before"
    assert bench.conversations.cache_place(conversation) == CachePlace(str(apart))
    again, _ = ask(bench, "How much is the rent?", Scope(collection_id=apart))
    assert again.metrics.n_cached_tokens > 0
    # A conversation about everything moves there once it holds a passage of it.
    _, other = ask(bench, "How many sheep?", Scope())
    assert bench.conversations.cache_place(other) == CachePlace()
    ask(bench, "Are bicycles in the cellar?", Scope(), other)
    assert bench.conversations.cache_place(other) == CachePlace(str(apart))


def test_a_collection_kept_off_the_disk_never_gets_there(bench, ssd):
    lease = document(bench, "lease.txt")
    private = bench.collections.create("Private")
    bench.collections.assign([lease.id], private)
    bench.collections.change(replace(bench.collections.find(private), on_disk=False))
    _, conversation = ask(bench, "How much is the rent?", Scope(collection_id=private))
    settle(bench, conversation, CancelFlag())
    ask(bench, "How many sheep are in paragraph 5?", Scope(frozenset({document(bench, "long.txt").id})))
    ask(bench, "May I keep a cat?", Scope(), None)
    bench.cache.retire()
    ssd._tasks.put(None)
    ssd._writer.join()
    on_disk = ssd.block_ids()
    blocks = bench.collections.restrictions([lease.id])
    assert on_disk, "other passages are there"
    assert not on_disk & set(blocks)
    elements = {
        segment.element
        for _, ledger in bench.conversations.ledger(conversation)
        for segment in ledger
        if segment.kind in ("ask", "answer")
    }
    assert not elements & {info.element for info in ssd.open(bench.cache.root)}


def test_warm_up_reads_the_instructions_of_every_namespace(engine, db):
    bench = Workbench(engine, db, ram_budget=50 << 20)
    apart = bench.collections.create("Private")
    bench.collections.change(replace(bench.collections.find(apart), apart=True))
    warm_up(bench, CancelFlag())
    lease = document(bench, "lease.txt")
    bench.collections.assign([lease.id], apart)
    for scope in (Scope(collection_id=apart), Scope(frozenset({document(bench, "long.txt").id}))):
        found, _ = ask(bench, "How many sheep?", scope)
        assert found.metrics.n_cached_tokens > 0


def test_reading_whole_is_exact(bench):
    """What the question is answered from is, to the bit, what a cold run would have."""
    lease = document(bench, "lease.txt")
    bench.documents.keep_warm(lease.id, wanted=True)
    keep_documents_warm(bench, CancelFlag())
    recorded = []
    prefill = bench.cache.prefill

    def recording(prompt, cancel, **options):
        yield from prefill(prompt, cancel, **options)
        recorded.append((prompt, bench.engine.logits().copy()))

    bench.cache.prefill = recording
    ask(bench, "May I keep a dog?", Scope(frozenset({lease.id})))
    ((prompt, warm),) = recorded
    bench.cache.forget_everything()
    for _ in prefill(prompt, CancelFlag()):
        pass
    assert np.array_equal(bench.engine.logits(), warm)


def test_it_is_forced_only_where_a_path_of_its_own_is_kept(bench):
    lease, long = document(bench, "lease.txt"), document(bench, "long.txt")
    bench.documents.keep_warm(lease.id, wanted=True)
    bench.documents.keep_warm(long.id, wanted=True)
    both = Scope(frozenset({lease.id, long.id}))
    assert bench.documents.is_kept_warm(both)
    found, _ = ask(bench, "How much is the rent?", both)
    assert "Read whole, since it is kept warm." not in found.plan
    bench.unkeepable.add(Scope(frozenset({lease.id})))
    found, _ = ask(bench, "How much is the rent?", Scope(frozenset({lease.id})))
    assert "Read whole, since it is kept warm." not in found.plan


def test_a_namespace_that_nobody_can_ask_any_more_leaves_the_disk(engine, db, tmp_path):
    ssd = SsdTier(SnapshotStore(tmp_path / "snapshots", 50 << 20, 10**10, pytest.fail))
    bench = Workbench(engine, db, ram_budget=50 << 20, ssd=ssd)
    lease = document(bench, "lease.txt")
    apart = bench.collections.create("Private")
    bench.collections.assign([lease.id], apart)
    bench.collections.change(replace(bench.collections.find(apart), apart=True))
    _, conversation = ask(bench, "How much is the rent?", Scope(collection_id=apart))
    root = bench.root_of(str(apart))
    bench.keep_learned()
    bench.cache.retire()
    ssd.close()
    bench.collections.delete(apart)
    bench.conversations.delete(conversation)
    ssd = SsdTier(SnapshotStore(tmp_path / "snapshots", 50 << 20, 10**10, pytest.fail))
    assert ssd.open(root)
    Workbench(engine, db, ram_budget=50 << 20, ssd=ssd)
    assert not ssd.open(root)
    ssd.close()


# --- reading on --------------------------------------------------------------------------------------------


def read_on_after(bench, conversation, scope):
    segments, _ = branch_of(bench, conversation)
    place = bench.conversations.cache_place(conversation)
    return read_on(bench, segments, place, scope, CancelFlag())


def test_what_was_read_on_is_there_for_the_next_question_about_the_same_document(bench):
    scope = Scope(frozenset({document(bench, "lease.txt").id}))
    _, conversation = ask(bench, "How much is the rent?", scope)
    settle(bench, conversation, CancelFlag())
    assert read_on_after(bench, conversation, scope) > 300
    assert read_on_after(bench, conversation, scope) == 0, "it is read once"
    found, _ = ask(bench, "Who pays for repair 17?", scope)
    assert found.metrics.n_prefilled_tokens < 160, "only the question and its annotation"


def test_nothing_is_read_on_in_a_library_that_was_asked_as_a_whole(bench):
    _, conversation = ask(bench, "How much is the rent?", Scope())
    assert read_on_after(bench, conversation, Scope()) == 0


def test_a_long_document_is_read_on_near_the_passages_as_far_as_there_is_room(bench):
    long = document(bench, "long.txt")
    scope = Scope(frozenset({long.id}))
    found, conversation = ask(bench, "Which paragraph is about 2100 sheep?", scope)
    n_read = read_on_after(bench, conversation, scope)
    assert 0 < n_read < bench.engine.n_ctx
    ids = [passage.block.id for passage in found.passages]
    nearest = bench.documents.near(ids, scope, 1)[0]
    assert nearest.id in bench.cache.block_ids()


def test_nothing_is_read_on_in_a_collection_as_found(bench):
    lease = document(bench, "lease.txt")
    scope = Scope(frozenset({lease.id}))
    number = bench.collections.create("Leases")
    bench.collections.assign([lease.id], number)
    _, conversation = ask(bench, "How much is the rent?", scope)
    settle(bench, conversation, CancelFlag())
    bench.collections.change(replace(bench.collections.find(number), as_found=True))
    assert read_on_after(bench, conversation, scope) == 0
    bench.collections.change(replace(bench.collections.find(number), as_found=False))
    assert read_on_after(bench, conversation, scope) > 300


def test_riders_are_of_the_documents_asked_and_change_no_logit(bench, engine):
    lease, long = document(bench, "lease.txt"), document(bench, "long.txt")
    both = Scope(frozenset({lease.id, long.id}))
    whole = bench.documents.whole(Scope(frozenset({lease.id})), 10**6)
    first, between, last = (
        whole[0],
        Searcher(bench.db)
        .search("2100 sheep", scope=Scope(frozenset({long.id})), limit=1, token_budget=600)
        .passages[0],
        whole[-1],
    )

    def asked(passages, scope):
        made = draft(bench, Question("What is said?", None, scope, 8), Context(tuple(passages), 9, 0.0))
        for _ in bench.cache.prefill(made.prompt, CancelFlag()):
            pass
        return made

    def order(made):
        return [block.id for block in made.plan.blocks]

    bench.rules = replace(bench.rules, whole=False, align=False)
    asked([first, between, last], both)
    bench.rules = replace(bench.rules, align=True)
    rides = asked([last, first], both)
    assert order(rides) == [first.block.id, between.block.id, last.block.id]
    assert [block.id for block in rides.plan.riders] == [between.block.id]
    logits = engine.logits().copy()
    engine.clear()
    for chunk in rides.prompt.chunks:
        engine.prefill(chunk.tokens, chunk.start, CancelFlag())
    assert np.array_equal(engine.logits(), logits)
    bench.cache.forget_everything()
    bench.rules = replace(bench.rules, align=False)
    asked([first, between, last], both)
    bench.rules = replace(bench.rules, align=True)
    alone = asked([last, first], Scope(frozenset({lease.id})))
    assert order(alone) == [first.block.id, last.block.id], "the other document was not asked"


def test_a_block_of_a_collection_as_found_rides_with_no_question_to_others(bench):
    lease, long = document(bench, "lease.txt"), document(bench, "long.txt")
    whole = bench.documents.whole(Scope(frozenset({lease.id})), 10**6)
    between = Searcher(bench.db).search(
        "2100 sheep", scope=Scope(frozenset({long.id})), limit=1, token_budget=600
    )
    number = bench.collections.create("Sheep")
    bench.collections.assign([long.id], number)

    def drafted(passages):
        return draft(bench, Question("What is said?", max_tokens=8), Context(tuple(passages), 9, 0.0))

    bench.rules = replace(bench.rules, whole=False)
    for _ in bench.cache.prefill(drafted([whole[0], *between.passages, whole[-1]]).prompt, CancelFlag()):
        pass
    assert drafted([whole[-1], whole[0]]).plan.riders
    bench.collections.change(replace(bench.collections.find(number), as_found=True))
    made = drafted([whole[-1], whole[0]])
    assert not made.plan.riders
    assert made.plan.moved, "these two may be moved"
