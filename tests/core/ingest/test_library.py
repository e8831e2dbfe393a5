import os
import signal
import subprocess
import sys
import threading
import time
import unicodedata
from pathlib import Path
from random import Random

import pytest
import xxhash
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from word_search import texts_with

from core.errors import StoreError
from core.ingest import child, library
from core.ingest.child import ChildProcess
from core.ingest.extracted import ReadOptions
from core.store.database import open_database
from core.store.documents import DocumentStore
from core.types import Block, DocumentStatus, Scope

LONG = "\n\n".join(
    f"Paragraph {number} says that the number is {number} and nothing else." for number in range(200)
)


def statuses(db):
    return {info.title: info.status for info in DocumentStore(db).list_documents()}


def test_files_become_documents_with_blocks_and_offsets(tmp_path, db, read, make_pdf):
    (tmp_path / "a.txt").write_text(f"\n\n{LONG}\n")
    (tmp_path / "b.pdf").write_bytes(
        make_pdf([[(50, 700, "Text of page one.")], [(50, 700, "Of page two.")]])
    )
    summary = read(tmp_path / "a.txt", tmp_path / "b.pdf")
    assert (summary.n_files, summary.n_added, summary.n_failed) == (2, 2, 0)
    documents = {info.title: info for info in DocumentStore(db).list_documents()}
    assert documents["a.txt"].n_blocks > 5
    assert documents["b.pdf"].n_pages == 2
    assert documents["a.txt"].n_blocks + documents["b.pdf"].n_blocks == summary.n_blocks
    rows = db.rows(
        'SELECT start, "end", blocks.text FROM places JOIN blocks ON blocks.rowid = block WHERE document_id = ?',
        [documents["a.txt"].id],
    )
    for start, end, text in rows:
        assert f"\n\n{LONG}\n"[start:end] == text


def test_a_second_run_reads_nothing(tmp_path, read, monkeypatch):
    (tmp_path / "a.txt").write_text("text")
    read(tmp_path)
    monkeypatch.setattr(ChildProcess, "begin", lambda *_, **__: pytest.fail("read again"))
    assert read(tmp_path).n_unchanged == 1
    os.utime(tmp_path / "a.txt", (1, 1))
    assert read(tmp_path).n_unchanged == 1
    assert read(tmp_path).n_unchanged == 1


def test_a_changed_file_replaces_its_blocks(tmp_path, db, read):
    (tmp_path / "a.txt").write_text("the zebra\n")
    read(tmp_path)
    (tmp_path / "a.txt").write_text("the giraffe, a longer animal\n")
    assert read(tmp_path).n_changed == 1
    assert texts_with(db, ["zebra"]) == []
    assert len(texts_with(db, ["giraffe"])) == 1
    assert len(statuses(db)) == 1


def test_the_same_bytes_twice_and_moved(tmp_path, db, read, monkeypatch):
    (tmp_path / "a.txt").write_text("the zebra")
    (tmp_path / "b.txt").write_text("the zebra")
    summary = read(tmp_path)
    assert (summary.n_added, db.row("SELECT count(*) FROM blocks")) == (2, (1,))
    places = DocumentStore(db).places_of([Block.of("the zebra").id], Scope())
    assert [place.title for place in places[Block.of("the zebra").id]] == ["a.txt", "b.txt"]
    monkeypatch.setattr(ChildProcess, "begin", lambda *_, **__: pytest.fail("read again"))
    (tmp_path / "a.txt").rename(tmp_path / "c.txt")
    read(tmp_path)
    assert set(statuses(db)) == {"b.txt", "c.txt"}


def test_bad_files_stop_nothing_and_say_why(tmp_path, db, read, monkeypatch):
    (tmp_path / "empty.txt").write_bytes(b"")
    (tmp_path / "data.txt").write_bytes(bytes(range(256)))
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 and no more")
    (tmp_path / "sheet.xlsb").write_bytes(b"PK")
    (tmp_path / "good.txt").write_text("text")
    os.mkfifo(tmp_path / "pipe.txt")
    summary = read(tmp_path, tmp_path / "sheet.xlsb", tmp_path / "missing.txt", tmp_path / "pipe.txt")
    assert (summary.n_added, summary.n_failed, summary.n_skipped) == (1, 6, 1)
    found = DocumentStore(db).list_documents()
    assert {info.title for info in found if info.status is DocumentStatus.FAILED} == {
        "empty.txt",
        "data.txt",
        "broken.pdf",
        "sheet.xlsb",
        "pipe.txt",
    }
    assert all(info.note for info in found if info.status is DocumentStatus.FAILED)
    assert dict(summary.problems)[str(tmp_path / "missing.txt")] == "This file does not exist."
    (tmp_path / "empty.txt").write_text("not empty any more")
    assert read(tmp_path / "empty.txt").n_added == 1


