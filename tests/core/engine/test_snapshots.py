"""Snapshot files: whatever happens to them, nothing wrong is ever read, and what must go is gone."""

import errno
import json
import os
import random
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import xxhash
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from core.engine import snapshots
from core.engine.snapshots import HEADER_BYTES, SnapshotInfo, SnapshotStore
from core.errors import BugError

PROJECT = Path(__file__).resolve().parents[3]
ROOT, OTHER_ROOT = b"R" * 16, b"r" * 16
PLENTY = 1 << 40
DAY_FILE = "written.json"


def info_of(parent: bytes, number: int = 0, *, root: bytes = ROOT, block: str = "", element: int = 0):
    key = xxhash.xxh3_128_digest(parent + bytes([number]))
    return SnapshotInfo(key, parent, root, 300 + number, number % 2 == 0, root, 500, element, block)


def payload_of(info: SnapshotInfo, n_bytes: int = 1000) -> np.ndarray:
    return np.random.default_rng(int.from_bytes(info.key[:8], "big")).integers(
        0, 256, n_bytes, dtype=np.uint8
    )


def file_of(folder: Path, key: bytes) -> Path:
    return folder / f"{key.hex()}.kv"


def snapshot_files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.suffix != ".json" and path.name != ".lock"}


@contextmanager
def opened(folder: Path, budget: int = PLENTY, daily: int = PLENTY, notes: list[str] | None = None):
    store = SnapshotStore(folder, budget, daily, pytest.fail if notes is None else notes.append)
    try:
        yield store
    finally:
        store.close()


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "data" / "snapshots"


def write_chain(store: SnapshotStore, n: int, *, first: int = 0, **names) -> list[SnapshotInfo]:
    chain, parent = [], ROOT
    for depth in range(n):
        info = info_of(parent, first if depth == 0 else 0, **names)
        assert store.write(info, payload_of(info))
        chain.append(info)
        parent = info.key
    return chain


# --- what goes in comes out -------------------------------------------------------------------------------


@pytest.mark.parametrize("n_bytes", [0, 1, 4095, 1_000_001])
def test_round_trip_and_after_a_restart(folder, n_bytes):
    info = replace(info_of(ROOT, block="0123456789abcdef", element=2**64 - 1), n_tokens=2**32 - 1)
    payload = payload_of(info, n_bytes)
    with opened(folder) as store:
        assert store.write(info, payload)
        assert np.array_equal(store.read(info.key), payload)
        assert store.n_bytes == n_bytes + HEADER_BYTES == file_of(folder, info.key).stat().st_size
        before = store.catalog[info.key]
    with opened(folder) as store:
        assert store.catalog[info.key].used_at == pytest.approx(before.used_at, abs=1e-3)
        assert replace(store.catalog[info.key], used_at=0.0) == replace(info, n_bytes=n_bytes)
        found = store.read(info.key)
        assert np.array_equal(found, payload)
        assert not found.flags.writeable
        assert not found.flags.owndata
        assert store.n_bytes == n_bytes + HEADER_BYTES


def test_a_memoryview_is_as_good_as_an_array(folder):
    info = info_of(ROOT)
    with opened(folder) as store:
        assert store.write(info, memoryview(bytes(range(200))))
        assert bytes(store.read(info.key)) == bytes(range(200))


def test_only_behind_its_parent(folder):
    info = info_of(b"p" * 16)
    with opened(folder) as store:
        assert not store.write(info, payload_of(info))
        top = write_chain(store, 1)[0]
        stranger = replace(info_of(top.key), root=OTHER_ROOT)
        assert not store.write(stranger, payload_of(stranger))
        assert snapshot_files(folder) == {file_of(folder, top.key).name}


def test_what_is_there_is_not_written_again_but_counts_as_used(folder):
    with opened(folder) as store:
        info = write_chain(store, 1)[0]
        written = store.bytes_written_today
        os.utime(file_of(folder, info.key), (1.0, 1.0))
        assert store.write(info, payload_of(info))
        assert store.bytes_written_today == written
        assert file_of(folder, info.key).stat().st_mtime > 1e9


def test_reading_counts_as_use(folder):
    with opened(folder) as store:
        info = write_chain(store, 1)[0]
        os.utime(file_of(folder, info.key), (1.0, 1.0))
        before = store.catalog
        assert store.read(info.key) is not None
        assert file_of(folder, info.key).stat().st_mtime > 1e9
        assert store.catalog[info.key].used_at > before[info.key].used_at


