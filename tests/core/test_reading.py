"""Reading as the service does it, without a model: passwords, pause, stop, and what outlives a crash."""

import contextlib
import os
import queue
import random
import signal
import subprocess
import sys
import threading
import time
import zipfile
from io import BytesIO

import pytest
from msoffcrypto.method.ecma376_agile import ECMA376Agile

from core.config import Settings
from core.errors import StoreError
from core.ingest import library
from core.service import Service
from core.store.database import open_database
from core.store.documents import DocumentStore
from core.store.reading import ReadingStore
from core.types import DocumentStatus, IngestProgress, Notice

TIMEOUT_S = 60
N_KILLS = int(os.environ.get("SLIPSTREAM_TEST_KILLS", "4"))


class Running:
    def __init__(self, folder, **options):
        self.events = queue.SimpleQueue()
        self.folder = folder
        self.service = Service(folder, Settings(), self.events.put, load_model=False, **options)

    def wait(self, kind, condition=lambda _: True):
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            event = self.events.get(timeout=deadline - time.monotonic())
            if isinstance(event, kind) and condition(event):
                return event

    def read(self, *paths):
        self.service.add_paths(paths)
        return self.ended()

    def ended(self):
        return self.wait(IngestProgress, lambda event: not event.running)

    def documents(self):
        with open_database(self.folder) as db:
            return {info.title: info for info in DocumentStore(db).list_documents()}

    def to_read(self):
        with open_database(self.folder) as db:
            return ReadingStore(db).list()

    def eventually(self, condition):
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.02)


@pytest.fixture
def start(tmp_path):
    with contextlib.ExitStack() as stack:

        def run(**options):
            running = Running(tmp_path / "data", **options)
            stack.callback(running.service.close)
            return running

        yield run


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(300):
        (folder / f"{number:03}.txt").write_text(f"Document {number}.\n\n" + f"It says {number}. " * 300)
    return folder


