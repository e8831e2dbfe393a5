import pytest
from PySide6.QtCore import Qt

from app import collection_panel
from app.collections_bar import CollectionsBar
from core.types import CollectionInfo

FLAT, WORK = CollectionInfo(1, "Flat", 2), CollectionInfo(2, "Work & tax", 0)


@pytest.fixture
def bar(qtbot, theme):
    made = CollectionsBar(theme)
    qtbot.addWidget(made)
    made.resize(700, 400)
    made.show()
    made.set_collections((FLAT, WORK))
    return made


@pytest.fixture
def shown(bar, qtbot):
    """The settings of the first collection are open."""
    bar.choose(1)
    qtbot.mouseClick(bar.settings, Qt.MouseButton.LeftButton)
    return bar


def pick(bar, qtbot, words):
    """Choose an entry of the chooser's menu with the keyboard."""
    bar.chooser.setFocus()
    qtbot.keyClick(bar.chooser, Qt.Key.Key_Space)
    entries = [action for action in bar.menu.actions() if not action.isSeparator()]
    for _ in range(len(entries)):
        if bar.menu.activeAction().text() == words:
            break
        qtbot.keyClick(bar.menu, Qt.Key.Key_Down)
    qtbot.keyClick(bar.menu, Qt.Key.Key_Return)


def told(signal):
    heard = []
    signal.connect(lambda *values: heard.append(values))
    return heard


def test_the_chooser_offers_everything_and_each_collection(bar, qtbot):
    chosen = told(bar.chosen)
    qtbot.mouseClick(bar.chooser, Qt.MouseButton.LeftButton)
    entries = [action.text() for action in bar.menu.actions() if not action.isSeparator()]
    assert entries == ["All documents", "Flat", "Work && tax", "New collection…"]
    bar.menu.hide()
    pick(bar, qtbot, "Work && tax")
    assert bar.collection == WORK
    assert (bar.chooser.text(), len(chosen)) == ("Work & tax", 1)
    pick(bar, qtbot, "All documents")
    assert bar.collection is None
    assert bar.chooser.accessibleName() == "Shown: All documents"


def test_only_a_collection_has_settings(bar, qtbot):
    assert not bar.settings.isVisible()
    pick(bar, qtbot, "Flat")
    assert bar.settings.isVisible()
    assert not bar.panel.isVisible()
    bar.settings.setFocus()
    qtbot.keyClick(bar.settings, Qt.Key.Key_Space)
    assert bar.panel.isVisible()
    assert bar.panel.edit.text() == "Flat"
    pick(bar, qtbot, "All documents")
    assert not bar.panel.isVisible()


def test_a_new_collection_is_made_and_shown(bar, qtbot):
    created = told(bar.created)
    pick(bar, qtbot, "New collection…")
    assert bar.new.edit.hasFocus()
    assert not bar.new.create_button.isEnabled()
    qtbot.keyClicks(bar.new.edit, " My  letters ")
    qtbot.keyClick(bar.new.edit, Qt.Key.Key_Return)
    assert created == [("My letters", [])]
    assert not bar.new.isVisible()
    assert bar.collection is None  # the core has not made it yet
    bar.set_collections((FLAT, CollectionInfo(3, "My letters"), WORK))
    assert bar.collection == CollectionInfo(3, "My letters")


def test_a_name_that_is_taken_is_said_at_once(bar, qtbot):
    created = told(bar.created)
    bar.begin_new([4, 5])
    assert bar.new.hint.text() == "2 selected documents will move into it."
    qtbot.keyClicks(bar.new.edit, "fLAT")
    assert bar.new.hint.text() == "There is a collection named “Flat” already."
    qtbot.keyClick(bar.new.edit, Qt.Key.Key_Return)
    assert created == []
    qtbot.keyClick(bar.new.edit, Qt.Key.Key_Escape)
    assert not bar.new.isVisible()
    assert bar.chooser.hasFocus()


