from itertools import pairwise

import pytest
from PySide6.QtWidgets import QApplication

from app.message_list import MessageList
from app.turns import TurnState
from core.types import AnswerText, Turn


@pytest.fixture
def messages(qtbot, theme):
    made = MessageList(theme)
    qtbot.addWidget(made)
    made.resize(800, 600)
    made.show()
    return made


def turns(parts, n):
    return [TurnState.of(Turn(number, f"Question {number}?", parts.answer()), 7) for number in range(n)]


def test_a_long_conversation_makes_few_widgets(messages, parts):
    many = turns(parts, 1000)
    messages.set_turns(many)
    QApplication.processEvents()
    assert messages.n_widgets < 30
    assert messages.view_of(many[-1]) is not None  # it opens at its end
    bar = messages.verticalScrollBar()
    for step in range(20):
        bar.setValue(int(bar.maximum() * step / 20))
        QApplication.processEvents()
        assert messages.n_widgets < 30


def test_every_turn_can_be_reached_and_none_overlap(messages, parts):
    many = turns(parts, 30)
    messages.set_turns(many)
    bar = messages.verticalScrollBar()
    bar.setValue(0)
    assert messages.view_of(many[0]).y() >= 0
    seen = set()
    while True:
        placed = sorted(
            (view.y(), view.y() + view.height(), index) for index, view in messages._views.items()
        )
        for (_, end, one), (start, _, other) in pairwise(placed):
            assert other != one + 1 or end <= start
        seen |= {index for top, end, index in placed if end > 0 and top < 600}
        if bar.value() == bar.maximum():
            break
        bar.setValue(bar.value() + 200)
    assert seen == set(range(30))


def test_it_follows_a_running_answer_until_the_reader_scrolls_away(messages, parts):
    many = turns(parts, 8)
    messages.set_turns(many)
    running = TurnState("And?", 7, 1)
    messages.append(running)
    bar = messages.verticalScrollBar()
    for _ in range(10):
        running.apply(AnswerText(1, "More text to read. " * 10))
        messages.refresh(running)
        assert bar.value() == bar.maximum()
    bar.setValue(bar.maximum() // 2)
    where = bar.value()
    running.apply(AnswerText(1, "More text to read. " * 50))
    messages.refresh(running)
    assert bar.value() == where


def test_a_new_width_keeps_the_place(messages, parts):
    many = turns(parts, 40)
    messages.set_turns(many)
    bar = messages.verticalScrollBar()
    bar.setValue(bar.maximum() // 2)
    top = messages._index_at(bar.value())
    messages.resize(520, 600)
    assert abs(messages._index_at(bar.value()) - top) <= 1


def test_tab_goes_down_the_page(messages, parts):
    many = turns(parts, 3)
    messages.set_turns(many)
    messages.verticalScrollBar().setValue(0)
    chain = [one for turn in many[:2] for one in messages.view_of(turn).focus_chain()]
    for one, other in pairwise(chain):
        follower = one.nextInFocusChain()
        while follower not in chain:
            follower = follower.nextInFocusChain()
        assert follower is other


def test_more_sources_on_demand(messages, parts):
    passages = [parts.passage(n, f"doc-{n}.pdf", n) for n in range(1, 8)]
    turn = TurnState("Q", 7, 1, passages=tuple(passages))
    messages.set_turns([turn])
    row = messages.view_of(turn).sources
    height = row.height()
    assert [chip.isVisible() for chip in row.chips] == [True] * 3 + [False] * 4
    row._more.click()
    assert all(chip.isVisible() for chip in row.chips)
    assert row.height() > 2 * height