def locked(password):
    """A Word document behind a password; its bytes are others each time."""
    parts = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": '<Relationships><Relationship Id="a" Type="x/officeDocument" Target="word/d.xml"/>'
        "</Relationships>",
        "word/d.xml": '<w:d xmlns:w="http://w"><w:body><w:p><w:r><w:t>the zebra</w:t></w:r></w:p></w:body></w:d>',
    }
    plain = BytesIO()
    with zipfile.ZipFile(plain, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
        archive.writestr("picture.png", os.urandom(5000))  # smaller files are encrypted wrongly
    return ECMA376Agile.encrypt(password, BytesIO(plain.getvalue()))


def test_a_password_opens_a_document_and_is_used_again(tmp_path, start):
    path = tmp_path / "a.docx"
    path.write_bytes(locked("sesame"))
    running = start()
    assert running.read(path).n_failed == 1
    info = running.documents()["a.docx"]
    assert info.status is DocumentStatus.NEEDS_PASSWORD
    number = running.service.unlock(info.id, "wrong")
    notice = running.wait(Notice)
    assert "does not open" in notice.message
    assert notice.request == number
    assert running.documents()["a.docx"] == info, "it still asks for its password"
    running.service.unlock(info.id, "sesame")
    running.eventually(lambda: running.documents()["a.docx"].status is DocumentStatus.READY)
    assert running.documents()["a.docx"].id == info.id
    path.write_bytes(locked("sesame"))  # other bytes: the salt is new
    running.ended()
    assert running.read(path).n_failed == 0
    with open_database(running.folder) as db:
        stored = "\n".join(db._connection.iterdump())
    assert "sesame" not in stored
    running.service.close()
    again = start()
    path.write_bytes(locked("sesame"))
    assert again.read(path).n_failed == 1, "the password was forgotten"


def test_unlock_of_a_document_that_is_gone(start):
    running = start()
    number = running.service.unlock(7, "x")
    notice = running.wait(Notice)
    assert "no longer" in notice.message
    assert (notice.request, running.ended().request) == (number, number)


def test_every_request_is_told_under_its_own_number_and_comes_to_an_end(tmp_path, start):
    (tmp_path / "a.txt").write_text("the zebra")
    (tmp_path / "b.docx").write_bytes(locked("sesame"))
    with open_database(tmp_path / "data") as db:
        ReadingStore(db).add([tmp_path / "b.docx"], ocr=False)
    running = start(take_up=True)
    taken_up = running.ended()
    assert taken_up.n_failed == 1
    info = running.documents()["b.docx"]
    # An unlock goes ahead of what is still being written down.
    numbers = [running.service.add_paths([tmp_path / "a.txt"]), running.service.unlock(info.id, "wrong")]
    ends = {one.request: one for one in (running.ended(), running.ended())}
    assert set(ends) == set(numbers)
    assert taken_up.request not in numbers
    assert [path for path, _reason in ends[numbers[1]].problems] == [str(tmp_path / "b.docx")]


def test_a_reading_that_raises_ends_too(tmp_path, start, monkeypatch):
    running = start()

    def fail(*_arguments, **_options):
        raise StoreError("The disk is full.")

    monkeypatch.setattr(library, "ingest", fail)
    number = running.service.add_paths([tmp_path])
    notice = running.wait(Notice)
    assert (notice.message, notice.request) == ("The disk is full.", number)
    assert running.ended().request == number
    monkeypatch.undo()
    assert running.read(tmp_path).request == number + 1


def test_pause_and_resume(files, start):
    running = start()
    running.service.pause_ingest()  # nothing to pause
    running.service.add_paths([files])
    running.wait(IngestProgress, lambda event: event.n_done > 3)
    running.service.pause_ingest()
    paused = running.wait(IngestProgress, lambda event: event.paused)
    assert paused.running
    n_done = paused.n_done
    assert len(running.documents()) == n_done < 300
    time.sleep(0.3)
    assert len(running.documents()) == n_done
    running.service.resume_ingest()
    assert running.ended().n_done == 300


def test_stop_while_paused_ends_it_and_the_next_is_not_paused(files, start):
    running = start()
    running.service.add_paths([files])
    running.service.pause_ingest()
    running.wait(IngestProgress, lambda event: event.paused)
    running.service.cancel_ingest()
    assert running.ended().cancelled
    running.eventually(lambda: running.to_read() == ())
    assert running.read(files / "000.txt").n_done == 1


def test_what_was_not_read_at_the_end_is_read_at_the_next_start(files, start):
    running = start()
    running.service.add_paths([files])
    running.service.add_paths([files / "000.txt"])
    running.wait(IngestProgress, lambda event: event.n_done > 3)
    running.service.close()
    assert len(running.documents()) < 300
    assert [one.path for one in running.to_read()] == [files, files / "000.txt"]
    again = start()
    time.sleep(0.2)
    assert again.events.empty(), "only the window takes it up"
    again.service.close()
    again = start(take_up=True)
    assert again.ended().n_done == 300
    again.eventually(lambda: again.to_read() == ())
    again.service.close()
    third = start(take_up=True)
    time.sleep(0.2)
    assert third.events.empty()


def test_what_the_user_stopped_is_not_taken_up(files, start):
    running = start()
    running.service.add_paths([files])
    running.service.add_paths([files / "000.txt"])
    running.service.cancel_ingest()
    running.service.close()
    assert running.to_read() == ()


def test_recognizing_text_reads_again_and_is_taken_up(tmp_path, start, monkeypatch):
    (tmp_path / "a.txt").write_text("the zebra")
    (tmp_path / "b.txt").write_text("the giraffe")
    running = start()
    running.read(tmp_path / "a.txt", tmp_path / "b.txt")
    ids = [info.id for info in running.documents().values()]
    asked = []
    real = library.ChildProcess.begin

    def begin(self, function, path, options, **more):
        asked.append((path.name, options.ocr))
        return real(self, function, path, options, **more)

    monkeypatch.setattr(library.ChildProcess, "begin", begin)
    running.service.recognize_text(ids)
    assert running.ended().n_failed == 0
    assert asked == [("a.txt", True), ("b.txt", True)]
    running.eventually(lambda: running.to_read() == ())
    with open_database(running.folder) as db:
        ReadingStore(db).add([tmp_path / "b.txt"], ocr=True)
    running.service.close()
    start(take_up=True).ended()
    assert asked[2:] == [("b.txt", True)]


PROGRAM = """
import pathlib, sys, threading
from core.config import Settings
from core.service import Service
from core.types import IngestProgress

ended = threading.Event()

def tell(event):
    if isinstance(event, IngestProgress):
        print(event.n_done, event.running, flush=True)
        if not event.running:
            ended.set()

service = Service(pathlib.Path(sys.argv[1]), Settings(), tell, load_model=False, take_up=True)
if len(sys.argv) > 2:
    service.add_paths([pathlib.Path(sys.argv[2])])
ended.wait(60)
service.close()
"""


def killed_until_it_is_done(data_dir, files, chance, most):
    """Read 300 files, killed at most so often; how often it was killed."""
    asked = [str(files)]
    n_before = n_kills = 0
    while True:
        program = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(data_dir), *asked], stdout=subprocess.PIPE, text=True
        )
        asked = []  # only once: the rest it must know by itself
        first = program.stdout.readline()
        assert first, "it has nothing to do and is not finished"
        timer = threading.Timer(chance.uniform(0, 0.5), program.send_signal, [signal.SIGKILL])
        if n_kills < most:
            timer.start()
        program.stdout.read()
        timer.cancel()
        program.stdout.close()
        n_kills += program.wait() != 0
        with open_database(data_dir) as db:
            assert db.rows("PRAGMA integrity_check") == [("ok",)]
            titles = [info.title for info in DocumentStore(db).list_documents()]
            assert len(set(titles)) == len(titles)
            assert n_before <= len(titles), "what was done stays done"
            n_before = len(titles)
            (orphans,) = db.row("SELECT count(*) FROM blocks WHERE rowid NOT IN (SELECT block FROM places)")
            assert orphans == 0
            if not ReadingStore(db).list():  # it may be killed after its work was done
                assert len(titles) == 300
                db.run("INSERT INTO blocks_fts (blocks_fts) VALUES ('integrity-check')")
                return n_kills
            assert n_kills <= most, "it ended and was not finished"


def test_killed_again_and_again_it_goes_on_and_nothing_is_lost_or_twice(tmp_path, files):
    """SLIPSTREAM_TEST_KILLS says how often; each time at another moment."""
    chance = random.Random(7)
    n_kills = n_libraries = 0
    while n_kills < N_KILLS:
        data_dir = tmp_path / f"data{n_libraries}"
        n_kills += killed_until_it_is_done(data_dir, files, chance, N_KILLS - n_kills)
        n_libraries += 1
        assert n_libraries <= N_KILLS