HOSTILE = """
import os, time
from core.ingest.readers import FileText, being_written, extract_file

def read(path, options):
    if path.stem == "fault":
        raise RecursionError
    if path.stem == "crash":
        os.abort()
    if path.stem == "slow":
        time.sleep(60)
    if path.stem == "large":
        held = []
        while True:
            held.append(bytearray(os.urandom(4096)) * 2048)
            time.sleep(0.001)
    if path.stem == "written":
        raise being_written()
    if path.stem == "forged":
        found = extract_file(path, options)
        return FileText(found.extracted, "0" * 32, found.n_bytes, found.mtime_ns)
    if path.stem == "impossible":
        found = extract_file(path, options)
        object.__setattr__(found, "n_bytes", 10**30)
        return found
    if path.stem == "nonsense":
        return 7
    if path.stem == "gone":
        path.unlink()
    if path.stem == "growing":
        path.write_text(path.read_text() + " and a giraffe")
    return extract_file(path, options)
"""


def test_what_a_file_does_to_its_reader_is_told_and_stops_nothing(tmp_path, db, read, in_child, monkeypatch):
    monkeypatch.setattr(library, "_EXTRACT", f"{in_child(HOSTILE)}:read")
    monkeypatch.setattr(library, "READ_S", 4.0)
    monkeypatch.setattr(library, "MEMORY_BYTES", 200 << 20)
    names = ["a", "crash", "fault", "gone", "growing", "large", "nonsense", "slow", "z"]
    for name in names:
        (tmp_path / f"{name}.txt").write_text(f"the zebra {name}")
    summary = read(tmp_path)
    assert (summary.n_added, summary.n_failed) == (3, 6)
    said = {Path(path).stem: message for path, message in summary.problems}
    assert "fault in Slipstream" in said["fault"]
    assert "fault in Slipstream" in said["nonsense"]
    assert "crash" in said["crash"]
    assert "longer than 4 s" in said["slow"]
    assert "0.195 GB of memory" in said["large"]
    assert said["gone"] == "This file does not exist any more."
    ready = {title for title, status in statuses(db).items() if status is DocumentStatus.READY}
    assert ready == {"a.txt", "growing.txt", "z.txt"}
    assert len(texts_with(db, ["giraffe"])) == 1


@pytest.mark.parametrize("trouble", ["fault", "crash", "slow", "written", "nonsense", "forged", "impossible"])
def test_what_was_read_stays_where_reading_it_again_does_not_end(
    tmp_path, db, read, in_child, monkeypatch, trouble
):
    path = tmp_path / f"{trouble}.txt"
    path.write_text("the zebra")
    read(path)
    path.write_text("the zebra and a giraffe")
    monkeypatch.setattr(library, "READ_S", 1.0)
    monkeypatch.setattr(library, "_EXTRACT", f"{in_child(HOSTILE)}:read")
    summary = read(path)
    assert summary.n_failed == 1
    assert summary.problems[0][1]
    assert statuses(db) == {path.name: DocumentStatus.READY}
    assert len(texts_with(db, ["zebra"])) == 1
    monkeypatch.setattr(library, "_EXTRACT", "core.ingest.readers:extract_file")
    assert read(path).n_changed == 1, "it is read again the next time"
    assert len(texts_with(db, ["giraffe"])) == 1


def test_a_reader_that_does_not_start_takes_nothing_away(tmp_path, db, read, monkeypatch):
    (tmp_path / "a.txt").write_text("the zebra")
    read(tmp_path)
    (tmp_path / "a.txt").write_text("the zebra changed")
    monkeypatch.setattr("core.ingest.child._CODE", "raise SystemExit(1)")
    assert "does not start" in read(tmp_path).problems[0][1]
    assert statuses(db) == {"a.txt": DocumentStatus.READY}


