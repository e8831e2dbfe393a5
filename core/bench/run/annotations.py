"""Which annotation serves answers best: the same moved passages, read once, and every kind of annotation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.bench.run.quality import assess
from core.bench.run.questions import Asked
from core.bench.run.sensitivity import blocks_of, comparable, read, writer_for
from core.bench.run.statistics import kinds
from core.engine.probe import ProbingEngine
from core.plan.annotate import annotation
from core.plan.phrases import phrases_for
from core.prompt import lay_out


@dataclass(frozen=True, slots=True)
class _Kind:
    sources: bool
    ranking: bool
    last: bool = False
    """Behind the question."""


_KINDS = {
    "both": _Kind(sources=True, ranking=True),
    "sources": _Kind(sources=True, ranking=False),
    "ranking": _Kind(sources=False, ranking=True),
    "none": _Kind(sources=False, ranking=False),
    "both, last": _Kind(sources=True, ranking=True, last=True),
    "sources, last": _Kind(sources=True, ranking=False, last=True),
}
"""The first is what the product says."""


def measure(engine: ProbingEngine, questions: Sequence[Asked], n: int) -> dict[str, Any] | None:
    """Log-likelihood of the known answer by kind of annotation, the least relevant passage standing first.

    Of the first ``n`` questions that count and have an answer and more than one passage; None without any, or
    where the model cannot be cut.
    In nats a token; ``difference`` is against "none", with its 95 % interval. Empties the memory.
    """
    if not engine.can_cut:
        return None
    writer = writer_for(engine)
    found: dict[str, list[float]] = {name: [] for name in _KINDS}
    sessions: list[str] = []
    for asked in comparable(questions)[:n]:
        segments = [writer.head(), *reversed(blocks_of(writer, asked))]
        phrases = phrases_for(asked.text)
        before = lay_out(segments, b"")
        asks = {
            name: writer.ask(
                annotation(asked.passages, (), moved=kind.ranking, sources=kind.sources, phrases=phrases),
                asked.text,
                annotation_last=kind.last,
            )
            for name, kind in _KINDS.items()
        }
        if before.n_tokens + max(len(ask.tokens) for ask in asks.values()) >= engine.n_ctx:
            continue
        engine.clear()
        read(engine, before.chunks)
        logprobs: dict[str, float] = {}
        for name, ask in asks.items():
            prompt = lay_out([*segments, ask], b"")
            read(engine, prompt.chunks[len(before.chunks) :])
            logprob = assess(engine, asked, prompt.n_tokens, answers=False).logprob
            if logprob is not None:
                logprobs[name] = logprob
            engine.cut(before.n_tokens)
        if len(logprobs) == len(_KINDS):
            sessions.append(asked.session)
            for name, logprob in logprobs.items():
                found[name].append(logprob)
    engine.clear()
    if not sessions:
        return None
    return {"questions": len(sessions), "kinds": kinds(found, "none", sessions)}