def test_an_unknown_key_is_none(folder):
    with opened(folder) as store:
        assert store.read(b"?" * 16) is None
        assert store.remove([b"?" * 16]) == set()


def test_wrong_names_are_our_bug(folder):
    good = info_of(ROOT)
    with opened(folder) as store:
        for bad in (replace(good, key=b"short"), replace(good, root=b""), replace(good, block_id="NOT HEX")):
            with pytest.raises(BugError):
                store.write(bad, payload_of(good))
        with pytest.raises(BufferError):
            store.write(good, payload_of(good)[::2])
        assert snapshot_files(folder) == set()
        assert store.n_bytes == 0


def test_only_for_this_user(folder):
    folder.mkdir(parents=True, mode=0o755)
    with opened(folder) as store:
        write_chain(store, 2)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


# --- damaged files ----------------------------------------------------------------------------------------


def damaged(folder: Path, damage) -> None:
    """A damaged file in the middle of a chain is never returned, and goes with all behind it."""
    for restart in (False, True):
        with opened(folder) as store:
            chain = write_chain(store, 3)
            path = file_of(folder, chain[1].key)
            if not restart:
                damage(path)
                assert store.read(chain[1].key) is None
                assert store.read(chain[2].key) is None
        if restart:
            damage(path)
        with opened(folder) as store:
            assert store.read(chain[1].key) is None
            assert set(store.catalog) == {chain[0].key}
            assert np.array_equal(store.read(chain[0].key), payload_of(chain[0]))
            assert snapshot_files(folder) == {file_of(folder, chain[0].key).name}
            store.clear()


def flip(path: Path, offset: int, mask: int = 1) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ mask]))


def test_every_byte_of_the_header_and_samples_of_the_payload(folder):
    rng = random.Random(3)
    offsets = [
        *range(HEADER_BYTES),
        HEADER_BYTES,
        HEADER_BYTES + 999,
        *rng.choices(range(HEADER_BYTES, 1000), k=20),
    ]
    for offset in offsets:
        damaged(folder, lambda path, at=offset: flip(path, at, 1 << rng.randrange(8)))


@pytest.mark.parametrize(
    "length", [0, 1, 8, HEADER_BYTES - 1, HEADER_BYTES, HEADER_BYTES + 1, HEADER_BYTES + 999]
)
def test_cut(folder, length):
    damaged(folder, lambda path: os.truncate(path, length))


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(path.read_bytes() + b"x"),
        lambda path: os.truncate(path, 50_000),
        lambda path: path.write_bytes(b"a text that somebody put here" * 100),
        lambda path: path.write_bytes(bytes(2000)),
    ],
    ids=["vanished", "longer", "sparse", "foreign", "zeros"],
)
def test_other_damage(folder, damage):
    damaged(folder, damage)


def rewrite_header(path: Path, offset: int, value: bytes) -> None:
    """Change the header and make its checksum right again: made by somebody, not by accident."""
    raw = bytearray(path.read_bytes())
    raw[offset : offset + len(value)] = value
    size = HEADER_BYTES - 8
    raw[size:HEADER_BYTES] = struct.pack("<Q", xxhash.xxh3_64_intdigest(bytes(raw[:size])))
    path.write_bytes(bytes(raw))


KEY_AT, PARENT_AT, LENGTH_AT = 20, 36, 20 + 48 + 5 + 16 + 12 + 16


@pytest.mark.parametrize(
    ("offset", "value"),
    [
        (8, struct.pack("<I", 0)),
        (8, struct.pack("<I", snapshots.FORMAT_VERSION + 1)),
        (0, b"ggml"),
        (KEY_AT, b"k" * 16),
        (LENGTH_AT, struct.pack("<Q", 2**63)),
        (LENGTH_AT, struct.pack("<Q", 999)),
        (LENGTH_AT - 16, b"no hex".ljust(16)),
    ],
    ids=["older", "newer", "magic", "other key", "huge", "shorter", "block id"],
)
def test_a_header_that_is_whole_but_not_ours(folder, offset, value):
    damaged(folder, lambda path: rewrite_header(path, offset, value))


def test_another_snapshot_under_this_name(folder):
    damaged(folder, lambda path: shutil.copy(next(p for p in path.parent.glob("*.kv") if p != path), path))