def test_what_is_no_longer_in_a_file_goes(tmp_path, db, read):
    (tmp_path / "a.txt").write_text("the zebra")
    read(tmp_path)
    (tmp_path / "a.txt").write_text("")
    read(tmp_path)
    assert statuses(db) == {"a.txt": DocumentStatus.FAILED}
    assert texts_with(db, ["zebra"]) == []


def test_a_recognition_that_found_nothing_is_noted(tmp_path, db, read, in_child, monkeypatch):
    source = """
    from core.errors import LimitReached, NoText

    def read(path, options):
        if path.with_suffix(".slow").exists():
            raise LimitReached("It took too long.")
        raise NoText("No text was recognized." if options.ocr else "Only images.")
    """
    monkeypatch.setattr(library, "_EXTRACT", f"{in_child(source)}:read")
    path = tmp_path / "a.pdf"
    path.write_bytes(b"%PDF-")
    read(path)
    again = {str(path): ReadOptions(ocr=True)}
    path.with_suffix(".slow").touch()
    read(path, options=again)
    assert DocumentStore(db).find_by_path(str(path)).info.note == "Only images."
    path.with_suffix(".slow").unlink()
    read(path, options=again)
    assert DocumentStore(db).find_by_path(str(path)).info.note == "No text was recognized."


def test_a_wrong_password_leaves_the_question_for_one(tmp_path, db, read, in_child, monkeypatch):
    source = """
    from core.errors import PasswordRequired

    def read(path, options):
        raise PasswordRequired("Wrong." if options.password else "Protected.")
    """
    monkeypatch.setattr(library, "_EXTRACT", f"{in_child(source)}:read")
    path = tmp_path / "a.pdf"
    path.write_bytes(b"%PDF-")
    read(path)
    assert read(path, options={str(path): ReadOptions(password="x")}).problems[0][1] == "Wrong."
    assert DocumentStore(db).find_by_path(str(path)).info.note == "Protected."


def test_the_bytes_that_were_read_are_the_ones_that_are_named(tmp_path, db, read, in_child, monkeypatch):
    monkeypatch.setattr(library, "_EXTRACT", f"{in_child(HOSTILE)}:read")
    path = tmp_path / "growing.txt"
    path.write_text("the zebra")
    read(path)
    record = DocumentStore(db).find_by_path(str(path))
    assert record.content_hash == xxhash.xxh3_128_hexdigest(b"the zebra and a giraffe")
    assert (record.info.n_bytes, record.mtime_ns) == (23, path.stat().st_mtime_ns)
    assert read(path).n_unchanged == 1


def test_a_file_that_cannot_be_opened_keeps_its_earlier_version(tmp_path, db, read, monkeypatch):
    (tmp_path / "a.txt").write_text("the zebra")
    read(tmp_path)
    (tmp_path / "a.txt").write_text("the zebra changed")

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    summary = read(tmp_path)
    assert "no permission" in summary.problems[0][1]
    assert statuses(db) == {"a.txt": DocumentStatus.READY}


def test_names_of_any_kind(tmp_path, db, read):
    folder = os.fsencode(tmp_path)
    for name in ("文档.txt".encode(), b"new\nline.txt", "emoji 👩‍👩‍👧.md".encode(), b"latin-\xe9.txt"):
        Path(os.fsdecode(folder + b"/" + name)).write_bytes(b"text in " + name)
    assert read(tmp_path).n_added == 4
    assert read(tmp_path).n_unchanged == 4
    assert set(statuses(db)) == {"文档.txt", "new\nline.txt", "emoji 👩‍👩‍👧.md", "latin-\\xe9.txt"}


def test_an_ending_that_is_no_text_stops_nothing(tmp_path, db, read):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a.\xff\xfe"))
    path.write_bytes(b"\0\1")
    (tmp_path / "b.txt").write_text("text")
    summary = read(path, tmp_path / "b.txt")
    assert (summary.n_added, summary.n_failed) == (1, 1)
    assert "cannot read .\\xff\\xfe files" in summary.problems[0][1]
    summary.problems[0][1].encode()


def block_ids(db):
    return {row[0] for row in db.rows("SELECT id FROM blocks")}


