import os
import shutil
import tempfile
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest

from core.ingest import folder_scan
from core.ingest.folder_scan import compare, is_gone
from core.ingest.places import identity
from core.store.documents import DocumentStore
from core.store.folders import FolderRecord, FolderStore


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "watched"
    made.mkdir()
    return made


@pytest.fixture
def store(db):
    return FolderStore(db)


@pytest.fixture
def look(store, read):
    """Compares, and does what a program would: moves, reads and marks; the changes."""

    def run(*folders, **options):
        for one in folders:
            if str(one) not in [record.path for record in store.list()]:
                store.add(str(one), None)
        records = [one for one in store.list() if Path(one.path) in folders]
        changes = compare(records, store, **options)
        for path, state in changes.folders.items():
            if state.seen_as:
                store.set_seen(path, state.seen_as, state.mounts)
        documents = DocumentStore(store._db)
        for document_id, file in changes.moved:
            documents.relocate(document_id, str(file.path), file.path.name, file.mtime_ns)
        read(*(one.path for one in changes.unread))
        for one in folders:
            store.mark_new(str(one))
        for one in changes.gone:
            documents.remove(one.document_id)
        return changes

    return run


def names(files):
    return sorted(one.path.name for one in files)


def ids(store, folder):
    return {Path(one.path).name: one.document_id for one in store.documents(str(folder))}


def test_new_changed_and_gone(folder, look, store):
    (folder / "a.txt").write_text("the zebra")
    (folder / "b.txt").write_text("the giraffe")
    assert names(look(folder).unread) == ["a.txt", "b.txt"]
    assert look(folder).unread == ()
    before = ids(store, folder)
    (folder / "a.txt").write_text("the zebra, changed")
    (folder / "b.txt").unlink()
    changes = look(folder)
    assert names(changes.unread) == ["a.txt"]
    assert [one.document_id for one in changes.gone] == [before["b.txt"]]
    assert ids(store, folder) == {"a.txt": before["a.txt"]}


def test_renamed_and_moved_files_keep_their_document_and_are_not_read(
    folder, look, store, tmp_path, monkeypatch
):
    other = tmp_path / "other"
    other.mkdir()
    for number in range(4):
        (folder / f"{number}.txt").write_text(f"the animal of number {number}")
    look(folder, other)
    before = ids(store, folder)
    monkeypatch.setattr(DocumentStore, "save", lambda *_: pytest.fail("read again"))
    (folder / "sub").mkdir()
    (folder / "0.txt").rename(folder / "renamed.txt")
    (folder / "1.txt").rename(folder / "sub" / "1.txt")
    (folder / "2.txt").rename(other / "2.txt")
    changes = look(folder, other)
    assert (len(changes.moved), changes.unread, changes.gone) == (3, (), ())
    assert ids(store, folder) == {
        "renamed.txt": before["0.txt"],
        "1.txt": before["1.txt"],
        "3.txt": before["3.txt"],
    }
    assert ids(store, other) == {"2.txt": before["2.txt"]}
    (folder / "sub").rename(folder / "later")
    assert [one[0] for one in look(folder, other).moved] == [before["1.txt"]]


def test_of_two_files_with_the_same_bytes_each_stays_itself(folder, look, store):
    (folder / "a.txt").write_text("the same")
    (folder / "b.txt").write_text("the same")
    os.utime(folder / "a.txt", (1, 1))
    look(folder)
    before = ids(store, folder)
    (folder / "b.txt").rename(folder / "c.txt")
    look(folder)
    assert ids(store, folder) == {"a.txt": before["a.txt"], "c.txt": before["b.txt"]}
    (folder / "a.txt").rename(folder / "y.txt")
    (folder / "c.txt").rename(folder / "x.txt")
    look(folder)
    assert ids(store, folder) == {"y.txt": before["a.txt"], "x.txt": before["b.txt"]}


