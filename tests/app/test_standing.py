"""From a passage whose text stands elsewhere to that text, by mouse and by key, in the whole window."""

from itertools import pairwise

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtWidgets import QApplication, QMenu

from app.right_pane import INSPECTOR
from app.standing import N_COLLAPSED, StandingList
from core.types import Spot, Standing, Stands, Turn


def spot(passage, quote=""):
    place = passage.place
    return Spot(passage.block.id, place.document_id, place.title, place.page, quote)


@pytest.fixture
def passages(parts):
    texts = [f"Clause {n} says this. It also says more. That is all." for n in range(6)]
    return [parts.passage(n, f"doc-{n}.pdf", n, text) for n, text in enumerate(texts, 1)]


@pytest.fixture
def window(open_window, parts, passages):
    """A conversation of ten turns; the last one names, shortens and lets ride what stands elsewhere."""
    one, two, three, *_ = passages
    told = (
        Standing(Stands.EARLIER, spot(one), 2),
        Standing(Stands.SHORTENED, spot(two), None, (spot(three, "It also says more."),)),
        Standing(Stands.RIDING, spot(passages[5])),
    )
    plain = parts.answer(passages=tuple(passages[4::-1]), citations=())
    last = parts.answer(passages=(one, two, three), citations=(), standings=told)
    turns = [Turn(number, f"Question {number}?", plain) for number in range(1, 10)]
    made = open_window()
    made.service.turns = {7: (*turns, Turn(10, "And then?", last))}
    made.window.controller.open(7)
    made.settle()
    return made


def press(qtbot, widget, key=Qt.Key.Key_Space):
    widget.setFocus()
    qtbot.keyClick(widget, key)


def test_marks_say_how_a_passage_stands(window):
    earlier, shortened, whole = window.view.sources.chips
    assert earlier.mark.text() == "given earlier"
    assert "given earlier" in earlier.accessibleDescription()
    assert earlier.mark.accessibleName().startswith("doc-1.pdf, p. 1. Given earlier in this conversation")
    assert shortened.mark.toolTip().startswith("Shortened: 1 part stands in doc-3.pdf, p. 3 already.")
    assert whole.mark is None
    assert earlier.rect().contains(earlier.mark.geometry())
    assert earlier.mark.width() < earlier.width() * 2 / 3, "the rest of the chip opens its document"


def test_a_chip_opens_its_document_as_ever(window, qtbot):
    qtbot.mouseClick(window.view.sources.chips[0], Qt.MouseButton.LeftButton)
    assert window.service.named("request_passage")[-1][0] == 1


@pytest.mark.parametrize("by_key", [True, False])
def test_given_earlier_leads_to_the_turn_that_gave_it(window, qtbot, passages, by_key):
    messages, turns = window.window.chat.messages, window.window.chat._turns
    assert messages.view_of(turns[1]) is None, "it is far up"
    mark = window.view.sources.chips[0].mark
    if by_key:
        press(qtbot, mark)
    else:
        qtbot.mouseClick(mark, Qt.MouseButton.LeftButton)
    view = messages.view_of(turns[1])
    assert 0 <= view.y() < 60, "at the top"
    chip = next(one for one in view.sources.chips if one.passage.block.id == passages[0].block.id)
    assert chip.isVisible(), "it was not among the first three"
    assert window.window.focusWidget() is chip
    assert window.service.named("request_passage") == []


def test_a_turn_that_is_not_shown_gives_way_to_the_document(window):
    window.window.controller.show_earlier(Standing(Stands.EARLIER, Spot("ab", 4, "gone.pdf", 1), 99))
    window.window.controller.show_earlier(Standing(Stands.EARLIER, Spot("ab", 4, "gone.pdf", 1), None))
    assert window.service.named("request_passage") == [[4, "ab", ""]] * 2


def test_a_turn_without_the_passage_is_shown_all_the_same(window):
    window.window.controller.show_earlier(Standing(Stands.EARLIER, Spot("ab", 4, "ridden.pdf", 1), 3))
    view = window.window.chat.messages.view_of(window.window.chat._turns[2])
    assert window.window.focusWidget() is view.answer
    assert window.service.named("request_passage") == [[4, "ab", ""]], "its text is in its document"


