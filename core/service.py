"""The one object a user interface talks to: queue, threads, tickets, cancel.

Every method returns at once; results arrive as events (``core.types``) through ``on_event``, which is
called on the thread that made the event. Nothing here knows Qt.

Its threads, each with its own database connection and a queue of tasks: ``engine`` owns model, prefix cache
and index; ``retrieval`` searches and reads lists, so that a chunk in progress does not hold up the sources;
``ingest`` finds and stores files; ``pages`` has pages of PDFs drawn. ``Embedding`` and ``Watching`` bring
their own: ``embedding``, ``folders`` and ``watch``. Files are read and pages drawn in child processes: no
parser opens a foreign file in this one.
"""

import itertools
import logging
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from core import jit
from core.config import Settings, cache_budgets, load_settings, save_settings
from core.engine.model_files import check_model, choose_model
from core.engine.protocol import CancelFlag
from core.errors import BugError, Cancelled, EngineError, KnownError, SlipstreamError
from core.finding import Finding
from core.metrics import count
from core.pages import Pages
from core.reading import ReadingQueue
from core.store.collections import CollectionStore
from core.store.conversations import ConversationStore
from core.store.database import open_database
from core.store.documents import DocumentStore
from core.store.folders import FolderStore, KnownFile
from core.store.passages import PassageStore
from core.types import (
    AnswerDone,
    CacheState,
    CollectionInfo,
    CollectionsChanged,
    Context,
    ConversationLoaded,
    ConversationsChanged,
    EngineFailed,
    EngineReady,
    Event,
    IdleWorkDone,
    LibraryChanged,
    Notice,
    PassageLoaded,
    Question,
    QuestionFailed,
    Scope,
    SourcesFound,
    WarmthChanged,
)
from core.upkeep import Upkeep
from core.watching import Hands, Watching, is_still_there
from core.worker import Task, Worker, as_slipstream_error, notice_of

if TYPE_CHECKING:
    from core.engine.ssd_tier import SsdTier
    from core.workbench import Workbench

_log = logging.getLogger(__name__)
_WINDOW = 8
"""So many waiting questions are looked at when a prompt is planned."""
_REMOVED_AT_ONCE = 100
_MOST_WARMTHS = 20
"""Of so many documents kept warm it is told how warm they are."""
_BLOCKS_AROUND = 8
"""On each side of a passage are shown at once; more are asked for while one reads on."""


@dataclass(frozen=True, slots=True)
class _Ticket:
    number: int
    question: Question
    cancel: CancelFlag


