"""The service on real threads, a real model and a real library."""

import queue
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from core import idle
from core import service as service_module
from core.config import Settings, load_settings, sample_documents
from core.errors import BugError, KnownError, StoreError
from core.service import Service
from core.store.conversations import ConversationStore
from core.store.database import open_database
from core.types import (
    AnswerDone,
    AnswerText,
    CacheState,
    CollectionsChanged,
    ConversationLoaded,
    ConversationsChanged,
    EngineFailed,
    EngineReady,
    IdleWorkDone,
    IngestProgress,
    LibraryChanged,
    Notice,
    PageLoaded,
    PassageLoaded,
    PrefillProgress,
    Question,
    QuestionFailed,
    Scope,
    SourcesFound,
    TextLoaded,
    TicketEvent,
    WarmthChanged,
)

pytestmark = pytest.mark.model
TIMEOUT_S = 60


class Running:
    """A service whose events are kept and waited for."""

    def __init__(self, folder: Path, settings: Settings, **options) -> None:
        self.queue = queue.SimpleQueue()
        self.seen = []
        self.service = Service(folder, settings, self.queue.put, **options)

    def wait(self, kind, condition=lambda _: True):
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            try:
                event = self.queue.get(timeout=deadline - time.monotonic())
            except queue.Empty:
                break
            self.seen.append(event)
            if isinstance(event, kind) and condition(event):
                return event
        raise AssertionError(f"no {kind} within {TIMEOUT_S} s; seen: {[type(e).__name__ for e in self.seen]}")

    def ticket(self, number):
        return [event for event in self.seen if isinstance(event, TicketEvent) and event.ticket == number]

    def read(self, *paths):
        self.service.add_paths(paths)
        done = self.wait(IngestProgress, lambda event: not event.running)
        return done, self.wait(LibraryChanged).documents

    def ask(self, text, **options):
        return self.service.submit(Question(text, **{"max_tokens": 8, **options}))


@pytest.fixture
def settings(tiny_model):
    return Settings(model=str(tiny_model), n_ctx=2048, passages=4, passage_tokens=800)


@pytest.fixture
def running(tmp_path, settings):
    running = Running(tmp_path / "data", settings)
    yield running
    running.service.close()


@pytest.fixture
def filled(running):
    running.read(sample_documents())
    return running


def test_a_question_from_sources_to_answer_in_order(filled):
    number = filled.ask("How much is the rent of flat 3?")
    done = filled.wait(AnswerDone)
    kinds = [type(event) for event in filled.ticket(number)]
    assert kinds[0] is SourcesFound
    assert kinds[1] is PrefillProgress
    assert kinds[-1] is AnswerDone
    assert kinds.index(AnswerText) > max(i for i, kind in enumerate(kinds) if kind is PrefillProgress)
    assert any("Flat 3" in passage.block.text for passage in done.turn.answer.passages)
    listed = filled.wait(ConversationsChanged).conversations
    assert [info.title for info in listed] == ["How much is the rent of flat 3?"]
    filled.service.request_conversation(done.conversation_id)
    assert filled.wait(ConversationLoaded).turns == (done.turn,)


def test_a_follow_up_continues_the_conversation(filled):
    filled.ask("How much is the rent of flat 3?")
    first = filled.wait(AnswerDone)
    filled.ask("And the deposit?", conversation_id=first.conversation_id)
    second = filled.wait(AnswerDone)
    assert second.conversation_id == first.conversation_id
    assert second.turn.answer.metrics.n_live_tokens >= first.turn.answer.metrics.n_prompt_tokens


def test_sources_come_while_another_question_is_being_answered(filled):
    filled.ask("Who approves a journey abroad?", max_tokens=200)
    filled.wait(AnswerText)
    second = filled.ask("How much is the rent?")
    filled.wait(SourcesFound, lambda event: event.ticket == second)
    assert not [event for event in filled.seen if isinstance(event, AnswerDone)]
    filled.wait(AnswerDone, lambda event: event.ticket == second)


def test_stop_while_reading_ends_the_ticket_and_leaves_no_empty_conversation(filled):
    number = filled.ask("rent deposit journey dishwasher water")
    filled.wait(PrefillProgress)
    filled.service.cancel(number)
    failed = filled.wait((QuestionFailed, AnswerDone))
    if isinstance(failed, QuestionFailed):
        assert failed.cancelled
        filled.service.request_conversations()
        assert filled.wait(ConversationsChanged).conversations == ()


