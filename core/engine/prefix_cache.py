"""The prefix cache: it alone says which chunks of a prompt are cached, and where.

One tier so far: the live sequence of the model context. Every whole segment that becomes or stops being
available is told as an event (``Committed``, ``Evicted``), deepest first when evicting, so that a
listener who follows them always holds the same tree.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import xxhash

from core.engine.protocol import CancelFlag, KVMemory
from core.errors import BugError, Cancelled, EngineError
from core.types import GRID_VERSION, CacheEvent, Chunk, Committed, Evicted, Prompt


@dataclass(frozen=True, slots=True)
class PrefillStep:
    """One chunk was prefilled."""

    chunk: int
    """Index into ``prompt.chunks``."""
    seconds: float


@dataclass(frozen=True, slots=True)
class _LiveChunk:
    chunk: Chunk
    segment_parent: bytes
    """Key of the last chunk of the segment before this one's."""


def root_key(fingerprint: bytes, namespace: str = "") -> bytes:
    """Key that stands before the first chunk of every prompt: who made the KV, and for whom."""
    return xxhash.xxh3_128_digest(b"%s|%d|%s" % (fingerprint, GRID_VERSION, namespace.encode()))


class PrefixCache:
    """Owns the live sequence. Used by the engine thread only; no locks."""

    def __init__(self, memory: KVMemory, root: bytes, on_event: Callable[[CacheEvent], None]) -> None:
        self.root = root
        self._memory = memory
        self._on_event = on_event
        self._live: list[_LiveChunk] = []
        self._n_decoded = 0
        memory.clear()

    @property
    def n_live_tokens(self) -> int:
        """Positions held by whole chunks; decoded tokens behind them are not counted."""
        return self._live[-1].chunk.end if self._live else 0

    @property
    def n_positions(self) -> int:
        """Positions in use, decoded tokens included."""
        return self.n_live_tokens + self._n_decoded

    def n_cached_chunks(self, prompt: Prompt) -> int:
        """How many leading chunks of ``prompt`` are live."""
        n = 0
        for mine, theirs in zip(self._live, prompt.chunks, strict=False):
            if mine.chunk.key != theirs.key:
                break
            n += 1
        return n

    def prefill(self, prompt: Prompt, cancel: CancelFlag, *, logits: bool = True) -> Iterator[PrefillStep]:
        """Make ``prompt`` live, chunk by chunk, keeping the leading chunks that already are.

        With ``logits`` the last chunk is always computed, whole: its logits are those a cold run gives
        (DESIGN: recomputing one token of it gives others). Raises Cancelled with finished chunks kept,
        EngineError with nothing kept.
        """
        chunks = prompt.chunks
        if not chunks or prompt.n_tokens > self._memory.n_ctx:
            raise BugError("A prompt does not fit the model context.", details=f"{prompt.n_tokens} tokens")
        kept = self._keep(min(self.n_cached_chunks(prompt), len(chunks) - 1 if logits else len(chunks)))
        for index in range(kept, len(chunks)):
            started = time.perf_counter()
            chunk = chunks[index]
            self._call(partial(self._memory.prefill, chunk.tokens, chunk.start, cancel))
            self._commit(prompt, chunk)
            yield PrefillStep(index, time.perf_counter() - started)

    def decode(self, token: int, cancel: CancelFlag) -> None:
        """Append one sampled token. It is no part of any path: the next ``prefill`` cuts it away."""
        position = self.n_positions
        if position >= self._memory.n_ctx:
            raise BugError("The model context is full.")
        self._call(partial(self._memory.decode, token, position, cancel))
        self._n_decoded += 1

    def forget(self) -> None:
        """Drop everything: what was cached can no longer be asked for."""
        self._memory.clear()
        self._drop(0)

    # --- keeping memory, list and events in step ------------------------------------------------------

    def _keep(self, n_chunks: int) -> int:
        """Cut the live sequence after ``n_chunks`` chunks; returns how many really stay."""
        if n_chunks == len(self._live) and self._n_decoded == 0:
            return n_chunks
        if not self._memory.can_cut:
            self.forget()
            return 0
        end = self._live[n_chunks - 1].chunk.end if n_chunks else 0
        if end:
            self._call(partial(self._memory.cut, end))
        else:
            self._memory.clear()
        self._drop(n_chunks)
        return n_chunks

    def _commit(self, prompt: Prompt, chunk: Chunk) -> None:
        segment_parent = self.root
        if self._live:
            last = self._live[-1]
            segment_parent = last.chunk.key if last.chunk.ends_segment else last.segment_parent
        self._live.append(_LiveChunk(chunk, segment_parent))
        if chunk.ends_segment:
            segment = prompt.segments[chunk.segment]
            self._on_event(Committed(chunk.key, segment_parent, segment.element, len(segment.tokens)))

    def _drop(self, n_chunks: int) -> None:
        """Take every chunk from ``n_chunks`` on off the list, deepest first."""
        self._n_decoded = 0
        while len(self._live) > n_chunks:
            chunk = self._live.pop().chunk
            if chunk.ends_segment:
                self._on_event(Evicted(chunk.key))

    def _call(self, step: Callable[[], None]) -> None:
        """Run one call into the memory; what it lost by an error is dropped here too."""
        try:
            step()
        except Cancelled:
            if not self._memory.can_cut:
                self._drop(0)
            raise
        except EngineError:
            self._drop(0)
            raise
