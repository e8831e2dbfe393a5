from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt

from core.types import (
    CollectionInfo,
    DocumentStatus,
    DocumentWarmth,
    IngestProgress,
    LibraryChanged,
    Notice,
    Warmth,
    WarmthChanged,
    WatchedFolder,
    WatchedFoldersChanged,
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


def read(opened, *documents, running=False, request=None):
    """The service has read these files, which were asked for last unless ``request`` says otherwise."""
    service = opened.service
    number = service.n_requests if request is None else request
    service.documents = (*service.documents, *documents)
    n_files = len(documents)
    service.send(IngestProgress(running, n_files, n_files, 0, 9, 9, 9, "", 1.0, request=number))
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
    opened.service.send(IngestProgress(False, 1, 1, 0, 9, 9, 9, "", 1.0, request=1))
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
    read(opened, parts.document(5, "e.pdf"), request=2)
    opened.settle()
    assert opened.service.named("move_to_collection") == [[[5], 2]]
    read(opened, parts.document(4, "d.pdf"), request=1)
    opened.settle()
    assert opened.service.named("move_to_collection") == [[[5], 2], [[4], 1]]


def test_what_ends_that_nobody_here_asked_for_is_not_what_was_added(opened, parts):
    """As what is taken up after a crash, or a reading that fails."""
    opened.window.add_paths([Path("/docs/d.pdf")])
    for _ in range(3):
        read(opened, request=77)
    read(opened, parts.document(4, "d.pdf"), request=1)
    opened.settle()
    assert opened.service.named("move_to_collection") == [[[4], 1]]


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
        panel.as_found.box,
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


def running(**changes):
    values = IngestProgress(True, 320, 120, 0, 9, 25, 100, "/docs/x.pdf", 30.0)
    return replace(values, **changes)


def test_reading_is_paused_and_the_chat_says_what_it_may_miss(opened, qtbot):
    opened.service.send(running())
    opened.settle()
    opened.window.library.strip.pause.click()
    opened.service.send(running(paused=True))
    opened.settle()
    opened.window.library.strip.pause.click()
    assert opened.service.calls[-2:] == [("pause_ingest",), ("resume_ingest",)]
    opened.window.new_chat()
    line = opened.window.chat.reading
    qtbot.waitUntil(line.isVisible, timeout=3000)
    assert line.text().startswith("Reading is paused after 120 of 320 files")
    opened.service.send(running(running=False, n_done=320))
    opened.settle()
    assert not line.isVisible()


def test_what_is_read_in_a_moment_is_not_worth_a_word(opened, qtbot):
    opened.window.new_chat()
    opened.service.send(running())
    opened.settle()
    opened.service.send(running(running=False, n_done=320))
    opened.settle()
    qtbot.wait(1200)
    assert not opened.window.chat.reading.isVisible()


@pytest.fixture
def locked(opened, parts):
    """A document that needs a password is selected in the list, and its dialog is open."""
    one = parts.document(4, "bank.pdf", DocumentStatus.NEEDS_PASSWORD, "It is protected by a password.")
    opened.service.documents = (*opened.service.documents, one)
    opened.service.request_documents()
    opened.settle()
    library = opened.window.library
    library.bar.choose(None)
    library.list.setCurrentIndex(library.list.model().index(3, 0))
    library.detail.action.click()
    opened.window.documents.dialog.edit.setText("wrong")
    opened.window.documents.dialog.open_button.click()
    assert opened.service.named("unlock") == [[4, "wrong"]]
    return one


def test_a_password_that_does_not_fit_is_told_where_it_was_entered(opened, locked):
    dialog = opened.window.documents.dialog
    problem = ((locked.path, "This password does not fit."),)
    number = opened.service.n_requests
    opened.service.send(IngestProgress(False, 1, 1, 1, 0, 9, 9, "", 0.1, problems=problem, request=number))
    opened.service.send(Notice("bank.pdf: This password does not fit.", request=number))
    opened.settle()
    assert dialog.message.text() == "This password does not fit."
    assert not opened.window.library.strip.isVisible()
    assert opened.window._problems.count() == 0
    opened.service.send(Notice("The disk is full."))
    opened.settle()
    assert opened.window._problems.count() == 1


def test_a_notice_alone_is_enough_to_refuse_a_password(opened, locked):
    notice = Notice("This password does not fit.", "Try another one.", request=opened.service.n_requests)
    opened.service.send(notice)
    opened.settle()
    assert opened.window.documents.dialog.message.text() == "This password does not fit. Try another one."
    assert opened.window._problems.count() == 0


def test_what_others_say_meanwhile_is_no_refusal(opened, locked):
    opened.service.send(Notice("The disk is full."))
    opened.service.send(Notice("bank.pdf: it was said of another reading.", request=99))
    opened.settle()
    assert opened.window.documents.dialog.trying
    assert opened.window.documents.dialog.message.text() == ""
    assert opened.window._problems.count() == 2


def test_other_reading_shows_while_a_password_is_tried(opened, locked):
    problem = (("/docs/z.pdf", "It is damaged."),)
    opened.service.send(IngestProgress(False, 1, 1, 1, 0, 9, 9, "", 0.1, problems=problem, request=99))
    opened.settle()
    assert opened.window.library.strip.isVisible()
    assert opened.window.documents.dialog.trying


def test_a_password_that_was_not_tried_to_the_end_can_be_entered_again(opened, locked):
    number = opened.service.n_requests
    opened.service.send(IngestProgress(False, 0, 0, 0, 0, 0, 0, "", 0.1, cancelled=True, request=number))
    opened.settle()
    assert not opened.window.documents.dialog.trying
    assert opened.window.documents.dialog.message.text() == "Reading was stopped."


def test_a_document_that_opens_ends_the_question_and_the_password_is_kept_nowhere(opened, locked):
    dialog = opened.window.documents.dialog
    left = []
    dialog.finished.connect(lambda result: left.append((result, dialog.edit.text())))
    opened.service.documents = (replace(locked, status=DocumentStatus.READY, note=""),)
    number = opened.service.n_requests
    opened.service.send(IngestProgress(False, 1, 1, 0, 9, 9, 9, "", 0.1, request=number))
    opened.service.request_documents()
    opened.settle()
    assert left == [(1, "")]
    assert opened.window.documents.dialog is None


def test_recognizing_text_takes_its_turn_among_what_is_read(opened, parts, monkeypatch):
    monkeypatch.setattr("app.recognition.is_available", lambda: True)
    scan = parts.document(4, "scan.pdf", DocumentStatus.FAILED, "This PDF has 7 pages and no text.", 7, 0)
    opened.service.documents = (*opened.service.documents, scan)
    opened.service.request_documents()
    opened.settle()
    library = opened.window.library
    library.bar.choose(None)
    library.list.setCurrentIndex(library.list.model().index(3, 0))
    library.detail.action.click()
    assert opened.service.named("recognize_text") == [[[4]]]
    library.bar.choose(1)
    opened.window.add_paths([Path("/docs/d.pdf")])
    read(opened, request=1)  # the recognition ended
    assert opened.service.named("move_to_collection") == []
    read(opened, parts.document(5, "d.pdf"))
    opened.settle()
    assert opened.service.named("move_to_collection") == [[[5], 1]]


def test_what_a_watched_folder_brings_is_not_taken_for_what_was_added(opened, parts):
    opened.window.add_paths([Path("/docs/d.pdf")])
    opened.service.send(IngestProgress(False, 1, 1, 0, 9, 9, 9, "", 1.0, watched=True, request=2))
    for _ in range(3):
        opened.service.request_documents()
        opened.settle()
    read(opened, parts.document(4, "d.pdf"), request=1)
    opened.settle()
    assert opened.service.named("move_to_collection") == [[[4], 1]]


def test_a_folder_is_watched_for_the_collection_that_is_shown_until_the_user_stops_it(opened, monkeypatch):
    library = opened.window.library
    monkeypatch.setattr("app.library_page.QFileDialog.getExistingDirectory", lambda *_: "/docs/new")
    library.folder_menu.actions()[1].trigger()
    library.bar.choose(None)
    library.folder_menu.actions()[1].trigger()
    assert opened.service.named("watch_folder") == [[Path("/docs/new"), 1], [Path("/docs/new"), None]]
    opened.service.folders = (WatchedFolder("/docs/new", 1, 3, True),)
    opened.service.send(WatchedFoldersChanged(opened.service.folders))
    opened.settle()
    library.folders.toggle.click()
    monkeypatch.setattr("app.watched_folders.ask_what_becomes_of", lambda *_: True)
    library.folders.rows[0].stop.click()
    opened.settle()
    assert opened.service.named("unwatch_folder") == [["/docs/new", True]]
    assert library.list.isVisible()
