from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.text import STOPWORDS, best_sentence, content_terms, fold, sentences, stem, terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Café, naïve ﬁle", ["the", "cafe", "naive", "file"]),
        ("ＦＵＬＬ width Straße", ["full", "width", "strasse"]),
        ("模型", ["模", "型", "模型"]),
        ("GPT模型4", ["gpt", "模", "型", "模型", "4"]),
        ("が", ["が"]),
        ("الذَّكاءُ", ["الذكاء"]),
        ("أهلاً", ["اهلا"]),
        ("文", ["文"]),
        ("get_user_name", ["get_user_name", "get", "user", "name"]),
        ("getUserName", ["getusername", "get", "user", "name"]),
        ("__init__", ["init"]),
        ("___", []),
        ("naïve_ﬁle_4", ["naive_file_4", "naive", "file", "4"]),
        ("éaB éCd", ["eab", "ecd"]),
        ("éxaB", ["exab", "xa"]),
        ("文aBc", ["文", "abc", "bc"]),
        ('an "unbalanced quote OR (', ["an", "unbalanced", "quote", "or"]),
        ("", []),
        ("\0 \ud800", []),
    ],
)
def test_terms(text, expected):
    assert terms(text) == expected


def test_long_words_are_cut():
    assert terms("x" * 1000) == ["x" * 64]


def test_content_terms_leave_out_stop_words_and_covered_characters():
    assert content_terms("What is the capital of France?") == ["capital", "france"]
    assert content_terms("什么是语言模型") == ["么是", "是语", "语言", "言模", "模型"]
    assert content_terms("to be or not to be") == []
    assert content_terms("war and die Toten") == ["war", "die", "toten"]


def test_stop_words_are_in_the_form_that_terms_gives():
    for word in STOPWORDS:
        assert word in terms(word), word


@given(st.text())
def test_terms_of_any_text_are_stable(text):
    for term in terms(text):
        assert term
        assert fold(term) == term or len(term) == 64
    assert set(content_terms(text)) <= set(terms(text))


def split(text):
    return [text[start:end] for start, end in sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Dr. Smith, e.g. in the U.S. Senate, has 3.5 apples. He left! Why?",
            ["Dr. Smith, e.g. in the U.S. Senate, has 3.5 apples.", "He left!", "Why?"],
        ),
        (
            "J. R. Tolkien wrote it. It is in the USA. Yes.",
            ["J. R. Tolkien wrote it.", "It is in the USA.", "Yes."],
        ),
        ("He said “no.” She left.", ["He said “no.”", "She left."]),
        ("Wait... what? Yes.", ["Wait...", "what?", "Yes."]),
        ("你好。再见！「好。」走了？", ["你好。", "再见！", "「好。」", "走了？"]),
        ("ما هي العاصمة؟ القاهرة.", ["ما هي العاصمة؟", "القاهرة."]),
        ("# Title\nText goes on\nover the line end.", ["# Title", "Text goes on\nover the line end."]),
        ("- one\n- two\n3. three", ["- one", "- two", "3. three"]),
        ("a | b\nc | d", ["a | b", "c | d"]),
        ("intro to a table\nc | d", ["intro to a table", "c | d"]),
        ("One.\n\nTwo", ["One.", "Two"]),
        ("short line\nAnother", ["short line", "Another"]),
        ("  \n ", []),
        ("", []),
    ],
)
def test_sentences(text, expected):
    assert split(text) == expected


@given(st.text(alphabet="aB. \n!?。|-1#", max_size=200))
def test_sentences_hold_everything_visible_in_order(text):
    spans = sentences(text)
    assert "".join("".join(split(text)).split()) == "".join(text.split())
    assert all(start < end for start, end in spans)
    assert all(one[1] <= two[0] for one, two in pairwise(spans))
    for sentence in split(text):
        assert sentence == sentence.strip()


def test_stem_joins_forms_of_a_word():
    assert stem("causes") == stem("caused") == stem("cause") == stem("causing")
    assert stem("studies") == stem("study")
    assert stem("模型") == "模型"


def test_best_sentence():
    text = "Penguins live in the south. The model causes errors. 模型很好。"
    assert (
        text[slice(*best_sentence(text, content_terms("what caused the error?")))]
        == "The model causes errors."
    )
    assert text[slice(*best_sentence(text, content_terms("模型")))] == "模型很好。"
    assert text[slice(*best_sentence(text, ["nothing"]))] == "Penguins live in the south."
    assert best_sentence("", ["x"]) == (0, 0)


def test_best_sentence_follows_weights_and_cuts_giants_at_a_word():
    text = "Common common words here. A rare thing."
    picked = best_sentence(text, ["common", "words", "rare"], weights={"rare": 5.0})
    assert text[slice(*picked)] == "A rare thing."
    start, end = best_sentence("word " * 500, ["word"], max_chars=100)
    assert end - start <= 100
    assert ("word " * 500)[start:end].endswith("word")


def test_a_heading_is_not_the_best_sentence_but_speaks_for_those_below_it():
    text = "# Rent and deposit\n\nThe home is old.\n\nPay 900 euro as deposit on the first day.\n\n# Pets\n\nAsk first."
    assert (
        text[slice(*best_sentence(text, ["rent", "deposit"]))] == "Pay 900 euro as deposit on the first day."
    )
    assert text[slice(*best_sentence(text, ["pets"]))] in ("# Pets", "Ask first.")


def test_hard_wrapped_prose_is_not_cut_at_its_line_ends():
    text = (
        "The cellar compartment marked 3 belongs to the flat. The tenancy begins on 1\n"
        "March 2026 and runs for 24 months. It ends on 28\nFebruary.\n\nPets\nAsk first."
    )
    assert [text[a:b].replace("\n", " ") for a, b in sentences(text)][1] == (
        "The tenancy begins on 1 March 2026 and runs for 24 months."
    )
