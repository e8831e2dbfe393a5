"""Which form of a block is sent: never a longer one, never an uncached one where the whole is cached."""

from dataclasses import replace

import numpy as np
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from core.plan.content import Surroundings, cached_next, deduplicate
from core.plan.dedup import expand, whole
from core.types import Block, Segment, SegmentKind

CLAUSES = "\n".join(
    f"{n}. {subject} is kept in good repair by the tenant, who tells the landlord of any damage at once."
    for n, subject in enumerate(("The boiler", "The garden", "The cellar", "The roof", "The meter"), 1)
)
BLOCKS = [Block.of(f"Version {n}.\n{CLAUSES}\nSigned on day {n}.") for n in range(4)]
WHOLE = {
    block.id: Segment(
        SegmentKind.BLOCK, np.frombuffer(block.rendered.encode(), np.uint8).astype(np.int32), block.id
    )
    for block in BLOCKS
}


def segment_of(form):
    return Segment(
        SegmentKind.BLOCK, np.frombuffer(form.rendered.encode(), np.uint8).astype(np.int32), form.block_id
    )


def behind(key, segment):
    return xxhash.xxh3_128_digest(key + segment.tokens.tobytes())


def around(cached=(), segment_of=segment_of):
    def follow(key, segment):
        end = behind(key, segment)
        return end, end in cached

    return Surroundings((), frozenset(), segment_of, follow)


def test_shorter_forms_are_sent_and_counted():
    made = deduplicate(BLOCKS, WHOLE, around(), b"root")
    assert made.n_blocks == 3
    assert made.forms[0] == whole(BLOCKS[0])
    n_whole = sum(len(segment.tokens) for segment in WHOLE.values())
    assert made.n_saved_tokens == n_whole - sum(len(segment.tokens) for segment in made.segments) > 0
    assert [segment.block_id for segment in made.segments] == [block.id for block in BLOCKS]
    assert expand(made.forms) == tuple(block.text for block in BLOCKS)


def test_a_form_that_saves_no_tokens_is_not_sent():
    def wasteful(form):
        return Segment(SegmentKind.BLOCK, np.zeros(10_000, np.int32), form.block_id)

    made = deduplicate(BLOCKS, WHOLE, around(segment_of=wasteful), b"root")
    assert made.segments == tuple(WHOLE[block.id] for block in BLOCKS)
    assert made.n_saved_tokens == made.n_blocks == 0


def test_a_block_that_is_cached_whole_stays_whole():
    first = behind(b"root", WHOLE[BLOCKS[0].id])
    second = behind(first, WHOLE[BLOCKS[1].id])
    made = deduplicate(BLOCKS[:3], WHOLE, around({first, second}), b"root")
    assert made.segments[:2] == (WHOLE[BLOCKS[0].id], WHOLE[BLOCKS[1].id])
    assert made.forms[2].references, "what follows it is shortened"
    elsewhere = deduplicate(BLOCKS[:3], WHOLE, around({first, second}), b"another root")
    assert elsewhere.n_blocks == 2, "cached behind something else is not cached here"


def test_a_form_that_is_cached_too_is_preferred():
    first = behind(b"root", WHOLE[BLOCKS[0].id])
    second = behind(first, WHOLE[BLOCKS[1].id])
    short = deduplicate(BLOCKS[:2], WHOLE, around(), b"root").segments[1]
    made = deduplicate(BLOCKS[:2], WHOLE, around({first, second, behind(first, short)}), b"root")
    assert made.n_blocks == 1


def test_a_path_goes_on_through_shortened_blocks():
    forms = deduplicate(BLOCKS[:3], WHOLE, around(), b"root")
    keys, key = [], b"root"
    for segment in forms.segments:
        key = behind(key, segment)
        keys.append(key)
    known = replace(around(set(keys)), known=segment_of)
    rest = [BLOCKS[3], BLOCKS[2], BLOCKS[1]]
    assert cached_next(BLOCKS[:1], rest, WHOLE, known, b"root") == [2, 1]
    assert cached_next(BLOCKS[:1], rest, WHOLE, replace(known, known=lambda _: None), b"root") == []
    assert cached_next(BLOCKS[:1], rest, WHOLE, around(), b"root") == []
    assert cached_next((), [BLOCKS[0]], WHOLE, known, b"root") is None, "nothing shares its text"


@given(st.permutations(BLOCKS), st.integers(0, 4))
def test_equal_prefixes_give_equal_segments(blocks, n):
    some = deduplicate(blocks[:n], WHOLE, around(), b"root").segments
    every = deduplicate(blocks, WHOLE, around(), b"root").segments
    assert all(np.array_equal(a.tokens, b.tokens) for a, b in zip(some, every[:n], strict=True))