def test_documents_move_into_the_new_collection(bar, qtbot):
    created = told(bar.created)
    bar.begin_new([4, 5])
    qtbot.keyClicks(bar.new.edit, "Taxes")
    qtbot.mouseClick(bar.new.create_button, Qt.MouseButton.LeftButton)
    assert created == [("Taxes", [4, 5])]


def test_each_switch_takes_effect_at_once(shown, qtbot):
    changed = told(shown.changed)
    assert not shown.panel.apart.box.isChecked()
    assert shown.panel.on_disk.box.isChecked()
    panel = shown.panel
    assert not panel.as_found.box.isChecked()
    for switch in (panel.apart, panel.on_disk, panel.keep_warm, panel.as_found):
        switch.box.setFocus()
        qtbot.keyClick(switch.box, Qt.Key.Key_Space)
        assert switch.box.accessibleDescription()
    last = changed[-1][0]
    assert (last.apart, last.on_disk, last.keep_warm, last.as_found) == (True, False, True, True)
    assert len(changed) == 4
    shown.set_collections((last, WORK))
    assert shown.rules.text() == "kept apart · in memory only · kept warm · as found"
    assert panel.as_found.box.isChecked()
    assert len(changed) == 4  # what the core tells is no wish of the user's


def test_enter_renames(shown, qtbot):
    changed = told(shown.changed)
    shown.panel.edit.selectAll()
    qtbot.keyClicks(shown.panel.edit, "House ")
    qtbot.keyClick(shown.panel.edit, Qt.Key.Key_Return)
    assert changed == [(CollectionInfo(1, "House", 2),)]
    qtbot.keyClick(shown.panel.edit, Qt.Key.Key_Tab)
    assert len(changed) == 1
    shown.set_collections((CollectionInfo(1, "House", 2), WORK))
    assert shown.chooser.text() == "House"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("work & TAX", "There is a collection named “Work & tax” already."),
        (" ", "A collection needs a name."),
    ],
)
def test_a_bad_name_is_said_and_not_sent(shown, qtbot, name, problem):
    changed = told(shown.changed)
    shown.panel.edit.selectAll()
    qtbot.keyClicks(shown.panel.edit, name)
    qtbot.keyClick(shown.panel.edit, Qt.Key.Key_Return)
    assert (changed, shown.panel.hint.text()) == ([], problem)
    assert shown.panel.hint.isVisible()
    qtbot.keyClick(shown.panel.edit, Qt.Key.Key_Escape)
    assert (shown.panel.edit.text(), shown.panel.hint.isVisible()) == ("Flat", False)


def test_a_name_being_written_is_not_overwritten(shown, qtbot):
    shown.panel.edit.setFocus()
    qtbot.keyClicks(shown.panel.edit, "s")
    shown.set_collections((CollectionInfo(1, "Flat", 3), WORK))
    assert shown.panel.edit.text() == "Flats"


def test_deleting_asks_and_says_that_documents_stay(shown, qtbot, monkeypatch):
    deleted, asked = told(shown.deleted), []
    monkeypatch.setattr(
        collection_panel, "confirm", lambda _parent, *words: asked.append(words) or len(asked) > 1
    )
    qtbot.mouseClick(shown.panel.delete, Qt.MouseButton.LeftButton)
    assert deleted == []
    assert asked[0][:2] == (
        "Delete the collection “Flat”?",
        "Its documents stay in the library, in no collection.",
    )
    qtbot.mouseClick(shown.panel.delete, Qt.MouseButton.LeftButton)
    assert deleted == [(1,)]


def test_a_collection_that_is_gone_gives_way_to_everything(shown):
    chosen = told(shown.chosen)
    shown.set_collections((WORK,))
    assert (shown.collection, len(chosen)) == (None, 1)
    assert not shown.panel.isVisible()


def test_the_settings_scroll_where_the_window_is_low(shown, qtbot):
    tall = shown.sizeHint().height()
    shown.resize(700, 200)
    qtbot.waitUntil(lambda: shown.panel.parentWidget().height() < shown.panel.height())
    assert shown.panel.height() < tall
    shown.panel.as_found.box.setFocus()
    shown.grab()
