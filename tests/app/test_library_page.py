from pathlib import Path

import pytest
from PySide6.QtCore import QItemSelection, QItemSelectionModel, Qt
from PySide6.QtWidgets import QPushButton

from app import library_page
from app.library_page import LibraryPage
from core.types import CollectionInfo, DocumentStatus, IngestProgress, WatchedFolder


@pytest.fixture
def page(qtbot, theme):
    made = LibraryPage(theme)
    qtbot.addWidget(made)
    made.resize(800, 600)
    made.show()
    return made


def progress(**changes):
    values = {
        "running": True,
        "n_files": 40,
        "n_done": 12,
        "n_failed": 0,
        "n_blocks": 312,
        "n_bytes_done": 25,
        "n_bytes": 100,
        "current": "/docs/a.pdf",
        "elapsed_s": 30.0,
    }
    return IngestProgress(**{**values, **changes})


def test_empty_says_what_to_do(page):
    assert page.empty.isVisible()
    assert not page.list.isVisible()


def test_a_failed_file_says_why(page, parts):
    page.set_documents(
        [
            parts.document(),
            parts.document(2, "scan.pdf", DocumentStatus.FAILED, "It holds no text.", 3, 0),
        ]
    )
    assert page.list.isVisible()
    assert page.summary.text() == "2 documents · 48 blocks · 1 not read"
    role = Qt.ItemDataRole.AccessibleTextRole
    words = page.list.model().index(1, 0).data(role)
    assert words == "scan.pdf, PDF · 3 pages · 1.2 MB, Not read, It holds no text."
    page.grab()


def test_a_large_selection_outlives_a_new_list_and_is_told_of_once(page, parts, monkeypatch):
    documents = [parts.document(number, f"{number}.pdf") for number in range(1, 1601)]
    page.set_documents(documents)
    rows = page.list.model()
    chosen = QItemSelection()
    for row in [*range(0, 800, 2), *range(800, 1600)]:
        chosen.select(rows.index(row, 0), rows.index(row, 0))
    page.list.selectionModel().select(chosen, QItemSelectionModel.SelectionFlag.Select)
    before = [one.id for one in page.list.selected()]
    told = []
    real = page.detail.show_selected
    monkeypatch.setattr(page.detail, "show_selected", lambda some: told.append(len(some)) or real(some))
    page.set_documents(documents[1:])  # the first one went
    assert [one.id for one in page.list.selected()] == before[1:]
    assert told.count(1199) <= 2, "at most when it is chosen again, and at the end"
    assert len(told) <= 4


def test_delete_asks_and_removes(page, parts, qtbot, monkeypatch):
    page.set_documents([parts.document(1, "a.pdf"), parts.document(2, "b.pdf")])
    asked, removed = [], []
    page.removed.connect(removed.append)
    monkeypatch.setattr(
        library_page, "confirm", lambda _p, question, *_: asked.append(question) or len(asked) > 1
    )
    assert not page.remove.isEnabled()
    page.list.setCurrentIndex(page.list.model().index(1, 0))
    qtbot.keyClick(page.list, Qt.Key.Key_Delete)
    assert (asked, removed) == (["Remove “b.pdf” from the library?"], [])
    page.remove.click()
    assert removed == [2]


def test_choosing_files_and_a_folder(page, monkeypatch):
    added = []
    page.added.connect(added.append)
    monkeypatch.setattr(library_page.QFileDialog, "getOpenFileNames", lambda *_: (["/a.pdf", "/b.md"], ""))
    monkeypatch.setattr(library_page.QFileDialog, "getExistingDirectory", lambda *_: "/docs")
    page.add_files.click()
    once, kept = page.folder_menu.actions()
    once.trigger()
    assert added == [[Path("/a.pdf"), Path("/b.md")], [Path("/docs")]]
    watched = []
    page.watched.connect(watched.append)
    kept.trigger()
    assert (watched, len(added)) == ([Path("/docs")], 2)