def test_orphans_cycles_links_pipes_and_leftovers_go(folder):
    with opened(folder) as store:
        chain = write_chain(store, 4)
        loop = write_chain(store, 2, first=1)
        kept = write_chain(store, 1, first=2)[0]
    file_of(folder, chain[0].key).unlink()
    rewrite_header(file_of(folder, loop[0].key), PARENT_AT, loop[1].key)
    (folder / ("0" * 32 + ".1.tmp")).write_bytes(b"left by a kill")
    (folder / ("1" * 32 + ".kv")).symlink_to(file_of(folder, kept.key))
    os.mkfifo(folder / ("2" * 32 + ".kv"))
    (folder / "notes.txt").write_text("not ours")
    with opened(folder) as store:
        assert set(store.catalog) == {kept.key}
        assert snapshot_files(folder) == {file_of(folder, kept.key).name, "notes.txt"}
        assert store.n_bytes == file_of(folder, kept.key).stat().st_size


@pytest.mark.parametrize("length", [HEADER_BYTES, HEADER_BYTES + 999, HEADER_BYTES + 1001])
def test_the_start_trusts_no_length(folder, length):
    with opened(folder) as store:
        chain = write_chain(store, 2)
    os.truncate(file_of(folder, chain[0].key), length)
    with opened(folder) as store:
        assert (dict(store.catalog), store.n_bytes, snapshot_files(folder)) == ({}, 0, set())


def test_a_child_of_another_root_is_an_orphan(folder):
    with opened(folder) as store:
        chain = write_chain(store, 2)
    rewrite_header(file_of(folder, chain[1].key), PARENT_AT + 16, OTHER_ROOT)
    with opened(folder) as store:
        assert set(store.catalog) == {chain[0].key}


def test_the_same_chunk_twice_at_once(folder, monkeypatch):
    with opened(folder) as store:
        info, real, second = info_of(ROOT), snapshots._write_file, []

        def write_file(*args):
            second.append(store.write(info, payload_of(info)))
            real(*args)

        monkeypatch.setattr(snapshots, "_write_file", write_file)
        assert store.write(info, payload_of(info))
        assert second == [False]
        assert store.n_bytes == store.bytes_written_today == 1000 + HEADER_BYTES


# --- removing ---------------------------------------------------------------------------------------------


def test_removing_takes_all_descendants_and_nothing_else(folder):
    with opened(folder) as store:
        chain = write_chain(store, 5)
        other = write_chain(store, 2, first=1)
        assert store.remove([chain[2].key, b"?" * 16]) == {info.key for info in chain[2:]}
        left = {info.key for info in chain[:2] + other}
        assert set(store.catalog) == left
        assert snapshot_files(folder) == {file_of(folder, key).name for key in left}


def test_a_block_goes_from_every_path_under_every_root(folder):
    block, other = "00000000000000aa", "00000000000000bb"
    with opened(folder) as store:
        gone, kept = set(), set()
        for root in (ROOT, OTHER_ROOT):
            head = info_of(root, 0, root=root, block=other, element=1)
            holds = info_of(head.key, 1, root=root, block=block, element=2)
            behind = info_of(holds.key, 2, root=root, element=3)
            beside = info_of(head.key, 3, root=root, element=4)
            for info in (head, holds, behind, beside):
                assert store.write(info, payload_of(info))
            gone |= {holds.key, behind.key}
            kept |= {head.key, beside.key}
        assert store.remove_blocks([""]) == set()
        assert store.remove_blocks({block, "00000000000000cc"}) == gone
        assert set(store.catalog) == kept
        assert not any(file_of(folder, key).exists() for key in gone)
        assert store.remove_elements([4, 99]) == {key for key in kept if store.catalog.get(key) is None}
        assert len(store.catalog) == 2
        assert len(store.remove_elements([1])) == 2
        assert snapshot_files(folder) == set()


def test_a_view_outlives_its_file(folder):
    with opened(folder) as store:
        info = write_chain(store, 1)[0]
        view = store.read(info.key)
        store.remove([info.key])
        assert not file_of(folder, info.key).exists()
        assert np.array_equal(view, payload_of(info))
    assert np.array_equal(view, payload_of(info))


def test_forget_everything(folder):
    with opened(folder) as store:
        write_chain(store, 3)
        write_chain(store, 1, first=1, block="00000000000000aa")
        (folder / "put here meanwhile.kv").write_bytes(b"x")
        store.clear()
        assert snapshot_files(folder) == set()
        assert (len(store.catalog), store.n_bytes) == (0, 0)
        write_chain(store, 1)


