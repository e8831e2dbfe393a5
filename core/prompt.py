"""From plan, question and history to tokens: the rendering law.

A prompt prefix is tokens, not text. Each segment is tokenized by itself, so equal leading blocks give
equal leading tokens; nothing that depends on a block's place or file stands in it or before it; contents
are tokenized with special tokens off, so that no document and no question can open another turn.
Pure but for the tokenizer, which is given.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
import xxhash

from core.engine.chat_format import ChatFormat
from core.types import MAX_CHUNK_TOKENS, Block, Chunk, Prompt, Segment, SegmentKind, Tokens

SYSTEM_PROMPT = (
    "You answer questions about the user's documents. Passages from them are given first; each begins with "
    "its name in square brackets. Answer from the passages only, briefly and in the language of the "
    "question. If they do not hold the answer, say that you did not find it."
)


class Tokenizer(Protocol):
    """The part of ``core.engine.protocol.Engine`` that rendering needs."""

    def tokenize(self, text: str, *, special: bool) -> Tokens: ...

    def begin_tokens(self) -> Tokens: ...


class PromptWriter:
    """Makes segments for one model and chat format."""

    def __init__(self, tokenizer: Tokenizer, chat: ChatFormat) -> None:
        self._tokenizer = tokenizer
        self._chat = chat

    def head(self) -> Segment:
        """What stands before the first block of every conversation."""
        begin, opening = self._tokenizer.begin_tokens(), self._fixed(self._chat.before_system)
        if np.array_equal(opening[: len(begin)], begin):
            begin = begin[:0]  # the template writes it already
        return Segment(
            SegmentKind.HEAD,
            _join(
                begin,
                opening,
                self._content(SYSTEM_PROMPT),
                self._fixed(self._chat.system_to_user),
            ),
        )

    def block_tokens(self, block: Block) -> Tokens:
        return self._content(block.rendered)

    def shortened(self, block_id: str, text: str) -> Segment:
        """A block that holds references in place of some of its text: ``text`` is how it stands there."""
        return Segment(SegmentKind.BLOCK, self._content(text), block_id)

    def excerpt(self, block: Block, text: str) -> Segment:
        """``text``, a part of a block, in its place."""
        return Segment(SegmentKind.EXCERPT, self._content(f"[{block.label}]\n{text}\n\n"), block.id)

    def block(self, block: Block, tokens: Tokens) -> Segment:
        return Segment(SegmentKind.BLOCK, tokens, block.id)

    def ask(self, annotation: str, question: str, *, annotation_last: bool = False) -> Segment:
        """What stands after the blocks: where they come from and how they rank, then the question."""
        parts = (question, annotation) if annotation_last else (annotation, question)
        text = "\n\n".join(part for part in parts if part)
        return Segment(SegmentKind.ASK, _join(self._content(text), self._fixed(self._chat.user_to_answer)))

    def answer(self, tokens: Sequence[int]) -> Segment:
        """A finished answer, as it was sampled, and what leads to the next question."""
        return Segment(
            SegmentKind.ANSWER, _join(np.array(tokens, np.int32), self._fixed(self._chat.answer_to_user))
        )

    def history_from_text(self, turns: Iterable[tuple[str, str]]) -> tuple[Segment, ...]:
        """Head, questions and answers without their passages: the start of a new branch."""
        segments = [self.head()]
        for question, answer in turns:
            segments += self.turn_from_text(question, answer)
        return tuple(segments)

    def turn_from_text(self, question: str, answer: str) -> tuple[Segment, Segment]:
        """A turn without its passages; its tokens are not known any more (another model said it)."""
        fixed = self._fixed(self._chat.answer_to_user)
        return self.ask("", question), Segment(SegmentKind.ANSWER, _join(self._content(answer), fixed))

    def _content(self, text: str) -> Tokens:
        return self._tokenizer.tokenize(text, special=False)

    def _fixed(self, text: str) -> Tokens:
        return self._tokenizer.tokenize(text, special=True) if text else np.empty(0, np.int32)


def chunk_sizes(n_tokens: int) -> list[int]:
    """The canonical grid of a segment: the fewest chunks, as equal as can be, none over MAX_CHUNK_TOKENS.

    A function of the segment's length alone: never of what is cached or of what follows.
    """
    n_chunks = -(-n_tokens // MAX_CHUNK_TOKENS)
    return [n_tokens * (i + 1) // n_chunks - n_tokens * i // n_chunks for i in range(n_chunks)]


def lay_out(segments: Sequence[Segment], root: bytes) -> Prompt:
    """Cut segments into chunks and name each by the path to it. Empty segments are left out."""
    segments = tuple(segment for segment in segments if len(segment.tokens))
    chunks: list[Chunk] = []
    parent, start = root, 0
    for number, segment in enumerate(segments):
        offset = 0
        # The segment stands in the key of each of its chunks, so that a chunk belongs to one block only.
        element = segment.element.to_bytes(8, "little")
        sizes = chunk_sizes(len(segment.tokens))
        for index, size in enumerate(sizes):
            tokens = segment.tokens[offset : offset + size]
            key = xxhash.xxh3_128_digest(parent + element + tokens.tobytes())
            chunks.append(Chunk(key, parent, tokens, start, number, ends_segment=index == len(sizes) - 1))
            parent, start, offset = key, start + size, offset + size
    return Prompt(segments, tuple(chunks))


def end_key(segments: Sequence[Segment], root: bytes) -> bytes:
    """Key of the last chunk of these segments: the root of whatever is put behind them."""
    chunks = lay_out(segments, root).chunks
    return chunks[-1].key if chunks else root


def _join(*parts: Tokens) -> Tokens:
    joined = np.concatenate(parts).astype(np.int32, copy=False)
    joined.flags.writeable = False
    return joined
