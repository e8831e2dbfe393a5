"""Watched folders through the service, on real threads and a real file system; no model is needed."""

import queue
import shutil
import time
from pathlib import Path

import pytest

from core.config import Settings
from core.ingest.places import identity
from core.service import Service
from core.store.database import open_database
from core.store.documents import DocumentStore, NewDocument
from core.store.folders import FolderStore
from core.types import (
    CollectionsChanged,
    IngestProgress,
    LibraryChanged,
    Notice,
    WatchedFoldersChanged,
)
from core.watching import is_still_there

TIMEOUT_S = 30


class Running:
    """A service without a model; its events are kept and waited for."""

    def __init__(self, data_dir):
        self.data_dir = data_dir
        self.events = queue.SimpleQueue()
        self.seen = []
        self.service = Service(data_dir, Settings(), self.events.put, load_model=False, take_up=True)

    def wait(self, kind, condition=lambda _event: True):
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            try:
                event = self.events.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                seen = [type(one).__name__ for one in self.seen]
                raise AssertionError(f"no such {kind.__name__} within {TIMEOUT_S} s; seen: {seen}") from None
            self.seen.append(event)
            if isinstance(event, kind) and condition(event):
                return event

    def titles(self, *expected):
        """Wait until the library holds exactly these."""
        found = self.wait(
            LibraryChanged, lambda event: sorted(one.title for one in event.documents) == sorted(expected)
        )
        return {one.title: one for one in found.documents}

    def folder(self, condition=lambda _folder: True):
        self.service.request_watched_folders()
        return self.wait(
            WatchedFoldersChanged, lambda event: event.folders and condition(event.folders[0])
        ).folders[0]

    def watch(self, folder, collection_id=None):
        self.service.watch_folder(folder, collection_id)

    def close(self):
        started = time.monotonic()
        self.service.close()
        assert time.monotonic() - started < 8


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr("core.ingest.watch.QUIET_S", 0.3)
    monkeypatch.setattr("core.ingest.watch._CHECK_S", 0.3)


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "docs"
    made.mkdir()
    (made / "a.txt").write_text("the zebra")
    return made


@pytest.fixture
def start(tmp_path):
    started = []

    def make():
        started.append(Running(tmp_path / "data"))
        return started[-1]

    yield make
    for one in started:
        one.close()


@pytest.fixture
def running(start):
    return start()


def test_what_happens_in_the_folder_happens_in_the_library(running, folder):
    running.watch(folder)
    first = running.titles("a.txt")["a.txt"]
    assert running.folder(lambda one: one.n_documents == 1).is_there
    ended = [one for one in running.seen if isinstance(one, IngestProgress) and not one.running]
    assert [one.watched for one in ended] == [True]
    (folder / "b.txt").write_text("the giraffe")
    second = running.titles("a.txt", "b.txt")["b.txt"]
    running.service.keep_warm(second.id, wanted=True)
    running.wait(LibraryChanged, lambda event: any(one.keep_warm for one in event.documents))
    (folder / "b.txt").rename(folder / "c.txt")
    moved = running.titles("a.txt", "c.txt")["c.txt"]
    assert (moved.id, moved.keep_warm) == (second.id, True)
    (folder / "a.txt").write_text("the zebra changed its stripes")
    changed = running.wait(LibraryChanged, lambda e: any(d.n_bytes == 29 for d in e.documents))
    assert {one.title: one.id for one in changed.documents}["a.txt"] == first.id
    (folder / "a.txt").unlink()
    running.titles("c.txt")
    assert running.folder(lambda one: one.n_documents == 1).path == str(folder)


def test_a_rename_reads_nothing_again_and_loses_no_collection(running, folder, monkeypatch):
    running.service.create_collection("Animals")
    (animals,) = running.wait(CollectionsChanged).collections
    running.watch(folder, animals.id)
    found = running.wait(LibraryChanged, lambda e: any(d.collection_id == animals.id for d in e.documents))
    (before,) = found.documents
    monkeypatch.setattr(DocumentStore, "save", lambda *_: pytest.fail("read again"))
    (folder / "sub").mkdir()
    (folder / "a.txt").rename(folder / "sub" / "z.txt")
    after = running.titles("z.txt")["z.txt"]
    assert (after.id, after.collection_id, after.path) == (
        before.id,
        animals.id,
        str(folder / "sub" / "z.txt"),
    )


def test_a_burst_is_one_reading(running, folder, monkeypatch):
    monkeypatch.setattr("core.ingest.watch.QUIET_S", 1.5)  # other programs can hold up the writing
    running.watch(folder)
    running.titles("a.txt")
    for number in range(300):
        (folder / f"{number}.txt").write_text(f"This is text number {number}.")
    running.wait(LibraryChanged, lambda event: len(event.documents) == 301)
    assert running.folder().n_documents == 301
    ended = [one.n_files for one in running.seen if isinstance(one, IngestProgress) and not one.running]
    assert ended == [1, 300]


def test_what_changed_while_the_program_was_not_running_is_found_at_its_start(start, folder):
    running = start()
    running.watch(folder)
    before = running.titles("a.txt")["a.txt"]
    (folder / "gone.txt").write_text("soon gone")
    running.titles("a.txt", "gone.txt")
    running.close()
    (folder / "a.txt").rename(folder / "renamed.txt")
    (folder / "gone.txt").unlink()
    (folder / "new.txt").write_text("new")
    again = start()
    documents = again.titles("renamed.txt", "new.txt")
    assert documents["renamed.txt"].id == before.id


