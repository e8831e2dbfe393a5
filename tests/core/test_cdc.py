import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles import cdc_boundaries, cdc_weights_before

from core import cdc
from core.cdc import (
    MAX_TOKENS,
    MIN_TOKENS,
    SUB_MAX_TOKENS,
    SUB_MIN_TOKENS,
    boundaries,
    estimate_tokens,
    pieces,
    sub_boundaries,
)
from core.types import Block

WORDS = [
    "amber",
    "basin",
    "cedar",
    "delta",
    "ember",
    "flint",
    "grove",
    "heron",
    "islet",
    "jetty",
    "kelp",
    "larch",
    "mossy",
    "night",
    "opal",
    "pearl",
]

# Pieces that meet every rule of the chunker, glued together at random.
PIECES = (
    "The river rises in the hills and runs to the sea. ",
    "Dr. Smith, e.g. in the U.S. Senate, paid 3.5 million!” ",
    "“Is it so?” she asked... ",
    "\n",
    "\n\n",
    "\n# A heading\n\n",
    "\n### Another heading\n",
    "\n- a list item",
    "\n12. a numbered item",
    "\nname | 12,345 | 0.7%",
    "\nTab\tseparated\tcells",
    "\t",
    "模型可以回答问题。",
    "「これは文です。」",
    "여기에 문장이 있습니다. ",
    "ما هي عاصمة فرنسا؟ ",
    "مَرْحَبًا ",
    "नमस्ते दुनिया। ",
    "👩‍👩‍👧 ",
    "word " * 40,
    "x" * 300,
    "字" * 120,
    "5021 1007 33 ",
    "\u3000",
    " \u2028",
    ") ",
    "。",
    "A. ",
    "7. ",
)


def cut(text, ends):
    return [text[start:end] for start, end in pairwise([0, *ends])]


def blocks(text):
    return cut(text, boundaries(text))


def sub_blocks(text):
    return cut(text, sub_boundaries(text))


def prose(n_sentences, seed):
    chooser = random.Random(seed)
    text = []
    for number in range(n_sentences):
        words = " ".join(chooser.choices(WORDS, k=chooser.randint(5, 18)))
        text.append(words.capitalize() + ".")
        text.append("\n\n" if number % 6 == 5 else " ")
    return "".join(text).strip()


texts = st.lists(st.sampled_from(PIECES), max_size=120).map("".join)


