import pytest

from core.store.collections import CollectionStore
from core.store.documents import DocumentStore, NewDocument
from core.store.folders import FolderRecord, FolderStore


@pytest.fixture
def folders(db):
    return FolderStore(db)


@pytest.fixture
def add(db):
    def make(path, **values):
        return DocumentStore(db).save(NewDocument(path, path.rpartition("/")[2], **values)).id

    return make


def test_a_folder_holds_what_lies_below_it_and_nothing_that_is_merely_called_alike(folders, add):
    add("/docs/a.txt")
    add("/docs/sub/b%_.txt")
    add("/docs2/c.txt")
    add("/docs")
    folders.add("/docs", None)
    assert [one.path for one in folders.documents("/docs")] == ["/docs/a.txt", "/docs/sub/b%_.txt"]
    assert folders.count("/docs") == 2
    assert folders.count("/") == 4


def test_only_what_is_newer_than_the_watching_came_by_it(folders, add, db):
    add("/docs/mine.txt")
    removed = add("/docs/removed.txt")
    DocumentStore(db).remove(removed)  # its number is never used again
    folders.add("/docs", None)
    assert folders.mark_new("/docs") == ()
    new = add("/docs/new.txt")
    add("/elsewhere/new.txt")
    assert folders.mark_new("/docs") == (new,)
    assert folders.mark_new("/docs") == ()
    came = {one.path: one.came_by_watching for one in folders.documents("/docs")}
    assert came == {"/docs/mine.txt": False, "/docs/new.txt": True}


def test_what_came_by_watching_is_known_after_moves_and_a_second_watching(folders, add, db):
    folders.add("/docs", None)
    new = add("/docs/new.txt")
    folders.mark_new("/docs")
    DocumentStore(db).relocate(new, "/later/new.txt", "new.txt", 1)
    folders.remove("/docs")
    folders.add("/later", None)
    folders.mark_new("/later")
    assert folders.documents("/later")[0].came_by_watching


def test_what_was_mounted_below_a_folder_is_known_as_it_was_last_seen(folders, db):
    folders.add("/docs", None)
    folders.add("/other", None)
    folders.set_seen("/docs", "1:2", {"/docs/usb": "3:2", "/docs/nas": "4:2"})
    folders.set_seen("/docs", "1:2", {"/docs/usb": "5:2"})
    folders.set_seen("/gone", "1:2", {"/gone/usb": "3:2"})
    assert [one.mounts for one in folders.list()] == [{"/docs/usb": "5:2"}, {}]
    folders.remove("/docs")
    assert db.rows("SELECT * FROM watched_mounts") == []


def test_a_collection_that_is_deleted_leaves_the_folder(folders, db):
    collections = CollectionStore(db)
    flat = collections.create("Flat")
    folders.add("/docs", flat)
    folders.set_seen("/docs", "1:2", {})
    assert folders.list() == (FolderRecord("/docs", flat, "1:2"),)
    folders.add("/docs", None)
    assert folders.list()[0].collection_id is None
    folders.add("/docs", flat)
    collections.delete(flat)
    assert [(one.path, one.collection_id) for one in folders.list()] == [("/docs", None)]


def test_what_the_user_took_out_is_left_out_until_watching_ends(folders, add, db):
    folders.add("/docs", None)
    one = add("/docs/a.txt")
    folders.leave_out(one)
    folders.leave_out(999)
    paths = ["/docs/a.txt", "/docs/b.txt"]
    assert folders.without_left_out("/docs", paths) == {"/docs/b.txt"}
    assert not [row for row in db.rows("SELECT * FROM left_out") if "a.txt" in repr(row)]
    folders.remove("/docs")
    folders.add("/docs", None)
    assert folders.without_left_out("/docs", paths) == set(paths)