def test_stop_while_waiting(filled):
    filled.ask("Who approves a journey abroad?", max_tokens=100)
    filled.wait(AnswerText)
    second = filled.ask("How much is the rent?")
    filled.wait(SourcesFound, lambda event: event.ticket == second)
    filled.service.cancel(second)
    assert filled.wait(QuestionFailed).cancelled


def test_a_removed_document_answers_nothing(filled):
    filled.service.request_documents()
    documents = filled.wait(LibraryChanged).documents
    minutes = next(info for info in documents if "allotment" in info.title)
    filled.ask("What did the allotment meeting decide about water?")
    assert any("allotment" in p.place.title for p in filled.wait(AnswerDone).turn.answer.passages)
    filled.service.remove_document(minutes.id)
    filled.wait(LibraryChanged, lambda event: minutes.id not in {info.id for info in event.documents})
    filled.ask("What did the allotment meeting decide about water?")
    done = filled.wait(AnswerDone)
    assert not any("allotment" in p.place.title for p in done.turn.answer.passages)


def test_a_document_removed_while_the_question_waits_is_not_read(filled):
    filled.service.request_documents()
    documents = filled.wait(LibraryChanged).documents
    minutes = next(info for info in documents if "allotment" in info.title)
    filled.ask("Who approves a journey abroad?", max_tokens=100)
    filled.wait(AnswerText)
    filled.service.remove_document(minutes.id)
    number = filled.ask("What did the allotment meeting decide about water?")
    sources = filled.wait(SourcesFound, lambda event: event.ticket == number)
    assert any("allotment" in p.place.title for p in sources.context.passages)
    done = filled.wait(AnswerDone, lambda event: event.ticket == number)
    assert not any("allotment" in p.place.title for p in done.turn.answer.passages)


def test_a_passage_is_shown_with_its_surroundings(filled):
    filled.ask("How much is the rent of flat 3?")
    passage = filled.wait(AnswerDone).turn.answer.passages[0]
    filled.service.request_passage(passage.place.document_id, passage.block.id, passage.quote)
    text = filled.wait(PassageLoaded).passage
    start, end = text.highlight
    assert text.text[start:end] == passage.quote
    filled.service.request_passage(999, "0" * 16, "x")
    assert "no longer in the library" in filled.wait(Notice).message


def test_a_citation_opens_its_page_with_the_quote_marked(filled):
    filled.ask("Send the expense report within 30 days of the last day of the journey")
    found = filled.wait(SourcesFound).context.passages
    passage = next(one for one in found if "within 30 days" in one.block.text)
    filled.service.request_page(
        passage.place.document_id, 3, 700, passage.block.id, "expense report within 30 days"
    )
    page = filled.wait(PageLoaded)
    assert (page.image.page, page.image.n_pages, page.image.width) == (3, 3, 700)
    assert len(page.image.highlights) == 1
    assert (page.block_id, page.quote) == (passage.block.id, "expense report within 30 days")
    assert page.image.passage
    filled.service.request_page(passage.place.document_id, 9, 700, passage.block.id, "")
    page = filled.wait(PageLoaded)
    assert page.image is None
    assert "no page 9" in page.message
    filled.service.request_page(999, 1, 700, "", "")
    assert "no longer in the library" in filled.wait(PageLoaded).message


def test_only_the_newest_wish_for_a_page_is_drawn(filled):
    filled.ask("Within how many days is the expense report sent?")
    found = filled.wait(SourcesFound).context.passages
    passage = next(one for one in found if one.place.title.endswith(".pdf"))
    for page in (1, 2, 1, 2, 1, 3):
        filled.service.request_page(passage.place.document_id, page, 700, passage.block.id, "")
    filled.wait(PageLoaded, lambda event: event.page == 3)
    assert sum(isinstance(event, PageLoaded) for event in filled.seen) < 6


def test_the_page_of_a_file_that_changed_is_not_shown(running, tmp_path):
    path = tmp_path / "policy.pdf"
    path.write_bytes((sample_documents() / "travel-policy.pdf").read_bytes())
    _done, (info,) = running.read(path)
    path.write_bytes(path.read_bytes() + b"\n%")
    running.service.request_page(info.id, 1, 300, "", "")
    assert "was changed" in running.wait(PageLoaded).message
    path.unlink()
    running.service.request_page(info.id, 1, 300, "", "")
    assert "no longer where it was" in running.wait(PageLoaded).message


