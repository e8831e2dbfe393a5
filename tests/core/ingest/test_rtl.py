import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.ingest.columns import Line
from core.ingest.rtl import in_logical_order, is_rtl


def drawn(text, *, step):
    """A box for each character: from left to right (step > 0), from right to left, or all in one place."""
    return [Line(300 + step * at, 0, 306 + step * at, 10) for at in range(len(text))]


PHRASE = "שלום עולם"


@pytest.mark.parametrize("text", ["مرحبا بالعالم", PHRASE, "(שלום)", "لا إله", "abc", "12.5", ""])
def test_what_is_in_order_is_left_alone(text):
    assert in_logical_order(text, drawn(text, step=-7)) == text


def test_letters_that_run_to_the_right_are_turned():
    assert in_logical_order(PHRASE[::-1], drawn(PHRASE, step=7)) == PHRASE
    brackets = "א(ב)ג"
    turned = "ג(ב)א"  # as PDFium leaves it: turned, brackets mirrored
    assert in_logical_order(turned, drawn(turned, step=7)) == brackets


def test_latin_words_and_numbers_between_are_not_turned():
    text = "abc " + PHRASE[::-1] + " 12.5 x"
    assert in_logical_order(text, drawn(text, step=7)) == f"abc {PHRASE} 12.5 x"
    assert in_logical_order("١٢٣", drawn("١٢٣", step=7)) == "١٢٣"


def test_a_glyph_that_stands_for_several_letters():
    word = "حبيبي"
    assert in_logical_order(word[::-1], drawn(word, step=0)) == word


def test_ligatures_come_in_order():
    assert in_logical_order("لا", drawn("لا", step=0)) == "لا"
    assert in_logical_order("ال", drawn("ال", step=0)) == "لا"


def test_marks_stay_after_their_letter():
    word = "שָׁלוֹם"
    clusters = ["שָׁ", "ל", "וֹ", "ם"]
    turned = "".join(reversed(clusters))
    boxes = []
    for at, cluster in enumerate(reversed(clusters)):
        boxes += [Line(7 * at, 0, 7 * at + 6, 10 + mark) for mark in range(len(cluster))]
    assert in_logical_order(turned, boxes) == word


def test_direction_of_a_text():
    assert is_rtl("שלום abc")
    assert not is_rtl("Hello world שלום")
    assert not is_rtl("12.5")


@given(st.text(alphabet="אבגabc12 .()ََ", max_size=30), st.sampled_from((-7, 0, 7)))
def test_no_character_is_lost(text, step):
    found = in_logical_order(text, drawn(text, step=step))
    brackets = str.maketrans("()", "||")
    assert sorted(found.translate(brackets)) == sorted(text.translate(brackets))
