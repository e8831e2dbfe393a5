"""What one question cost under one policy, as it is recorded."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Measured:
    """What one question cost under one policy, and what came of it. Seconds, tokens."""

    qid: str
    n_prompt: int
    n_live: int
    n_ram: int
    n_ssd: int
    n_prefilled: int
    n_deduplicated: int
    n_annotation: int
    """Of the annotation: sources, ranking, references."""
    plan_s: float
    prefill_s: float
    restore_s: float
    ttft_s: float
    wall_s: float
    """Everything that the policy did for it, work after the first token included."""
    idle_s: float
    """Of ``wall_s``: while nobody waits."""
    path: str
    """Names the prompt's tokens and where they were cut."""
    logits: str
    """Names the logits behind the prompt, to the bit."""
    moved: bool
    evidence: tuple[int, int]
    first: int = -1
    logprob: float | None = None
    f1: float | None = None
    exact: bool | None = None
    kl: float | None = None
    """Against exact prefill of the same tokens; None for exact policies."""
    n_token_level: int | None = None
    """Tokens that a cut anywhere, not at chunk ends only, would have kept of the last prompt."""
    energy_j: float | None = None
    """Up to the first token; None where the platform does not tell."""
    n_riding: int = 0
    """Of the cached tokens: blocks that were not asked for."""
    order_s: float = 0.0
    """Of ``plan_s``: order, riders and their texts, references and their tokens, annotation."""
    locate_s: float = 0.0
    """Of ``plan_s``: looking up what is cached."""
    reopen_s: float | None = None
    """What opening everything again took, before the first question after a restart."""

    def counts(self) -> tuple[int | str, ...]:
        """What does not depend on time."""
        return (self.n_prompt, self.n_live, self.n_ram, self.n_ssd, self.n_prefilled, self.path)


def as_row(measured: Measured) -> dict[str, Any]:
    return asdict(measured)


def from_row(row: dict[str, Any]) -> Measured:
    """The opposite of ``as_row``, after JSON. Raises TypeError where something is missing."""
    return Measured(**{**row, "evidence": tuple(row["evidence"])})
