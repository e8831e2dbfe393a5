import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.reading_text import Kind, Manner, is_wide, manner_of, paragraphs


def laid_out(text, manner):
    """Kind and words of each paragraph; the cells of a row in a list."""
    shown, found = paragraphs(text, manner)
    out = []
    for one in found:
        words = [shown[start:end] for start, end in one.pieces]
        out.append((one.kind, words if one.kind is Kind.ROW else words[0]))
    return out


def test_headings_items_and_rows():
    text = "# Title\n\nOne paragraph.\n\n- first\n- second\n\nAda | 9100\nBob | | 8"
    assert laid_out(text, Manner.MARKED) == [
        (Kind.HEADING, "Title"),
        (Kind.TEXT, "One paragraph."),
        (Kind.ITEM, "first"),
        (Kind.ITEM, "second"),
        (Kind.ROW, ["Ada", "9100"]),
        (Kind.ROW, ["Bob", "", "8"]),
    ]


def test_a_table_in_markdown_as_a_person_draws_it():
    text = "| Name | Pay |\n|------|-----|\n| Ada | 9100 |"
    assert laid_out(text, Manner.MARKDOWN) == [(Kind.ROW, ["Name", "Pay"]), (Kind.ROW, ["Ada", "9100"])]


def test_signs_mean_nothing_where_the_format_has_none():
    assert laid_out("# no heading\n- no item\na | b", Manner.PROSE) == [
        (Kind.TEXT, "# no heading"),
        (Kind.TEXT, "- no item"),
        (Kind.TEXT, "a | b"),
    ]
    assert laid_out("# 1 | - 2", Manner.TABLE) == [(Kind.ROW, ["# 1", "- 2"])]


def test_code_keeps_every_space_and_empty_line():
    text = "def f():\n    return 1\n\n\n# done | here"
    assert [words for _kind, words in laid_out(text, Manner.CODE)] == text.split("\n")


def test_hard_wrapped_prose_is_joined_and_rows_are_not():
    line = "a line of more than fifty characters that was wrapped by hand"
    assert laid_out(f"{line}\n{line}", Manner.PROSE) == [(Kind.TEXT, f"{line} {line}")]
    row = f"{line} | 1"
    assert laid_out(f"{row}\n{row}", Manner.MARKED) == [(Kind.ROW, [line, "1"])] * 2


def test_a_line_with_very_many_bars_is_a_line():
    text = " | ".join("abcdefghijklmnopqrstuvwxyz")
    assert laid_out(text, Manner.TABLE) == [(Kind.TEXT, text)]


@pytest.mark.parametrize(
    ("name", "manner"),
    [
        ("a.MD", Manner.MARKDOWN),
        ("/x/b.docx", Manner.MARKED),
        ("c.csv", Manner.TABLE),
        ("d.py", Manner.CODE),
        ("e.pdf", Manner.PROSE),
        ("README", Manner.PROSE),
        ("", Manner.PROSE),
    ],
)
def test_the_kind_of_file_says_how_it_is_read(name, manner):
    assert manner_of(name) is manner


def test_sheets_tables_and_code_want_room():
    assert all(map(is_wide, ("a.xlsx", "a.csv", "a.ODS", "a.py")))
    assert not any(map(is_wide, ("a.docx", "a.pdf", "a.txt")))


@pytest.mark.parametrize("line", ["|" + "-" * 20_000 + "x", "|" + "- " * 20_000 + "x", "| --" * 9_000 + "x"])
def test_a_line_that_is_nearly_a_rule_costs_no_time(line):
    started = time.perf_counter()
    assert laid_out(line, Manner.MARKDOWN)
    assert time.perf_counter() - started < 0.5


@given(st.text("ab #-*|\n\t.", max_size=200), st.sampled_from(Manner))
def test_nothing_is_lost_but_white_space_and_signs(text, manner):
    shown, found = paragraphs(text, manner)
    assert len(shown) == len(text)
    pieces = [piece for one in found for piece in one.pieces]
    assert all(start <= end for start, end in pieces)
    assert all(one[1] <= two[0] for one, two in pairwise(pieces))
    kept = "".join(shown[start:end] for start, end in pieces)
    dropped = "".join(
        shown[one:two]
        for one, two in zip(
            [0, *(end for _s, end in pieces)], [*(s for s, _e in pieces), len(shown)], strict=True
        )
    )
    assert set(dropped) <= set(" \n\t#-*|")
    assert [c for c in kept if c in "ab."] == [c for c in text if c in "ab."]