def test_the_filter_narrows(page, parts):
    page.set_documents([parts.document(1, "lease.pdf"), parts.document(2, "Contract.pdf")])
    page.filter.setText("contr")
    assert [page.list.model().index(row, 0).data() for row in range(page.list.model().rowCount())] == [
        "Contract.pdf"
    ]


def test_progress_says_what_how_far_how_long_and_can_be_cancelled(page, qtbot):
    page.strip.show_progress(progress())
    assert not page.strip.isVisible()  # what is quick shows nothing
    qtbot.waitUntil(page.strip.isVisible, timeout=1000)
    assert page.strip.current.toolTip() == "Reading a.pdf"
    assert page.strip.facts.text() == "12 of 40 files · 312 blocks · about 2 min left"
    assert page.strip.bar.value() == 250
    with qtbot.waitSignal(page.cancelled):
        page.strip.cancel.click()
    assert page.strip.cancel.text() == "Stopping…"
    page.strip.show_progress(progress(running=False, cancelled=True))
    assert page.strip.facts.text().startswith("Stopped. Kept 12 of 40 files in")
    assert not page.strip.cancel.isVisible()
    page.strip.close_button.click()
    assert not page.strip.isVisible()


def test_a_selection_survives_a_new_list(page, parts):
    page.set_documents([parts.document(1, "a.pdf"), parts.document(2, "b.pdf")])
    page.list.setCurrentIndex(page.list.model().index(1, 0))
    page.set_documents([parts.document(3, "c.pdf"), parts.document(1, "a.pdf"), parts.document(2, "b.pdf")])
    assert [one.title for one in page.list.selected()] == ["b.pdf"]


def test_files_that_could_not_be_read_are_named_with_the_reason(page):
    gone = ("/docs/gone.pdf", "There is no such file. Check its name.")
    page.strip.show_progress(progress())
    assert not page.strip.problems.isVisible()
    page.strip.show_progress(progress(running=False, n_done=40, n_failed=1, problems=(gone,)))
    assert page.strip.problems.isVisible()
    assert page.strip.problems.item(0).text() == "gone.pdf: There is no such file. Check its name."
    assert page.strip.problems.item(0).toolTip() == "/docs/gone.pdf"
    page.strip.show_progress(progress())
    assert not page.strip.problems.isVisible()


def test_nothing_but_a_missing_file_is_said_too(page):
    gone = ("/docs/gone.pdf", "There is no such file.")
    page.strip.show_progress(progress(running=False, n_files=0, n_done=0, problems=(gone,)))
    assert page.strip.problems.isVisible()


def test_the_note_of_the_selected_document_is_shown_whole(page, parts):
    note = "This PDF is protected by a password. Open it in a PDF program and save it without one."
    locked = parts.document(2, "b.pdf", DocumentStatus.NEEDS_PASSWORD, note)
    page.set_documents([parts.document(1, "a.pdf"), locked])
    page.list.setCurrentIndex(page.list.model().index(0, 0))
    assert not page.detail.isVisible()
    page.list.setCurrentIndex(page.list.model().index(1, 0))
    assert (page.detail.isVisible(), page.detail.text()) == (True, note)


def titles(page):
    model = page.list.model()
    return [model.index(row, 0).data() for row in range(model.rowCount())]


def test_a_collection_narrows_the_list(page, parts):
    page.set_collections((CollectionInfo(1, "Flat", 1), CollectionInfo(2, "Later", 0)))
    page.set_documents([parts.document(1, "a.pdf", collection_id=1), parts.document(2, "b.pdf")])
    page.list.setCurrentIndex(page.list.model().index(0, 0))
    page.bar.choose(1)
    assert titles(page) == ["a.pdf"]
    assert [one.title for one in page.list.selected()] == ["a.pdf"]
    assert page.summary.text() == "1 of 2 documents · 48 blocks"
    page.filter.setText("b")
    assert titles(page) == []
    page.filter.clear()
    page.set_collections(())
    assert titles(page) == ["a.pdf", "b.pdf"]