@given(at=st.integers(0, 400), text=st.text("abc de. ", min_size=1, max_size=400))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_paragraph_more_changes_only_the_blocks_around_it(tmp_path, db, read, at, text):
    words = [f"word{number}" for number in range(900)]
    random = Random(7)
    paragraphs = [" ".join(random.choices(words, k=40)) + "." for _ in range(400)]
    path = tmp_path / "long.txt"
    path.write_text("\n\n".join(paragraphs))
    read(path)
    before, (info,) = block_ids(db), DocumentStore(db).list_documents()
    path.write_text("\n\n".join([*paragraphs[:at], text, *paragraphs[at:]]) + "\n")
    read(path)
    after = block_ids(db)
    assert len(before) > 100
    assert len(after - before) <= len(before) // 8  # most often one or two
    assert len(before - after) <= len(before) // 8
    assert [one.id for one in DocumentStore(db).list_documents()] == [info.id]
    path.unlink()
    DocumentStore(db).remove(info.id)
    assert block_ids(db) == set()


def test_a_renamed_file_keeps_its_document_and_its_blocks(tmp_path, db, read, monkeypatch):
    (tmp_path / "a.txt").write_text(LONG)
    read(tmp_path)
    before, (info,) = block_ids(db), DocumentStore(db).list_documents()
    DocumentStore(db).keep_warm(info.id, wanted=True)
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.txt").rename(tmp_path / "sub" / "b.txt")
    monkeypatch.setattr(DocumentStore, "save", lambda *_: pytest.fail("read again"))
    read(tmp_path)
    (moved,) = DocumentStore(db).list_documents()
    assert (moved.id, moved.path, moved.title) == (info.id, str(tmp_path / "sub" / "b.txt"), "b.txt")
    assert (moved.keep_warm, block_ids(db)) == (True, before)


@given(st.lists(st.binary(min_size=1, max_size=4).map(bytes.hex), min_size=2, max_size=5, unique=True))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_files_that_differ_are_never_taken_for_one(tmp_path, db, read, texts):
    """Not even with the same size and time."""
    for path in tmp_path.glob("*.txt"):
        path.unlink()
    store = DocumentStore(db)
    for info in store.list_documents():
        store.remove(info.id)
    for number, text in enumerate(texts):
        path = tmp_path / f"{number}.txt"
        path.write_text(text)
        os.utime(path, (1, 1))
    assert read(tmp_path).n_added == len(texts)
    for number, text in enumerate(texts):
        (place,) = store.places_of([Block.of(text).id], Scope())[Block.of(text).id]
        assert place.title == f"{number}.txt"


def test_names_that_look_alike_are_two_files(tmp_path, db, read):
    names = {unicodedata.normalize(form, "Übersicht.txt") for form in ("NFC", "NFD")}
    for name in names:
        (tmp_path / name).write_text(f"text in {len(name)}")
    if len(list(tmp_path.glob("*.txt"))) == 1:
        pytest.skip("this file system knows a name in one form only")
    read(tmp_path)
    assert set(statuses(db)) == names


@pytest.mark.parametrize("way", ["removed", "edited", "emptied"])
def test_text_that_left_is_nowhere_on_the_disk(tmp_path, db, read, way):
    secret = "Xylophonically speaking, the vault opens at nine. "
    path = tmp_path / "secret.txt"
    path.write_text(secret * 300 + LONG)
    (tmp_path / "other.txt").write_text(LONG)
    read(tmp_path)
    folder = db.path.parent
    held = [one for one in folder.iterdir() if b"ylophonically" in one.read_bytes()]
    assert held, "it was there"
    if way == "removed":
        DocumentStore(db).remove(DocumentStore(db).find_by_path(str(path)).info.id)
    else:
        path.write_text(LONG + " No more secrets." if way == "edited" else "")
        read(tmp_path)
    left = [one.name for one in folder.iterdir() if b"ylophonically" in one.read_bytes()]
    assert left == []


def test_a_time_far_in_the_future_costs_nothing(tmp_path, db, read):
    for name, at in (("a.txt", 10**10), ("b.txt", -(10**10)), ("c.txt", 1)):
        (tmp_path / name).write_text(f"text in {name}")
        os.utime(tmp_path / name, (at, at))
    assert read(tmp_path).n_added == 3
    (tmp_path / "a.txt").rename(tmp_path / "d.txt")
    (tmp_path / "b.txt").write_bytes((tmp_path / "d.txt").read_bytes())
    os.utime(tmp_path / "b.txt", (10**10, 10**10))
    read(tmp_path)
    assert set(statuses(db)) == {"b.txt", "c.txt", "d.txt"}


