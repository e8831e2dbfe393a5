import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.plan.excerpt import window
from core.text import sentences

TEXT = "One is here. Two is the second. Three follows it. Four is last."


def shown(quote, most, text=TEXT):
    start = text.index(quote)
    begin, end = window(text, start, start + len(quote), most)
    return text[begin:end]


def test_the_quote_and_what_stands_around_it():
    assert shown("Three follows it.", 17) == "Three follows it."
    assert shown("Three follows it.", 33) == "Three follows it. Four is last."
    assert shown("Three follows it.", 52) == "Two is the second. Three follows it. Four is last."
    assert shown("Two is the second.", 1000) == TEXT
    assert shown("second. Three", 40) == "Two is the second. Three follows it."


def test_a_long_sentence_is_cut_at_a_word():
    assert shown("Two is the second.", 12) == "Two is the"
    assert shown("Two is the second.", 2) == "Tw"
    assert window(TEXT, 0, 0, 0) == window("", 0, 0, 50) == (0, 0)
    assert shown("", 12) == "One is here."


@pytest.mark.parametrize("text", [TEXT, "租金为九百欧元。押金为两个月租金。合同为期一年。", "a\nb\nc d e\n"])
@given(place=st.tuples(st.integers(0, 70), st.integers(0, 70)), most=st.integers(1, 100))
def test_it_is_never_longer_and_made_of_whole_sentences_where_one_fits(text, place, most):
    start, end = sorted(min(one, len(text)) for one in place)
    begin, stop = window(text, start, end, most)
    assert 0 < stop - begin <= most
    assert begin in {a for a, _ in sentences(text)}
    assert stop in {b for _, b in sentences(text)} or all(
        stop - begin < b - begin for _, b in sentences(text) if b > begin
    )
    larger = window(text, start, end, most + 10)
    assert larger[1] - larger[0] >= stop - begin