def test_a_page_is_answered_whatever_fails(running, monkeypatch):
    def broken(*_):
        raise StoreError("The database is damaged.")

    monkeypatch.setattr("core.store.passages.PassageStore.page_part", broken)
    running.service.request_page(1, 2, 300, "block", "quote")
    page = running.wait(PageLoaded)
    assert (page.document_id, page.page, page.image) == (1, 2, None)
    assert (page.message, page.block_id, page.quote) == ("The database is damaged.", "block", "quote")


def test_a_page_on_a_drive_that_does_not_answer_does_not_keep_the_program_open(
    tmp_path, settings, monkeypatch
):
    monkeypatch.setattr("core.pages._END_S", 0.2)
    running = Running(tmp_path / "data", settings, load_model=False)
    release, began = threading.Event(), threading.Event()

    def wait(*_):
        began.set()
        release.wait(30)

    monkeypatch.setattr("core.store.passages.PassageStore.page_part", wait)
    running.service.request_page(1, 2, 300, "", "")
    assert began.wait(10)
    started = time.monotonic()
    running.service.close()
    assert time.monotonic() - started < 10
    release.set()
    assert running.service._pages._worker.join(10)


def test_a_document_is_read_on_in_parts(filled):
    filled.ask("Within how many days is the expense report sent?")
    document = filled.wait(SourcesFound).context.passages[0].place.document_id
    filled.service.request_text(document, 0, 1000)
    part = filled.wait(TextLoaded)
    assert part.first == 0
    assert len(part.cuts) >= 1
    assert part.text


def test_a_bad_model_is_refused_and_the_old_one_stays(filled, tmp_path):
    if not any(isinstance(event, EngineReady) for event in filled.seen):
        filled.wait(EngineReady)
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"not a model")
    filled.service.use_model(bad)
    assert "not a GGUF" in filled.wait(EngineFailed).message
    filled.ask("How much is the rent?")
    filled.wait(AnswerDone)


def test_a_chosen_model_is_remembered(running, tmp_path, tiny_model):
    running.wait(EngineReady)
    running.service.use_model(tiny_model)
    running.wait(EngineReady)
    assert load_settings(tmp_path / "data").model == str(tiny_model)


def test_without_a_model_the_sources_still_show(tmp_path, settings):
    running = Running(tmp_path / "data", settings.with_(model=str(tmp_path / "missing.gguf")))
    try:
        assert "does not exist" in running.wait(EngineFailed).message
        running.read(sample_documents())
        number = running.ask("How much is the rent of flat 3?")
        failed = running.wait(QuestionFailed)
        assert [type(event) for event in running.ticket(number)] == [SourcesFound, QuestionFailed]
        assert "does not exist" in failed.message and not failed.is_bug
    finally:
        running.service.close()


def test_conversations_outlive_the_program(tmp_path, settings):
    first = Running(tmp_path / "data", settings)
    first.read(sample_documents())
    first.ask("How much is the rent of flat 3?")
    done = first.wait(AnswerDone)
    first.service.close()
    second = Running(tmp_path / "data", settings)
    try:
        second.ask("And the deposit?", conversation_id=done.conversation_id)
        again = second.wait(AnswerDone)
        assert again.turn.answer.metrics.n_prompt_tokens > done.turn.answer.metrics.n_prompt_tokens
        second.service.delete_conversation(done.conversation_id)
        second.wait(ConversationsChanged, lambda event: event.conversations == ())
    finally:
        second.service.close()


def test_close_in_the_middle_of_everything_is_quick(tmp_path, settings):
    running = Running(tmp_path / "data", settings)
    running.read(sample_documents())
    running.ask("Who approves a journey abroad?", max_tokens=1000)
    running.ask("How much is the rent?")
    running.service.add_paths([sample_documents()])
    running.wait(AnswerText)
    started = time.monotonic()
    running.service.close()
    assert time.monotonic() - started < 10
    assert running.service._engine._thread.is_alive() is False


def test_bugs_are_told_as_bugs_and_end_only_their_task(filled, monkeypatch, caplog):
    monkeypatch.setattr("core.pipeline.cite", lambda *_, **__: 1 / 0)
    filled.ask("How much is the rent?")
    failed = filled.wait(QuestionFailed)
    assert failed.is_bug
    assert "ZeroDivisionError" in failed.details
    assert "bug" in caplog.text
    monkeypatch.undo()
    filled.ask("How much is the rent?")
    filled.wait(AnswerDone)


