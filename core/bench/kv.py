"""What a quantized KV cache costs and saves: quality and speed of q8_0 against f16, in pairs.

Quality is the log-likelihood of the known answer after its passage and two others, teacher-forced: it needs
no judge and feels differences long before the words change.
"""

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from core.bench.data import rows_of
from core.config import Settings
from core.engine.chat_format import chat_format
from core.engine.llama import LlamaEngine
from core.engine.model_files import choose_model
from core.engine.prefix_cache import PrefixCache, root_key
from core.engine.protocol import CancelFlag
from core.errors import KnownError, SettingsError
from core.prompt import PromptWriter, lay_out
from core.types import Block

_N_PASSAGES = 3
_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class _Question:
    text: str
    answer: str
    passages: tuple[str, ...]


def measure(folder: Path, limit: int, settings: Settings) -> dict[str, float | int | str]:
    """``folder`` holds ``docs``, ``blocks``, ``questions`` (``.jsonl.gz``); answers have known places."""
    if limit < 1:
        raise SettingsError("The limit of questions must be at least 1.")
    questions = list(_questions(folder))[:: max(1, 800 // limit)][:limit]
    if not questions:
        raise KnownError(f"No question with a known place of its answer was found in {folder}.")
    path = choose_model(settings.model)
    engines = {kind: LlamaEngine(path, settings.with_(kv_type=kind)) for kind in ("f16", "q8_0")}
    try:
        rows = [{kind: _one(engine, question) for kind, engine in engines.items()} for question in questions]
        sizes = {kind: _bytes_per_token(engine) for kind, engine in engines.items()}
    finally:
        for engine in engines.values():
            engine.close()
    differences = np.array([row["q8_0"].logprob - row["f16"].logprob for row in rows])
    low, high = _interval(differences)
    return {
        "model": path.stem,
        "questions": len(rows),
        "f16_logprob_per_token": statistics.mean(row["f16"].logprob for row in rows),
        "q8_0_logprob_per_token": statistics.mean(row["q8_0"].logprob for row in rows),
        "difference": float(differences.mean()),
        "difference_low": low,
        "difference_high": high,
        "same_first_token": statistics.mean(row["f16"].first == row["q8_0"].first for row in rows),
        "prefill_time_ratio": statistics.median(row["q8_0"].prefill_s / row["f16"].prefill_s for row in rows),
        "decode_time_ratio": statistics.median(row["q8_0"].decode_s / row["f16"].decode_s for row in rows),
        "f16_bytes_per_token": sizes["f16"],
        "q8_0_bytes_per_token": sizes["q8_0"],
    }


def _questions(folder: Path) -> Iterator[_Question]:
    texts = {row["doc_id"]: row["text"] for row in rows_of(folder / "docs.jsonl.gz")}
    blocks = {row["block_id"]: row for row in rows_of(folder / "blocks.jsonl.gz")}
    names = list(blocks)
    for number, row in enumerate(rows_of(folder / "questions.jsonl.gz")):
        if row["answers"] and row["gold_block_ids"] and len(row["answers"][0]) < 300:
            others = [names[(number * 37 + step) % len(names)] for step in range(1, _N_PASSAGES)]
            chosen = [others[0], row["gold_block_ids"][0], *others[1:]]
            passages = tuple(
                texts[blocks[name]["doc_id"]][blocks[name]["start"] : blocks[name]["end"]] for name in chosen
            )
            yield _Question(row["question"], row["answers"][0], passages)


@dataclass(frozen=True, slots=True)
class _Result:
    logprob: float
    """Mean of the answer's tokens, in nats."""
    first: int
    """Likeliest first token."""
    prefill_s: float
    decode_s: float


def _one(engine: LlamaEngine, question: _Question) -> _Result:
    writer = _writer(engine)
    blocks = [Block.of(text) for text in question.passages]
    prompt = lay_out(
        [
            writer.head(),
            *(writer.block(block, writer.block_tokens(block)) for block in blocks),
            writer.ask("", question.text),
        ],
        root_key(engine.fingerprint),
    )
    cache = PrefixCache(engine, root_key(engine.fingerprint), lambda _: None)
    started = time.perf_counter()
    for _step in cache.prefill(prompt, CancelFlag()):
        pass
    prefilled = time.perf_counter()
    first = int(np.argmax(engine.logits()))
    total = 0.0
    answer = engine.tokenize(question.answer, special=False)
    for token in answer:
        logits = engine.logits().astype(np.float64)
        peak = logits.max()
        total += float(logits[token] - peak - np.log(np.exp(logits - peak).sum()))
        cache.decode(int(token), CancelFlag())
    return _Result(total / len(answer), first, prefilled - started, time.perf_counter() - prefilled)


def _bytes_per_token(engine: LlamaEngine) -> float:
    engine.clear()
    tokens = engine.tokenize("one two three " * 60, special=False)[:100]
    engine.prefill(tokens, 0, CancelFlag())
    snapshot = engine.save(0, len(tokens))
    return len(snapshot) / len(tokens) if snapshot is not None else 0.0


def _writer(engine: LlamaEngine) -> PromptWriter:
    chat = chat_format(engine.chat_template, engine.token_text("bos"), engine.token_text("eos"))
    return PromptWriter(engine, chat)


def _interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """95 % bootstrap interval of the mean."""
    random = np.random.default_rng(0)
    means = values[random.integers(0, len(values), (_RESAMPLES, len(values)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)
