"""One model context for many policies: who goes is parked, who comes finds its sequence as it left it.

A ``Seat`` is the engine as one policy sees it. Its live sequence is kept as *pieces*, one a prefill batch,
each with its snapshot once it was parked, so that it comes back bit for bit, outside measured time;
``seconds`` counts what it took. Snapshots of equal paths are equal to the bit, so all policies that have one
hold the same array: fifteen caches take the memory of their union. That spares memory, never time: a policy
makes its own snapshot before it is told that the array exists.

A run that is resumed is *recalled*: what was computed once, under whichever policy, is not computed again,
and the seat's clock says what it took then. Only models that can be cut can be recalled.
"""

import time
import weakref
from dataclasses import dataclass

import numpy as np
import xxhash
from numpy.typing import NDArray

from core.engine.probe import ProbingEngine
from core.engine.protocol import CancelFlag, Snapshot
from core.errors import BugError
from core.types import Tokens
from core.work import work


@dataclass(slots=True, eq=False)
class _Piece:
    """One batch of the live sequence."""

    key: bytes
    """Names the path up to its end."""
    start: int
    end: int
    tokens: Tokens | None
    """None where it came from a snapshot."""
    snapshot: Snapshot | None = None
    decoded: bool = False


class SharedEngine:
    """The engine, what its memory holds, and the snapshots that are known by their path."""

    def __init__(self, engine: ProbingEngine) -> None:
        self.engine = engine
        self.seconds = 0.0
        """What parking and coming back took in all."""
        self.n_unequal = 0
        """Snapshots of equal paths that were not equal: must stay 0."""
        self.recalling = False
        self._held: list[_Piece] = []
        self._occupant: Seat | None = None
        self._known: weakref.WeakValueDictionary[bytes, NDArray[np.uint8]] = weakref.WeakValueDictionary()
        self._names: dict[int, bytes] = {}

    def is_active(self, seat: "Seat") -> bool:
        return self._occupant is seat and not self.recalling

    def enter(self, seat: "Seat") -> None:
        """Make the memory hold what ``seat`` left there."""
        if self.recalling or self._occupant is seat:
            return
        started = time.perf_counter()
        if self._occupant is not None:
            self._park(self._occupant)
        self._occupant = seat
        self._bring(seat)
        self.seconds += time.perf_counter() - started

    def share(self, key: bytes, snapshot: Snapshot) -> Snapshot:
        """The array that stands for this path: the one that is known, if there is one and it is equal."""
        known = self._known.get(key)
        if known is not None:
            if np.array_equal(known, snapshot):
                return known
            self.n_unequal += 1
            return snapshot
        self._known[key] = snapshot
        self._names[id(snapshot)] = key
        return snapshot

    def find(self, key: bytes) -> Snapshot | None:
        return self._known.get(key)

    def name_of(self, snapshot: Snapshot) -> bytes | None:
        """The path that an array stands for, if it is a known one."""
        key = self._names.get(id(snapshot))
        return key if key is not None and self._known.get(key) is snapshot else None

    def compute(self, seat: "Seat", tokens: Tokens, start: int, cancel: CancelFlag) -> None:
        """While recalling: prefill what no policy has computed yet, behind the pieces of ``seat``."""
        self._bring(seat)
        self.engine.prefill(tokens, start, cancel)

    def note(self, pieces: list[_Piece]) -> None:
        """The memory holds just these."""
        self._held = list(pieces)

    def _park(self, seat: "Seat") -> None:
        if not self.engine.can_cut:
            end = seat.pieces[-1].end if seat.pieces else 0
            seat.whole = self.engine.save(0, end) if end else None
            return
        for piece in seat.pieces:
            if piece.snapshot is None and not piece.decoded:
                snapshot = self.engine.save(piece.start, piece.end)
                piece.snapshot = None if snapshot is None else self.share(piece.key, snapshot)

    def _bring(self, seat: "Seat") -> None:
        pieces = seat.pieces
        if not self.engine.can_cut:
            self.engine.clear()
            if pieces and (seat.whole is None or not self.engine.load(seat.whole, 0, pieces[-1].end)):
                raise BugError("A parked sequence was refused.")
            self.note(pieces)
            return
        n = 0
        for mine, theirs in zip(pieces, self._held, strict=False):
            if mine.key != theirs.key:
                break
            n += 1
        if n < len(self._held):
            if n:
                self.engine.cut(pieces[n - 1].end)
            else:
                self.engine.clear()
        for piece in pieces[n:]:
            if piece.snapshot is not None and self.engine.load(piece.snapshot, piece.start, piece.end):
                continue
            if piece.tokens is None:
                raise BugError("A parked sequence was refused.")
            self.engine.prefill(piece.tokens, piece.start, CancelFlag())
        self.note(pieces)


