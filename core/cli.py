"""The ``slipstream`` command. Without a subcommand it opens the window.

Exit codes: 0 done, 1 an error that the message explains, 2 wrong usage, 130 interrupted.
"""

import argparse
import dataclasses
import json
import logging
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from core import __version__
from core.config import (
    Settings,
    WindowOptions,
    default_data_dir,
    load_settings,
    make_private_dir,
    sample_documents,
)
from core.errors import BugError, Cancelled, KnownError, SettingsError, SlipstreamError
from core.metrics import in_words
from core.types import (
    Answer,
    AnswerDone,
    AnswerText,
    DocumentInfo,
    DocumentStatus,
    Event,
    IngestProgress,
    LibraryChanged,
    Notice,
    PrefillProgress,
    Question,
    QuestionFailed,
    RequestMetrics,
    SamplingOptions,
    Scope,
    SourcesFound,
    TicketEvent,
)

if TYPE_CHECKING:
    from core.service import Service

_E = TypeVar("_E", bound=Event)
OpenWindow = Callable[[WindowOptions], int]

EMBEDDED = "embedded"
EXIT_ERROR, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130


def main(argv: Sequence[str] | None = None, *, open_window: OpenWindow | None = None) -> int:
    """Run one command; returns its exit code. ``open_window`` is given by the app: core knows no window."""
    arguments = _parser().parse_args(argv)
    try:
        return _dispatch(arguments, open_window)
    except (KeyboardInterrupt, Cancelled):
        print("Stopped.", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader went away (`| head`). Python would complain once more when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_ERROR
    except SlipstreamError as error:
        _print_error(error.message, error.hint, error.details, is_bug=isinstance(error, BugError))
        return EXIT_ERROR
    except Exception as error:
        logging.getLogger(__name__).exception("bug")
        _print_error("Slipstream made a mistake.", "", f"{type(error).__name__}: {error}", is_bug=True)
        return EXIT_ERROR


def _dispatch(arguments: argparse.Namespace, open_window: OpenWindow | None) -> int:
    command = arguments.command
    if command == "compile-kernels":
        from core.jit import compile_all

        compile_all()
        return 0
    if command == "child":
        from core.ingest.child_side import serve

        serve()
    data_dir = Path(getattr(arguments, "data_dir", None) or default_data_dir()).expanduser()
    make_private_dir(data_dir)
    start_log(data_dir)
    settings = load_settings(data_dir)
    if model := getattr(arguments, "model", None):
        settings = _with_model(settings, model)
    if command in (None, "kiosk"):
        if open_window is None:
            raise KnownError("This installation has no window.", hint="Use `slipstream ask`.")
        samples = sample_documents() if arguments.samples else None
        return open_window(WindowOptions(data_dir, settings, kiosk=command == "kiosk", samples=samples))
    if command == "ask":
        return _ask(arguments, data_dir, settings)
    if command == "library":
        return _library(arguments, data_dir, settings)
    if command == "selftest":
        from core.selftest import run

        return run(settings)
    from core.bench.command import run as bench

    return bench(arguments, settings)


def _with_model(settings: Settings, model: str) -> Settings:
    """A model named on the command line is checked at once; once it has loaded it is remembered."""
    if model == EMBEDDED:
        return settings.with_(model="")
    from core.engine.model_files import check_model

    path = Path(model).expanduser().absolute()
    check_model(path)
    return settings.with_(model=str(path))


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--data-dir", default=argparse.SUPPRESS, help="keep library and settings in this folder"
    )
    common.add_argument(
        "--model", default=argparse.SUPPRESS, metavar="FILE.gguf", help="language model to use"
    )
    parser = argparse.ArgumentParser(
        prog="slipstream",
        parents=[common],
        description="Private chat with your own documents. Without a command, the window opens.",
    )
    parser.add_argument("--version", action="version", version=f"slipstream {__version__}")
    parser.add_argument(
        "--samples", action="store_true", help="put the sample documents into a library that is still empty"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    ask = commands.add_parser("ask", parents=[common], help="ask your documents and print the answer")
    ask.add_argument(
        "--docs", nargs="+", metavar="PATH", help="read these files and folders, and ask only them"
    )
    ask.add_argument("--max-tokens", type=_positive, metavar="N", help="longest answer, in tokens")
    ask.add_argument("--json", action="store_true", help="one JSON object a question")
    ask.add_argument(
        "--each", action="store_true", help="every question by itself; they are planned together"
    )
    ask.add_argument("questions", nargs="*", metavar="QUESTION", help="several are turns of one conversation")

    library = commands.add_parser("library", parents=[common], help="the documents that are asked")
    actions = library.add_subparsers(dest="action", required=True, metavar="ACTION")
    add = actions.add_parser("add", parents=[common], help="read files and folders")
    add.add_argument("paths", nargs="+", metavar="PATH")
    listing = actions.add_parser("list", parents=[common], help="list the documents")
    listing.add_argument("--json", action="store_true")
    remove = actions.add_parser("remove", parents=[common], help="forget documents, by path or number")
    remove.add_argument("paths", nargs="+", metavar="PATH|NUMBER")

    commands.add_parser("kiosk", parents=[common], help="full screen for a public place; library locked")
    commands.add_parser("selftest", parents=[common], help="check this installation, end to end")
    bench = commands.add_parser("bench", parents=[common], help="measure on this machine")
    from core.bench.arguments import add_arguments

    add_arguments(bench)
    commands.add_parser("compile-kernels", help=argparse.SUPPRESS)
    commands.add_parser("child", help=argparse.SUPPRESS).add_argument("name")
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def start_log(data_dir: Path) -> None:
    """Log warnings and bugs into the data folder, never what documents or questions say."""
    from logging.handlers import RotatingFileHandler

    path = data_dir / "slipstream.log"
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        handler = RotatingFileHandler(path, maxBytes=1 << 20, backupCount=1, encoding="utf-8", delay=True)
    except OSError as error:
        raise SettingsError(
            f"The data folder {data_dir} cannot be written to.",
            hint="Choose another one with --data-dir.",
            details=str(error),
        ) from error
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    root = logging.getLogger()
    for old in root.handlers[:]:
        if isinstance(old, RotatingFileHandler):
            root.removeHandler(old)
            old.close()
    root.addHandler(handler)
    root.setLevel(logging.WARNING)


# --- a service, from a command line's point of view ----------------------------------------------------


class _Session:
    """A running service whose events are read one after the other."""

    def __init__(self, service: "Service", events: "queue.SimpleQueue[Event]") -> None:
        self.service = service
        self._events = events

    def events(self) -> Iterator[Event]:
        """Events as they come; Ctrl-C gets through between them."""
        while True:
            try:
                event = self._events.get(timeout=0.5)
            except queue.Empty:
                continue
            if isinstance(event, Notice) and event.is_warning:
                _print_error(event.message, event.hint, event.details, is_bug=False)
            else:
                yield event

    def wait_for(self, kind: type[_E]) -> _E:
        """The next event of a kind. Raises what a Notice tells: then none will come."""
        for event in self.events():
            if isinstance(event, kind):
                return event
            if isinstance(event, Notice):
                raise _error_of(event)
        raise AssertionError


@contextmanager
def _session(data_dir: Path, settings: Settings, *, model: bool = True) -> Iterator[_Session]:
    from core.service import Service

    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    service = Service(data_dir, settings, events.put, load_model=model)
    # SIGTERM ends like Ctrl-C: what is finished is kept.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield _Session(service, events)
    finally:
        service.close()


def _error_of(event: Notice | QuestionFailed) -> SlipstreamError:
    kind = BugError if event.is_bug else KnownError
    return kind(event.message, hint=event.hint, details=event.details)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _read_paths(session: _Session, paths: Sequence[Path]) -> tuple[IngestProgress, tuple[DocumentInfo, ...]]:
    """Read files into the library, with a progress line on a terminal; the list of documents after it."""
    terminal = sys.stderr.isatty()
    session.service.add_paths(paths)
    finished: IngestProgress | None = None
    documents: tuple[DocumentInfo, ...] = ()
    for event in session.events():
        if isinstance(event, IngestProgress):
            if terminal:
                line = f"reading {event.n_done}/{event.n_files} {event.current}"
                print(f"\r\x1b[K{line[:100]}", end="", file=sys.stderr, flush=True)
            if not event.running:
                finished = event
        elif isinstance(event, Notice):
            raise _error_of(event)
        elif isinstance(event, LibraryChanged) and finished is not None:
            documents = event.documents
            break
    if terminal:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    assert finished is not None
    for path, problem in finished.problems:
        print(f"{path}: {problem}", file=sys.stderr)
    return finished, documents


# --- ask ------------------------------------------------------------------------------------------------


def _ask(arguments: argparse.Namespace, data_dir: Path, settings: Settings) -> int:
    docs, questions = _docs_and_questions(arguments.docs or [], arguments.questions)
    if not questions:
        print("slipstream ask: no question was given.", file=sys.stderr)
        return EXIT_USAGE
    if any("\udc80" <= character <= "\udcff" for text in questions for character in text):
        print("slipstream ask: the question is not valid text in this terminal's encoding.", file=sys.stderr)
        return EXIT_USAGE
    with _session(data_dir, settings) as session:
        scope = Scope()
        if docs:
            scope = _scope_of(session, docs)
        conversation: int | None = None

        def submit(text: str) -> int:
            question = Question(
                text,
                conversation,
                scope,
                arguments.max_tokens or settings.answer_tokens,
                SamplingOptions(settings.temperature, settings.top_p, settings.seed),
            )
            return session.service.submit(question)

        tickets = [submit(text) for text in questions] if arguments.each else []
        for number, text in enumerate(questions):
            ticket = tickets[number] if arguments.each else submit(text)
            done = _await_answer(session, ticket, stream=not arguments.json)
            conversation = None if arguments.each else done.conversation_id
            if arguments.json:
                print(json.dumps(_as_json(text, done.turn.answer), ensure_ascii=False), flush=True)
            else:
                _print_sources(done.turn.answer)
    return 0


def _docs_and_questions(docs: Sequence[str], questions: Sequence[str]) -> tuple[list[Path], list[str]]:
    """``--docs a.pdf b.pdf "What …?"``: what follows the last existing path is a question."""
    paths = list(docs)
    trailing: list[str] = []
    if not questions:
        while len(paths) > 1 and not _exists(paths[-1]):
            trailing.insert(0, paths.pop())
    return [Path(path).expanduser() for path in paths], [*trailing, *questions]


def _exists(text: str) -> bool:
    """True if this names a file; a question that is no possible path at all names none."""
    try:
        return Path(text).expanduser().exists()
    except (OSError, RuntimeError, ValueError):
        return False


def _scope_of(session: _Session, docs: Sequence[Path]) -> Scope:
    """Read ``docs`` and return exactly these documents. Raises KnownError if none of them can be asked."""
    _, listed = _read_paths(session, docs)
    roots = [path.resolve() for path in docs]
    mine = [info for info in listed if any(Path(info.path).is_relative_to(root) for root in roots)]
    usable = [info for info in mine if info.status in (DocumentStatus.READY, DocumentStatus.READY_WITH_NOTE)]
    if not usable:
        raise KnownError(
            "None of these documents can be asked.", hint="See the reasons above, or `library list`."
        )
    return Scope(frozenset(info.id for info in usable))


def _await_answer(session: _Session, ticket: int, *, stream: bool) -> AnswerDone:
    """Wait for an answer; Ctrl-C stops the question. Raises SlipstreamError where it failed."""
    terminal = sys.stderr.isatty()
    try:
        for event in session.events():
            if isinstance(event, Notice):
                _print_error(event.message, event.hint, event.details, is_bug=event.is_bug)
            if not isinstance(event, TicketEvent) or event.ticket != ticket:
                continue
            if isinstance(event, QuestionFailed):
                if event.cancelled:
                    raise Cancelled(event.message)
                raise _error_of(event)
            if isinstance(event, AnswerDone):
                if stream:
                    print()
                return event
            _show(event, stream=stream, terminal=terminal)
    except KeyboardInterrupt:
        session.service.cancel(ticket)
        raise
    raise AssertionError


def _show(event: TicketEvent, *, stream: bool, terminal: bool) -> None:
    if isinstance(event, SourcesFound) and stream and terminal:
        for passage in event.context.passages[:3]:
            page = f", p. {passage.place.page}" if passage.place.page else ""
            print(f"  {passage.place.title}{page}: {passage.quote[:100]}", file=sys.stderr)
    elif isinstance(event, PrefillProgress) and terminal:
        done = event.n_cached_tokens + event.n_prefilled_tokens
        line = (
            f"reading {done:,} of {event.n_prompt_tokens:,} tokens, {event.n_cached_tokens:,} from the cache"
        )
        end = "\r\x1b[K" if done >= event.n_prompt_tokens else ""
        print(f"\r\x1b[K{line}{end}", end="", file=sys.stderr, flush=True)
    elif isinstance(event, AnswerText) and stream:
        print(event.text, end="", flush=True)


def _print_sources(answer: Answer) -> None:
    for citation in answer.citations:
        page = f", p. {citation.page}" if citation.page else ""
        print(f"  [{citation.number}] {citation.document}{page}: {' '.join(citation.quote.split())[:160]}")
    if answer.text and not answer.citations:
        print("  No passage supports this answer; look at the passages themselves:")
        for passage in answer.passages[:3]:
            page = f", p. {passage.place.page}" if passage.place.page else ""
            print(f"  - {passage.place.title}{page}: {' '.join(passage.quote.split())[:160]}")
    for note in answer.notes:
        print(f"  {note}")
    print(f"  {in_words(answer.metrics)}\n")


def _as_json(question: str, answer: Answer) -> dict[str, Any]:
    return {
        "question": question,
        "answer": answer.text,
        "citations": [
            {"block": c.block_id, "document": c.path, "page": c.page, "quote": c.quote}
            for c in answer.citations
        ],
        "passages": {"used": len(answer.passages), "found": answer.n_found},
        "metrics": metrics_as_json(answer.metrics),
        "notes": list(answer.notes),
    }


def metrics_as_json(metrics: RequestMetrics) -> dict[str, Any]:
    """Every count and time of a request; floats rounded to what the clock can tell."""
    values = dataclasses.asdict(metrics)
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in values.items()}


