"""The rendering law: a prompt prefix is tokens, and no text can become a control token."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.engine.chat_format import ChatFormat
from core.prompt import PromptWriter, chunk_sizes, end_key, lay_out
from core.types import MAX_CHUNK_TOKENS, Block, SegmentKind

CONTROL = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")
FORMAT = ChatFormat("<|im_start|>system\n", "<|im_end|>\n<|im_start|>user\n", "<|im_end|>\n", "<|im_end|>\n")


class ByteTokenizer:
    """A token a byte; control tokens above 255 and only where they are allowed."""

    def tokenize(self, text, *, special):
        out, rest = [], text
        while rest:
            name = next((name for name in CONTROL if special and rest.startswith(name)), None)
            if name:
                out.append(256 + CONTROL.index(name))
                rest = rest[len(name) :]
            else:
                out += rest[0].encode()
                rest = rest[1:]
        return np.array(out, np.int32)

    def begin_tokens(self):
        return np.array([], np.int32)


@pytest.fixture
def writer():
    return PromptWriter(ByteTokenizer(), FORMAT)


texts = st.text(min_size=1, max_size=60) | st.lists(
    st.sampled_from([*CONTROL, " a", "\n[1]", "é中"]), min_size=1
).map("".join)


def prompt_of(writer, blocks, question, annotation=""):
    segments = [writer.head()]
    for text in blocks:
        block = Block.of(text)
        segments.append(writer.block(block, writer.block_tokens(block)))
    return lay_out([*segments, writer.ask(annotation, question)], b"root")


@given(st.lists(texts, max_size=4), st.lists(texts, max_size=3), st.lists(texts, max_size=3), texts, texts)
def test_equal_leading_blocks_give_equal_leading_tokens_and_keys(
    shared, rest_a, rest_b, question_a, question_b
):
    writer = PromptWriter(ByteTokenizer(), FORMAT)
    a = prompt_of(writer, shared + rest_a, question_a, "annotation a")
    b = prompt_of(writer, shared + rest_b, question_b)
    n = 1 + len(shared)
    for one, two in zip(a.segments[:n], b.segments[:n], strict=True):
        assert np.array_equal(one.tokens, two.tokens)
        assert one.element == two.element
    n_chunks = sum(len(chunk_sizes(len(segment.tokens))) for segment in a.segments[:n])
    assert [c.key for c in a.chunks[:n_chunks]] == [c.key for c in b.chunks[:n_chunks]]


@given(st.lists(texts, max_size=4), texts, texts)
def test_no_content_becomes_a_control_token(blocks, question, annotation):
    writer = PromptWriter(ByteTokenizer(), FORMAT)
    prompt = prompt_of(writer, blocks, question, annotation)
    empty = prompt_of(writer, [], "x", "x")
    count = sum(int((segment.tokens > 255).sum()) for segment in prompt.segments)
    assert count == sum(int((segment.tokens > 255).sum()) for segment in empty.segments)
    assert all(
        (segment.tokens < 256).all() for segment in prompt.segments if segment.kind is SegmentKind.BLOCK
    )
    assert (writer.turn_from_text(question, "<|im_start|>")[1].tokens > 255).sum() == 1


@given(st.integers(1, 5000))
def test_grid_is_balanced_and_tiles(n):
    sizes = chunk_sizes(n)
    assert sum(sizes) == n
    assert max(sizes) <= MAX_CHUNK_TOKENS
    assert max(sizes) - min(sizes) <= 1
    assert len(sizes) == -(-n // MAX_CHUNK_TOKENS)


def test_chunks_never_cross_segments(writer):
    prompt = prompt_of(writer, ["a" * 1200, "b"], "q")
    for chunk in prompt.chunks:
        segment = prompt.segments[chunk.segment]
        before = sum(len(s.tokens) for s in prompt.segments[: chunk.segment])
        assert np.array_equal(chunk.tokens, segment.tokens[chunk.start - before : chunk.end - before])
    assert prompt.n_tokens == sum(len(s.tokens) for s in prompt.segments)
    assert sum(chunk.ends_segment for chunk in prompt.chunks) == len(prompt.segments)


def test_keys_depend_on_boundaries_and_root(writer):
    tokens = np.arange(10, dtype=np.int32)
    block = Block.of("x")
    whole = [writer.block(block, tokens)]
    halves = [writer.block(block, tokens[:5]), writer.block(block, tokens[5:])]
    assert len({end_key(whole, b"r"), end_key(halves, b"r"), end_key(whole, b"s"), end_key([], b"r")}) == 4


def test_block_names_know_no_file_and_no_place():
    one, two = Block.of("The rent is 900 euro.\n"), Block.of("\n The rent is 900 euro. ")
    assert one == two
    assert one.rendered == f"[{one.label}]\nThe rent is 900 euro.\n\n"
    assert len(one.id) == 16
    assert Block.of("The rent is 901 euro.").id != one.id


def test_history_of_another_model_holds_no_passages(writer):
    segments = writer.history_from_text([("q1", "a1"), ("q2", "a2")])
    assert [s.kind for s in segments] == [
        SegmentKind.HEAD, SegmentKind.ASK, SegmentKind.ANSWER, SegmentKind.ASK, SegmentKind.ANSWER,
    ]  # fmt: skip


def test_the_beginning_token_stands_once():
    class WithBegin(ByteTokenizer):
        def begin_tokens(self):
            return np.array([256], np.int32)

    plain = ChatFormat("", "\n\n", "\n\nAnswer:", "\n\n")
    assert PromptWriter(WithBegin(), plain).head().tokens[0] == 256
    written = PromptWriter(WithBegin(), FORMAT).head().tokens  # the template writes it
    assert list(written[:2]) == [256, ord("s")]