def test_a_file_of_the_same_size_with_other_bytes_is_no_move(folder, look, store):
    (folder / "a.txt").write_text("zebra")
    look(folder)
    before = ids(store, folder)
    (folder / "a.txt").unlink()
    (folder / "b.txt").write_text("camel")
    changes = look(folder)
    assert (changes.moved, names(changes.unread), len(changes.gone)) == ((), ["b.txt"], 1)
    assert ids(store, folder)["b.txt"] != before["a.txt"]


def test_what_the_user_added_by_hand_stays_when_its_file_goes(folder, look, store, read):
    (folder / "mine.txt").write_text("mine")
    read(folder / "mine.txt")
    (folder / "found.txt").write_text("found")
    look(folder)
    (folder / "mine.txt").unlink()
    (folder / "found.txt").unlink()
    (folder / "last.txt").write_text("last")
    assert [Path(one.path).name for one in look(folder).gone] == ["found.txt"]
    assert set(ids(store, folder)) == {"mine.txt", "last.txt"}


def test_what_is_being_written_waits(folder, look):
    (folder / "a.txt").write_text("half of it")
    (folder / "b.txt").write_text("all of it")
    busy = {str(folder / "a.txt")}
    assert names(look(folder, busy=busy).unread) == ["b.txt"]
    assert names(look(folder).unread) == ["a.txt"]
    (folder / "a.txt").unlink()
    assert look(folder, busy=busy).gone == ()  # it may be on its way back
    assert len(look(folder).gone) == 1


def test_a_folder_that_is_not_there_says_nothing_of_its_documents(folder, look, store, tmp_path):
    (folder / "a.txt").write_text("text")
    look(folder)
    folder.rename(tmp_path / "away")
    changes = look(folder)
    assert (changes.gone, changes.unread) == ((), ())
    assert not changes.folders[str(folder)].is_there
    folder.write_text("a file now")
    assert not look(folder).folders[str(folder)].is_there
    folder.unlink()
    (tmp_path / "away").rename(folder)
    assert (look(folder).gone, look(folder).unread) == ((), ())


def test_the_empty_folder_that_a_disk_leaves_is_not_taken_for_the_disk(folder, look, store, tmp_path):
    (folder / "a.txt").write_text("text")
    look(folder)
    folder.rename(tmp_path / "disk")
    folder.mkdir()
    changes = look(folder)
    assert (changes.gone, changes.folders[str(folder)].is_there) == ((), False)
    folder.rmdir()
    (tmp_path / "disk").rename(folder)
    (folder / "a.txt").unlink()
    changes = look(folder)  # the same folder, emptied by its user
    assert (len(changes.gone), changes.folders[str(folder)].is_there) == (1, True)


def test_a_mount_point_that_is_not_quite_empty_is_not_taken_for_the_disk(folder, look, store, tmp_path):
    (folder / "a.txt").write_text("text")
    look(folder)
    before = store.list()[0].seen_as
    folder.rename(tmp_path / "disk")
    folder.mkdir()
    (folder / "left.txt").write_text("written while the disk was away")
    for _ in range(2):
        changes = look(folder)
        assert (changes.gone, changes.unread) == ((), ())
        assert not changes.folders[str(folder)].is_there
        assert "not there now" in changes.folders[str(folder)].note
        assert store.list()[0].seen_as == before
    shutil.rmtree(folder)
    (tmp_path / "disk").rename(folder)
    assert look(folder).folders[str(folder)].is_there


def test_another_folder_with_a_known_document_in_it_is_the_folder(folder, look, store, tmp_path):
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text(f"text of {name}")
    look(folder)
    shutil.copytree(folder, tmp_path / "copy")
    shutil.rmtree(folder)
    (tmp_path / "copy").rename(folder)
    (folder / "b.txt").unlink()
    assert [Path(one.path).name for one in look(folder).gone] == ["b.txt"]
    assert store.list()[0].seen_as == identity(folder)


@pytest.fixture
def disk(folder):
    """Another device, reached as ``usb`` in the folder; a link stands for mounting it, which needs rights."""
    shared = Path("/dev/shm")
    if not shared.is_dir() or shared.stat().st_dev == folder.stat().st_dev:
        pytest.skip("there is no second device here")
    with tempfile.TemporaryDirectory(dir=shared) as made:
        (folder / "usb").symlink_to(made)
        yield Path(made)