def test_an_empty_collection_says_what_to_do(page, parts):
    page.set_collections((CollectionInfo(2, "Later", 0),))
    page.set_documents([parts.document(1, "a.pdf")])
    page.bar.choose(2)
    assert page.empty_collection.isVisible()
    assert not page.tools.isVisible()
    assert page.add_files.isVisible()
    page.empty_collection.findChild(QPushButton).click()
    assert titles(page) == ["a.pdf"]


def test_an_empty_library_shows_no_collections_until_there_is_one(page):
    assert not page.bar.isVisible()
    page.set_collections((CollectionInfo(2, "Later", 0),))
    assert page.bar.isVisible()


def test_reading_pauses_and_goes_on(page, qtbot):
    wanted = []
    page.strip.paused.connect(wanted.append)
    page.strip.show_progress(progress())
    qtbot.waitUntil(page.strip.isVisible, timeout=1000)
    page.strip.pause.click()
    assert (page.strip.pause.text(), page.strip.pause.isEnabled()) == ("Pausing…", False)
    page.strip.show_progress(progress())  # the file in hand is finished first
    assert page.strip.pause.text() == "Pausing…"
    page.strip.show_progress(progress(paused=True))
    assert (page.strip.pause.text(), page.strip.pause.isEnabled()) == ("Resume", True)
    assert page.strip.current.toolTip() == "Paused"
    assert page.strip.facts.text() == "12 of 40 files · 312 blocks · 28 files left to read"
    page.strip.pause.click()
    page.strip.show_progress(progress())
    assert page.strip.pause.text() == "Pause"
    assert wanted == [True, False]
    page.strip.show_progress(progress(running=False))
    assert not page.strip.pause.isVisible()


def test_what_a_watched_folder_brings_leaves_no_line(page, qtbot):
    page.strip.show_progress(progress(watched=True))
    qtbot.waitUntil(page.strip.isVisible, timeout=1000)
    page.strip.show_progress(progress(watched=True, running=False, problems=(("/a.pdf", "It is damaged."),)))
    assert not page.strip.isVisible()


def test_the_folders_take_the_place_of_the_list_and_give_it_back(page, parts):
    page.set_documents([parts.document(1, "a.pdf", DocumentStatus.FAILED, "It is damaged.")])
    assert not page.folders.toggle.isVisible()
    page.set_collections((CollectionInfo(1, "Flat"),))
    page.set_folders([WatchedFolder("/docs", 1, 1, True)])
    page.list.setCurrentIndex(page.list.model().index(0, 0))
    page.folders.toggle.click()
    assert page.folders.isVisible()
    assert not page.list.isVisible()
    assert not page.tools.isVisible()
    assert not page.detail.isVisible()
    page.bar.choose(None)
    assert page.list.isVisible()
    page.folders.toggle.click()
    page.set_folders([])
    assert page.list.isVisible()


def test_folders_are_seen_in_a_library_without_documents(page):
    page.set_folders([WatchedFolder("/docs", None, 0, False, "It is not there now.")])
    assert page.folders.toggle.isVisible()


def test_enter_and_a_double_click_do_what_the_button_offers(page, parts, qtbot):
    wanted = []
    page.detail.unlock_wanted.connect(wanted.append)
    locked = parts.document(2, "b.pdf", DocumentStatus.NEEDS_PASSWORD, "It is protected by a password.")
    page.set_documents([parts.document(1, "a.pdf"), locked])
    page.list.setCurrentIndex(page.list.model().index(0, 0))
    qtbot.keyClick(page.list, Qt.Key.Key_Return)
    assert wanted == []
    page.list.setCurrentIndex(page.list.model().index(1, 0))
    qtbot.keyClick(page.list, Qt.Key.Key_Return)
    page.list.doubleClicked.emit(page.list.currentIndex())
    assert wanted == [locked, locked]