def test_errors_are_sorted():
    known = KnownError("x")
    assert service_module.as_slipstream_error(known) is known
    assert isinstance(service_module.as_slipstream_error(ValueError("x")), BugError)


def test_what_is_kept_is_told_and_can_be_forgotten(filled, tmp_path):
    filled.ask("How much is the rent of flat 3?")
    filled.wait(AnswerDone)
    state = filled.wait(CacheState, lambda event: event.ram_bytes > 0)
    assert state.n_chunks > 0
    assert state.ram_bytes <= state.ram_budget
    filled.service.forget_everything()
    state = filled.wait(CacheState, lambda event: event.ram_bytes == 0)
    assert (state.n_chunks, state.ssd_bytes) == (0, 0)
    assert list((tmp_path / "data" / "snapshots").glob("*.kv")) == []
    filled.ask("How much is the rent of flat 3?")
    assert filled.wait(AnswerDone).turn.answer.metrics.n_ram_tokens == 0


def test_a_deleted_conversation_leaves_no_snapshot_of_its_words(filled, tmp_path):
    filled.ask("How much is the rent of flat 3?")
    done = filled.wait(AnswerDone)
    filled.ask("Who approves a journey abroad?")
    other = filled.wait(AnswerDone)
    filled.service.delete_conversation(done.conversation_id)
    filled.wait(
        ConversationsChanged, lambda event: [c.id for c in event.conversations] == [other.conversation_id]
    )
    elements = {
        node.element for node in filled.service._bench.cache._tree.nodes.values() if not node.block_id
    }
    filled.service.close()
    with open_database(tmp_path / "data") as db:
        kept = ConversationStore(db).ledger(other.conversation_id)
    own = {segment.element for _, ledger in kept for segment in ledger}
    assert elements <= own, "only the instructions and the other conversation are left"


def test_cancel_stops_what_is_being_read_and_nothing_that_comes_later(running, tmp_path):
    running.service.cancel_ingest()  # nothing is being read
    done, documents = running.read(sample_documents())
    assert not done.cancelled
    assert len(documents) == 5
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(300):
        (folder / f"{number}.txt").write_text(f"Document {number} is about the number {number}. " * 50)
    running.service.add_paths([folder])
    running.service.cancel_ingest()
    assert running.wait(IngestProgress, lambda event: not event.running).cancelled
    done, _ = running.read(folder)
    assert not done.cancelled
    assert done.n_done == 300


def test_collections_from_first_to_last(running, tmp_path):
    running.wait(EngineReady)
    _, documents = running.read(sample_documents())
    ids = [one.id for one in documents if "tenancy" in one.title]
    running.service.create_collection("Flat", ids)
    (flat,) = running.wait(CollectionsChanged).collections
    assert (flat.name, flat.n_documents) == ("Flat", 2)
    listed = running.wait(LibraryChanged).documents
    assert {one.collection_id for one in listed if one.id in ids} == {flat.id}
    running.service.create_collection(" flat ")
    assert "already" in running.wait(Notice).message
    ticket = running.ask("How much is the rent?", scope=Scope(collection_id=flat.id))
    found = running.wait(SourcesFound, lambda event: event.ticket == ticket).context
    assert {place.document_id for passage in found.passages for place in passage.places} <= set(ids)
    running.wait(AnswerDone)
    running.service.change_collection(replace(flat, apart=True, on_disk=False))
    assert running.wait(CollectionsChanged).collections[0].apart
    ticket = running.ask("How much is the rent?", scope=Scope(collection_id=flat.id))
    done = running.wait(AnswerDone, lambda event: event.ticket == ticket)
    assert done.turn.answer.metrics.n_cached_tokens == 0, "nothing is left of it outside its namespace"
    running.service.delete_collection(flat.id)
    assert running.wait(CollectionsChanged).collections == ()


def test_a_document_is_kept_warm_while_nobody_waits(running):
    running.wait(EngineReady)
    _, documents = running.read(sample_documents())
    policy = next(one for one in documents if one.title == "travel-policy.pdf")
    running.service.keep_warm(policy.id, wanted=True)
    told = running.wait(WarmthChanged, lambda event: event.documents and event.documents[0].warmth == "warm")
    assert told.documents[0].document_id == policy.id
    assert any(
        "travel-policy.pdf is warm" in s
        for e in running.seen
        if isinstance(e, IdleWorkDone)
        for s in e.sentences
    )
    ticket = running.ask("Who approves a journey?", scope=Scope(frozenset({policy.id})))
    done = running.wait(AnswerDone, lambda event: event.ticket == ticket)
    assert done.turn.answer.plan == ("Read whole, since it is kept warm.",)
    assert done.turn.answer.metrics.n_prefilled_tokens < 150
    running.service.remove_document(policy.id)
    running.wait(WarmthChanged, lambda event: not event.documents)