def test_shortened_opens_the_text_that_is_left_out(window, qtbot, passages):
    press(qtbot, window.view.sources.chips[1].mark)
    assert window.service.named("request_passage") == [[3, passages[2].block.id, "It also says more."]]
    window.settle()
    assert window.window.right.document.document_id == 3


def test_of_several_parts_one_is_chosen(qtbot, theme, passages):
    one, two, three, *_ = passages
    parts = (spot(two, "It also says more."), spot(three, "That is all."))
    shown = StandingList(theme, 8)
    qtbot.addWidget(shown)
    shown.show_standings([Standing(Stands.SHORTENED, spot(one), None, parts)])
    shown.show()
    found = []
    shown.spotted.connect(found.append)
    shown.links[0].click()
    menu = shown.links[0].findChild(QMenu)
    assert [action.text() for action in menu.actions()] == [
        "doc-2.pdf, p. 2: It also says more.",
        "doc-3.pdf, p. 3: That is all.",
    ]
    menu.actions()[1].trigger()
    assert found == [parts[1]]
    menu.close()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def test_the_inspector_lists_them_and_riders_open(window, qtbot, passages):
    window.window.right.show_tab(INSPECTOR)
    links = window.window.right.inspector.standing.links
    assert [link.standing.how for link in links] == [Stands.EARLIER, Stands.SHORTENED, Stands.RIDING]
    assert links[2].text() == "doc-6.pdf, p. 6"
    press(qtbot, links[2])
    assert window.service.named("request_passage") == [[6, passages[5].block.id, ""]]


def test_the_inspector_leads_to_the_turn_even_from_the_library(window, qtbot):
    window.window.show_library()
    window.window.resize(900, 600)  # the pane covers the page now
    window.window.shell.show_right(True)
    window.window.right.show_tab(INSPECTOR)
    press(qtbot, window.window.right.inspector.standing.links[0])
    assert window.window.pages.currentWidget() is window.window.chat
    assert not window.window.shell.right_shown
    assert window.window.chat.messages.view_of(window.window.chat._turns[1]).isVisible()


def test_a_long_list_is_cut_until_it_is_asked_for(qtbot, theme):
    shown = StandingList(theme, 8)
    qtbot.addWidget(shown)
    shown.show_standings([Standing(Stands.RIDING, Spot(f"{n}", n, f"{n}.txt", None)) for n in range(20)])
    assert len(shown.links) == N_COLLAPSED
    assert shown.more.text() == "Show 14 more passages"
    shown.more.click()
    assert len(shown.links) == 20
    shown.show_standings([])
    assert shown.isHidden()


def test_tab_visits_the_mark_after_its_chip(opened, parts, passages):
    """Also in a turn whose chips came while it was answered."""
    one, two, *_ = passages
    told = (Standing(Stands.EARLIER, spot(one), 1),)
    opened.ask()
    opened.service.find(passages=(one, two))
    opened.settle()
    assert opened.view.sources.chips[0].mark is None
    opened.service.finish(result=parts.answer(passages=(one, two), citations=(), standings=told))
    opened.settle()
    chips = opened.view.sources.chips
    chain = [chips[0], chips[0].mark, chips[1], opened.view.answer]
    for before, after in pairwise(chain):
        follower = before.nextInFocusChain()
        while follower not in opened.view.focus_chain():
            follower = follower.nextInFocusChain()
        assert follower is after


def test_in_public_nothing_more_is_to_be_hit(open_window, parts, passages):
    kiosk = open_window(kiosk=True)
    kiosk.ask()
    kiosk.service.find(passages=passages[:2])
    told = (Standing(Stands.EARLIER, spot(passages[0]), 1),)
    kiosk.service.finish(result=parts.answer(passages=tuple(passages[:2]), citations=(), standings=told))
    kiosk.settle()
    assert all(chip.mark is None for chip in kiosk.view.sources.chips)
    assert kiosk.window.right.inspector.standing.isHidden()
