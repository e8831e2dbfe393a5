"""What de-duplication saves: prompt tokens of documents that share text, and the time of finding it.

Every document is cut into blocks as the library does; all blocks of a family stand in one prompt, each block
once. *Before*: the blocks of every document, whole. *After*: blocks that were there are left out, and what is
left is shortened by what stands before it. Both with their labels, in tokens of the embedded model.
"""

import statistics as stats
import time
from collections.abc import Iterator, Sequence
from itertools import groupby, islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from core.bench.contracts import contract, edited_clauses, edited_lines, without_newlines
from core.bench.data import rows_of
from core.cdc import SUB_BLOCKS, boundaries, code_points
from core.config import Settings
from core.cut_rules import INFO
from core.engine.llama import LlamaEngine
from core.engine.model_files import embedded_model
from core.errors import KnownError
from core.plan.content import Surroundings, deduplicate
from core.plan.dedup import LEAST_TOKENS, expand, shorten
from core.plan.dedup_kernels import find_repeated
from core.types import Block, Segment, SegmentKind

_CONTRACT_BYTES = 47_000
_PROMPT_BYTES = 45_000
_TIMED = 200
_EDITED_CLAUSES = 0.2
_SEEDS = range(3)
_PASSAGES = 10
_CONTEXTS = 300


class Counter:
    """Tokens of blocks in one tokenizer, and what a prompt of them takes after de-duplication."""

    def __init__(self, engine: LlamaEngine) -> None:
        self._engine = engine
        self._segments: dict[str, Segment] = {}

    def segment(self, block_id: str, text: str) -> Segment:
        if text not in self._segments:
            tokens = self._engine.tokenize(text, special=False)
            self._segments[text] = Segment(SegmentKind.BLOCK, tokens, block_id)
        return self._segments[text]

    def tokens(self, blocks: Sequence[Block]) -> int:
        return sum(len(self.segment(block.id, block.rendered).tokens) for block in blocks)

    def shortened(self, blocks: Sequence[Block]) -> tuple[int, bool]:
        """Tokens of ``blocks`` in one prompt, and whether every one comes back byte for byte."""
        blocks = list({block.id: block for block in blocks}.values())
        around = Surroundings(
            held=(),
            unclear=frozenset(),
            segment_of=lambda form: self.segment(form.block_id, form.rendered),
            follow=lambda key, _: (key, False),
        )
        whole = {block.id: self.segment(block.id, block.rendered) for block in blocks}
        result = deduplicate(blocks, whole, around, b"")
        exact = expand(result.forms) == tuple(block.text for block in blocks)
        return sum(len(segment.tokens) for segment in result.segments), exact


def measure(folder: Path, settings: Settings) -> dict[str, Any]:
    """Tokens of families of documents, of pairs of contracts and of contexts; times. As printed.

    ``folder`` holds ``templates/docs.jsonl.gz`` or that file itself, and ``mtrag/`` and ``traces/`` if
    contexts of passages are to be measured. Raises KnownError where there is nothing to measure.
    """
    templates = folder / "templates" if (folder / "templates").is_dir() else folder
    if not (templates / "docs.jsonl.gz").is_file():
        raise KnownError(
            f"{folder} holds no docs.jsonl.gz.",
            hint="Give a folder with templates/docs.jsonl.gz, or the folder of that file.",
        )
    path = Path(settings.model) if settings.model else embedded_model()
    if path is None:
        raise KnownError("No model is there to count tokens with.", hint="Choose one with --model.")
    rows = list(rows_of(templates / "docs.jsonl.gz"))
    by_family = {
        family: [blocks_of(row["text"]) for row in docs]
        for family, docs in groupby(sorted(rows, key=lambda row: row["family"]), lambda row: row["family"])
    }
    engine = LlamaEngine(path, settings.with_(n_ctx=512))
    try:
        counter = Counter(engine)
        families: dict[str, dict[str, int]] = {}
        exact = []
        for family, documents in by_family.items():
            every = [block for document in documents for block in document]
            after, is_exact = counter.shortened(every)
            families[family] = {"tokens_before": counter.tokens(every), "tokens_after": after}
            exact.append(is_exact)
        contracts, contracts_exact = _contracts(counter)
        result: dict[str, Any] = {
            "families": families,
            "ms_45kb_p50": _milliseconds(),
            "mb_per_s": _megabytes_per_second(list(by_family.values())),
            "expand_exact": all(exact) and contracts_exact,
            "contracts": contracts,
        }
        if (folder / "mtrag").is_dir() and (folder / "traces").is_dir():
            result["mtrag"] = _passages(folder, counter)
        return result
    finally:
        engine.close()