@pytest.mark.parametrize("how", ["key", "parent", "block", "element", "clear", "close"])
def test_removed_while_it_is_written(folder, monkeypatch, how):
    """The file is whole, under its temporary name: it goes too, before the removing call returns."""
    with opened(folder) as store:
        parent = write_chain(store, 1)[0]
        info = info_of(parent.key, block="00000000000000aa", element=7)
        real = snapshots._write_file

        def write_file(*args):
            real(*args)
            path = store._writing[info.key].temporary
            assert path.exists()
            assert store.n_bytes == 2 * (1000 + HEADER_BYTES)
            {
                "key": lambda: store.remove([info.key]),
                "parent": lambda: store.remove([parent.key]),
                "block": lambda: store.remove_blocks([info.block_id]),
                "element": lambda: store.remove_elements([7]),
                "clear": store.clear,
                "close": store.close,
            }[how]()
            assert not path.exists()

        monkeypatch.setattr(snapshots, "_write_file", write_file)
        assert not store.write(info, payload_of(info))
        assert info.key not in store.catalog
        left = {file_of(folder, parent.key).name} if how not in ("parent", "clear") else set()
        assert snapshot_files(folder) == left


# --- budgets ----------------------------------------------------------------------------------------------

FILE = 1000 + HEADER_BYTES


def test_leaves_go_least_recently_used_first_foreign_roots_before_own(folder):
    evicted = []
    with opened(folder, budget=5 * FILE) as store:
        store.roots, store.on_evict = {ROOT}, evicted.append
        chain = write_chain(store, 3)
        foreign = info_of(OTHER_ROOT, root=OTHER_ROOT)
        assert store.write(foreign, payload_of(foreign))
        single = write_chain(store, 1, first=1)[0]
        assert store.read(chain[2].key) is not None
        write_chain(store, 1, first=2)
        assert evicted == [foreign.key]
        write_chain(store, 1, first=3)
        assert evicted == [foreign.key, single.key]
        write_chain(store, 1, first=4)
        assert evicted == [foreign.key, single.key, chain[2].key]
        assert store.n_bytes == 5 * FILE
        assert not file_of(folder, chain[2].key).exists()


def test_protected_paths_and_the_parent_stay(folder):
    with opened(folder, budget=3 * FILE) as store:
        chain = write_chain(store, 3)
        child = info_of(chain[2].key)
        assert not store.write(child, payload_of(child)), "its own parent is the only leaf"
        store.protected = {chain[2].key}.__contains__
        single = info_of(ROOT, 1)
        assert not store.write(single, payload_of(single))
        assert set(store.catalog) == {info.key for info in chain}
        store.protected = lambda _key: False
        assert not store.write(single, payload_of(single, 4 * FILE)), "larger than the budget"
        assert len(store.catalog) == 3
        assert store.write(single, payload_of(single))


def test_a_smaller_budget_at_the_next_start(folder):
    with opened(folder) as store:
        chain = write_chain(store, 6)
    with opened(folder, budget=2 * FILE + 5) as store:
        assert set(store.catalog) == {info.key for info in chain[:2]}
    with opened(folder, budget=0) as store:
        assert snapshot_files(folder) == set()
        assert not store.write(chain[0], payload_of(chain[0]))


def test_owner_may_call_back(folder):
    """Callbacks come without the lock: another thread can use the store meanwhile."""
    with opened(folder, budget=FILE) as store:
        seen = []

        def on_evict(key):
            thread = threading.Thread(target=lambda: seen.append((key in store.catalog, store.n_bytes)))
            thread.start()
            thread.join(5)
            seen.append(thread.is_alive())

        store.on_evict = on_evict
        write_chain(store, 1)
        write_chain(store, 1, first=1)
        assert seen == [(False, FILE), False]


