import pytest
from PySide6.QtGui import QColor

from app.reading_view import _MAX_CHARACTERS, ReadingView
from core.types import PassageText, TextLoaded

N = 200
BLOCKS = [f"Block {number} begins here. " + "It says a little more. " * 30 for number in range(N)]


def part(first, n):
    """As the store gives it: each block with the white space before it."""
    text, cuts = "", []
    for number in range(first, min(first + n, N)):
        cuts.append(len(text))
        text += ("\n\n" if number else "") + BLOCKS[number]
    return TextLoaded(1, first, text, tuple(cuts))


@pytest.fixture
def view(qtbot, theme):
    made = ReadingView(theme)
    qtbot.addWidget(made)
    made.resize(340, 500)
    made.show()
    made.asked = []
    made.more_wanted.connect(lambda first, n: made.asked.append((first, n)))
    return made


def show(view, number, quote, around=8):
    first = max(0, number - around)
    loaded = part(first, number + around + 1 - first)
    start = loaded.text.index(quote)
    passage = PassageText(
        1,
        "a.txt",
        "/a.txt",
        None,
        loaded.text,
        (start, start + len(quote)),
        "b",
        quote,
        first,
        loaded.cuts,
        N,
    )
    view.show_passage(passage)


def answer(view, qtbot):
    """Play the store until nothing more is wanted."""
    while view.asked:
        view.add(part(*view.asked.pop(0)))
        qtbot.wait(1)


def marked(view, theme):
    found, block = "", view.document().begin()
    while block.isValid():
        iterator = block.begin()
        while not iterator.atEnd():
            if iterator.fragment().charFormat().background().color() == QColor(theme.tokens.mark):
                found += iterator.fragment().text()
            iterator += 1
        block = block.next()
    return found


def top_line(view):
    return view.cursorForPosition(view.viewport().rect().topLeft()).block().text()[:20]


def test_the_quote_stands_in_the_upper_third(view, theme, qtbot):
    show(view, 100, "Block 100 begins here.")
    qtbot.wait(5)
    assert marked(view, theme) == "Block 100 begins here."
    at = view.cursorRect(view._cursor_at(view._mark_span()[0])).top()
    assert 0 < at < view.viewport().height() / 2


def test_one_can_read_to_both_ends_and_only_a_part_is_here(view, theme, qtbot):
    show(view, 100, "Block 100 begins here.")
    qtbot.wait(5)
    bar = view.verticalScrollBar()
    for _ in range(400):
        bar.setValue(bar.value() + 400)
        answer(view, qtbot)
        assert len(view._text) <= _MAX_CHARACTERS
        if bar.value() == bar.maximum() and not view.asked:
            break
    assert f"Block {N - 1} begins" in view.toPlainText()
    assert marked(view, theme) == ""
    for _ in range(600):
        bar.setValue(bar.value() - 400)
        answer(view, qtbot)
        if bar.value() == 0 and not view.asked:
            break
    assert view.toPlainText().startswith("Block 0 begins")


@pytest.mark.parametrize("size", [(340, 500), (640, 2050), (1200, 2050), (1280, 1300), (2500, 2050)])
def test_a_view_of_any_size_comes_to_rest_with_the_passage_in_it(view, theme, qtbot, size):
    view.resize(*size)
    show(view, 100, "Block 100 begins here.")
    qtbot.wait(5)
    n_parts = 0
    while view.asked:
        n_parts += 1
        assert n_parts < 20
        view.add(part(*view.asked.pop(0)))
        qtbot.wait(1)
    assert marked(view, theme) == "Block 100 begins here."
    at = view.cursorRect(view._cursor_at(view._mark_span()[0])).top()
    assert 0 < at < view.viewport().height() / 2
    assert view._asked is None


def test_a_view_without_end_stops_asking(view, theme, qtbot, monkeypatch):
    """Lines so long that no number of them fills it."""
    monkeypatch.setattr("app.reading_view._MAX_CHARACTERS", 4_000)
    monkeypatch.setattr("app.reading_view._MOST_CHARACTERS", 16_000)
    view.resize(1200, 2050)
    show(view, 100, "Block 100 begins here.")
    qtbot.wait(5)
    for _ in range(20):
        answer_one = view.asked.pop(0) if view.asked else None
        if answer_one is None:
            break
        view.add(part(*answer_one))
        qtbot.wait(1)
    assert view.asked == []
    assert marked(view, theme) == "Block 100 begins here."
    assert len(view._text) < 16_000 + 13 * len(BLOCKS[0])


def test_the_mark_is_there_again_when_one_comes_back(view, theme, qtbot):
    show(view, 100, "Block 100 begins here.")
    qtbot.wait(5)
    bar = view.verticalScrollBar()
    while marked(view, theme):
        bar.setValue(bar.value() + 400)
        answer(view, qtbot)
    for _ in range(600):
        bar.setValue(bar.value() - 300)
        answer(view, qtbot)
        if marked(view, theme):
            break
    assert marked(view, theme) == "Block 100 begins here."


def test_what_is_being_read_does_not_move_when_more_arrives(view, qtbot):
    show(view, 100, "Block 100 begins here.")
    qtbot.wait(5)
    bar = view.verticalScrollBar()
    bar.setValue(view.viewport().height() // 2)
    assert view.asked
    before = top_line(view)
    offset = view.cursorRect(view.cursorForPosition(view.viewport().rect().topLeft())).top()
    while view.asked:
        view.add(part(*view.asked.pop(0)))
    assert top_line(view) == before
    after = view.cursorRect(view.cursorForPosition(view.viewport().rect().topLeft())).top()
    assert abs(after - offset) <= 2


def test_a_short_document_asks_for_nothing_and_foreign_parts_are_left_out(view, qtbot):
    text = "Short."
    view.show_passage(PassageText(2, "a.txt", "/a.txt", None, text, (0, 5), "b", "Short", 0, (0,), 1))
    qtbot.wait(5)
    assert view.asked == []
    view.add(part(0, 3))
    assert view.toPlainText() == text


def test_a_document_that_vanished_while_reading_stays_as_it_is(view, qtbot):
    show(view, 100, "Block 100 begins here.")
    qtbot.wait(5)
    view.verticalScrollBar().setValue(view.verticalScrollBar().maximum())
    before = view.toPlainText()
    first, _n = view.asked[0]
    view.add(TextLoaded(1, first, "", ()))
    assert view.toPlainText() == before


def test_another_theme_keeps_the_place(view, theme, qtbot):
    from core.config import Settings

    show(view, 100, "Block 100 begins here.")
    qtbot.wait(5)
    bar = view.verticalScrollBar()
    bar.setValue(bar.value() + 700)
    before = top_line(view)
    theme.set_settings(Settings(theme="dark"))
    assert top_line(view) == before
    assert marked(view, theme) == "Block 100 begins here."


def test_a_table_fits_itself_to_a_new_width(view, qtbot):
    row = " | ".join(["some words in a cell"] * 4)
    text = "\n".join([row] * 5)
    view.show_passage(PassageText(3, "a.docx", "/a.docx", None, text, (0, 4), "b", "some", 0, (0,), 1))
    qtbot.wait(5)
    assert view.horizontalScrollBar().maximum() > 0
    view.resize(900, 500)
    qtbot.waitUntil(lambda: view.horizontalScrollBar().maximum() == 0)
    assert view._to_mark
