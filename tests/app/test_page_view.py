import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QWheelEvent
from PySide6.QtWidgets import QApplication

from app.page_view import PageView
from core.config import Settings, sample_documents
from core.ingest.page_image import render

SAMPLE = str(sample_documents() / "travel-policy.pdf")
QUOTE = "Reports that come after 60 days are paid only with the signature of the head of finance"


@pytest.fixture
def view(qtbot, theme):
    made = PageView(theme)
    qtbot.addWidget(made)
    made.resize(500, 400)
    made.show()
    made.asked = []
    made.wanted.connect(lambda page, width: made.asked.append((page, width)))
    return made


def draw(view, qtbot, wanted=""):
    """Play the service for the newest wish."""
    qtbot.waitUntil(lambda: bool(view.asked))
    page, width = view.asked[-1]
    view.asked.clear()
    view.show_page(render(SAMPLE, "", page, width, wanted))


def shown(view):
    """The picture of the paper as it is painted."""
    return view.paper.grab().toImage()


def colours(image, box):
    area = [
        image.pixelColor(x, y)
        for x in range(round(box.left()), round(box.right()))
        for y in range(round(box.top()), round(box.bottom()))
    ]
    assert area
    return area


def test_the_page_is_as_wide_as_the_view_and_sharp(view, qtbot):
    view.open(3, 3, same_document=False)
    draw(view, qtbot)
    image = view.paper.page
    assert image.width == round(view.paper.sheet().width() * view.devicePixelRatioF())
    assert image.height == round(view.paper.sheet().height() * view.devicePixelRatioF())
    assert 400 < view.paper.width() <= view.viewport().width()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_quote_is_marked_on_white_paper_and_its_print_stays_black(view, theme, qtbot, scheme):
    theme.set_settings(Settings(theme=scheme))
    view.open(3, 3, same_document=False)
    draw(view, qtbot, QUOTE)
    picture = shown(view)
    marks = [view.paper.place(part) for part in view.paper.page.highlights]
    assert len(marks) == 2  # it runs over two lines
    inside = [one for mark in marks for one in colours(picture, mark)]
    assert max(one.blue() for one in inside) < 160  # no white is left
    assert min(one.lightness() for one in inside) < 60  # the letters
    sheet = view.paper.sheet()
    assert picture.pixelColor(round(sheet.left()) + 5, round(sheet.top()) + 5) == QColor("white")


def test_the_mark_is_scrolled_into_the_upper_third(view, qtbot):
    view.open(3, 3, same_document=False)
    draw(view, qtbot, "Nobody has to travel to a region")
    first = view.paper.place(view.paper.page.highlights[0])
    top = first.top() - view.verticalScrollBar().value()
    assert 0 < top < view.viewport().height() / 2


def test_keys_turn_the_pages_and_stop_at_the_ends(view, qtbot):
    turned = []
    view.turned.connect(lambda *numbers: turned.append(numbers))
    view.open(1, 3, same_document=False)
    draw(view, qtbot)
    qtbot.keyClick(view, Qt.Key.Key_Left)
    assert view.page == 1
    qtbot.keyClick(view, Qt.Key.Key_Right)
    draw(view, qtbot)
    assert (view.page, view.paper.page.page) == (2, 2)
    qtbot.keyClick(view, Qt.Key.Key_End)
    draw(view, qtbot)
    qtbot.keyClick(view, Qt.Key.Key_Right)
    assert view.page == 3
    qtbot.keyClick(view, Qt.Key.Key_PageUp)  # at the top of the page: the end of the one before
    draw(view, qtbot)
    assert view.page == 2
    assert view.verticalScrollBar().value() == view.verticalScrollBar().maximum()
    qtbot.keyClick(view, Qt.Key.Key_Space)
    assert view.page == 3
    assert turned == [(1, 3), (2, 3), (3, 3), (2, 3), (3, 3)]


def test_page_down_scrolls_before_it_turns(view, qtbot):
    view.open(1, 3, same_document=False)
    draw(view, qtbot)
    qtbot.keyClick(view, Qt.Key.Key_PageDown)
    assert view.page == 1
    assert view.verticalScrollBar().value() > 0


def wheel(view, notches, modifiers=Qt.KeyboardModifier.NoModifier):
    at = QPointF(view.viewport().rect().center())
    event = QWheelEvent(
        at,
        view.viewport().mapToGlobal(at),
        QPoint(),
        QPoint(0, -120 * notches),
        Qt.MouseButton.NoButton,
        modifiers,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(view.viewport(), event)


def test_the_wheel_turns_the_page_only_when_pushed_past_its_end(view, qtbot):
    view.open(1, 3, same_document=False)
    draw(view, qtbot)
    view.verticalScrollBar().setValue(view.verticalScrollBar().maximum())
    wheel(view, 1)
    assert view.page == 1
    wheel(view, 1)
    assert view.page == 2


def test_zoom_asks_for_a_sharper_page_and_fits_again(view, qtbot):
    view.open(1, 3, same_document=False)
    draw(view, qtbot)
    width = view.paper.sheet().width()
    qtbot.keyClick(view, Qt.Key.Key_Plus)
    wheel(view, -1, Qt.KeyboardModifier.ControlModifier)
    draw(view, qtbot)
    assert view.paper.page.width == pytest.approx(width * 1.25**2, abs=2)
    qtbot.keyClick(view, Qt.Key.Key_0)
    draw(view, qtbot)
    assert view.paper.page.width == width
    for _ in range(40):
        view.zoom(1)
    assert view.paper.sheet().width() <= 4 * width + 2


def test_what_is_cited_stays_in_sight_when_the_page_grows(view, qtbot):
    view.open(3, 3, same_document=False)
    draw(view, qtbot, QUOTE)
    for _ in range(3):
        view.zoom(1)
        draw(view, qtbot, QUOTE)
        first = view.paper.place(view.paper.page.highlights[0])
        assert 0 <= first.top() - view.verticalScrollBar().value() < view.viewport().height() / 2
        assert 0 <= first.left() - view.horizontalScrollBar().value() < view.viewport().width()


def test_the_old_page_stays_and_words_come_when_it_takes_long(view, qtbot):
    view.open(1, 3, same_document=False)
    draw(view, qtbot)
    view.turn(2)
    assert view.paper.page.page == 1
    assert not view._words.isVisible()
    qtbot.waitUntil(view._words.isVisible)
    assert view._words.text() == "Page 2 is being drawn…"
    assert view.paper.page.page == 1
    draw(view, qtbot)
    assert not view._words.isVisible()


def test_a_page_of_another_document_does_not_stay_under_its_name(view, qtbot):
    view.open(1, 3, same_document=False)
    draw(view, qtbot)
    view.open(1, 9, same_document=False)
    qtbot.waitUntil(view._words.isVisible)
    assert view.paper.page is None


def test_a_page_that_nobody_wants_any_more_is_left_out(view, qtbot):
    view.open(1, 3, same_document=False)
    draw(view, qtbot)
    view.turn(2)
    view.turn(3)
    view.show_page(render(SAMPLE, "", 2, 300))
    assert view.paper.page.page == 1


def test_a_new_width_asks_once_and_keeps_the_place(view, qtbot):
    view.open(3, 3, same_document=False)
    draw(view, qtbot, QUOTE)
    for width in (520, 540, 560, 600):
        view.resize(width, 400)
        qtbot.wait(10)
    draw(view, qtbot, QUOTE)
    assert view.asked == []
    first = view.paper.place(view.paper.page.highlights[0])
    assert 0 < first.top() - view.verticalScrollBar().value() < view.viewport().height()
