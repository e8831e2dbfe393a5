import pytest
from PySide6.QtCore import Qt

from app.scope_picker import ScopeChip
from core.types import CollectionInfo, DocumentStatus, Scope

FLAT, EMPTY, BROKEN = CollectionInfo(1, "Flat", 2), CollectionInfo(2, "Later"), CollectionInfo(3, "Scans", 1)


@pytest.fixture
def chip(qtbot, theme, parts):
    made = ScopeChip(theme)
    qtbot.addWidget(made)
    made.set_collections((FLAT, EMPTY, BROKEN))
    made.set_documents(
        [
            parts.document(1, "a.pdf", collection_id=1),
            parts.document(2, "flat-plan.pdf", collection_id=1),
            parts.document(3, "scan.pdf", DocumentStatus.FAILED, collection_id=3),
        ]
    )
    made.show()
    qtbot.mouseClick(made, Qt.MouseButton.LeftButton)
    yield made
    made._popup.hide()


def shown(chip):
    popup = chip._popup.list
    return [popup.item(row).text() for row in range(popup.count()) if not popup.item(row).isHidden()]


def test_collections_come_before_documents_and_empty_ones_not_at_all(chip):
    assert shown(chip) == ["All documents", "Flat", "a.pdf", "flat-plan.pdf"]
    words = [chip._popup.list.item(row).data(Qt.ItemDataRole.AccessibleTextRole) for row in (1, 2)]
    assert words == ["Flat, Collection, 2 documents", "a.pdf, Document"]


def test_a_collection_is_chosen_by_typing(chip, qtbot):
    qtbot.keyClicks(chip._popup.filter, "flat")
    assert shown(chip) == ["All documents", "Flat", "flat-plan.pdf"]
    qtbot.keyClick(chip._popup.filter, Qt.Key.Key_Return)
    assert chip.scope == Scope(collection_id=1)
    assert (chip.text(), chip.accessibleName()) == ("Flat", "Ask about: Flat")
    assert not chip._popup.isVisible()


def test_the_arrows_choose(chip, qtbot):
    qtbot.keyClick(chip._popup.filter, Qt.Key.Key_Down)
    qtbot.keyClick(chip._popup.list, Qt.Key.Key_Down)
    qtbot.keyClick(chip._popup.list, Qt.Key.Key_Down)
    qtbot.keyClick(chip._popup.list, Qt.Key.Key_Return)
    assert chip.scope == Scope(frozenset({1}))
    qtbot.mouseClick(chip, Qt.MouseButton.LeftButton)
    assert chip._popup.list.currentItem().text() == "a.pdf"  # it opens where the choice stands


def test_a_click_chooses(chip, qtbot):
    popup = chip._popup.list
    where = popup.visualItemRect(popup.item(1)).center()
    qtbot.mouseClick(popup.viewport(), Qt.MouseButton.LeftButton, pos=where)
    assert chip.scope == Scope(collection_id=1)


@pytest.mark.parametrize("gone", ["deleted", "emptied"])
def test_a_chosen_collection_that_vanishes_gives_way_to_everything(chip, parts, gone):
    chip.choose(Scope(collection_id=1))
    if gone == "deleted":
        chip.set_collections((EMPTY,))
    else:
        chip.set_documents([parts.document(1, "a.pdf"), parts.document(2, "flat-plan.pdf")])
    assert (chip.scope, chip.text()) == (Scope(), "All documents")


def test_a_new_name_shows_on_the_chip(chip):
    chip.choose(Scope(collection_id=1))
    chip.set_collections((CollectionInfo(1, "House", 2),))
    assert (chip.scope, chip.text()) == (Scope(collection_id=1), "House")
