import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QColor

from app.right_pane import DOCUMENT, SOURCES, RightPane
from app.turns import TurnState
from core.types import PassageText, Spot, Standing, Stands, Turn


@pytest.fixture
def pane(qtbot, theme):
    made = RightPane(theme)
    qtbot.addWidget(made)
    made.resize(340, 600)
    made.show()
    return made


def marked(browser, theme):
    """The text with the mark's colour behind it."""
    found, block = "", browser.document().begin()
    while block.isValid():
        iterator = block.begin()
        while not iterator.atEnd():
            if iterator.fragment().charFormat().background().color() == QColor(theme.tokens.mark):
                found += iterator.fragment().text()
            iterator += 1
        block = block.next()
    return found


def test_sources_mark_the_best_sentence(pane, parts, theme, qtbot):
    turn = TurnState.of(Turn(1, "Q", parts.answer()), 7)
    pane.show_turn(turn)
    pane.show_tab(SOURCES)
    text = pane.sources.toPlainText()
    assert "1  contract-b.pdf, p. 4" in text
    assert all(one.block.text in text for one in turn.passages)
    assert marked(pane.sources, theme) == "".join(one.quote for one in turn.passages)
    with qtbot.waitSignal(pane.opened) as blocker:
        pane.sources.anchorClicked.emit(QUrl("passage:1"))
    assert blocker.args[0] is turn.passages[1]


def test_a_document_opens_at_the_quote(pane, theme):
    text = "Line.\n" * 300 + "The quote." + "\nLine." * 300
    start = text.index("The quote.")
    pane.show_passage(PassageText(1, "a.txt", "/a.txt", None, text, (start, start + 10)))
    assert pane.tabs.currentIndex() == DOCUMENT
    assert marked(pane.document.text, theme) == "The quote."
    assert 0 < pane.document.text.cursorRect().top() < 400
    assert not pane.document.place.isVisible()


def test_hostile_passages_stay_text(pane):
    evil = "<img src='http://127.0.0.1:9/x'><script>x</script>"
    pane.show_passage(PassageText(1, "<b>a</b>", "/a", 1, evil, (0, 4)))
    assert pane.document.text.toPlainText() == evil


def test_empty_tabs_say_what_comes(pane):
    pane.show_tab(SOURCES)
    assert pane._no_sources.isVisible()
    pane.show_tab(DOCUMENT)
    assert pane._no_document.isVisible()


def test_sources_say_which_text_stands_elsewhere(pane, parts):
    first = parts.answer().passages[0]
    told = (Standing(Stands.EARLIER, Spot(first.block.id, 1, "contract-b.pdf", 4), 1),)
    pane.show_turn(TurnState.of(Turn(2, "Q", parts.answer()), 7))
    assert "given earlier" not in pane.sources.toPlainText()
    pane.show_turn(TurnState.of(Turn(2, "Q", parts.answer(standings=told)), 7))
    assert pane.sources.toPlainText().count("given earlier") == 1