# --- library ----------------------------------------------------------------------------------------------


def _library(arguments: argparse.Namespace, data_dir: Path, settings: Settings) -> int:
    with _session(data_dir, settings, model=False) as session:
        if arguments.action == "add":
            paths = [Path(path).expanduser() for path in arguments.paths]
            done, _ = _read_paths(session, paths)
            n_ready = done.n_done - done.n_failed
            rate = done.n_blocks / done.elapsed_s if done.elapsed_s else 0.0
            print(
                f"{n_ready} of {done.n_files} files ready, {done.n_failed} failed, {done.n_blocks:,} blocks "
                f"in {done.elapsed_s:.1f} s ({rate:,.0f} blocks a second)."
            )
            return EXIT_ERROR if done.n_failed and not n_ready else 0
        session.service.request_documents()
        documents = session.wait_for(LibraryChanged).documents
        if arguments.action == "list":
            _print_documents(documents, as_json=arguments.json)
            return 0
        return _remove(session, documents, arguments.paths)


def _print_documents(documents: Sequence[DocumentInfo], *, as_json: bool) -> None:
    for info in documents:
        if as_json:
            print(json.dumps(dataclasses.asdict(info), ensure_ascii=False))
        else:
            note = f" — {info.note}" if info.note else ""
            print(f"{info.id:>5}  {info.status.value:<18} {info.n_blocks:>6} blocks  {info.path}{note}")
    if not documents and not as_json:
        print("The library is empty. Add documents with `slipstream library add PATH…`.")


def _remove(session: _Session, documents: Sequence[DocumentInfo], wanted: Sequence[str]) -> int:
    code = 0
    for name in wanted:
        root = Path(name).expanduser().resolve()
        found = [info for info in documents if name == str(info.id) or Path(info.path).is_relative_to(root)]
        if not found:
            print(f"{name}: not in the library.", file=sys.stderr)
            code = EXIT_ERROR
        for info in found:
            session.service.remove_document(info.id)
            session.wait_for(LibraryChanged)
            print(f"removed {info.path}")
    return code


def _print_error(message: str, hint: str, details: str, *, is_bug: bool) -> None:
    print(f"slipstream: {message} {hint}".rstrip(), file=sys.stderr)
    for line in details.splitlines():
        print(f"  {line}", file=sys.stderr)
    if is_bug:
        print("This is a bug in Slipstream; the log in the data folder says more.", file=sys.stderr)