class Seat:
    """The engine as one policy sees it: satisfies ``core.engine.protocol.Engine`` (``cast`` says so)."""

    def __init__(self, shared: SharedEngine) -> None:
        self._shared = shared
        self._engine = shared.engine
        self._skipped_s = 0.0
        self._n_unnamed = 0
        self.pieces: list[_Piece] = []
        self.whole: Snapshot | None = None
        """Of a model that cannot be cut: its parked state."""
        self.token_s = 0.0
        """Seconds a token, for what is recalled."""
        self.attention = 0.0
        """What each token before it adds to that, as a share."""

    def __getattr__(self, name: str) -> object:
        return getattr(self._engine, name)

    def clock(self) -> float:
        """Seconds; what was recalled counts as if it had been computed."""
        return time.perf_counter() + self._skipped_s

    def prefill(self, tokens: Tokens, start: int, cancel: CancelFlag) -> None:
        piece = _Piece(self._next_key(tokens), start, start + len(tokens), tokens)
        if not self._shared.recalling:
            self._need_the_floor()
            self._engine.prefill(tokens, start, cancel)
        else:
            self._recall(piece, tokens, cancel)
        self.pieces.append(piece)
        if not self._shared.recalling:
            self._shared.note(self.pieces)

    def _recall(self, piece: _Piece, tokens: Tokens, cancel: CancelFlag) -> None:
        started = time.perf_counter()
        piece.snapshot = self._shared.find(piece.key)
        if piece.snapshot is None:
            self._shared.compute(self, tokens, piece.start, cancel)
            self._shared.note([*self.pieces, piece])
            snapshot = self._engine.save(piece.start, piece.end)
            piece.snapshot = None if snapshot is None else self._shared.share(piece.key, snapshot)
        took_s = self.token_s * work(piece.start, len(tokens), self.attention)
        self._skipped_s += took_s - (time.perf_counter() - started)

    def decode(self, token: int, position: int, cancel: CancelFlag) -> None:
        self._need_the_floor()
        self._engine.decode(token, position, cancel)
        tokens = np.array([token], np.int32)
        self.pieces.append(_Piece(self._unnamed(), position, position + 1, tokens, decoded=True))
        self._shared.note(self.pieces)

    def save(self, start: int, end: int) -> Snapshot | None:
        piece = next((one for one in self.pieces if (one.start, one.end) == (start, end)), None)
        if self._shared.recalling:
            return None if piece is None else piece.snapshot
        self._need_the_floor()
        snapshot = self._engine.save(start, end)
        if piece is not None and snapshot is not None and self._engine.can_cut:
            snapshot = piece.snapshot = self._shared.share(piece.key, snapshot)
        return snapshot

    def load(self, snapshot: Snapshot, start: int, end: int) -> bool:
        key = self._shared.name_of(snapshot) or self._unnamed()
        if not self._shared.recalling:
            self._need_the_floor()
            if not self._engine.load(snapshot, start, end):
                return False
        if not self._engine.can_cut:
            self.whole = snapshot
        self.pieces.append(_Piece(key, start, end, None, snapshot))
        if not self._shared.recalling:
            self._shared.note(self.pieces)
        return True

    def cut(self, n: int) -> None:
        kept = [piece for piece in self.pieces if piece.end <= n]
        if (kept[-1].end if kept else 0) != n:
            raise BugError("A policy cut its sequence within a chunk.", details=f"at {n}")
        if self._shared.is_active(self):
            self._engine.cut(n)
            self._shared.note(kept)
        self.pieces = kept

    def clear(self) -> None:
        self.pieces = []
        if self._shared.is_active(self):
            self._engine.clear()
            self._shared.note([])

    def _need_the_floor(self) -> None:
        if not self._shared.is_active(self):
            raise BugError("A policy computes while another one holds the model's memory.")

    def _next_key(self, tokens: Tokens) -> bytes:
        before = self.pieces[-1].key if self.pieces else b""
        return xxhash.xxh3_128_digest(before + len(tokens).to_bytes(4, "little") + tokens.tobytes())

    def _unnamed(self) -> bytes:
        """A name that nobody else uses: what is behind it is shared with nobody."""
        self._n_unnamed += 1
        return b"%d/%d" % (id(self), self._n_unnamed)
