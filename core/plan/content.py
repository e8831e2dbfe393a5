"""De-duplication by content within one plan: which of the ordered blocks are sent in a shorter form."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core.plan.dedup import Form, shorten
from core.types import Block, Segment


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What de-duplication has to know of the prompt so far, of the tokenizer and of the cache."""

    held: tuple[Block, ...]
    """Blocks that stand in the prompt already, whole, in its order."""
    unclear: frozenset[str]
    """Labels that name something else in the prompt: nothing is referred to by them."""
    segment_of: Callable[[Form], Segment]
    """Tokenizes what stands in the prompt."""
    follow: Callable[[bytes, Segment], tuple[bytes, bool]]
    """The key of a segment's end if it stands behind a key, and whether all of it is cached there."""
    known: Callable[[Form], Segment | None] = lambda _: None
    """The same as ``segment_of`` for what was tokenized before: nothing else can be cached."""


@dataclass(frozen=True, slots=True)
class Shortened:
    """Blocks as they stand in the prompt, in its order."""

    forms: tuple[Form, ...]
    segments: tuple[Segment, ...]
    n_saved_tokens: int
    n_blocks: int
    """How many of them hold a reference."""


def cached_next(
    first: Sequence[Block],
    rest: Sequence[Block],
    whole: Mapping[str, Segment],
    around: Surroundings,
    after: bytes,
) -> list[int] | None:
    """Indices into ``rest``: what is cached, in whichever form, one behind the other, behind ``first``.

    None where no text stands twice, so that nothing is to be shortened either.

    Alignment sees whole blocks only. Where a block behind these was shortened, its path goes on unseen: this
    follows it. ``first`` are the cached blocks that alignment put in front, whole. Among several cached ones
    the first is followed.
    """
    stay_whole = frozenset(range(len(first)))
    blocks = [*first, *rest]
    if not any(form.references for form in shorten(around.held, blocks, stay_whole=stay_whole)):
        return None
    key = after
    for block in first:
        key, _ = around.follow(key, whole[block.id])
    before = list(first)
    chosen: list[int] = []
    found = True
    while found:
        found = False
        for index, block in enumerate(rest):
            if index in chosen:
                continue
            form = shorten(around.held, [*before, block], stay_whole=stay_whole, unclear=around.unclear)[-1]
            candidates = (around.known(form) if form.references else None, whole[block.id])
            ends = [around.follow(key, segment) for segment in candidates if segment is not None]
            end = next((end for end, is_cached in ends if is_cached), None)
            if end is not None:
                key, found = end, True
                chosen.append(index)
                before.append(block)
                break
    return chosen


def deduplicate(
    blocks: Sequence[Block],
    whole: Mapping[str, Segment],
    around: Surroundings,
    after: bytes,
    *,
    n_whole: int = 0,
) -> Shortened:
    """The forms of ``blocks``, in this order, behind the chunk ``after``.

    The first ``n_whole`` are known to be cached whole. A block stays whole where its form has as many tokens,
    and where it is cached whole but not in that form: cached tokens are free.
    """
    stay_whole = set(range(n_whole))
    while True:
        forms = shorten(around.held, blocks, stay_whole=stay_whole, unclear=around.unclear)
        segments = [whole[block.id] for block in blocks]
        last = max((index for index, form in enumerate(forms) if form.references), default=-1)
        key = after
        for index, form in enumerate(forms[: last + 1]):
            end, is_cached = around.follow(key, segments[index])
            if form.references:
                short = around.segment_of(form)
                short_end, short_is_cached = around.follow(key, short)
                if len(short.tokens) >= len(segments[index].tokens) or (is_cached and not short_is_cached):
                    stay_whole.add(index)  # what comes after it may look otherwise now
                    break
                segments[index], end = short, short_end
            key = end
        else:
            saved = sum(len(whole[block.id].tokens) for block in blocks)
            saved -= sum(len(segment.tokens) for segment in segments)
            n_blocks = sum(bool(form.references) for form in forms)
            return Shortened(forms, tuple(segments), saved, n_blocks)