class Service:
    def __init__(
        self,
        data_dir: Path,
        settings: Settings,
        on_event: Callable[[Event], None],
        *,
        load_model: bool = True,
        take_up: bool = False,
    ) -> None:
        """Open the database and start the threads; the model loads in the background (EngineReady).

        ``take_up``: go on reading what was asked for and not finished when the program last ended, and keep
        watched folders up to date.
        Raises StoreError or SettingsError where the data folder cannot be used.
        """
        self._data_dir = data_dir
        self._settings = settings
        self._on_event = on_event
        open_database(data_dir).close()  # migrations, and its errors, before any thread needs it
        self._numbers = itertools.count(1)
        self._tickets: dict[int, _Ticket] = {}
        self._tickets_lock = threading.Lock()
        self._found: dict[int, Context] = {}
        """Passages of the tickets that wait for the engine."""
        self._closing = threading.Event()
        self._idle_cancel = CancelFlag()
        self._n_urgent = 0
        """Tasks that the user waits for and that stand in the engine's queue."""
        self._load_cancel = CancelFlag()
        self._bench: Workbench | None = None
        self._ssd: SsdTier | None = None
        self._engine_error: SlipstreamError | None = None
        self._engine = Worker("engine", data_dir, self._notice)
        self._retrieval = Worker("retrieval", data_dir, self._notice)
        self._ingest = Worker("ingest", data_dir, self._notice)
        self._finding = Finding(
            data_dir,
            settings,
            self._retrieval,
            rests=self._is_asked,
            tell=self._emit,
            report=self._notice,
        )
        self._reading = ReadingQueue(
            self._ingest,
            self._retrieval,
            self._emit,
            changed=self.request_documents,
            done=self._was_read,
            closing=self._closing,
        )
        self._pages = Pages(
            data_dir,
            self._emit,
            self._notice,
            password_of=self._reading.password_of,
            closing=self._closing,
        )
        hands = Hands(
            self._reading.read_watched,
            self._reading.stop_watched,
            self._remove_files,
            self.move_to_collection,
            self.request_documents,
        )
        self._watching = Watching(data_dir, hands, self._emit, self._notice)
        if take_up:
            self._reading.take_up()
            self._watching.begin()
        if load_model:
            self._engine.put(lambda: self._load(settings.model))

    # --- questions --------------------------------------------------------------------------------

    def submit(self, question: Question) -> int:
        """Queue a question; the ticket number names it in SourcesFound … AnswerDone/QuestionFailed."""
        ticket = _Ticket(next(self._numbers), question, CancelFlag())
        with self._tickets_lock:
            self._tickets[ticket.number] = ticket
        self._idle_cancel.set()
        self._retrieval.put(lambda: self._for_ticket(ticket, self._find))
        return ticket.number

    def cancel(self, ticket: int) -> None:
        """Stop a question. What was prefilled and said is kept."""
        with self._tickets_lock:
            found = self._tickets.get(ticket)
        if found:
            found.cancel.set()

    def _find(self, ticket: _Ticket) -> bool:
        """On the retrieval thread: sources first, then hand over to the engine."""
        question = ticket.question
        context = self._finding.find(question)
        with self._tickets_lock:
            self._found[ticket.number] = context
        self._emit(SourcesFound(ticket.number, question.conversation_id, context))
        self._engine.put(lambda: self._for_ticket(ticket, lambda t: self._answer(t, context)))
        return False

    def _is_asked(self) -> bool:
        with self._tickets_lock:
            return bool(self._tickets)

    def _answer(self, ticket: _Ticket, context: Context) -> bool:
        """On the engine thread."""
        from core.pipeline import answer

        if self._bench is None:
            raise self._engine_error or EngineError("No model is loaded.")
        context = self._still_there(context, ticket.question)
        waiting = self._waiting_behind(ticket)
        for event in answer(
            self._bench, ticket.number, ticket.question, context, ticket.cancel, waiting=waiting
        ):
            self._emit(event)
            if isinstance(event, AnswerDone):
                if self._settings.prefer_cached:
                    self._finding.cached = frozenset(self._bench.cache.block_ids())
                self.request_conversations()
                self._engine.put(partial(self._settle, event.conversation_id, ticket.question.scope))
        return True

    def _waiting_behind(self, ticket: _Ticket) -> tuple[Context, ...]:
        """Passages of the next questions of the same scope: what they share may as well be read in front."""
        with self._tickets_lock:
            return tuple(
                self._found[number]
                for number, other in sorted(self._tickets.items())
                if number > ticket.number and number in self._found
                if other.question.scope == ticket.question.scope
            )[:_WINDOW]

    def _settle(self, conversation_id: int, scope: Scope) -> None:
        from core.history import branch_of
        from core.idle import read_on, settle

        def work(bench: "Workbench", cancel: CancelFlag) -> None:
            segments, _ = branch_of(bench, conversation_id)
            place = bench.conversations.cache_place(conversation_id)
            if n_read := read_on(bench, segments, place, scope, cancel):
                said = f"Read ahead in the documents you asked about: {count(n_read, 'token')}."
                self._emit(IdleWorkDone((said,)))
                self._tell_cache_state()

        self._while_idle(lambda bench, cancel: settle(bench, conversation_id, cancel))
        if self._settings.idle_work and _on_mains_power():
            self._while_idle(work)

    def _keep_warm(self) -> None:
        """Read what the user wants kept warm, if nobody waits and the machine is on mains power."""
        from core.idle import keep_documents_warm

        def work(bench: "Workbench", cancel: CancelFlag) -> None:
            if sentences := keep_documents_warm(bench, cancel):
                self._emit(IdleWorkDone(tuple(sentences)))
                self._tell_cache_state()

        self._tell_cache_state()
        if self._settings.idle_work and _on_mains_power():
            self._while_idle(work)

    def _tell_cache_state(self) -> None:
        from core.idle import warmth

        if self._bench is None:
            return
        ssd = self._ssd
        self._emit(
            CacheState(
                n_chunks=len(self._bench.cache),
                ram_bytes=self._bench.cache.n_ram_bytes,
                ram_budget=self._bench.ram_budget,
                ssd_bytes=ssd.n_bytes if ssd else 0,
                ssd_budget=ssd.budget if ssd else 0,
                ssd_written_today=ssd.bytes_written_today if ssd else 0,
            )
        )
        self._emit(WarmthChanged(warmth(self._bench, self._bench.documents.kept_warm()[:_MOST_WARMTHS])))

    def _warm_up(self) -> None:
        from core.idle import warm_up

        if self._settings.idle_work and _on_mains_power():
            self._while_idle(warm_up)
        self._engine.put(self._keep_warm)

    def _urgent(self, task: Task) -> None:
        """Queue a task for the engine thread before which no idle work begins; what runs is stopped."""

        def run() -> None:
            with self._tickets_lock:
                self._n_urgent -= 1
            task()

        with self._tickets_lock:
            self._n_urgent += 1
        self._idle_cancel.set()
        self._engine.put(run)

    def _while_idle(self, work: "Callable[[Workbench, CancelFlag], None]") -> None:
        """On the engine thread: work that nobody waits for. A question, a removal or the end stops it."""
        self._idle_cancel = CancelFlag()
        with self._tickets_lock:
            waiting = bool(self._tickets) or self._n_urgent > 0
        # What comes from here on sets the new flag; what came before is in _tickets or in _n_urgent.
        if waiting or self._closing.is_set() or self._bench is None:
            return
        try:
            work(self._bench, self._idle_cancel)
        except Cancelled:
            _log.debug("idle work was stopped")
        except KnownError:
            _log.debug("idle work lost its object", exc_info=True)
        except EngineError:
            _log.warning("idle work failed", exc_info=True)

    def _still_there(self, context: Context, question: Question) -> Context:
        """The context without passages whose document was removed while the question waited."""
        ids = [passage.block.id for passage in context.passages]
        places = DocumentStore(self._engine.db).places_of(ids, question.scope)
        kept = tuple(
            replace(passage, places=places[passage.block.id])
            for passage in context.passages
            if places.get(passage.block.id)
        )
        return replace(context, passages=kept)

    def _for_ticket(self, ticket: _Ticket, step: Callable[[_Ticket], bool]) -> None:
        """Run one step of a ticket; a failure ends the ticket with QuestionFailed."""
        try:
            if ticket.cancel.is_set():
                raise Cancelled
            finished = step(ticket)
        except Exception as error:  # noqa: BLE001
            finished = True
            known = as_slipstream_error(error)
            self._emit(
                QuestionFailed(
                    ticket.number,
                    known.message,
                    known.hint,
                    known.details,
                    cancelled=isinstance(known, Cancelled),
                    is_bug=isinstance(known, BugError),
                )
            )
        if finished:
            with self._tickets_lock:
                self._tickets.pop(ticket.number, None)
                self._found.pop(ticket.number, None)
            self._engine.put(self._keep_warm)  # idle work that gave way goes on

    # --- library ----------------------------------------------------------------------------------

    def add_paths(self, paths: Sequence[Path]) -> int:
        """Read files and folders into the library: IngestProgress …, LibraryChanged.

        The number is that of the request, in IngestProgress and in a Notice about it.
        """
        return self._reading.add(paths)

    def pause_ingest(self) -> None:
        """Read nothing more until ``resume_ingest``; the file in hand is finished, or left if it is long."""
        self._reading.pause()

    def resume_ingest(self) -> None:
        """Go on after ``pause_ingest``."""
        self._reading.resume()

    def cancel_ingest(self) -> None:
        """Stop reading; finished files stay."""
        self._reading.cancel()

    def unlock(self, document_id: int, password: str) -> int:
        """Read a document with its password: LibraryChanged, or a Notice that says why not.

        A password that fits is kept in memory until the program ends. The number is as ``add_paths``'s.
        """
        return self._reading.unlock(document_id, password)

    def recognize_text(self, document_ids: Sequence[int]) -> int:
        """Read documents again with text recognition: IngestProgress …, LibraryChanged, a Notice if not.

        The number is as ``add_paths``'s.
        """
        return self._reading.recognize_text(document_ids)

    def _was_read(self, watched: bool, cancelled: bool) -> None:
        self._urgent(self._forget_missing)
        self._finding.wake()
        self.request_documents()
        self._watching.reading_ended(watched=watched, cancelled=cancelled)

    def remove_document(self, document_id: int) -> None:
        """Remove a document, its blocks and what the cache holds of them: LibraryChanged.

        It runs between questions, on the engine thread: no prompt is made of a document half removed.
        """

        def remove() -> None:
            FolderStore(self._engine.db).leave_out(document_id)
            self._upkeep().remove_document(document_id)
            self.request_documents()
            self._watching.documents_changed()
            self._reconsider()

        self._urgent(remove)

    def _remove_files(self, files: Sequence[KnownFile], if_gone: bool) -> None:
        """Remove documents of watched folders, a few at a time: a question must not wait for them all."""

        def remove(some: Sequence[KnownFile]) -> None:
            chosen = [one for one in some if not (if_gone and is_still_there(self._engine.db, one))]
            if chosen:  # else the caches are not looked through for nothing
                self._upkeep().remove_documents([one.document_id for one in chosen])

        def end() -> None:
            self.request_documents()
            self._watching.documents_changed()
            self._reconsider()

        for first in range(0, len(files), _REMOVED_AT_ONCE):
            self._urgent(partial(remove, files[first : first + _REMOVED_AT_ONCE]))
        self._urgent(end)

    def keep_warm(self, document_id: int, *, wanted: bool) -> None:
        """Have a document read whole once and kept, or no longer: LibraryChanged, then WarmthChanged."""

        def note() -> None:
            DocumentStore(self._engine.db).keep_warm(document_id, wanted=wanted)
            self.request_documents()
            self._reconsider()

        self._urgent(note)

    # --- watched folders --------------------------------------------------------------------------

    def watch_folder(self, path: Path, collection_id: int | None) -> None:
        """Keep a folder up to date in the library: WatchedFoldersChanged, and as ``add_paths``; or a Notice.

        What is found goes into the collection, unless the user puts it elsewhere.
        """
        self._watching.watch(path, collection_id)

    def unwatch_folder(self, path: str, *, remove_documents: bool) -> None:
        """Watch a folder no longer; its documents leave or stay: WatchedFoldersChanged, LibraryChanged."""
        self._watching.unwatch(path, remove_documents=remove_documents)

    def request_watched_folders(self) -> None:
        """Answered by WatchedFoldersChanged."""
        self._watching.request()

    # --- collections ------------------------------------------------------------------------------

    def request_collections(self) -> None:
        """Answered by CollectionsChanged."""
        self._retrieval.put(
            lambda: self._emit(CollectionsChanged(CollectionStore(self._retrieval.db).list()))
        )

    def create_collection(self, name: str, document_ids: Sequence[int] = ()) -> None:
        """Answered by CollectionsChanged and LibraryChanged, or a Notice."""
        chosen = tuple(document_ids)

        def create() -> None:
            collections = CollectionStore(self._engine.db)
            self._rearrange(lambda: collections.assign(chosen, collections.create(name)), chosen)

        self._urgent(create)

    def move_to_collection(self, document_ids: Sequence[int], collection_id: int | None) -> None:
        """Put documents into a collection (None: into none). Answered as ``create_collection``."""
        chosen = tuple(document_ids)
        self._urgent(
            lambda: self._rearrange(
                lambda: CollectionStore(self._engine.db).assign(chosen, collection_id), chosen
            )
        )

    def change_collection(self, info: CollectionInfo) -> None:
        """Rename a collection or set its switches. Answered as ``create_collection``."""

        def change() -> None:
            collections = CollectionStore(self._engine.db)
            self._rearrange(lambda: collections.change(info), collections.document_ids(info.id))

        self._urgent(change)

    def delete_collection(self, collection_id: int) -> None:
        """Its documents stay. Answered as ``create_collection``."""

        def delete() -> None:
            collections = CollectionStore(self._engine.db)
            self._rearrange(
                lambda: collections.delete(collection_id), collections.document_ids(collection_id)
            )

        self._urgent(delete)

    def _rearrange(self, change: Callable[[], None], document_ids: Collection[int]) -> None:
        self._upkeep().rearrange(change, document_ids)
        self.request_collections()
        self.request_documents()
        self._reconsider()

    def request_documents(self) -> None:
        """Answered by LibraryChanged."""

        def tell() -> None:
            self._emit(LibraryChanged(DocumentStore(self._retrieval.db).list_documents()))
            self._finding.refresh()

        self._retrieval.put(tell)

    def request_passage(self, document_id: int, block_id: str, quote: str) -> None:
        """The text around a block for the reading pane: PassageLoaded, or a Notice."""

        def load() -> None:
            text = PassageStore(self._retrieval.db).passage(document_id, block_id, quote, _BLOCKS_AROUND)
            if text is None:
                self._emit(
                    Notice(
                        "This passage is no longer in the library.", "Its document was removed or changed."
                    )
                )
            else:
                self._emit(PassageLoaded(text))

        self._retrieval.put(load)

    def request_text(self, document_id: int, first: int, n_blocks: int) -> None:
        """More of a document's text, from the block ``first`` on: TextLoaded."""
        self._retrieval.put(
            lambda: self._emit(PassageStore(self._retrieval.db).part(document_id, first, n_blocks))
        )

    def request_page(self, document_id: int, page: int, width_px: int, block_id: str, quote: str) -> None:
        """A page of a PDF, drawn, with what is cited marked on it: PageLoaded.

        A request that waits while a newer one comes is dropped without an answer.
        """
        self._pages.request(document_id, page, width_px, block_id, quote)

    # --- conversations ----------------------------------------------------------------------------

    def request_conversations(self) -> None:
        """Answered by ConversationsChanged."""

        def load() -> None:
            listed = ConversationStore(self._retrieval.db).list()
            self._emit(ConversationsChanged(tuple(info for info in listed if info.n_turns)))

        self._retrieval.put(load)

    def request_conversation(self, conversation_id: int) -> None:
        """Answered by ConversationLoaded."""
        self._retrieval.put(
            lambda: self._emit(
                ConversationLoaded(
                    conversation_id, ConversationStore(self._retrieval.db).turns(conversation_id)
                )
            )
        )

    def delete_conversation(self, conversation_id: int) -> None:
        """Answered by ConversationsChanged. What the cache holds of it is dropped as well."""

        def delete() -> None:
            self._upkeep().delete_conversation(conversation_id)
            self.request_conversations()
            self._engine.put(self._keep_warm)

        self._urgent(delete)

    def forget_everything(self) -> None:
        """Empty the cache in all its tiers, of every model; the library and the conversations stay."""

        def forget() -> None:
            self._upkeep().forget_everything()
            self._tell_cache_state()  # and no more: what is to be kept warm is read after the next question

        self._urgent(forget)

    def _upkeep(self) -> Upkeep:
        """On the engine thread."""
        return Upkeep(self._engine.db, self._bench, self._disk_tier)

    def _forget_missing(self) -> None:
        self._upkeep().forget_missing()
        self._reconsider()

    def _reconsider(self) -> None:
        """What is to be kept warm, or there is room for it, may have changed."""
        if self._bench is not None:
            self._bench.unkeepable.clear()
        self._engine.put(self._keep_warm)

    # --- model ------------------------------------------------------------------------------------

    def use_model(self, path: Path) -> None:
        """Load another GGUF: EngineReady or EngineFailed; the old one stays in use if it fails."""
        self._urgent(lambda: self._load(str(path)))

    def read_by(self, settings: Settings) -> None:
        """Read passages as ``settings`` say, from the next question on."""
        self._settings = self._settings.with_(**settings.reading)
        if not settings.idle_work:
            self._idle_cancel.set()
        self._engine.put(self._follow_settings)

    def _follow_settings(self) -> None:
        from core.first_word import learn_rate

        if self._bench is not None:
            self._bench.dedup, self._bench.first_word_s = self._settings.dedup, self._settings.first_word_s
            learn_rate(self._bench, self._load_cancel)
        self._keep_warm()

    def find_by_meaning(self, settings: Settings) -> None:
        """Use the embedder that ``settings`` name, or none: EmbeddingProgress …, or a Notice."""
        self._finding.change(settings)

    def _load(self, wanted: str) -> None:
        """On the engine thread. A file that cannot be loaded is refused before the old model goes."""
        jit.ensure_compiled(self._closing)
        if self._closing.is_set():
            return
        old = self._bench.engine.info.path if self._bench else ""
        try:
            path = choose_model(wanted)
            check_model(path)
            self._close_bench()  # two models at once may not fit
            self._bench = self._open_bench(path)
        except Exception as error:  # noqa: BLE001  (whatever it is, the window must not wait for a model)
            known = as_slipstream_error(error)
            if isinstance(known, Cancelled):
                return  # the program ends
            self._emit(EngineFailed(known.message, known.hint, known.details))
            if old and self._bench is None:
                self._load(old)
            elif not old:
                self._engine_error = known
            return
        self._engine_error = None
        stored = load_settings(self._data_dir)
        if stored.model != wanted:  # it loads, so it is the one to start with next time
            save_settings(self._data_dir, stored.with_(model=wanted))
        self._emit(EngineReady(self._bench.info))
        self._engine.put(self._warm_up)

    def _open_bench(self, path: Path) -> "Workbench":
        from core.engine.llama import LlamaEngine
        from core.first_word import learn_rate
        from core.workbench import Workbench

        engine = LlamaEngine(path, self._settings, self._load_cancel)
        try:
            budget = cache_budgets(self._settings, self._data_dir, engine.memory_bytes).ram
            bench = Workbench(
                engine,
                self._engine.db,
                ram_budget=budget,
                ssd=self._disk_tier(),
                dedup=self._settings.dedup,
                first_word_s=self._settings.first_word_s,
            )
            learn_rate(bench, self._load_cancel)
        except BaseException:
            engine.close()
            raise
        else:
            return bench

    def _disk_tier(self) -> "SsdTier | None":
        """The snapshots on disk, opened at first use; also without a model, since removals reach them."""
        if self._ssd is None:
            from core.engine.snapshots import SnapshotStore
            from core.engine.ssd_tier import SsdTier

            folder = self._data_dir / "snapshots"
            budgets = cache_budgets(self._settings, self._data_dir, 0)
            if not budgets.ssd and not folder.exists():
                return None
            self._ssd = SsdTier(
                SnapshotStore(
                    folder,
                    budgets.ssd,
                    budgets.ssd_daily,
                    lambda text: self._emit(Notice(text, is_warning=True)),
                )
            )
            # What was removed by another process, or just before a crash, must not come back.
            self._ssd.forget_blocks(DocumentStore(self._engine.db).missing_blocks(self._ssd.block_ids()), ())
        return self._ssd

    def _close_bench(self) -> None:
        if self._bench is not None:
            self._bench.keep_learned()
            self._bench.cache.retire()
            if self._ssd is not None:
                self._ssd.leave()
            self._bench.engine.close()
            self._bench = None

    # --- the rest ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop what runs, keep what is finished, end the threads. Waits."""
        self._closing.set()
        self._load_cancel.set()
        self._reading.close()
        self._idle_cancel.set()
        with self._tickets_lock:
            for ticket in self._tickets.values():
                ticket.cancel.set()
        self._watching.close()
        self._retrieval.put(self._ingest.stop)  # behind the requests that it is still writing down
        self._ingest.join()
        self._pages.close()
        self._retrieval.put(lambda: self._engine.put(self._close_engine))
        self._retrieval.put(self._engine.stop)
        self._engine.join()
        self._finding.end()
        self._retrieval.stop()
        self._retrieval.join()
        self._finding.close()

    def _close_engine(self) -> None:
        self._close_bench()
        if self._ssd is not None:
            self._ssd.close()
            self._ssd = None

    def _notice(self, error: SlipstreamError) -> None:
        if not isinstance(error, Cancelled):
            self._emit(notice_of(error))

    def _emit(self, event: Event) -> None:
        self._on_event(event)


def _on_mains_power() -> bool:
    """True where there is no battery, or nobody can tell."""
    battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
    return battery is None or battery.power_plugged is not False
