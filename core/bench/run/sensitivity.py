"""How much the model minds the order of passages by itself: what any change of order must be judged by."""

import random
import statistics
from collections.abc import Sequence
from typing import Any

from core.bench.run.quality import assess
from core.bench.run.questions import Asked
from core.engine.chat_format import chat_format
from core.engine.probe import ProbingEngine
from core.engine.protocol import CancelFlag
from core.prompt import PromptWriter, lay_out
from core.types import Chunk, Segment

ORDERS = 5
_SEED = 0


def writer_for(engine: ProbingEngine) -> PromptWriter:
    """Prompts for the model's own chat format."""
    chat = chat_format(engine.chat_template, engine.token_text("bos"), engine.token_text("eos"))
    return PromptWriter(engine, chat)


def comparable(questions: Sequence[Asked]) -> list[Asked]:
    """Those in which an order of passages can matter and be judged."""
    return [asked for asked in questions if asked.counted and asked.answers and len(asked.passages) > 1]


def blocks_of(writer: PromptWriter, asked: Asked) -> list[Segment]:
    """The question's passages, tokenized, best first."""
    blocks = [passage.block for passage in asked.passages]
    return [writer.block(block, writer.block_tokens(block)) for block in blocks]


def read(engine: ProbingEngine, chunks: Sequence[Chunk]) -> None:
    for chunk in chunks:
        engine.prefill(chunk.tokens, chunk.start, CancelFlag())


def measure(engine: ProbingEngine, questions: Sequence[Asked], n: int) -> dict[str, Any] | None:
    """Log-likelihood of the known answer after ``ORDERS`` random orders of a question's passages, cold.

    Of the first ``n`` questions that count and have an answer and more than one passage; None without any.
    ``deviation`` and ``range`` are means over questions, in nats a token. Empties the memory.
    """
    writer = writer_for(engine)
    rng = random.Random(_SEED)
    deviations, ranges = [], []
    for asked in comparable(questions)[:n]:
        found: list[float] = []
        segments = blocks_of(writer, asked)
        for _ in range(ORDERS):
            rng.shuffle(segments)
            prompt = lay_out([writer.head(), *segments, writer.ask("", asked.text)], b"")
            if prompt.n_tokens >= engine.n_ctx:
                break
            engine.clear()
            read(engine, prompt.chunks)
            logprob = assess(engine, asked, prompt.n_tokens, answers=False).logprob
            found += [] if logprob is None else [logprob]
        if len(found) == ORDERS:
            deviations.append(statistics.stdev(found))
            ranges.append(max(found) - min(found))
    engine.clear()
    if not deviations:
        return None
    return {
        "questions": len(deviations),
        "orders": ORDERS,
        "deviation": statistics.mean(deviations),
        "range": statistics.mean(ranges),
    }
