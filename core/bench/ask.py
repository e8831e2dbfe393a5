"""The same questions with reuse and cold, on one engine in one run."""

import statistics
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from core.config import Settings
from core.engine.llama import LlamaEngine
from core.engine.model_files import choose_model
from core.engine.protocol import CancelFlag
from core.errors import KnownError
from core.ingest.library import ingest
from core.pipeline import answer
from core.retrieval.search import Searcher
from core.store.database import Database, open_database
from core.types import AnswerDone, Question, RequestMetrics, Scope
from core.workbench import Workbench

_RAM_BUDGET = 2 << 30


def measure(
    paths: Sequence[str], questions: str, limit: int, settings: Settings
) -> dict[str, float | int | str]:
    """The whole list with reuse, each question building on what those before it left, then cold.

    Reuse has the RAM tier; nothing is written to disk. Cold forgets everything before each question.
    """
    try:
        texts = [
            line.strip() for line in Path(questions).read_text(encoding="utf-8").splitlines() if line.strip()
        ]
    except (OSError, UnicodeDecodeError) as error:
        raise KnownError(f"The questions {questions} cannot be read.", details=str(error)) from error
    with tempfile.TemporaryDirectory() as folder, open_database(Path(folder)) as db:
        ingest([Path(path) for path in paths], db, cancel=threading.Event(), progress=lambda _: None)
        engine = LlamaEngine(choose_model(settings.model), settings)
        try:
            reuse, cold = _run(engine, db, texts[:limit], settings)
        finally:
            engine.close()
    return {
        "questions": len(reuse),
        "prompt_tokens": sum(m.n_prompt_tokens for m in reuse),
        "hit_ratio": sum(m.n_cached_tokens for m in reuse) / max(1, sum(m.n_prompt_tokens for m in reuse)),
        "cold_prefill_ms_p50": statistics.median(m.prefill_ms for m in cold),
        "reuse_prefill_ms_p50": statistics.median(m.prefill_ms for m in reuse),
        "prefill_ratio": sum(m.prefill_ms for m in reuse) / sum(m.prefill_ms for m in cold),
        "plan_ms_p50": statistics.median(m.plan_ms for m in reuse),
        "retrieve_ms_p50": statistics.median(m.retrieve_ms for m in reuse),
    }


def _run(
    engine: LlamaEngine, db: Database, texts: Sequence[str], settings: Settings
) -> tuple[list[RequestMetrics], list[RequestMetrics]]:
    """All questions with reuse, then the same ones cold; the order of runs is that of the list."""
    results: list[list[RequestMetrics]] = []
    for forget in (False, True):
        bench = Workbench(engine, db, ram_budget=_RAM_BUDGET)
        measured = []
        for text in texts:
            if forget:
                bench.cache.forget_everything()
            measured.append(_one(bench, db, text, settings))
        results.append(measured)
    return results[0], results[1]


def _one(bench: Workbench, db: Database, text: str, settings: Settings) -> RequestMetrics:
    context = Searcher(db).search(
        text, scope=Scope(), limit=settings.passages, token_budget=settings.passage_tokens
    )
    question = Question(text, max_tokens=1)
    for event in answer(bench, 0, question, context, CancelFlag()):
        if isinstance(event, AnswerDone):
            return event.turn.answer.metrics
    raise AssertionError
