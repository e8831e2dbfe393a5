"""A scripted service for the window's tests: it does what the real one does, with nothing behind it."""

import gc
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QtMsgType, qInstallMessageHandler

from app.bridge import ServiceBridge
from app.main_window import MainWindow
from app.theme import Theme
from core.config import Settings, WindowOptions
from core.types import (
    Answer,
    AnswerDone,
    AnswerSentence,
    AnswerText,
    Block,
    ChunkView,
    Citation,
    CollectionInfo,
    CollectionsChanged,
    Context,
    ConversationInfo,
    ConversationLoaded,
    ConversationsChanged,
    DocumentInfo,
    DocumentStatus,
    EngineReady,
    FinishReason,
    LibraryChanged,
    MissReason,
    ModelInfo,
    Passage,
    PassageLoaded,
    PassageText,
    Place,
    PrefillProgress,
    QuestionFailed,
    RequestMetrics,
    SourcesFound,
    Tier,
    Turn,
    WatchedFoldersChanged,
)


@pytest.fixture(autouse=True)
def _garbage_on_this_thread():
    """As in the program: a test's widgets must not be destroyed by the next test's threads."""
    gc.disable()
    yield
    gc.collect()
    gc.enable()


MODEL = ModelInfo("SmolLM2-135M-Instruct", "/models/smollm2.gguf", 135_000_000, 8192, "CPU")


def passage(document_id=1, title="contract-b.pdf", page=4, text=None, quote=None, ordinal=0):
    text = text or (
        "The tenant shall give notice in writing. Either party may end this agreement with three months' "
        "notice to the end of a quarter. Oral notice is void."
    )
    quote = quote or text.split(". ")[1] + "."
    place = Place(document_id, title, f"/docs/{title}", ordinal, 0, len(text), page)
    return Passage(Block.of(text), (place,), 3.2, quote, text.index(quote))


def document(
    number=1,
    title="contract-b.pdf",
    status=DocumentStatus.READY,
    note="",
    pages=12,
    blocks=48,
    **more,
):
    return DocumentInfo(
        number, f"/docs/{title}", title, status, note, 1_240_000, blocks, pages, 1.7e9, **more
    )


def citation(one: Passage, number=1):
    place = one.place
    return Citation(one.block.id, place.title, place.path, place.document_id, place.page, one.quote, number)


TEXT = (
    "Either party may end the agreement with **three months' notice** to the end of a quarter. "
    "The notice must be given in writing. The landlord is usually friendly about it."
)
METRICS = RequestMetrics(
    n_prompt_tokens=2310,
    n_live_tokens=1024,
    n_ram_tokens=512,
    n_ssd_tokens=304,
    n_prefilled_tokens=470,
    n_deduplicated_tokens=120,
    n_answer_tokens=84,
    hit_ratio=1840 / 2310,
    retrieve_ms=12.4,
    plan_ms=1.8,
    restore_ms=23.0,
    prefill_ms=3100.0,
    ttft_ms=3180.0,
    decode_tokens_per_s=11.2,
    prefill_tokens_per_s=152.0,
    saved_ms=12_082.0,
    miss_reason=MissReason.NEVER_SEEN,
    miss_detail="contract-b.pdf, p. 4",
)
CHUNKS = (
    ChunkView("instructions", 96, Tier.LIVE),
    ChunkView("contract-a.pdf, p. 1", 512, Tier.LIVE),
    ChunkView("contract-a.pdf, p. 2", 416, Tier.LIVE),
    ChunkView("lease-2021.pdf, p. 7", 512, Tier.RAM),
    ChunkView("handbook.md", 304, Tier.SSD),
    ChunkView("contract-b.pdf, p. 4", 390, Tier.PREFILLED),
    ChunkView("question", 80, Tier.PREFILLED),
)


def sentences(text=TEXT):
    first = text.index("The notice")
    second = text.index("The landlord")
    return (
        AnswerSentence(0, first, (1,)),
        AnswerSentence(first, second, (1, 2)),
        AnswerSentence(second, len(text), ()),
    )


def answer(text=TEXT, **changes):
    one, two = passage(), passage(2, "lease-2021.pdf", 7, "Notices. All notices are made in writing. End.")
    values = {
        "text": text,
        "citations": (citation(one, 1), citation(two, 2)),
        "sentences": sentences(text) if text == TEXT else (),
        "passages": (one, two),
        "n_found": 12,
        "finish": FinishReason.STOP,
        "metrics": METRICS,
        "chunks": CHUNKS,
        "notes": ("2 of 12 passages used.",),
    }
    return Answer(**{**values, **changes})