def test_a_disk_below_the_folder_that_goes_takes_no_document_with_it(folder, disk, look, store):
    (folder / "a.txt").write_text("text")
    (disk / "b.txt").write_text("text on the disk")
    (disk / "sub").mkdir()
    (disk / "sub" / "c.txt").write_text("more text on the disk")
    look(folder)
    mount = folder / "usb"
    mount.unlink()
    for stand_in in ("nothing", "mount point", "not quite empty", "one known"):
        if stand_in == "mount point":
            mount.mkdir()
        elif stand_in == "not quite empty":
            (mount / "d.txt").write_text("written while the disk was away")
        elif stand_in == "one known":
            (mount / "b.txt").write_text("an old copy of it")
        changes = look(folder)
        assert changes.gone == (), stand_in
        assert "A disk in it is not there now" in changes.folders[str(folder)].note
        assert bool(changes.unread) == (stand_in == "one known")
    (folder / "a.txt").unlink()
    assert [Path(one.path).name for one in look(folder).gone] == ["a.txt"]
    shutil.rmtree(mount)
    mount.symlink_to(disk)
    (disk / "b.txt").unlink()
    changes = look(folder)  # it is back: what went from it is gone
    assert [Path(one.path).name for one in changes.gone] == ["b.txt", "d.txt"]
    assert changes.folders[str(folder)].note == ""
    assert set(ids(store, folder)) == {"c.txt"}


def test_another_disk_in_the_place_of_one_says_nothing_of_its_documents(folder, disk, look, tmp_path):
    (folder / "a.txt").write_text("text")
    (disk / "b.txt").write_text("text on the disk")
    look(folder)
    with tempfile.TemporaryDirectory(dir=disk.parent) as another:
        Path(another, "z.txt").write_text("text on another disk")
        (folder / "usb").unlink()
        (folder / "usb").symlink_to(another)
        for _ in range(2):
            changes = look(folder)
            assert (changes.gone, changes.unread) == ((), ())


def test_what_lies_behind_a_link_that_leads_nowhere_stays(folder, look, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    (disk / "a.txt").write_text("text")
    (tmp_path / "b.txt").write_text("more text")
    (folder / "linked").symlink_to(disk)
    (folder / "b.txt").symlink_to(tmp_path / "b.txt")
    assert names(look(folder).unread) == ["a.txt", "b.txt"]
    shutil.move(disk, tmp_path / "unplugged")
    (tmp_path / "b.txt").unlink()
    assert look(folder).gone == ()
    shutil.move(tmp_path / "unplugged", disk)
    (disk / "a.txt").unlink()
    assert [Path(one.path).name for one in look(folder).gone] == ["a.txt"]


def test_loops_of_links_end(folder, look):
    (folder / "a.txt").write_text("text")
    (folder / "again").symlink_to(folder)
    (folder / "sub").mkdir()
    (folder / "sub" / "up").symlink_to(folder)
    assert names(look(folder).unread) == ["a.txt"]
    assert look(folder).unread == ()


def test_a_file_that_may_not_be_looked_at_is_not_gone(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "lstat", refuse)
    assert not is_gone(str(tmp_path / "a.txt"))


def test_what_was_written_just_now_is_read_a_little_later(folder, look):
    (folder / "old.txt").write_text("text")
    (folder / "new.txt").write_text("text n")
    (folder / "later.txt").write_text("text l")
    os.utime(folder / "old.txt", (1, 1))
    os.utime(folder / "later.txt", (1e10, 1e10))  # another machine's clock
    changes = look(folder, quiet_s=60.0)
    assert (names(changes.unread), names(changes.fresh)) == (["later.txt", "old.txt"], ["new.txt"])
    assert look(folder, quiet_s=60.0).unread == ()


def test_a_folder_that_cannot_be_opened_is_told(folder, look, monkeypatch):
    (folder / "a.txt").write_text("text")
    (folder / "closed").mkdir()
    (folder / "closed" / "b.txt").write_text("text b")
    look(folder)
    real = os.scandir

    def refuse(path):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)
    changes = look(folder)
    assert changes.gone == ()
    assert changes.folders[str(folder)].note == "A folder in it cannot be opened."