def test_a_disk_that_is_unplugged_empties_no_library(running, folder, tmp_path):
    running.watch(folder)
    running.titles("a.txt")
    running.folder(lambda one: one.n_documents == 1)
    shutil.move(folder, tmp_path / "unplugged")
    gone = running.folder(lambda one: not one.is_there)
    assert (gone.n_documents, "not there now" in gone.note) == (1, True)
    shutil.move(tmp_path / "unplugged", folder)
    back = running.folder(lambda one: one.is_there)
    assert (back.n_documents, back.note) == (1, "")
    (folder / "b.txt").write_text("after it came back")
    running.titles("a.txt", "b.txt")


def test_stopping_keeps_the_documents_or_removes_them(running, folder):
    running.watch(folder)
    running.titles("a.txt")
    running.service.unwatch_folder(str(folder), remove_documents=False)
    running.wait(WatchedFoldersChanged, lambda event: event.folders == ())
    (folder / "b.txt").write_text("nobody looks")
    time.sleep(1)
    running.service.request_documents()
    running.titles("a.txt")
    running.watch(folder)
    running.titles("a.txt", "b.txt")
    running.service.unwatch_folder(str(folder), remove_documents=True)
    running.titles()


def test_a_folder_that_is_unwanted_while_it_is_read_leaves_nothing(running, folder):
    for number in range(400):
        (folder / f"{number}.txt").write_text(f"Text number {number}. " * 200)
    running.watch(folder)
    running.wait(IngestProgress, lambda event: event.n_done > 5)
    running.service.unwatch_folder(str(folder), remove_documents=True)
    running.wait(IngestProgress, lambda event: not event.running)
    running.titles()


def test_what_the_user_removes_stays_out_and_what_the_user_added_stays_in(running, folder):
    (folder / "mine.txt").write_text("mine")
    running.service.add_paths([folder / "mine.txt"])
    running.titles("mine.txt")
    running.watch(folder)
    documents = running.titles("a.txt", "mine.txt")
    running.service.remove_document(documents["a.txt"].id)
    running.titles("mine.txt")
    (folder / "mine.txt").unlink()
    (folder / "b.txt").write_text("b")
    running.titles("b.txt", "mine.txt")


def test_a_file_that_fails_is_tried_again_only_when_it_changes(running, folder):
    (folder / "bad.pdf").write_bytes(b"%PDF-1.4 and no more")
    running.watch(folder)
    running.titles("a.txt", "bad.pdf")
    (folder / "b.txt").write_text("b")
    running.titles("a.txt", "b.txt", "bad.pdf")
    ended = [one.n_files for one in running.seen if isinstance(one, IngestProgress) and not one.running]
    assert ended == [2, 1]


def test_what_cannot_be_watched_is_refused_with_a_reason(running, folder, tmp_path):
    running.watch(tmp_path / "missing")
    assert "not there" in running.wait(Notice).message
    running.watch(tmp_path / "data")
    assert "Slipstream's own" in running.wait(Notice).message
    running.watch(folder)
    running.titles("a.txt")
    (folder / "sub").mkdir()
    running.watch(folder / "sub")
    assert "as a part of" in running.wait(Notice).message
    running.watch(tmp_path)
    assert "A part of this folder" in running.wait(Notice).message
    running.service.request_watched_folders()
    assert running.wait(WatchedFoldersChanged, lambda e: len(e.folders) == 1).folders[0].path == str(folder)


def test_nothing_of_a_file_that_went_is_left_in_the_database(running, folder, tmp_path):
    (folder / "secret.txt").write_text("The password of the vault is xylophone-quagmire. " * 200)
    running.watch(folder)
    running.titles("a.txt", "secret.txt")
    (folder / "secret.txt").unlink()
    running.titles("a.txt")
    running.close()
    left = [
        path.name
        for path in (tmp_path / "data").rglob("*")
        if path.is_file() and b"xylophone" in path.read_bytes()
    ]
    assert left == []


def test_nothing_is_watched_unless_the_user_asked_for_it(running):
    running.service.request_watched_folders()
    assert running.wait(WatchedFoldersChanged).folders == ()
    assert running.service._watching._watcher is None


def test_documents_that_were_read_before_a_crash_are_known_as_the_folders_own(start, folder, tmp_path):
    """Killed between reading and noting: at the next start they are noted, and leave with their files."""
    running = start()
    running.watch(folder)
    running.titles("a.txt")
    running.close()
    with open_database(tmp_path / "data") as db:
        db.run("DELETE FROM watched_documents")
        assert len(DocumentStore(db).list_documents()) == 1
    Path(folder / "a.txt").unlink()
    (folder / "b.txt").write_text("b")
    start().titles("b.txt")


def test_a_disk_that_goes_just_before_its_documents_are_removed_keeps_them(tmp_path, folder):
    """Looked at while it was there, removed when its folder is another one."""
    with open_database(tmp_path / "data") as db:
        store = FolderStore(db)
        store.add(str(folder), None)
        store.set_seen(str(folder), identity(folder), {})
        DocumentStore(db).save(NewDocument(str(folder / "gone.txt"), "gone.txt"))
        (gone,) = store.documents(str(folder))
        assert not is_still_there(db, gone)
        folder.rename(tmp_path / "unplugged")
        assert is_still_there(db, gone)
        folder.mkdir()
        assert is_still_there(db, gone)