@given(texts)
@settings(max_examples=60, deadline=None)
@example("")
@example(" \n ")
@example("\t\n#")
@example("#" * 7000)
@example("a\u0300" * 9000)
@example("\u0300" * 3000)
@example("x" * 20_000)
@example("a|b\n" * 3000)
@example("\ud800" * 3000)
def test_kernel_equals_oracle(text):
    assert boundaries(text).tolist() == cdc_boundaries(text)
    assert sub_boundaries(text).tolist() == cdc_boundaries(text, 16_000, 16_000, 64_000, 8)
    assert estimate_tokens(text) == -(-cdc_weights_before(text)[-1] // 1000)


@given(st.text(max_size=3000) | texts)
@settings(max_examples=150, deadline=None)
def test_blocks_tile_the_text_and_keep_their_size(text):
    ends = boundaries(text)
    assert ends.dtype == np.int64
    assert np.all(np.diff(ends) > 0)
    assert "".join(blocks(text)) == text
    for block in blocks(text):
        assert estimate_tokens(block.strip()) <= MAX_TOKENS
    for block in blocks(text)[:-1]:
        assert estimate_tokens(block) >= MIN_TOKENS
    assert boundaries(text).tolist() == ends.tolist()


@given(st.text(max_size=3000) | st.tuples(texts, texts).map(" \n".join))
@settings(max_examples=150, deadline=None)
@example("")
@example(" \u1680\n ")
@example("\xa0 a \t")
@example("word " * 3000)
def test_the_pieces_are_the_blocks_with_the_estimates_of_what_is_visible(text):
    ends, n_tokens = pieces(text)
    assert ends.tolist() == boundaries(text).tolist()
    assert n_tokens.tolist() == [estimate_tokens(block.strip()) for block in blocks(text)]


def test_a_small_document_is_one_block():
    assert boundaries("# Title\n\nOne paragraph.\n\nAnother.").tolist() == [33]
    assert boundaries("").tolist() == []


def test_cuts_are_at_paragraphs_where_there_are_some():
    text = prose(400, seed=1)
    for block in blocks(text)[:-1]:
        assert block.endswith(".\n\n")


def test_a_heading_begins_a_block_and_stays_with_its_text():
    sections = [f"# Section {number}\n\n{prose(14, seed=number)}\n\n" for number in range(20)]
    for block in blocks("".join(sections))[1:]:
        assert block.startswith("# Section")
        assert not block.strip().rpartition("\n")[2].startswith("#")


def test_table_rows_and_sentences_stay_whole():
    rows = [f"Region {number} | {number * 37} | {number * 11}.5 %" for number in range(400)]
    for block in blocks("\n".join(rows)):
        assert block.strip().splitlines()[0] in rows
        assert block.strip().splitlines()[-1] in rows
    chinese = "这是一个关于河流和山脉的句子。" * 400
    for block in blocks(chinese):
        assert block.endswith("。")


def test_an_inserted_sentence_changes_only_the_blocks_around_it():
    text = prose(3000, seed=2)
    before = {Block.of(block).id for block in blocks(text)}
    assert len(before) > 100
    for place in (0.1, 0.5, 0.9):
        at = text.index(". ", int(len(text) * place)) + 2
        edited = text[:at] + "A new sentence stands here now. " + text[at:]
        after = {Block.of(block).id for block in blocks(edited)}
        assert len(before - after) <= 3
        assert len(before & after) >= 0.8 * len(before)


def test_a_shared_section_gives_the_same_blocks_wherever_it_stands():
    shared = "# Terms\n\n" + prose(300, seed=3) + "\n\n"
    alone = {Block.of(block).id for block in blocks(shared)}
    for seed in (4, 5, 6):
        text = prose(90 + seed, seed=seed) + "\n\n" + shared + "# End\n\n" + prose(80, seed=seed + 10)
        found = {Block.of(block).id for block in blocks(text)}
        assert len(alone & found) >= 0.8 * len(alone)


@given(st.text(max_size=3000) | texts)
@settings(max_examples=150, deadline=None)
def test_sub_blocks_tile_the_text_and_keep_their_size(text):
    ends = sub_boundaries(text)
    assert ends.dtype == np.int64
    assert np.all(np.diff(ends) > 0)
    assert "".join(sub_blocks(text)) == text
    for block in sub_blocks(text):
        assert estimate_tokens(block.strip()) <= SUB_MAX_TOKENS
    for block in sub_blocks(text)[:-1]:
        assert estimate_tokens(block) >= SUB_MIN_TOKENS


def without_newlines(text):
    return text.replace("\n", " ")


def without_structure(text):
    return without_newlines(text).replace(".", "")


def chinese(text):
    return "".join(chr(0x4E00 + sum(map(ord, word)) * 7 % 3000) for word in text.split())


FORMS = (str, without_newlines, without_structure, chinese)


@pytest.mark.parametrize("form", FORMS)
def test_an_edit_costs_the_sub_blocks_around_it(form):
    text = form(prose(300, seed=7))
    before = set(sub_blocks(text))
    chooser = random.Random(8)
    lost = []
    for _ in range(100):
        at = chooser.randrange(len(text))
        edited = text[:at] + form("Line 17 is new.\n") + text[at:]
        lost.append(len(before - set(sub_blocks(edited))))
    assert max(lost) <= 6
    assert sum(lost) <= 2.5 * len(lost)


@given(st.integers(0, 10_000), st.integers(0, 10_000), st.sampled_from(FORMS))
@settings(max_examples=40, deadline=None)
def test_equal_text_gives_equal_sub_blocks_wherever_it_stands(one, two, form):
    shared = form(prose(60, seed=one))
    alone = sub_blocks(shared)
    elsewhere = sub_blocks(form(prose(one % 7, seed=two)) + shared + form(prose(5, seed=two + 1)))
    assert len(set(alone) & set(elsewhere)) >= len(set(alone)) - 7


def test_a_new_line_between_lines_leaves_the_others_as_they_are():
    rows = [f"Region {number} | {number * 37} | {number * 11}.5 %\n" for number in range(300)]
    before = set(sub_blocks("".join(rows)))
    lost = [
        len(before - set(sub_blocks("".join([*rows[:at], "Region X | 1 | 2\n", *rows[at:]]))))
        for at in range(len(rows))
    ]
    assert max(lost) <= 6
    assert sum(lost) <= 2.5 * len(lost)


def test_numbers_are_content():
    text = "The rent is 900 euro. " * 3
    assert set(sub_blocks(text)).isdisjoint(sub_blocks(text.replace("900", "901")))


@pytest.mark.parametrize(
    ("text", "tokens"), [("The river rises in the hills and runs to the sea.", 12), ("模型可以", 4)]
)
def test_estimate_is_near_real_counts(text, tokens):
    assert abs(estimate_tokens(text) - tokens) <= 3


def test_the_kernels_are_compiled_and_not_run_by_the_interpreter():
    for kernel in (cdc.cut, cdc.weigh, cdc._visible_weights):
        assert len(kernel.nopython_signatures) == 1
        assert kernel.targetoptions["nogil"]
