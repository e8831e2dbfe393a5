"""Quality without a judge: the likelihood of the known answer, words in common, evidence that is there.

The model goes on from where a prompt ended and is taken back to there: a policy's cache does not notice.
"""

import re
import time
import unicodedata
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.bench.run.measured import Measured
from core.bench.run.questions import Asked
from core.engine.probe import ProbingEngine
from core.engine.protocol import CancelFlag, Logits
from core.engine.sampling import repeats_itself
from core.types import Tokens

ANSWER_TOKENS = 64
"""Of a known answer so many tokens are looked at."""
GREEDY_TOKENS = 48
_EXACT_KEPT = 64
"""Prompts whose exact logits (200 KB each) are kept for policies that are not exact."""
_WORDS = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Quality:
    """What the model makes of one prompt: a function of its tokens alone."""

    first: int
    """Likeliest first token."""
    logprob: float | None = None
    """Of the known answer, in nats a token; None where there is none."""
    f1: float | None = None
    exact: bool | None = None
    """Whether the greedy answer is the known one, but for case and punctuation. None: not asked for."""


def assess(engine: ProbingEngine, asked: Asked, at: int, *, answers: bool) -> Quality:
    """What follows a prompt of ``at`` tokens whose logits are there. The memory is as it was afterwards."""
    if not engine.can_cut:
        return Quality(int(np.argmax(engine.logits())))
    logits = engine.logits().copy()
    first = int(np.argmax(logits))
    logprob = None
    if asked.answers:
        tokens = engine.tokenize(asked.answers[0], special=False)[:ANSWER_TOKENS]
        logprob = _logprob(engine, tokens, logits, at) if len(tokens) else None
    f1 = exact = None
    if answers and asked.answers:
        said = _greedy(engine, logits, at)
        f1 = max(token_f1(said, answer) for answer in asked.answers)
        exact = any(_words(said) == _words(answer) for answer in asked.answers)
    return Quality(first, logprob, f1, exact)


def _room(engine: ProbingEngine, at: int, wanted: int) -> int:
    return max(0, min(wanted, engine.n_ctx - at))


def _logprob(engine: ProbingEngine, tokens: Tokens, logits: Logits, at: int) -> float:
    """Mean log-likelihood of ``tokens``, each given those before it."""
    total = float(log_softmax(logits)[tokens[0]])
    n = 1 + _room(engine, at, len(tokens) - 1)
    if n > 1:  # in one batch: token by token takes ten times as long
        behind = engine.logits_after(tokens[: n - 1], at)
        total += sum(float(log_softmax(row)[token]) for row, token in zip(behind, tokens[1:n], strict=True))
    return total / n


def _greedy(engine: ProbingEngine, logits: Logits, at: int) -> str:
    said: list[int] = []
    token = int(np.argmax(logits))
    for number in range(_room(engine, at, GREEDY_TOKENS)):
        if engine.is_end(token):
            break
        said.append(token)
        if repeats_itself(said):
            break
        engine.decode(token, at + number, CancelFlag())
        token = int(np.argmax(engine.logits()))
    if said:
        engine.cut(at)
    return b"".join(engine.token_bytes(one) for one in said).decode(errors="replace").strip()


def log_softmax(logits: Logits) -> NDArray[np.float64]:
    """Natural logarithms of the probabilities, float64 ``(n_vocab,)``."""
    values = logits.astype(np.float64)
    values -= values.max()
    shifted: NDArray[np.float64] = values - np.log(np.exp(values).sum())
    return shifted


def divergence(exact: Logits, approximate: Logits) -> float:
    """KL divergence of the next token's distribution against the exact one, in nats."""
    p, q = log_softmax(exact), log_softmax(approximate)
    return float(np.sum(np.exp(p) * (p - q)))


def _words(text: str) -> list[str]:
    return _WORDS.findall(unicodedata.normalize("NFKC", text).casefold())


def token_f1(said: str, answer: str) -> float:
    """Harmonic mean of precision and recall of words, 0 to 1."""
    mine, theirs = _words(said), _words(answer)
    common = sum((Counter(mine) & Counter(theirs)).values())
    return 2 * common / (len(mine) + len(theirs)) if common else 0.0


def evidence_kept(asked: Asked, texts: Iterable[str], block_ids: Sequence[str]) -> tuple[int, int]:
    """How many pieces of evidence stand in a prompt of these blocks, and of how many.

    A reference to an earlier turn counts: its block stands there and is among ``block_ids``.
    ``(0, 0)`` without evidence.
    """
    if asked.evidence:
        held = [" ".join(text.split()) for text in texts]
        wanted = [" ".join(piece.split()) for piece in asked.evidence]
        return sum(any(piece in text for text in held) for piece in wanted), len(wanted)
    return len(asked.gold_blocks.intersection(block_ids)), len(asked.gold_blocks)


class Qualities:
    """What the model makes of each prompt, computed once for equal tokens, and what that took.

    Approximate policies name their prompts otherwise.
    """

    def __init__(self, *, answers: bool) -> None:
        self.seconds = 0.0
        self._answers = answers
        self._known: dict[tuple[str, str], Quality] = {}
        self._exact: OrderedDict[str, Logits] = OrderedDict()

    def keep_exact(self, path: str, logits: Logits) -> None:
        """Keep the logits behind a prompt that was read exactly, for a while."""
        self._exact[path] = logits
        if len(self._exact) > _EXACT_KEPT:
            self._exact.popitem(last=False)

    def exact(self, path: str) -> Logits | None:
        return self._exact.get(path)

    def of(self, engine: ProbingEngine, asked: Asked, path: str, at: int) -> Quality:
        started = time.perf_counter()
        key = (asked.text, path)
        if key not in self._known:
            self._known[key] = assess(engine, asked, at, answers=self._answers)
        self.seconds += time.perf_counter() - started
        return self._known[key]

    def know(self, asked: Asked, row: Measured) -> None:
        """Take over what a run that was interrupted had found."""
        self._known[asked.text, row.path] = Quality(row.first, row.logprob, row.f1, row.exact)