def test_a_file_that_vanishes_before_its_turn_stops_nothing(tmp_path, db, read):
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(f"the animal {name}")

    class Deleting(threading.Event):
        def is_set(self):
            (tmp_path / "b.txt").unlink(missing_ok=True)
            return False

    summary = read(tmp_path, cancel=Deleting())
    assert (summary.n_added, summary.n_failed) == (2, 1)
    assert summary.problems[0][0] == str(tmp_path / "b.txt")


def test_a_file_that_is_written_all_the_time_ends_as_it_is_in_the_end(tmp_path, db, read):
    path = tmp_path / "log.txt"
    path.write_text("begin")
    stop = threading.Event()

    def write():
        number = 0
        while not stop.is_set():
            number += 1
            path.write_text(f"Line number {number} of the log. " * (number % 50 + 1))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(30):
            read(path)
    finally:
        stop.set()
        writer.join()
    path.write_text("the end of the log")
    read(path)
    (info,) = DocumentStore(db).list_documents()
    assert (info.status, info.n_bytes) == (DocumentStatus.READY, len("the end of the log"))
    assert block_ids(db) == {Block.of("the end of the log").id}


def test_progress_begins_ends_and_is_rare(tmp_path, read):
    for number in range(200):
        (tmp_path / f"{number:03}.txt").write_text(f"text number {number}")
    events = []
    started = time.monotonic()
    read(tmp_path, progress=events.append)
    assert len(events) <= (time.monotonic() - started) / 0.05 + 3
    assert events[0].running
    last = events[-1]
    assert (last.running, last.n_files, last.n_done, last.n_blocks, last.cancelled) == (
        False,
        200,
        200,
        200,
        False,
    )
    assert last.n_bytes_done == last.n_bytes > 0


def test_cancel_keeps_what_is_done(tmp_path, db, read):
    for number in range(20):
        (tmp_path / f"{number:02}.txt").write_text(f"text number {number} " + LONG)
    cancel = threading.Event()
    done = []

    def cancel_after_three(path):
        done.append(path.name)
        if len(done) == 3:
            cancel.set()

    events = []
    summary = read(tmp_path, cancel=cancel, progress=events.append, finished=cancel_after_three)
    assert summary.cancelled
    assert events[-1].cancelled
    assert 3 <= summary.n_added < 20
    assert set(statuses(db)) == set(done)
    assert read(tmp_path).n_unchanged == summary.n_added


def test_cancel_in_the_middle_of_a_file(tmp_path, db, read, in_child, monkeypatch):
    monkeypatch.setattr(library, "_EXTRACT", f"{in_child(HOSTILE)}:read")
    (tmp_path / "slow.txt").write_text("text")
    cancel = threading.Event()
    threading.Timer(0.3, cancel.set).start()
    started = time.monotonic()
    summary = read(tmp_path, cancel=cancel)
    assert (summary.cancelled, summary.n_failed, statuses(db)) == (True, 0, {})
    assert time.monotonic() - started < 10


def test_pause_finishes_the_file_in_hand_and_reads_nothing_more(tmp_path, db, read):
    for number in range(20):
        (tmp_path / f"{number:02}.txt").write_text(f"text number {number}")
    paused = threading.Event()
    events = []
    counts = []

    def progress(event):
        events.append(event)
        if event.paused:
            assert event.running
            counts.append(len(statuses(db)))
            threading.Timer(0.3, lambda: (counts.append(seen()), paused.clear())).start()

    def seen():
        with open_database(tmp_path / ".data") as other:
            return len(statuses(other))

    def finished(_path):
        if not counts:
            paused.set()

    summary = read(tmp_path, paused=paused, progress=progress, finished=finished)
    assert (summary.n_added, summary.cancelled) == (20, False)
    assert counts[0] == counts[1] < 20
    assert [event.paused for event in events].count(True) == 1


def test_pause_leaves_a_long_file_and_reads_it_again(tmp_path, db, read, in_child, monkeypatch):
    source = """
    import time
    from core.ingest.readers import extract_file

    def read(path, options):
        mark = path.with_suffix(".mark")
        if not mark.exists():
            mark.touch()
            time.sleep(60)
        return extract_file(path, options)
    """
    monkeypatch.setattr(library, "_EXTRACT", f"{in_child(source)}:read")
    monkeypatch.setattr(library, "_PAUSE_GRACE_S", 0.1)
    (tmp_path / "slow.txt").write_text("text")
    paused = threading.Event()

    def progress(event):
        if event.paused:
            threading.Timer(0.1, paused.clear).start()
        elif (tmp_path / "slow.mark").exists() and not paused.is_set() and not was_paused:
            was_paused.append(True)
            paused.set()

    was_paused = []
    assert read(tmp_path / "slow.txt", paused=paused, progress=progress).n_added == 1
    assert was_paused