def test_daily_budget_survives_restarts_and_ends_with_the_day(folder, monkeypatch):
    monkeypatch.setattr(snapshots, "_today", lambda: "2026-05-04")
    with opened(folder, daily=2 * FILE) as store:
        chain = write_chain(store, 1)
    with opened(folder, daily=2 * FILE) as store:
        assert store.bytes_written_today == FILE
        second, third = info_of(chain[0].key), info_of(chain[0].key, 1)
        assert store.write(second, payload_of(second))
        assert not store.write(third, payload_of(third))
        store.remove([second.key])
        assert not store.write(third, payload_of(third)), "removing gives nothing back"
        assert store.writable
        monkeypatch.setattr(snapshots, "_today", lambda: "2026-05-05")
        assert store.bytes_written_today == 0
        assert store.write(third, payload_of(third))
    monkeypatch.setattr(snapshots, "_today", lambda: "2026-05-01")
    with opened(folder, daily=2 * FILE) as store:
        assert store.bytes_written_today == 0, "the clock was set back"
        assert store.write(second, payload_of(second))
        assert store.bytes_written_today == FILE
        monkeypatch.setattr(snapshots, "_today", lambda: "2026-04-30")
        assert store.bytes_written_today == 0, "set back while it runs"


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'{"date": 5, "bytes": 5}', b'{"date": "x"}', b'{"date":"TODAY","bytes":-1}',
     b'{"date":"TODAY","bytes":true}', b'{"date":"TODAY","bytes":1e999}', b"\xff\xfe\x00", b"[" * 100_000,
     b"9" * 100_000],
)  # fmt: skip
def test_a_damaged_day_counts_nothing(folder, content):
    folder.mkdir(parents=True)
    (folder / DAY_FILE).write_bytes(content.replace(b"TODAY", snapshots._today().encode()))
    with opened(folder) as store:
        assert store.bytes_written_today == 0
        write_chain(store, 1)
        assert json.loads((folder / DAY_FILE).read_bytes()) == {"date": snapshots._today(), "bytes": FILE}


def test_clock_set_back(folder, monkeypatch):
    """Files from the future are as if used now: they take their turn."""
    with opened(folder) as store:
        future = write_chain(store, 1)[0]
    os.utime(file_of(folder, future.key), (4e9, 4e9))
    with opened(folder, budget=2 * FILE) as store:
        assert store.catalog[future.key].used_at < 3e9
        clock = SimpleNamespace(time=lambda: 1e6)
        monkeypatch.setattr(snapshots, "time", clock)
        single = write_chain(store, 1, first=1)[0]
        assert store.read(future.key) is not None
        monkeypatch.setattr(clock, "time", lambda: 2e6)
        assert store.read(single.key) is not None
        write_chain(store, 1, first=2)
        assert future.key not in store.catalog
        assert len(store.catalog) == 2


# --- the disk fails ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EIO])
@pytest.mark.parametrize("call", ["replace", "utime", "fdopen"])
def test_a_failing_write_is_told_once_and_reads_go_on(folder, monkeypatch, code, call):
    notes: list[str] = []
    with opened(folder, notes=notes) as store:
        chain = write_chain(store, 2)
        real = getattr(os, call)

        def fail(what, *args, **kwargs):
            name = str(Path(f"/proc/self/fd/{what}").readlink() if isinstance(what, int) else what)
            if name.endswith(".tmp") and "written" not in name:
                if call == "fdopen":
                    os.close(what)
                raise OSError(code, os.strerror(code))
            return real(what, *args, **kwargs)

        if call == "fdopen" and not Path("/proc/self/fd").exists():
            pytest.skip("no /proc")
        monkeypatch.setattr(os, call, fail)
        for number in (1, 2):
            info = info_of(chain[1].key, number)
            assert not store.write(info, payload_of(info))
        monkeypatch.undo()
        assert not store.write(info, payload_of(info)), "off until the next start"
        assert len(notes) == 1
        assert "Questions go on" in notes[0]
        assert ("disk is full" in notes[0]) == (code == errno.ENOSPC)
        assert store.enabled
        assert not store.writable
        assert snapshot_files(folder) == {file_of(folder, info.key).name for info in chain}
        assert np.array_equal(store.read(chain[1].key), payload_of(chain[1]))
        assert store.remove([chain[0].key]) == {info.key for info in chain}
        assert snapshot_files(folder) == set()


@contextmanager
def small_disk(path: Path):
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(path)]
    if (
        os.getuid() != 0
        or shutil.which("mount") is None
        or subprocess.run(command, capture_output=True, check=False).returncode
    ):
        pytest.skip("mounting a small tmpfs is not permitted here")
    try:
        yield
    finally:
        subprocess.run(["umount", str(path)], check=True)


