import errno
import queue
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from watchdog.observers import Observer

from core.ingest.watch import Quiet, Watcher, is_limit

TIMEOUT_S = 20


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from("abc")), min_size=1, max_size=60))
def test_changes_are_told_once_they_rest_and_none_is_forgotten(steps):
    quiet = Quiet(20, 100)
    now = told_at = 0
    last = {}
    untold = set()
    for wait, path in steps:
        now += wait
        busy = quiet.take(now)
        if busy is not None:
            assert busy == {one for one in untold if now - last[one] < 20}
            assert not busy or now - told_at >= 100
            untold, told_at = set(busy), now
        if not untold:
            told_at = now
        quiet.note(path, now)
        last[path] = now
        untold.add(path)
    assert quiet.take(now + 20) == frozenset()
    assert quiet.due_at is None


def test_a_file_that_never_rests_does_not_hold_up_the_others():
    quiet = Quiet(2.0, 10.0)
    quiet.note("done", 0.0)
    for tick in range(21):
        quiet.note("growing", tick / 2)
        if tick < 20:
            assert quiet.take(tick / 2) is None
    assert quiet.take(10.0) == {"growing"}
    assert quiet.take(11.0) is None


def test_a_storm_of_events_costs_no_more_by_event():
    def seconds(n_paths):
        quiet = Quiet(2.0, 10.0)
        started = time.perf_counter()
        for number in range(n_paths):
            quiet.note(str(number), number * 1e-6)
            assert quiet.due_at is not None
        return time.perf_counter() - started

    # Other programs take time as well: the best against the worst. Were it quadratic: 400 times as long.
    assert min(seconds(20_000) for _ in range(3)) < 100 * max(seconds(1000) for _ in range(3))


@pytest.fixture
def watching():
    """Starts a watcher with short times; what it tells arrives in ``told``, troubles in ``troubles``."""
    made = []

    def start(*folders, **options):
        told, troubles = queue.SimpleQueue(), []
        watcher = Watcher(
            lambda: told.put(watcher.busy()),
            lambda folder, error: troubles.append((folder, error)),
            quiet=Quiet(0.2, 1.0),
            **options,
        )
        made.append(watcher)
        watcher.set_folders([str(one) for one in folders])
        assert told.get(timeout=TIMEOUT_S) == frozenset()  # the first look
        return watcher, told, troubles

    yield start
    for watcher in made:
        watcher.close()
        assert not watcher._thread.is_alive()


def test_a_burst_is_one_look(tmp_path, watching):
    _, told, troubles = watching(tmp_path)
    (tmp_path / "sub").mkdir()
    for number in range(300):
        (tmp_path / "sub" / f"{number}.txt").write_text("text")
    assert told.get(timeout=TIMEOUT_S) == frozenset()
    time.sleep(0.5)
    assert (told.empty(), troubles) == (True, [])


def test_reading_files_is_no_change(tmp_path, watching):
    (tmp_path / "a.txt").write_text("text")
    _, told, _ = watching(tmp_path)
    (tmp_path / "a.txt").read_text()
    list(tmp_path.iterdir())
    time.sleep(0.6)
    assert told.empty()


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "a.txt").write_text("changed"),
        lambda folder: (folder / "a.txt").rename(folder / "b.txt"),
        lambda folder: (folder / "a.txt").unlink(),
        lambda folder: (folder / "sub").rename(folder / "other"),
        lambda folder: (folder / "sub" / "deep" / "c.txt").write_text("new"),
    ],
)
def test_every_kind_of_change_is_told(tmp_path, watching, change):
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "sub" / "deep").mkdir(parents=True)
    _, told, _ = watching(tmp_path)
    change(tmp_path)
    assert told.get(timeout=TIMEOUT_S) == frozenset()


def test_nothing_is_told_of_folders_that_are_not_watched_any_more(tmp_path, watching):
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    watcher, told, _ = watching(one, other)
    watcher.set_folders([str(other)])
    assert told.get(timeout=TIMEOUT_S) == frozenset()
    (one / "a.txt").write_text("text")
    time.sleep(0.6)
    assert told.empty()
    (other / "a.txt").write_text("text")
    assert told.get(timeout=TIMEOUT_S) == frozenset()


def test_a_folder_that_goes_and_comes_back_is_watched_again(tmp_path, watching, monkeypatch):
    monkeypatch.setattr("core.ingest.watch._CHECK_S", 0.2)
    folder = tmp_path / "disk"
    folder.mkdir()
    _, told, troubles = watching(folder)
    folder.rename(tmp_path / "away")
    assert told.get(timeout=TIMEOUT_S) == frozenset()
    time.sleep(0.6)
    (tmp_path / "away").rename(folder)
    assert told.get(timeout=TIMEOUT_S) == frozenset()
    while not told.empty():
        told.get()
    (folder / "a.txt").write_text("text")
    assert told.get(timeout=TIMEOUT_S) == frozenset()
    assert troubles == []


def test_where_the_system_watches_no_more_it_is_told_and_looked_at_all_the_same(
    tmp_path, watching, monkeypatch
):
    monkeypatch.setattr("core.ingest.watch._CHECK_S", 0.1)
    monkeypatch.setattr("core.ingest.watch._LOOK_UNWATCHED_S", 0.3)

    class Exhausted(type(Observer())):
        def schedule(self, handler, path, **options):
            if Path(path) != tmp_path:  # the folder itself still gets its watch
                raise OSError(errno.ENOSPC, "inotify watch limit reached")
            return super().schedule(handler, path, **options)

    _, told, troubles = watching(tmp_path, observer=Exhausted)
    ((folder, error),) = troubles
    assert (folder, is_limit(error)) == (str(tmp_path), True)
    for _ in range(2):
        assert told.get(timeout=TIMEOUT_S) == frozenset()
    assert len(troubles) == 1


def test_no_folder_costs_no_observer(watching, tmp_path):
    watcher = Watcher(lambda: None, lambda *_: None)
    watcher.set_folders([])
    time.sleep(0.1)
    assert watcher._observer is None
    watcher.close()
    assert not watcher._thread.is_alive()
