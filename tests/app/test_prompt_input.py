import pytest
from PySide6.QtCore import Qt

from app.prompt_input import PromptInput
from core.types import DocumentStatus, Scope


@pytest.fixture
def box(qtbot, theme):
    made = PromptInput(theme)
    qtbot.addWidget(made)
    made.resize(600, 100)
    made.show()
    return made


def test_enter_sends_and_shift_enter_does_not(box, qtbot):
    sent = []
    box.submitted.connect(sent.append)
    qtbot.keyClicks(box.edit, "one")
    qtbot.keyClick(box.edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClicks(box.edit, "two")
    assert sent == []
    qtbot.keyClick(box.edit, Qt.Key.Key_Return)
    assert sent == ["one\ntwo"]
    assert box.text  # it is the window that clears it, once it was taken


def test_nothing_to_send(box, qtbot):
    sent = []
    box.submitted.connect(sent.append)
    assert not box.button.isEnabled()
    qtbot.keyClicks(box.edit, "   ")
    qtbot.keyClick(box.edit, Qt.Key.Key_Return)
    assert sent == []


def test_it_grows_to_eight_lines(box):
    heights = []
    for n_lines in (1, 2, 8, 9, 30):
        box.set_text("\n".join("x" * n_lines))
        heights.append(box.edit.height())
    assert heights[0] < heights[1] < heights[2]
    assert heights[2] == heights[3] == heights[4]


def test_stop_takes_the_place_of_send(box, qtbot):
    box.set_running(True)
    with qtbot.waitSignal(box.stopped):
        box.button.click()
    box.set_running(False)
    assert not box.button.isEnabled()


def test_the_scope_is_all_or_one_document(box, parts):
    failed = parts.document(3, "broken.pdf", DocumentStatus.FAILED)
    box.scope.set_documents([parts.document(1, "a.pdf"), parts.document(2, "b.pdf"), failed])
    assert box.scope.scope == Scope()
    popup = box.scope._popup
    assert [popup.list.item(row).text() for row in range(popup.list.count())] == [
        "All documents",
        "a.pdf",
        "b.pdf",
    ]
    popup.filter.setText("B")
    popup._take_first()
    assert box.scope.scope == Scope(frozenset({2}))
    assert "b.pdf" in box.scope.accessibleName()
    box.scope.set_documents([parts.document(1, "a.pdf")])  # it was removed
    assert box.scope.scope == Scope()
