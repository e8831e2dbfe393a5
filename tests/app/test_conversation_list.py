from time import time

import pytest
from PySide6.QtCore import Qt

from app.conversation_list import ConversationList
from core.types import ConversationInfo


@pytest.fixture
def conversations(qtbot, theme):
    made = ConversationList(theme)
    qtbot.addWidget(made)
    made.resize(240, 300)
    made.rows.set_conversations([ConversationInfo(n, f"Chat {n}", 1, time()) for n in (3, 2, 1)])
    made.show()
    return made


def test_clicking_opens(conversations, qtbot):
    where = conversations.visualRect(conversations.rows.index(1)).center()
    with qtbot.waitSignal(conversations.opened) as blocker:
        qtbot.mouseClick(conversations.viewport(), Qt.MouseButton.LeftButton, pos=where)
    assert blocker.args == [2]


def test_delete_names_the_conversation(conversations, qtbot):
    conversations.show_current(1)
    with qtbot.waitSignal(conversations.deleted) as blocker:
        qtbot.keyClick(conversations, Qt.Key.Key_Delete)
    assert blocker.args[0].title == "Chat 1"


def test_rows_speak(conversations):
    assert conversations.rows.index(0).data(Qt.ItemDataRole.AccessibleTextRole) == "Chat 3, 1 question"
    conversations.grab()


def test_a_conversation_that_is_not_listed_selects_nothing(conversations):
    conversations.show_current(99)
    assert not conversations.selectedIndexes()