def test_pause_while_the_reader_starts_is_no_cancel(tmp_path, db, read, monkeypatch):
    monkeypatch.setattr(child, "_CODE", f"import time; time.sleep(1); {child._CODE}")
    monkeypatch.setattr(library, "_PAUSE_GRACE_S", 0.1)
    (tmp_path / "a.txt").write_text("text")
    paused = threading.Event()
    seen = []

    def progress(event):
        if event.paused:
            seen.append(event)
            threading.Timer(0.1, paused.clear).start()

    threading.Timer(0.4, paused.set).start()
    summary = read(tmp_path / "a.txt", paused=paused, progress=progress)
    assert seen, "it was paused"
    assert (summary.n_added, summary.cancelled) == (1, False)


def test_cancel_while_paused(tmp_path, db, read):
    (tmp_path / "a.txt").write_text("text")
    cancel, paused = threading.Event(), threading.Event()
    paused.set()
    summary = read(
        tmp_path, cancel=cancel, paused=paused, progress=lambda event: event.paused and cancel.set()
    )
    assert (summary.cancelled, summary.n_added) == (True, 0)


def test_options_read_an_unchanged_file_again_and_lose_nothing(tmp_path, db, read, make_pdf):
    path = tmp_path / "a.pdf"
    path.write_bytes(make_pdf([[(50, 700, "Text.")]]))
    read(path)
    again = {str(path): ReadOptions(password="not needed")}
    assert read(path, options=again).n_changed == 1
    path.write_bytes(b"%PDF-1.4 and no more")
    assert read(path, options=again).n_failed == 1
    assert statuses(db) == {"a.pdf": DocumentStatus.READY}, "what was read is the best that is known"


def test_the_same_bytes_twice_in_a_row_are_read_once(tmp_path, read, monkeypatch):
    (tmp_path / "a.txt").write_text("the zebra")
    (tmp_path / "b.txt").write_text("the zebra")
    real = ChildProcess.begin
    calls = []
    monkeypatch.setattr(
        ChildProcess, "begin", lambda self, *args, **more: calls.append(args) or real(self, *args, **more)
    )
    assert (read(tmp_path).n_added, len(calls)) == (2, 1)


def test_a_database_error_is_not_blamed_on_the_file(tmp_path, db, read, monkeypatch):
    (tmp_path / "a.txt").write_text("text")

    def full(*_):
        raise StoreError("The disk is full.")

    monkeypatch.setattr(DocumentStore, "save", full)
    with pytest.raises(StoreError):
        read(tmp_path)


def test_kill_in_the_middle_loses_nothing_that_was_done(tmp_path, read):
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(300):
        (folder / f"{number:03}.txt").write_text(f"Document {number}.\n\n{LONG}")
    data_dir = tmp_path / "killed"
    script = (
        "import sys, threading; from pathlib import Path\n"
        "from core.ingest.library import ingest; from core.store.database import open_database\n"
        "ingest([Path(sys.argv[1])], open_database(Path(sys.argv[2])), cancel=threading.Event(),"
        " progress=lambda event: print(event.n_done, flush=True))"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(folder), str(data_dir)], stdout=subprocess.PIPE, text=True
    )
    for line in child.stdout:
        if int(line) >= 20:
            break
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    with open_database(data_dir) as killed:
        assert killed.rows("PRAGMA integrity_check") == [("ok",)]
        done = len(DocumentStore(killed).list_documents())
        assert 20 <= done < 300
        summary = library.ingest([folder], killed, cancel=threading.Event(), progress=lambda _event: None)
        assert (summary.n_unchanged, summary.n_added) == (done, 300 - done)
        (orphans,) = killed.row("SELECT count(*) FROM blocks WHERE rowid NOT IN (SELECT block FROM places)")
        assert orphans == 0
        killed.run("INSERT INTO blocks_fts (blocks_fts) VALUES ('integrity-check')")
