"""Whole documents instead of passages: read once in a fixed order; from then on every question is short."""

from dataclasses import dataclass

from core.types import Context

_OPENING_FACTOR = 2.0
"""A question that names no word of the documents may cost so much more to be read with all of them."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Tokens of the new blocks of one way to answer."""

    n_tokens: int
    n_missing: int
    """Those that are not cached and would have to be prefilled."""


@dataclass(frozen=True, slots=True)
class Choice:
    whole: bool
    reason: str
    """One sentence for the user."""


def choose(whole: Cost | None, passages: Cost, context: Context, *, kept_warm: bool) -> Choice:
    """Whether all text in scope is put into the prompt, or the passages found.

    ``whole`` is None where the text does not fit. The whole is taken where the user wants it kept warm, where
    it leaves less to prefill than the passages do (it was read before), and where no passage matches and it
    is hardly longer than the beginnings that would stand in.
    """
    if whole is None:
        return Choice(
            whole=False,
            reason="Too long to be read whole: the passages found were used." if kept_warm else "",
        )
    if kept_warm:
        return Choice(whole=True, reason="Read whole, since it is kept warm.")
    if whole.n_tokens and whole.n_missing < passages.n_missing:
        return Choice(whole=True, reason="Read whole: that left less to read than the passages found.")
    if whole.n_tokens and context.is_opening and whole.n_missing <= _OPENING_FACTOR * passages.n_missing:
        return Choice(whole=True, reason="Read whole: no passage holds the words of the question.")
    return Choice(whole=False, reason="")
