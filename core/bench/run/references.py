"""What references within passages cost answers: the same passages, whole and de-duplicated by content."""

from collections.abc import Sequence
from typing import Any

from core.bench.run.quality import assess
from core.bench.run.questions import Asked
from core.bench.run.sensitivity import blocks_of, comparable, read, writer_for
from core.bench.run.statistics import kinds
from core.engine.probe import ProbingEngine
from core.history import n_tokens
from core.plan.annotate import annotation
from core.plan.content import Surroundings, deduplicate
from core.plan.phrases import phrases_for
from core.prompt import PromptWriter, lay_out
from core.types import Segment


def measure(engine: ProbingEngine, questions: Sequence[Asked], n: int) -> dict[str, Any] | None:
    """Log-likelihood of the known answer behind whole and behind shortened passages, in relevance order.

    Of the first ``n`` questions that count, have an answer, and of whose passages one repeats a stretch of
    another; None without any, or where the model cannot be cut. In nats a token; ``difference`` is against
    "whole", with its 95 % interval. ``tokens_whole``, ``tokens_shortened``: of the passages, means. Empties
    the memory.
    """
    if not engine.can_cut:
        return None
    writer = writer_for(engine)
    found: dict[str, list[float]] = {"whole": [], "shortened": []}
    tokens: dict[str, list[int]] = {"whole": [], "shortened": []}
    sessions: list[str] = []
    for asked in comparable(questions):
        if len(sessions) == n:
            break
        blocks = blocks_of(writer, asked)
        shortened = _shortened(writer, asked, blocks)
        said = annotation(asked.passages, (), moved=False, phrases=phrases_for(asked.text))
        ask = writer.ask(said, asked.text)
        prompts = {
            "whole": [writer.head(), *blocks, ask],
            "shortened": [writer.head(), *shortened, ask],
        }
        saves = n_tokens(*shortened) < n_tokens(*blocks)
        if not saves or n_tokens(*prompts["whole"]) >= engine.n_ctx:
            continue
        logprobs = _logprobs(engine, asked, prompts)
        if len(logprobs) < len(prompts):
            continue
        sessions.append(asked.session)
        tokens["whole"].append(n_tokens(*blocks))
        tokens["shortened"].append(n_tokens(*shortened))
        for name, logprob in logprobs.items():
            found[name].append(logprob)
    engine.clear()
    if not sessions:
        return None
    means = {f"tokens_{name}": sum(counts) / len(counts) for name, counts in tokens.items()}
    return {"questions": len(sessions), "kinds": kinds(found, "whole", sessions), **means}


def _shortened(writer: PromptWriter, asked: Asked, blocks: Sequence[Segment]) -> tuple[Segment, ...]:
    """The segments with references in them, as the product makes them."""
    around = Surroundings(
        held=(),
        unclear=frozenset(),
        segment_of=lambda form: writer.shortened(form.block_id, form.rendered),
        follow=lambda key, _: (key, False),
    )
    whole = {segment.block_id: segment for segment in blocks}
    return deduplicate([passage.block for passage in asked.passages], whole, around, b"").segments


def _logprobs(engine: ProbingEngine, asked: Asked, prompts: dict[str, list[Segment]]) -> dict[str, float]:
    """Read every prompt, what it has in common with the one before only once. Empty for an empty answer."""
    found: dict[str, float] = {}
    before: list[bytes] = []
    for name, segments in prompts.items():
        prompt = lay_out(segments, b"")
        keys = [chunk.key for chunk in prompt.chunks]
        alike = zip(before, keys, strict=False)
        n_common = next((i for i, (a, b) in enumerate(alike) if a != b), min(len(before), len(keys) - 1))
        if n_common:
            engine.cut(prompt.chunks[n_common].start)
        else:
            engine.clear()
        read(engine, prompt.chunks[n_common:])
        logprob = assess(engine, asked, prompt.n_tokens, answers=False).logprob
        if logprob is not None:
            found[name] = logprob
        before = keys
    return found
