import pytest
from PySide6.QtCore import Qt

from app.library_tools import LibraryTools
from core.types import CollectionInfo, DocumentStatus

FLAT, WARM = CollectionInfo(1, "Flat", 1), CollectionInfo(2, "Read & kept", 1, keep_warm=True)


@pytest.fixture
def tools(qtbot, theme):
    made = LibraryTools(theme)
    qtbot.addWidget(made)
    made.resize(700, 40)
    made.show()
    return made


def told(signal):
    heard = []
    signal.connect(lambda *values: heard.append(values))
    return heard


def test_nothing_can_be_done_with_nothing(tools):
    assert not any(button.isEnabled() for button in (tools.warm, tools.move_to, tools.remove))


def test_keep_warm_is_a_toggle_of_the_selected(tools, qtbot, parts):
    kept = told(tools.kept_warm)
    tools.set_selected([parts.document(1), parts.document(2, keep_warm=True)], ())
    assert not tools.warm.isChecked()  # not all of them are
    tools.warm.setFocus()
    qtbot.keyClick(tools.warm, Qt.Key.Key_Space)
    assert kept == [(1, True)]
    tools.set_selected([parts.document(1, keep_warm=True), parts.document(2, keep_warm=True)], ())
    assert tools.warm.isChecked()
    qtbot.mouseClick(tools.warm, Qt.MouseButton.LeftButton)
    assert kept[1:] == [(1, False), (2, False)]


def test_what_was_not_read_is_not_kept_warm(tools, qtbot, parts):
    kept = told(tools.kept_warm)
    failed = parts.document(3, "scan.pdf", DocumentStatus.FAILED)
    tools.set_selected([failed], ())
    assert not tools.warm.isEnabled()
    assert tools.warm.toolTip() == "Only documents that were read can be kept warm"
    assert tools.remove.isEnabled()
    tools.set_selected([failed, parts.document(1)], ())
    qtbot.mouseClick(tools.warm, Qt.MouseButton.LeftButton)
    assert kept == [(1, True)]


def test_a_collection_that_keeps_warm_decides_for_its_documents(tools, parts):
    tools.set_selected([parts.document(1, collection_id=2)], (FLAT, WARM))
    assert (tools.warm.isChecked(), tools.warm.isEnabled()) == (True, False)
    assert tools.warm.toolTip() == "Kept warm with the collection “Read & kept”"


def test_the_selected_move_into_a_collection_or_out_of_it(tools, qtbot, parts):
    moved = told(tools.moved)
    tools.set_selected([parts.document(4, collection_id=1), parts.document(5, collection_id=1)], (FLAT, WARM))
    for n_down in (0, 1):
        qtbot.mouseClick(tools.move_to, Qt.MouseButton.LeftButton)
        states = {one.text(): one.isEnabled() for one in tools.menu.actions() if not one.isSeparator()}
        assert states == {"Flat": False, "Read && kept": True, "No collection": True, "New collection…": True}
        tools.menu.setActiveAction(next(one for one in tools.menu.actions() if one.text() == "Read && kept"))
        for _ in range(n_down):
            qtbot.keyClick(tools.menu, Qt.Key.Key_Down)
        qtbot.keyClick(tools.menu, Qt.Key.Key_Return)
    assert moved == [([4, 5], 2), ([4, 5], None)]


def test_the_selected_move_into_a_new_collection(tools, qtbot, parts):
    wanted = told(tools.new_wanted)
    tools.set_selected([parts.document(4)], ())
    tools.move_to.setFocus()
    qtbot.keyClick(tools.move_to, Qt.Key.Key_Space)
    qtbot.keyClick(tools.menu, Qt.Key.Key_Up)
    qtbot.keyClick(tools.menu, Qt.Key.Key_Return)
    assert wanted == [([4],)]


def test_a_narrow_page_has_the_buttons_below(tools, qtbot):
    assert abs(tools.warm.geometry().center().y() - tools.filter.geometry().center().y()) <= 1
    tools.resize(360, 80)
    qtbot.waitUntil(lambda: tools.warm.geometry().top() > tools.filter.geometry().bottom())
