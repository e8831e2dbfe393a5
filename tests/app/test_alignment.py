import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtGui import QTextDocument

from app.alignment import align, shown_span, utf16_offsets

FEATURES = QTextDocument.MarkdownFeature.MarkdownDialectGitHub | QTextDocument.MarkdownFeature.MarkdownNoHTML


def shown(markdown):
    document = QTextDocument()
    document.setMarkdown(markdown, FEATURES)
    return document.toPlainText()


@pytest.mark.parametrize(
    ("markdown", "sentence", "seen"),
    [
        ("One. Two **bold** words. Three.", "Two **bold** words.", "Two bold words."),
        ("**All bold.** Next.", "**All bold.** ", "All bold."),
        ("# Head\n\n- first item.\n- second item.\n", "- second item.", "second item."),
        ("See [the page](http://example.com/and/then). And then more.", "And then more.", "And then more."),
        ("Use `a < b` and &lt;b&gt;. Then.", "Then.", "Then."),
        ("Emoji 🙂 here. After.", "After.", "After."),
        ("| a | b |\n|---|---|\n| one. | two. |\n", "two.", "two."),
        ("a\\*b. Next one.", "Next one.", "Next one."),
    ],
)
def test_sentences_are_found_in_what_qt_shows(qapp, markdown, sentence, seen):
    text = shown(markdown)
    start = markdown.index(sentence)
    span = shown_span(align(markdown, text), start, start + len(sentence))
    assert span is not None
    assert text[span[0] : span[1]] == seen


@given(st.text(alphabet="ab .\n*`[]()#->🙂&;", max_size=80))
def test_never_fails_and_never_goes_back(markdown):
    places = [place for place in align(markdown, shown(markdown)) if place >= 0]
    assert places == sorted(set(places))


def test_qt_counts_utf16():
    assert utf16_offsets("a🙂b") == [0, 1, 3, 4]