def test_disk_full(tmp_path):
    notes: list[str] = []
    disk = tmp_path / "disk"
    with small_disk(disk), opened(disk / "snapshots", notes=notes) as store:
        parent, wrote = ROOT, []
        while store.write(info := info_of(parent), payload_of(info, 90_000)):
            wrote.append(info)
            parent = info.key
        assert 5 < len(wrote) < 13
        assert notes == [
            "The disk is full. Questions go on; no more prompts are kept on disk until the next start."
        ]
        assert not store.write(info, payload_of(info, 90_000))
        assert len(notes) == 1
        assert snapshot_files(disk / "snapshots") == {file_of(disk, info.key).name for info in wrote}
        for info in wrote:
            assert np.array_equal(store.read(info.key), payload_of(info, 90_000))
        store.remove([wrote[3].key])
        store.close()
        with opened(disk / "snapshots") as again:
            assert len(again.catalog) == 3
            assert again.write(wrote[3], payload_of(wrote[3], 90_000))


def test_a_disk_that_becomes_read_only(tmp_path):
    """What cannot be deleted is said: it is there still."""
    notes: list[str] = []
    disk = tmp_path / "disk"
    with small_disk(disk):
        with opened(disk / "snapshots", notes=notes) as store:
            chain = write_chain(store, 2)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with opened(disk / "snapshots", notes=notes) as store:
            assert not store.enabled
            assert len(notes) == 1
            assert "cannot be used" in notes[0]
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        notes.clear()
        with opened(disk / "snapshots", notes=notes) as store:
            os.close(store._lock_fd)  # a file open for writing forbids the remount
            store._lock_fd = -1
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
            info = info_of(chain[1].key)
            assert not store.write(info, payload_of(info))
            assert not store.write(info, payload_of(info))
            assert len(notes) == 1
            assert np.array_equal(store.read(chain[1].key), payload_of(chain[1]))
            store.remove([chain[1].key])
            assert len(notes) == 2
            assert "could not be deleted" in notes[1]


def test_a_limit_on_file_size(folder):
    script = """
import resource, sys, test_snapshots as t
from pathlib import Path
notes = []
with t.opened(Path(sys.argv[1]), notes=notes) as store:
    small, large = t.info_of(t.ROOT, 1), t.info_of(t.ROOT, 2)
    assert store.write(small, t.payload_of(small))
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    assert not store.write(large, t.payload_of(large, 300_000))
    assert not store.write(large, t.payload_of(large, 300_000))
    assert len(notes) == 1, notes
    assert store.read(small.key) is not None
    assert t.snapshot_files(Path(sys.argv[1])) == {t.file_of(Path("."), small.key).name}
"""
    run_script(script, folder)


def script_environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(PROJECT), str(Path(__file__).parent)])}


