"""What there is time to read until the first word, where the user gave a time (``first_word_s``).

Cached passages ride free; others are read by relevance until the time is spent, and of the first that does
not fit the part around its best sentence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from core import plan as planning
from core.engine.protocol import CancelFlag
from core.prompt import lay_out
from core.types import Passage, Segment
from core.workbench import Workbench

_SHARE_OF_TIME = 0.9
"""Of the time until the first word, so much may be prefill: the rest restores what is cached."""
_EXCERPT_TRIES, _EXCERPT_TRIMMED = 3, 0.95
"""Tokens are not spread evenly over a text: it is cut again where it has too many."""
_TURNS_SHARE_OF_TIME = 0.25
"""Of the time, so much may go to old turns of a new branch, which must be read again."""


def learn_rate(bench: Workbench, cancel: CancelFlag) -> None:
    """Read the instructions, which every prompt begins with, where a time is set and no rate is known yet.

    For before a question, whose figures are then its own. Raises Cancelled, EngineError.
    """
    if bench.first_word_s and bench.cache.rates.prefill_token_s.value is None:
        prompt = lay_out([bench.writer.head()], bench.root_of(""))
        for _step in bench.cache.prefill(prompt, cancel, logits=False, n_on_disk=1):
            pass


def room_for_turns(bench: Workbench) -> int:
    """Tokens of old turns that there is time to read again; the model context where no time is set."""
    rate = bench.cache.rates.prefill_token_s.value
    if not bench.first_word_s or not rate:
        return bench.engine.n_ctx
    return int(_TURNS_SHARE_OF_TIME * bench.first_word_s / rate)


def time_left(
    bench: Workbench,
    branch: Sequence[Segment],
    root: bytes,
    whole: Mapping[str, Segment],
    after: int,
    *,
    in_part: bool,
) -> planning.TimeLeft | None:
    """Until the first word is due; None where it is due at no time, or this machine's rate is not known yet.

    The last answer is taken off where it was not read again. ``whole``: the passages' segments by block id;
    ``after``: tokens behind them. ``in_part``: of one of them a part may be read.
    """
    rates = bench.cache.rates
    if not bench.first_word_s or not rates.prefill_token_s.value:
        return None
    prompt = lay_out(branch, root)
    located = zip(prompt.chunks, bench.cache.locate(prompt), strict=False)
    n_cached = sum(len(chunk.tokens) for chunk, _ in located)
    pending_s = rates.prefill_s(n_cached, prompt.n_tokens - n_cached)
    left = (_SHARE_OF_TIME * bench.first_word_s - pending_s) / rates.prefill_token_s.value
    made = planning.TimeLeft(left, rates.attention, prompt.n_tokens, after)

    def excerpt_of(passage: Passage, room: int) -> tuple[str, Segment] | None:
        return _excerpt(bench, passage, len(whole[passage.block.id].tokens), room)

    return replace(made, excerpt_of=excerpt_of) if in_part else made


def _excerpt(bench: Workbench, passage: Passage, n_whole: int, room: int) -> tuple[str, Segment] | None:
    """The part of a passage of ``n_whole`` tokens around its quote that takes at most ``room`` tokens."""
    if room < planning.SHORTEST_PART:
        return None
    text, start = passage.block.text, passage.quote_start
    n_characters = len(text) * room // n_whole
    for _ in range(_EXCERPT_TRIES):
        begin, end = planning.window(text, start, start + len(passage.quote), n_characters)
        if begin == end:
            return None
        segment = bench.writer.excerpt(passage.block, text[begin:end])
        if len(segment.tokens) <= room:
            return text[begin:end], segment
        n_characters = int(_EXCERPT_TRIMMED * n_characters * room / len(segment.tokens))
    return None