def blocks_of(text: str) -> list[Block]:
    """The blocks of a document's text, as the library cuts it."""
    ends = [0, *boundaries(text).tolist()]
    blocks = [Block.of(text[a:b]) for a, b in pairwise(ends)]
    return [block for block in blocks if block.text]


def _contracts(counter: Counter) -> tuple[dict[str, float], bool]:
    """Share of the second contract's tokens that is saved, by how it was edited; the mean of some seeds."""
    shares: dict[str, list[float]] = {}
    exact = []
    for seed in _SEEDS:
        clauses = contract(_CONTRACT_BYTES, seed)
        text = "".join(clauses)
        pairs = {"clauses_20": (text, "".join(edited_clauses(clauses, _EDITED_CLAUSES, seed + 1)))}
        for percent in (1, 5, 20):
            edited = edited_lines(text, percent / 100, seed + 1)
            pairs[f"lines_{percent}"] = (text, edited)
            pairs[f"lines_{percent}_no_newlines"] = (without_newlines(text), without_newlines(edited))
        for name, (one, two) in pairs.items():
            first, second = blocks_of(one), blocks_of(two)
            alone, _ = counter.shortened(first)  # a contract repeats some of its own sentences
            both, is_exact = counter.shortened([*first, *second])
            shares.setdefault(name, []).append(1 - (both - alone) / counter.tokens(second))
            exact.append(is_exact)
    return {name: round(stats.mean(values), 4) for name, values in shares.items()}, all(exact)


def _milliseconds() -> float:
    """Median time of shortening 45 KB of blocks, two versions of a contract, each time from their text on."""
    clauses = contract(_PROMPT_BYTES // 2)
    text = "".join(clauses) + "".join(edited_clauses(clauses, _EDITED_CLAUSES, 1))
    blocks = list({block.id: block for block in blocks_of(text)}.values())
    times = []
    for _ in range(_TIMED):
        started = time.perf_counter()
        shorten((), blocks)
        times.append((time.perf_counter() - started) * 1000)
    return round(stats.median(times), 4)


def _megabytes_per_second(families: Sequence[Sequence[Sequence[Block]]]) -> float:
    """Finding what is repeated on one core, a family at a time, from text to stretches: the best of three."""
    n_bytes, seconds = 0, 0.0
    for documents in families:
        texts = [block.text for document in documents for block in document]
        joined = "".join(texts)
        starts = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(text) for text in texts], out=starts[1:])
        whole = np.zeros(len(texts), np.uint8)
        unclear = np.full(len(texts), len(texts), np.int64)
        times = []
        for _ in range(3):
            started = time.perf_counter()
            find_repeated(code_points(joined), INFO, SUB_BLOCKS, starts, whole, unclear, LEAST_TOKENS * 1000)
            times.append(time.perf_counter() - started)
        n_bytes += len(joined.encode())
        seconds += min(times)
    return round(n_bytes / seconds / 1e6, 1)


def _passages(folder: Path, counter: Counter) -> dict[str, Any]:
    """Contexts of ten retrieved passages, which overlap where they are neighbours in a document."""
    texts = {row["passage_id"]: row["text"] for row in rows_of(folder / "mtrag" / "passages.jsonl.gz")}
    before, after, n_shorter, n_exact, n_contexts, most = 0, 0, 0, 0, 0, 0.0
    for blocks in islice(_contexts(folder, texts), _CONTEXTS):
        whole = counter.tokens(blocks)
        n_tokens, is_exact = counter.shortened(blocks)
        before += whole
        after += n_tokens
        n_shorter += n_tokens < whole
        n_exact += is_exact
        n_contexts += 1
        most = max(most, 1 - n_tokens / whole)
    return {
        "contexts": n_contexts,
        "tokens_before": before,
        "tokens_after": after,
        "shortened_contexts": n_shorter,
        "most_saved_share": round(most, 4),
        "evidence_kept": n_exact / n_contexts if n_contexts else 1.0,
    }


def _contexts(folder: Path, texts: dict[str, str]) -> Iterator[list[Block]]:
    for row in rows_of(folder / "traces" / "mtrag_bm25_standalone.jsonl.gz"):
        found = [Block.of(texts[id_]) for id_ in row["blocks"][:_PASSAGES] if id_ in texts]
        yield list({block.id: block for block in found}.values())