def run_script(script: str, *args) -> str:
    command = [sys.executable, "-c", script, *map(str, args)]
    done = subprocess.run(
        command, env=script_environment(), capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_folder_that_vanishes(folder):
    notes: list[str] = []
    with opened(folder, notes=notes) as store:
        chain = write_chain(store, 3)
        shutil.rmtree(folder)
        info = info_of(chain[2].key)
        assert not store.write(info, payload_of(info))
        assert not store.write(info, payload_of(info))
        assert len(notes) == 1
        assert store.read(chain[0].key) is None
        assert (len(store.catalog), store.n_bytes) == (0, 0)
        store.clear()
        assert len(notes) == 1


def test_no_folder_no_tier(tmp_path):
    (tmp_path / "a file").write_text("in place of the folder")
    disabled_and_harmless(tmp_path / "a file")
    disabled_and_harmless(tmp_path / "a file" / "below")


def test_the_second_process_goes_without(folder):
    with opened(folder) as store:
        chain = write_chain(store, 2)
        disabled_and_harmless(folder)
        printed = run_script(
            "import sys, test_snapshots as t; from pathlib import Path; t.disabled_and_harmless(Path(sys.argv[1]))",
            folder,
        )
        assert "another Slipstream" in printed
        assert set(store.catalog) == {info.key for info in chain}
        assert np.array_equal(store.read(chain[1].key), payload_of(chain[1]))
    with opened(folder) as store:
        assert len(store.catalog) == 2


def disabled_and_harmless(folder: Path) -> None:
    notes: list[str] = []
    with opened(folder, notes=notes) as store:
        info = info_of(ROOT)
        assert not store.enabled
        assert not store.write(info, payload_of(info))
        assert store.read(info.key) is None
        assert (
            store.remove([info.key]) == store.remove_blocks(["0" * 16]) == store.remove_elements([0]) == set()
        )
        store.clear()
        assert (dict(store.catalog), store.n_bytes, store.bytes_written_today) == ({}, 0, 0)
    assert len(notes) == 1
    print(notes[0])


# --- kill -9, threads -------------------------------------------------------------------------------------

KILLS = """
import os, random, signal, sys, time, numpy as np, test_snapshots as t
from pathlib import Path
folder, budget, rng = Path(sys.argv[1]), 6_000_000, random.Random(5)
noise = np.random.default_rng(1).integers(0, 256, 1_100_000, dtype=np.uint8)

def content(info, n_bytes):  # quick to make: nearly all of the child's time goes into files
    return noise[int.from_bytes(info.key[:2], "big") :][:n_bytes]

def write_for_ever(seed):
    rng, store = random.Random(seed), t.SnapshotStore(folder, budget, t.PLENTY, print)
    while True:
        parent = rng.choice([t.ROOT, *store.catalog])
        info = t.info_of(parent, rng.randrange(256), block=f"{rng.randrange(50):016x}")
        store.write(info, content(info, rng.randrange(1_000_000)))
        if rng.random() < 0.1:
            store.remove_blocks([f"{rng.randrange(50):016x}"])

verified = left = 0
for round in range(20):
    child = os.fork()
    if child == 0:
        try:
            write_for_ever(round)
        finally:
            os._exit(1)
    time.sleep(rng.uniform(0.01, 0.15))
    os.kill(child, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    left += len(list(folder.glob("*.tmp")))
    with t.opened(folder, budget) as store:
        assert store.enabled
        assert not list(folder.glob("*.tmp"))
        assert store.n_bytes == sum(path.stat().st_size for path in folder.glob("*.kv")) <= budget
        for info in store.catalog.values():
            assert info.parent == t.ROOT or info.parent in store.catalog
            found = store.read(info.key)
            assert found is not None and np.array_equal(found, content(info, info.n_bytes))
            verified += 1
print(verified, left)
"""


def test_kill_9_at_any_moment(folder):
    verified, left = map(int, run_script(KILLS, folder).split())
    assert verified > 20
    assert left > 0, "no kill came in the middle of a file"


def test_readers_writers_and_removers_at_once(folder):
    """Nothing wrong is read, nothing raises, and at the end files, catalog and bytes agree."""
    errors: list[BaseException] = []
    budget = 30 * FILE

    def work(seed: int, store: SnapshotStore) -> None:
        rng = random.Random(seed)
        try:
            for _ in range(150):
                keys = list(store.catalog)
                what = rng.random()
                if what < 0.5 or not keys:
                    info = info_of(
                        rng.choice([ROOT, *keys]), rng.randrange(4), block=f"{rng.randrange(9):016x}"
                    )
                    store.write(info, payload_of(info))
                elif what < 0.95:
                    key = rng.choice(keys)
                    found = store.read(key)
                    wanted = np.random.default_rng(int.from_bytes(key[:8], "big")).integers(
                        0, 256, 1000, dtype=np.uint8
                    )
                    assert found is None or np.array_equal(found, wanted)
                elif what < 0.98:
                    store.remove([rng.choice(keys)])
                else:
                    store.remove_blocks([f"{rng.randrange(9):016x}"])
                assert store.n_bytes <= budget
        except BaseException as error:
            errors.append(error)

    with opened(folder, budget=budget) as store:
        threads = [threading.Thread(target=work, args=(seed, store)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert errors == []
        assert snapshot_files(folder) == {file_of(folder, key).name for key in store.catalog}
        assert store.n_bytes == len(store.catalog) * FILE
        assert store.writable


# --- any sequence of all that -----------------------------------------------------------------------------


class Machine(RuleBasedStateMachine):
    """The store against a dict that evicts naively."""

    BUDGET = 5000
    BLOCKS = ("", "00000000000000aa", "00000000000000bb")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="snapshots-"))
        self.now = 1_000_000_000.0
        self.real_time, snapshots.time = snapshots.time, SimpleNamespace(time=self.clock)
        self.model: dict[bytes, tuple[SnapshotInfo, np.ndarray]] = {}
        self.damage: dict[bytes, bool] = {}
        """True where the next start sees it already."""
        self.evicted: list[bytes] = []
        self.store = self.open()

    def clock(self) -> float:
        self.now += 1
        return self.now

    def open(self) -> SnapshotStore:
        store = SnapshotStore(self.folder, self.BUDGET, PLENTY, pytest.fail)
        store.roots, store.on_evict = {ROOT}, self.evicted.append
        return store

    def teardown(self) -> None:
        self.store.close()
        snapshots.time = self.real_time
        shutil.rmtree(self.folder)

    def pick(self, number: int) -> bytes:
        return sorted(self.model)[number % len(self.model)] if self.model else b"?" * 16

    def tree(self, keys: set[bytes]) -> set[bytes]:
        keys = keys & self.model.keys()
        while more := {key for key, (info, _) in self.model.items() if info.parent in keys} - keys:
            keys |= more
        return keys

    def forget(self, keys: set[bytes]) -> set[bytes]:
        gone = self.tree(keys)
        for key in gone:
            del self.model[key]
            self.damage.pop(key, None)
        return gone

    def used(self, key: bytes) -> None:
        info, payload = self.model[key]
        self.model[key] = (replace(info, used_at=self.now), payload)

    @rule(
        at=st.integers(0, 50),
        top=st.booleans(),
        number=st.integers(0, 2),
        size=st.integers(0, 1800),
        own=st.booleans(),
    )
    def write(self, at: int, top: bool, number: int, size: int, own: bool) -> None:
        root = ROOT if own else OTHER_ROOT
        parent = root if top or not self.model else self.pick(at)
        if parent in self.model:
            root = self.model[parent][0].root
        info = info_of(parent, number, root=root, block=self.BLOCKS[number], element=size % 3)
        payload = payload_of(info, size)
        self.evicted.clear()
        wrote = self.store.write(info, payload)
        if info.key in self.model:
            assert wrote
            self.used(info.key)
            return
        left = dict(self.model)
        victims = []
        need = size + HEADER_BYTES
        while need + sum(i.file_bytes for i, _ in left.values()) > self.BUDGET:
            parents = {i.parent for i, _ in left.values()} | {parent}
            leaves = [i for i, _ in left.values() if i.key not in parents]
            if not leaves:
                break
            victim = min(leaves, key=lambda i: (i.root == ROOT, i.used_at))
            victims.append(victim.key)
            del left[victim.key]
        else:
            assert wrote
            assert self.evicted == victims
            for key in victims:
                self.forget({key})
            self.model[info.key] = (
                replace(info, n_bytes=size, used_at=self.store.catalog[info.key].used_at),
                payload,
            )
            return
        assert not wrote
        assert self.evicted == []

    @rule(at=st.integers(0, 50))
    def read(self, at: int) -> None:
        key = self.pick(at)
        found = self.store.read(key)
        if key not in self.model or key in self.damage:
            assert found is None
            self.forget({key})
        else:
            assert np.array_equal(found, self.model[key][1])
            self.used(key)

    @rule(at=st.integers(0, 50), other=st.integers(0, 50))
    def remove(self, at: int, other: int) -> None:
        keys = {self.pick(at), self.pick(other)}
        assert self.store.remove(keys) == self.forget(keys)

    @rule(block=st.sampled_from(BLOCKS[1:]))
    def remove_block(self, block: str) -> None:
        keys = {key for key, (info, _) in self.model.items() if info.block_id == block}
        assert self.store.remove_blocks([block]) == self.forget(keys)

    @rule(element=st.integers(0, 2))
    def remove_element(self, element: int) -> None:
        keys = {key for key, (info, _) in self.model.items() if info.element == element}
        assert self.store.remove_elements([element]) == self.forget(keys)

    @rule(at=st.integers(0, 50), where=st.floats(0, 1), how=st.sampled_from(["flip", "cut", "unlink"]))
    def corrupt(self, at: int, where: float, how: str) -> None:
        key = self.pick(at)
        if key not in self.model or key in self.damage:
            return
        path = file_of(self.folder, key)
        offset = int(where * (path.stat().st_size - 1))
        mtime = path.stat().st_mtime_ns
        if how == "flip":
            flip(path, offset)
        elif how == "cut":
            os.truncate(path, offset)
        else:
            path.unlink()
        if how != "unlink":
            os.utime(path, ns=(mtime, mtime))
        self.damage[key] = how != "flip" or offset < HEADER_BYTES

    @rule()
    def clear(self) -> None:
        self.store.clear()
        self.forget(set(self.model))

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = self.open()
        self.forget({key for key, at_once in self.damage.items() if at_once})

    @invariant()
    def agrees(self) -> None:
        assert dict(self.store.catalog) == {key: info for key, (info, _) in self.model.items()}
        assert self.store.n_bytes == sum(info.file_bytes for info, _ in self.model.values()) <= self.BUDGET
        there = snapshot_files(self.folder)
        assert there <= {file_of(self.folder, key).name for key in self.model}
        assert there >= {file_of(self.folder, key).name for key in self.model if key not in self.damage}


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
