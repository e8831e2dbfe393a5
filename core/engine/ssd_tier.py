"""Snapshots on SSD, written by a thread of their own so that no question waits for a disk."""

import queue
import threading
from collections.abc import Collection, Iterable

from core.engine.protocol import Snapshot
from core.engine.snapshots import SnapshotInfo, SnapshotStore

_LONGEST_QUEUE_BYTES = 1 << 30
"""Snapshots waiting to be written hold memory: beyond this, new ones are not queued."""


class SsdTier:
    """The snapshot files, their writer thread, and what changed on disk since the last look."""

    def __init__(self, store: SnapshotStore) -> None:
        self._store = store
        self._tasks: queue.SimpleQueue[tuple[SnapshotInfo, Snapshot] | None] = queue.SimpleQueue()
        self._changes: queue.SimpleQueue[tuple[bytes, SnapshotInfo | None]] = queue.SimpleQueue()
        self._wanted: dict[bytes, int] = {}
        self._lock = threading.Lock()  # for _wanted; never held during disk work
        self._disk = threading.Lock()  # between the decision to write a file and the order to forget it
        store.on_evict = lambda key: self._changes.put((key, None))
        self._writer = threading.Thread(target=self._write, name="snapshots", daemon=True)
        self._writer.start()

    @property
    def enabled(self) -> bool:
        return self._store.enabled

    @property
    def budget(self) -> int:
        """Bytes; 0 while the tier is off."""
        return self._store.budget_bytes if self._store.enabled else 0

    @property
    def n_bytes(self) -> int:
        return self._store.n_bytes

    @property
    def bytes_written_today(self) -> int:
        return self._store.bytes_written_today

    def open(self, root: bytes) -> list[SnapshotInfo]:
        """What is on disk for ``root``, every chunk after the one it follows."""
        self._store.roots.add(root)
        mine = {key: info for key, info in self._store.catalog.items() if info.root == root}
        ordered: list[SnapshotInfo] = []
        below: dict[bytes, list[SnapshotInfo]] = {}
        for info in mine.values():
            below.setdefault(info.parent, []).append(info)
        stack = [root]
        while stack:
            for info in below.get(stack.pop(), ()):
                ordered.append(info)
                stack.append(info.key)
        return ordered

    def block_ids(self) -> set[str]:
        """Of all models: the blocks that the files hold."""
        return {info.block_id for info in self._store.catalog.values() if info.block_id}

    def has_other_maker(self, block_id: str, roots: Collection[bytes]) -> bool:
        """Whether a file holds this block under none of these roots."""
        return any(
            info.block_id == block_id and info.root not in roots for info in self._store.catalog.values()
        )

    def submit(self, info: SnapshotInfo, snapshot: Snapshot) -> None:
        """Queue a snapshot for writing; parents must be submitted first."""
        with self._lock:
            if not self.enabled or info.key in self._wanted:
                return
            if sum(self._wanted.values()) + len(snapshot) > _LONGEST_QUEUE_BYTES:
                return
            self._wanted[info.key] = len(snapshot)
        self._tasks.put((info, snapshot))

    def changes(self) -> list[tuple[bytes, SnapshotInfo | None]]:
        """Keys whose file came (with what it holds) or went (None) since the last call, in order.

        A file that came and was removed meanwhile is not told: nothing of it may come back.
        """
        found: list[tuple[bytes, SnapshotInfo | None]] = []
        while True:
            try:
                key, info = self._changes.get_nowait()
            except queue.Empty:
                return found
            if info is None or key in self._store:
                found.append((key, info))

    def protect(self, keys: Collection[bytes]) -> None:
        """The path in use: not evicted for the budget."""
        self._store.protected = frozenset(keys).__contains__

    def read(self, key: bytes) -> Snapshot | None:
        return self._store.read(key)

    def forget(self, keys: Iterable[bytes]) -> None:
        """Remove these files and all below them, written or still to be written, before returning."""
        keys = list(keys)
        with self._lock:
            for key in keys:
                self._wanted.pop(key, None)
        with self._disk:
            self._store.remove(keys)

    def forget_blocks(self, block_ids: Collection[str], elements: Collection[int]) -> None:
        """Remove every file of any model whose path holds one of these blocks or elements."""
        with self._lock:
            self._wanted.clear()
        with self._disk:
            self._store.remove_blocks(block_ids)
            self._store.remove_elements(elements)

    def clear(self) -> None:
        with self._lock:
            self._wanted.clear()
        with self._disk:
            self._store.clear()

    def forget_root(self, root: bytes) -> None:
        """Remove every file of a namespace."""
        with self._lock:
            self._wanted.clear()
        with self._disk:
            self._store.remove_root(root)

    def leave(self) -> None:
        """The model is given up: its roots are as foreign as any."""
        self._store.roots.clear()

    def close(self) -> None:
        """Write what waits, then release the folder."""
        self._tasks.put(None)
        self._writer.join()
        self._store.close()

    def _write(self) -> None:
        while (task := self._tasks.get()) is not None:
            info, snapshot = task
            with self._disk:
                with self._lock:
                    wanted = info.key in self._wanted  # else forgotten meanwhile: the file must not come back
                if wanted and self._store.write(info, snapshot):
                    self._changes.put((info.key, info))
            with self._lock:
                self._wanted.pop(info.key, None)