def progress(ticket, n_done=5, chunks=CHUNKS):
    """Prefill after ``n_done`` chunks."""
    shown = tuple(
        chunk if index < n_done else ChunkView(chunk.label, chunk.n_tokens, Tier.PENDING)
        for index, chunk in enumerate(chunks)
    )
    cached = sum(c.n_tokens for c in shown if c.tier in (Tier.LIVE, Tier.RAM, Tier.SSD))
    done = sum(c.n_tokens for c in shown if c.tier is Tier.PREFILLED)
    total = sum(c.n_tokens for c in chunks)
    return PrefillProgress(ticket, shown, total, cached, done, 120, done / 152, 152.0 if done else 0.0)


class FakeService:
    """Records calls in ``calls``; the test says through `send` what happens."""

    def __init__(self, data_dir, settings, on_event):
        self.data_dir, self.settings, self.send = data_dir, settings, on_event
        self.calls = []
        self.documents = ()
        self.collections = ()
        self.folders = ()
        self.conversations = ()
        self.turns = {}
        self.n_tickets = 0
        self.n_requests = 0

    def named(self, name):
        return [arguments for called, *arguments in self.calls if called == name]

    def submit(self, question):
        self.n_tickets += 1
        self.calls.append(("submit", question))
        return self.n_tickets

    def cancel(self, ticket):
        self.calls.append(("cancel", ticket))

    def add_paths(self, paths):
        self.calls.append(("add_paths", list(paths)))
        return self._request()

    def cancel_ingest(self):
        self.calls.append(("cancel_ingest",))

    def pause_ingest(self):
        self.calls.append(("pause_ingest",))

    def resume_ingest(self):
        self.calls.append(("resume_ingest",))

    def unlock(self, document_id, password):
        self.calls.append(("unlock", document_id, password))
        return self._request()

    def recognize_text(self, document_ids):
        self.calls.append(("recognize_text", list(document_ids)))
        return self._request()

    def _request(self):
        self.n_requests += 1
        return self.n_requests

    def read_by(self, settings):
        self.calls.append(("read_by", settings))

    def find_by_meaning(self, settings):
        self.calls.append(("find_by_meaning", settings))

    def watch_folder(self, path, collection_id):
        self.calls.append(("watch_folder", path, collection_id))

    def unwatch_folder(self, path, *, remove_documents):
        self.calls.append(("unwatch_folder", path, remove_documents))
        self.folders = tuple(one for one in self.folders if one.path != path)
        self.request_watched_folders()

    def request_watched_folders(self):
        self.send(WatchedFoldersChanged(self.folders))

    def remove_document(self, document_id):
        self.calls.append(("remove_document", document_id))
        self.documents = tuple(one for one in self.documents if one.id != document_id)
        self.request_documents()

    def request_documents(self):
        self.send(LibraryChanged(self.documents))

    def keep_warm(self, document_id, *, wanted):
        self.calls.append(("keep_warm", document_id, wanted))
        self.documents = tuple(
            replace(one, keep_warm=wanted) if one.id == document_id else one for one in self.documents
        )
        self.request_documents()

    def request_collections(self):
        sizes = Counter(one.collection_id for one in self.documents)
        told = tuple(replace(info, n_documents=sizes[info.id]) for info in self.collections)
        self.send(CollectionsChanged(told))

    def create_collection(self, name, document_ids=()):
        self.calls.append(("create_collection", name, list(document_ids)))
        number = 1 + max((info.id for info in self.collections), default=0)
        self.collections = (*self.collections, CollectionInfo(number, name))
        self._assign(document_ids, number)

    def move_to_collection(self, document_ids, collection_id):
        self.calls.append(("move_to_collection", list(document_ids), collection_id))
        self._assign(document_ids, collection_id)

    def change_collection(self, info):
        self.calls.append(("change_collection", info))
        self.collections = tuple(info if one.id == info.id else one for one in self.collections)
        self._assign((), None)

    def delete_collection(self, collection_id):
        self.calls.append(("delete_collection", collection_id))
        self.collections = tuple(one for one in self.collections if one.id != collection_id)
        self._assign([one.id for one in self.documents if one.collection_id == collection_id], None)

    def _assign(self, document_ids, collection_id):
        self.documents = tuple(
            replace(one, collection_id=collection_id) if one.id in document_ids else one
            for one in self.documents
        )
        self.request_collections()
        self.request_documents()

    def request_conversations(self):
        self.send(ConversationsChanged(self.conversations))

    def request_conversation(self, conversation_id):
        self.calls.append(("request_conversation", conversation_id))
        self.send(ConversationLoaded(conversation_id, self.turns.get(conversation_id, ())))

    def delete_conversation(self, conversation_id):
        self.calls.append(("delete_conversation", conversation_id))
        self.conversations = tuple(one for one in self.conversations if one.id != conversation_id)
        self.request_conversations()

    def request_passage(self, document_id, block_id, quote):
        self.calls.append(("request_passage", document_id, block_id, quote))
        text = f"Before.\n\n{quote}\n\nAfter."
        mark = (text.index(quote), text.index(quote) + len(quote))
        self.send(
            PassageLoaded(PassageText(document_id, "contract-b.pdf", "/docs/contract-b.pdf", 4, text, mark))
        )

    def request_text(self, document_id, first, n_blocks):
        self.calls.append(("request_text", document_id, first, n_blocks))

    def request_page(self, document_id, page, width_px, block_id, quote):
        self.calls.append(("request_page", document_id, page, width_px, block_id, quote))

    def use_model(self, path):
        self.calls.append(("use_model", path))

    def close(self):
        self.calls.append(("close",))

    # what tests play

    def find(self, ticket=1, conversation_id=7, passages=None):
        passages = answer().passages if passages is None else passages
        self.send(SourcesFound(ticket, conversation_id, Context(tuple(passages), 12, 12.4)))

    def finish(self, ticket=1, conversation_id=7, question="Q", result=None):
        self.send(AnswerDone(ticket, Turn(ticket, question, result or answer()), conversation_id))

    def fail(self, ticket=1, **values):
        self.send(QuestionFailed(ticket, "The model ran out of memory.", "Ask again.", "ggml: -3", **values))

    def answer_all(self, ticket=1, conversation_id=7):
        self.find(ticket, conversation_id)
        for n_done in (5, 6, 7):
            self.send(progress(ticket, n_done))
        for start in range(0, len(TEXT), 7):
            self.send(AnswerText(ticket, TEXT[start : start + 7]))
        self.finish(ticket, conversation_id)