def test_what_the_user_waits_for_never_waits_for_idle_work(running):
    running.wait(EngineReady)
    _, documents = running.read(sample_documents())
    for one in documents:
        running.service.keep_warm(one.id, wanted=True)
    running.wait(IdleWorkDone)
    running.service.forget_everything()
    running.wait(CacheState, lambda event: event.n_chunks == 0)
    started = []
    work = idle.keep_documents_warm
    try:
        idle.keep_documents_warm = lambda bench, cancel: (
            started.append(len(bench.documents.list_documents())) or []
        )
        service = running.service
        gate = threading.Event()
        service._engine.put(gate.wait)
        service._engine.put(service._keep_warm)  # stood in the queue before the removal
        service.remove_document(documents[0].id)
        gate.set()
        running.wait(LibraryChanged, lambda event: len(event.documents) == len(documents) - 1)
        drained = threading.Event()
        service._engine.put(lambda: service._engine.put(drained.set))  # behind the idle work that it queued
        assert drained.wait(TIMEOUT_S)
        assert started[:1] == [len(documents) - 1], "it began before the removal"
    finally:
        idle.keep_documents_warm = work


def test_text_that_a_document_no_longer_holds_leaves_the_cache(running, tmp_path):
    running.wait(EngineReady)
    path = tmp_path / "lease.txt"
    path.write_text("The first secret is 77. " * 12)
    running.read(path)
    running.ask("What is the secret?")
    running.wait(AnswerDone)
    bench = running.service._bench
    (old,) = bench.cache.block_ids()
    path.write_text("The second text says 88. " * 12)
    running.read(path)
    service = running.service
    told = queue.SimpleQueue()
    service._engine.put(lambda: told.put(bench.cache.block_ids()))  # behind what reading queued
    assert old not in told.get(timeout=TIMEOUT_S)


def scope_of(running, title):
    (document,) = [one for one in running.documents if one.title == title]
    return Scope(frozenset({document.id}))


def test_it_reads_ahead_in_the_documents_that_were_chosen_on_mains_power_alone(running, monkeypatch):
    _, running.documents = running.read(sample_documents())
    monkeypatch.setattr("core.service._on_mains_power", lambda: True)
    scope = scope_of(running, running.documents[0].title)
    words = "Read ahead in the documents you asked about"
    running.ask("What is this about?", scope=scope)
    running.wait(IdleWorkDone, lambda event: event.sentences[0].startswith(words))
    state = running.wait(CacheState)
    running.service.forget_everything()
    for off in ({"idle_work": False}, {"idle_work": True}):
        running.service.read_by(Settings(**off))
        monkeypatch.setattr("core.service._on_mains_power", lambda off=off: not off["idle_work"])
        running.seen.clear()
        running.ask("What is this about?", scope=scope)
        running.wait(AnswerDone)
        running.service.forget_everything()  # behind whatever was to be done while idle
        running.wait(CacheState, lambda event: event.n_chunks == 0)
        assert not [
            e for e in running.seen if isinstance(e, IdleWorkDone) and e.sentences[0].startswith(words)
        ]
    assert state.n_chunks > 3


def test_how_passages_are_read_can_be_changed_at_any_moment(filled):
    filled.ask("How much is the rent of flat 3?")
    filled.wait(AnswerDone)
    filled.service.read_by(Settings(first_word_s=0.001, dedup="off"))
    filled.ask("What may be kept in the cellar of the house?")
    answer = filled.wait(AnswerDone).turn.answer
    assert any("so that the answer begins within 0.001 s" in note for note in answer.notes)
    assert (filled.service._bench.dedup, filled.service._bench.first_word_s) == ("off", 0.001)


def test_a_time_until_the_first_word_holds_for_the_very_first_question(tmp_path, settings):
    hurried = Running(tmp_path / "data", settings.with_(first_word_s=0.001, idle_work=False))
    try:
        hurried.read(sample_documents())
        hurried.ask("How much is the rent of flat 3?")
        answer = hurried.wait(AnswerDone).turn.answer
    finally:
        hurried.service.close()
    assert len(answer.passages) == 1
    assert any("so that the answer begins within 0.001 s" in note for note in answer.notes)