def test_names_of_any_kind(folder, look, store):
    place = os.fsencode(folder)
    for name in (
        "e\u0301.txt".encode(),
        "\u00e9.txt".encode(),
        b"new\nline.txt",
        "👩‍👩‍👧.md".encode(),
        b"latin-\xe9.txt",
    ):
        Path(os.fsdecode(place + b"/" + name)).write_bytes(b"text in " + name)
    assert len(look(folder).unread) == 5
    assert (look(folder).unread, look(folder).gone) == ((), ())
    assert store.count(str(folder)) == 5


def test_a_name_that_is_stored_in_the_other_unicode_form_is_the_same_file(folder, look, store, read):
    composed, split = folder / "é.txt", folder / unicodedata.normalize("NFD", "é.txt")
    composed.write_text("text")
    look(folder)
    os.link(composed, split)  # as a file system does that knows a name in both forms
    seen = folder_scan._Seen()
    folder_scan.sort_files({str(split): split}, store.documents(str(folder)), seen)
    assert (seen.new, seen.missing) == ([], [])


def test_a_name_that_changed_in_capitals_only_is_no_second_document(folder, look, store, monkeypatch):
    old, new = folder / "A.txt", folder / "a.txt"
    old.write_text("text")
    look(folder)
    before = ids(store, folder)["A.txt"]
    os.link(old, new)  # as on a file system that takes both names for the same file, and lists one
    real = folder_scan.find_files

    def listed(paths):
        found = real(paths)
        return replace(found, files=tuple(one for one in found.files if one.name != "A.txt"))

    monkeypatch.setattr(folder_scan, "find_files", listed)
    changes = look(folder)
    assert [one for one, _file in changes.moved] == [before]
    assert (changes.unread, changes.gone) == ((), ())
    assert ids(store, folder) == {"a.txt": before}
    old.unlink()
    os.link(new, folder / "A.TXT")
    new.unlink()
    (folder / "A.TXT").write_text("text, changed meanwhile")
    os.link(folder / "A.TXT", new)
    monkeypatch.setattr(
        folder_scan, "find_files", lambda paths: replace(real(paths), files=(folder / "A.TXT",))
    )
    changes = look(folder)
    assert ([one for one, _file in changes.moved], names(changes.unread)) == ([before], ["A.TXT"])
    assert ids(store, folder) == {"A.TXT": before}
    assert look(folder).unread == ()


def test_a_name_that_differs_in_capitals_is_another_file_where_the_system_says_so(folder, look, store):
    (folder / "A.txt").write_text("text")
    look(folder)
    before = ids(store, folder)["A.txt"]
    (folder / "A.txt").unlink()
    (folder / "a.txt").write_text("other text")
    look(folder)
    assert before not in ids(store, folder).values()


def test_programs_own_files_are_no_documents(folder, look):
    (folder / "a.txt").write_text("text")
    (folder / "data").mkdir()
    (folder / "data" / "settings.toml").write_text("x = 1")
    (folder / "~$contract.docx").write_bytes(b"Ada")
    assert names(look(folder, outside=folder / "data").unread) == ["a.txt"]


def test_what_the_user_took_out_does_not_come_back(folder, look, store, db, read):
    (folder / "a.txt").write_text("text")
    (folder / "b.txt").write_text("text b")
    look(folder)
    one = ids(store, folder)["a.txt"]
    store.leave_out(one)
    DocumentStore(db).remove(one)
    assert look(folder).unread == ()
    (folder / "a.txt").write_text("text, changed")
    assert look(folder).unread == ()
    read(folder / "a.txt")  # unless the user adds it again
    assert set(ids(store, folder)) == {"a.txt", "b.txt"}


def test_looking_ends_when_the_program_does(folder, store):
    (folder / "a.txt").write_text("text")
    changes = compare([FolderRecord(str(folder), None, "")], store, stop=lambda: True)
    assert (changes.folders, changes.unread) == ({}, ())
