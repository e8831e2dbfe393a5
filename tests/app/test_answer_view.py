import socket

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QTextCharFormat

from app import answer_view
from app.answer_view import AnswerView
from app.icons import FOLDER
from core.types import AnswerSentence


@pytest.fixture
def view(qtbot, theme):
    made = AnswerView(theme)
    qtbot.addWidget(made)
    made.resize(600, 400)
    return made


def formats(view):
    """(text, format) of every piece that is shown."""
    found, block = [], view.document().begin()
    while block.isValid():
        iterator = block.begin()
        while not iterator.atEnd():
            piece = iterator.fragment()
            found.append((piece.text(), piece.charFormat()))
            iterator += 1
        block = block.next()
    return found


def test_citations_stand_at_the_end_of_their_sentences(view, parts):
    view.show_answer(parts.answer())
    assert view.document().toPlainText() == (
        "Either party may end the agreement with three months' notice to the end of a quarter.\u20091 "
        "The notice must be given in writing.\u20091\u20092 The landlord is usually friendly about it."
    )
    numbers = [(text, form.anchorHref()) for text, form in formats(view) if form.isAnchor()]
    assert numbers == [("1", "cite:1"), ("1", "cite:1"), ("2", "cite:2")]
    superior = QTextCharFormat.VerticalAlignment.AlignSuperScript
    assert all(form.verticalAlignment() == superior for _, form in formats(view) if form.isAnchor())


def test_an_unsupported_sentence_is_dotted_and_says_why(view, parts):
    view.show_answer(parts.answer())
    dotted = QTextCharFormat.UnderlineStyle.DotLine
    found = [(text, form.toolTip()) for text, form in formats(view) if form.underlineStyle() == dotted]
    assert [text for text, _ in found] == ["The landlord is usually friendly about it."]
    assert "No passage" in found[0][1]


def test_clicking_a_number_names_its_citation(view, parts, qtbot):
    view.show_answer(parts.answer())
    with qtbot.waitSignal(view.cited) as blocker:
        view.anchorClicked.emit(QUrl("cite:2"))
    assert blocker.args[0].document == "lease-2021.pdf"


HOSTILE = f"""<img src="http://127.0.0.1:PORT/track.png"> ![pixel](http://127.0.0.1:PORT/x.png)
![mine](file://{FOLDER}/file.svg) ![path]({FOLDER}/slipstream.svg) ![](data:image/png;base64,AAAA)
<script>alert(1)</script> <link rel=stylesheet href="file:///etc/passwd"> [click](file:///etc/passwd)
[web](http://127.0.0.1:PORT/?q=secret)"""


def test_untrusted_markdown_loads_nothing(view, qtbot):
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.2)
    view.show_text(HOSTILE.replace("PORT", str(listener.getsockname()[1])))
    view.fit(500)
    view.show()
    qtbot.waitExposed(view)
    view.grab()
    qtbot.wait(50)
    with pytest.raises(TimeoutError):
        listener.accept()
    listener.close()
    assert not any(form.isImageFormat() for _, form in formats(view))
    shown = view.document().toPlainText()
    assert "[image not loaded: pixel]" in shown
    assert "[image not loaded: mine]" in shown
    assert "<script>" in shown  # shown as the text it is


@pytest.mark.parametrize("url", ["http://example.com/x.png", "file:///etc/passwd", "/etc/passwd", "qrc:/x"])
def test_resources_are_never_looked_up(view, url):
    image = view.loadResource(2, QUrl(url))
    assert (image.width(), image.height()) == (1, 1)


def test_links_ask_before_they_open(view, monkeypatch):
    asked, opened = [], []
    monkeypatch.setattr(answer_view, "confirm", lambda _p, _q, url, _y: asked.append(url) or len(asked) > 1)
    monkeypatch.setattr(answer_view.QDesktopServices, "openUrl", lambda url: opened.append(url.toString()))
    view.follow(QUrl("https://example.com/?q=secret"))
    assert asked == ["https://example.com/?q=secret"]
    assert opened == []
    view.follow(QUrl("https://example.com/"))
    assert opened == ["https://example.com/"]


@pytest.mark.parametrize("url", ["file:///etc/passwd", "javascript:alert(1)", "smb://host/x", "cite:9"])
def test_other_links_are_refused(view, monkeypatch, url):
    monkeypatch.setattr(answer_view, "confirm", lambda *_: pytest.fail("asked"))
    view.follow(QUrl(url))


def test_a_selection_survives_streaming(view):
    view.show_text("The quick brown fox")
    cursor = view.textCursor()
    cursor.setPosition(4)
    cursor.setPosition(9, cursor.MoveMode.KeepAnchor)
    view.setTextCursor(cursor)
    view.show_text("The quick brown fox jumps")
    assert view.textCursor().selectedText() == "quick"


def test_as_tall_as_its_text(view):
    view.show_text("word " * 20)
    view.fit(600)
    short = view.height()
    view.show_text("word " * 400)
    view.fit(600)
    assert view.height() > 4 * short


def test_a_sentence_that_claims_nothing_is_not_dotted(view, parts):
    text = "Yes. The roof is green."
    said = (AnswerSentence(0, 5, (), claims=False), AnswerSentence(5, len(text), ()))
    view.show_answer(parts.answer(text, sentences=said))
    dotted = QTextCharFormat.UnderlineStyle.DotLine
    found = [piece for piece, form in formats(view) if form.underlineStyle() == dotted]
    assert found == ["The roof is green."]


def test_a_clicked_number_keeps_no_ring(view, parts, qtbot):
    view.show_answer(parts.answer())
    view.fit(600)
    view.show()
    cursor = view.textCursor()
    cursor.setPosition(view.document().toPlainText().index("\u20091") + 2)
    where = view.cursorRect(cursor).center()
    where.setX(where.x() - 2)
    with qtbot.waitSignal(view.cited):
        qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=where)
    assert not view.textCursor().hasSelection()
