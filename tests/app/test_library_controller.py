from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt

from core.types import (
    CollectionInfo,
    DocumentWarmth,
    IngestProgress,
    LibraryChanged,
    Notice,
    Warmth,
    WarmthChanged,
)


@pytest.fixture
def opened(open_window, parts):
    """The library page shows the collection "Flat", which holds one of three documents."""
    documents = (
        parts.document(1, "a.pdf", collection_id=1),
        parts.document(2, "b.pdf"),
        parts.document(3, "c.pdf", collection_id=2),
    )
    made = open_window(
        documents=documents, collections=(CollectionInfo(1, "Flat"), CollectionInfo(2, "Work"))
    )
    made.window.show_library()
    made.window.library.bar.choose(1)
    return made


def titles(opened):
    model = opened.window.library.list.model()
    return [model.index(row, 0).data() for row in range(model.rowCount())]


def read(opened, *documents, running=False):
    """The service has read these files."""
    service = opened.service
    service.documents = (*service.documents, *documents)
    service.send(IngestProgress(running, len(documents), len(documents), 0, 9, 9, 9, "", 1.0))
    service.request_documents()
    opened.settle()


def test_what_is_added_to_a_collection_goes_into_it_once_it_is_read(opened, parts):
    opened.window.add_paths([Path("/docs/new"), Path("/docs/d.pdf")])
    new = [parts.document(4, "new/x.pdf"), parts.document(5, "d.pdf"), parts.document(6, "other.pdf")]
    read(opened, *new, running=True)
    assert opened.service.named("move_to_collection") == []
    read(opened)
    opened.settle()
    assert opened.service.named("move_to_collection") == [[[4, 5], 1]]
    assert titles(opened) == ["a.pdf", "new/x.pdf", "d.pdf"]


def test_a_list_that_was_made_too_early_does_no_harm(opened, parts):
    opened.window.add_paths([Path("/docs")])
    late = parts.document(9, "late.pdf")
    opened.service.send(IngestProgress(False, 1, 1, 0, 9, 9, 9, "", 1.0))
    opened.service.send(LibraryChanged(opened.service.documents))
    opened.service.documents += (late,)
    opened.service.request_documents()
    opened.settle()
    assert [[9], 1] in opened.service.named("move_to_collection")


def test_what_is_in_another_collection_stays_there(opened):
    opened.window.add_paths([Path("/docs/c.pdf")])
    read(opened)
    assert opened.service.named("move_to_collection") == []


def test_what_the_user_takes_out_again_stays_out(opened, parts):
    opened.window.add_paths([Path("/docs/d.pdf")])
    read(opened, parts.document(4, "d.pdf"))
    opened.settle()
    opened.window.library.moved.emit([4], None)
    opened.settle()
    assert opened.service.named("move_to_collection") == [[[4], 1], [[4], None]]


def test_a_collection_that_went_meanwhile_gets_nothing(opened, parts):
    opened.window.add_paths([Path("/docs/d.pdf")])
    opened.service.delete_collection(1)
    read(opened, parts.document(4, "d.pdf"))
    assert opened.service.named("move_to_collection") == []


def test_what_is_dropped_on_the_chat_goes_into_no_collection(opened, parts):
    opened.window.new_chat()
    opened.window.add_paths([Path("/docs/d.pdf")])
    assert opened.window.library.collection is None  # what comes is to be seen
    read(opened, parts.document(4, "d.pdf"))
    assert opened.service.named("move_to_collection") == []
    assert "d.pdf" in titles(opened)


def test_two_times_of_adding_are_told_apart(opened, parts):
    opened.window.add_paths([Path("/docs/d.pdf")])
    opened.window.library.bar.choose(2)
    opened.window.add_paths([Path("/docs/e.pdf")])
    read(opened, parts.document(4, "d.pdf"))
    opened.settle()
    assert opened.service.named("move_to_collection") == [[[4], 1]]
    read(opened, parts.document(5, "e.pdf"))
    opened.settle()
    assert opened.service.named("move_to_collection") == [[[4], 1], [[5], 2]]