@pytest.fixture(autouse=True)
def qt_warnings():
    """A warning of Qt's is a failure, as one of Python's is."""
    said = []

    def handler(kind, context, message):
        if kind in (QtMsgType.QtWarningMsg, QtMsgType.QtCriticalMsg, QtMsgType.QtFatalMsg):
            said.append(message)

    old = qInstallMessageHandler(handler)
    yield said
    qInstallMessageHandler(old)
    # the offscreen platform says this for every window; it is no fault of ours
    said = [one for one in said if "This plugin does not support" not in one]
    assert not said, f"Qt warned: {said}"


class Opened:
    """A window on a fake service that is ready."""

    def __init__(
        self,
        qtbot,
        tmp_path,
        *,
        kiosk=False,
        settings=None,
        documents=None,
        collections=(),
        ready=True,
        samples=None,
    ):
        self.qtbot = qtbot
        self.options = WindowOptions(Path(tmp_path), settings or Settings(), kiosk, samples)
        self.theme = Theme(self.options.settings, kiosk=kiosk)
        self.theme.apply()
        made = []

        def factory(*arguments):
            made.append(FakeService(*arguments))
            made[0].documents = (document(),) if documents is None else documents
            made[0].collections = tuple(collections)
            made[0].conversations = (ConversationInfo(7, "Notice periods", 2, 1.7e9),)
            return made[0]

        self.bridge = ServiceBridge(self.options.data_dir, self.options.settings, factory)
        self.window = MainWindow(self.options, self.theme, self.bridge)
        self.window.show()
        self.bridge.start()
        qtbot.waitUntil(lambda: self.bridge.ready and bool(made))
        self.service = made[0]
        qtbot.waitUntil(lambda: self.window._titles == {7: "Notice periods"})
        if ready:
            self.service.send(EngineReady(MODEL))
            self.settle()

    def settle(self):
        """Wait until every event that was sent has been shown."""
        self.qtbot.waitUntil(lambda: not self.bridge._queue)
        self.qtbot.wait(1)

    def ask(self, text="What is the notice period?"):
        self.window.chat.input.set_text(text)
        self.window.chat.input.edit.entered.emit()

    @property
    def turn(self):
        return self.window.chat._turns[-1]

    @property
    def view(self):
        return self.window.chat.messages.view_of(self.turn)

    def close(self):
        self.window.force_close()
        self.bridge.close()
        self.window.deleteLater()


@pytest.fixture
def open_window(qtbot, tmp_path):
    opened = []

    def make(**values):
        opened.append(Opened(qtbot, tmp_path, **values))
        return opened[-1]

    yield make
    for one in opened:
        one.close()
    qtbot.wait(1)


@pytest.fixture
def opened(open_window):
    return open_window()


@pytest.fixture
def parts():
    """What this file makes: ``parts.answer()``, ``parts.TEXT``."""
    return sys.modules[__name__]


@pytest.fixture
def theme(qapp):
    made = Theme(Settings(theme="light"))
    made.apply()
    return made
