"""``slipstream selftest``: this installation, end to end, on the embedded model and the sample documents.

It runs in a folder of its own that is removed afterwards, prints what took how long, and fails where a
step gives a wrong result. The installer's build runs it inside the frozen program.
"""

import queue
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from core.config import Settings, sample_documents
from core.errors import KnownError, SlipstreamError
from core.service import Service
from core.types import (
    AnswerDone,
    EngineFailed,
    EngineReady,
    Event,
    IngestProgress,
    Notice,
    Question,
    QuestionFailed,
    Turn,
)

_QUESTION = "How much is the deposit?"
_TIMEOUT_S = 300.0
_E = TypeVar("_E", bound=Event)


def run(settings: Settings) -> int:
    """Run all steps; 0 if every one gave what it should. Raises SlipstreamError at the first that did not."""
    samples = sample_documents()
    if samples is None:
        raise KnownError("The sample documents are missing.", hint="Reinstall Slipstream.")
    with tempfile.TemporaryDirectory(prefix="slipstream-selftest-") as folder:
        events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        service = _step("database", lambda: Service(Path(folder), settings, events.put), lambda _: "created")
        try:
            _steps(service, events, samples)
        finally:
            _step("close", service.close, lambda _: "all threads ended")
    print("selftest passed")
    return 0


def _steps(service: Service, events: "queue.SimpleQueue[Event]", samples: Path) -> None:
    _step(
        "kernels and model",
        lambda: _wait(events, EngineReady),
        lambda event: f"{event.model.name} on {event.model.device}",
    )

    def read() -> IngestProgress:
        service.add_paths([samples])
        while (state := _wait(events, IngestProgress)).running:
            pass
        return state

    state = _step("ingest", read, lambda s: f"{s.n_done} documents, {s.n_blocks} blocks")
    _expect(state.n_failed == 0 and state.n_blocks > 0, "the sample documents were not read")

    def ask() -> Turn:
        service.submit(Question(_QUESTION, max_tokens=48))
        return _wait(events, AnswerDone).turn

    first = _step("first question", ask, _cost)
    _expect(bool(first.answer.passages), "no passage was found")
    _expect(bool(first.answer.text), "the model gave no answer")
    again = _step("same question again", ask, _cost)
    metrics = again.answer.metrics
    _expect(
        metrics.n_prefilled_tokens <= again.answer.chunks[-1].n_tokens,
        "the second time more than the last chunk was prefilled",
    )
    _expect(again.answer.text == first.answer.text, "reused and cold answers differ")
    _expect(
        metrics.n_cached_tokens + metrics.n_prefilled_tokens == metrics.n_prompt_tokens,
        "the counts do not add up",
    )


def _cost(turn: Turn) -> str:
    metrics = turn.answer.metrics
    return (
        f"{metrics.n_cached_tokens}/{metrics.n_prompt_tokens} tokens reused, "
        f"prefill {metrics.prefill_ms:.0f} ms, "
        f"{metrics.decode_tokens_per_s:.0f} tokens/s"
    )


_R = TypeVar("_R")


def _step(name: str, action: Callable[[], _R], say: Callable[[_R], str]) -> _R:
    started = time.perf_counter()
    result = action()
    print(f"{name:<22} {time.perf_counter() - started:7.2f} s  {say(result)}", flush=True)
    return result


def _wait(events: "queue.SimpleQueue[Event]", kind: type[_E]) -> _E:
    """The next event of a kind; whatever tells of a failure is raised."""
    deadline = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline:
        try:
            event = events.get(timeout=1.0)
        except queue.Empty:
            continue
        if isinstance(event, kind):
            return event
        if isinstance(event, EngineFailed | QuestionFailed | Notice):
            raise SlipstreamError(event.message, hint=event.hint, details=event.details)
    raise KnownError(f"Nothing happened for {_TIMEOUT_S:.0f} s.", hint="See the log in the data folder.")


def _expect(condition: bool, otherwise: str) -> None:
    if not condition:
        raise KnownError(f"The self-test failed: {otherwise}.", hint="Please report it.")