def test_a_collection_from_its_name_to_its_end(open_window, qtbot, parts, monkeypatch):
    """As a user: select, move into a new one, keep it warm, delete it."""
    opened = open_window(documents=(parts.document(1, "a.pdf"), parts.document(2, "b.pdf")))
    library = opened.window.library
    opened.window.show_library()
    library.list.setCurrentIndex(library.list.model().index(1, 0))
    qtbot.mouseClick(library.tools.move_to, Qt.MouseButton.LeftButton)
    qtbot.keyClick(library.tools.menu, Qt.Key.Key_Up)
    qtbot.keyClick(library.tools.menu, Qt.Key.Key_Return)
    qtbot.keyClicks(library.bar.new.edit, "Flat")
    qtbot.keyClick(library.bar.new.edit, Qt.Key.Key_Return)
    opened.settle()
    assert opened.service.named("create_collection") == [["Flat", [2]]]
    assert titles(opened) == ["b.pdf"]
    assert library.summary.text() == "1 of 2 documents · 48 blocks"
    qtbot.mouseClick(library.bar.settings, Qt.MouseButton.LeftButton)
    library.bar.panel.keep_warm.box.setFocus()
    qtbot.keyClick(library.bar.panel.keep_warm.box, Qt.Key.Key_Space)
    opened.settle()
    assert opened.service.collections[0].keep_warm
    monkeypatch.setattr("app.collection_panel.confirm", lambda *_: True)
    qtbot.mouseClick(library.bar.panel.delete, Qt.MouseButton.LeftButton)
    opened.settle()
    assert opened.service.named("delete_collection") == [[1]]
    assert titles(opened) == ["a.pdf", "b.pdf"]


def test_keep_warm_and_how_warm_it_is(opened, qtbot):
    library = opened.window.library
    library.list.setCurrentIndex(library.list.model().index(0, 0))
    qtbot.mouseClick(library.tools.warm, Qt.MouseButton.LeftButton)
    assert opened.service.named("keep_warm") == [[1, True]]
    opened.settle()
    assert library.tools.warm.isChecked()  # the selection outlives the new list
    opened.service.send(WarmthChanged((DocumentWarmth(1, Warmth.COLD, 1840, 0, 12.3),)))
    opened.settle()
    words = library.list.model().index(0, 0).data(Qt.ItemDataRole.AccessibleTextRole)
    assert "cold · about 12 s to read" in words


def test_what_the_core_refuses_is_said_and_nothing_changes(opened):
    opened.service.create_collection = lambda *_: opened.service.send(Notice("There is one already."))
    opened.window.library.bar.created.emit("Flat", [])
    opened.settle()
    assert opened.window._problems.count() == 1
    assert opened.window.library.collection == replace(CollectionInfo(1, "Flat"), n_documents=1)


def test_escape_in_a_name_stops_no_answer(opened, qtbot):
    opened.ask()
    opened.service.find()
    opened.settle()
    bar = opened.window.library.bar
    bar.begin_new()
    qtbot.keyClick(bar.new.edit, Qt.Key.Key_Escape)
    assert not bar.new.isVisible()
    assert opened.service.named("cancel") == []


def test_tab_reaches_every_control(opened, qtbot):
    library = opened.window.library
    library.bar.settings.click()
    library.list.setCurrentIndex(library.list.model().index(0, 0))
    panel, tools = library.bar.panel, library.tools
    expected = [
        library.bar.chooser,
        library.bar.settings,
        panel.edit,
        panel.delete,
        panel.apart.box,
        panel.on_disk.box,
        panel.keep_warm.box,
        tools.filter,
        tools.warm,
        tools.move_to,
        tools.remove,
        library.list,
    ]
    expected[0].setFocus()
    met = [opened.window.focusWidget()]
    for _ in expected[1:]:
        qtbot.keyClick(met[-1], Qt.Key.Key_Tab)
        met.append(opened.window.focusWidget())
    assert met == expected
