"""Policy ``blend:R``: blocks read independently of each other and moved to where a prompt needs them.

CacheBlend's and EPIC's idea (arXiv 2405.16444, 2410.15332) through llama.cpp's K-shift: every block is
prefilled once, behind the instructions, kept, and put behind whatever stands before it; its first R tokens
are computed again in place. It reuses every block that was seen before, wherever it stood, and gives other
answers than prefilling: how far off, ``kl`` and the likelihood of the known answer say. Questions and answers
of earlier turns are prefilled in place. Only RAM is used.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict, replace

import numpy as np
import xxhash

from core.bench.run.measured import Measured
from core.bench.run.policies import AS_FOUND, Kind, Local
from core.bench.run.quality import divergence
from core.bench.run.questions import Asked
from core.draft import Draft
from core.engine.probe import ProbingEngine
from core.engine.protocol import CancelFlag, Logits, Snapshot
from core.errors import BugError, SettingsError
from core.prompt import chunk_sizes
from core.types import Prompt, Segment, SegmentKind, Tier, Tokens

PREFIX = "blend:"


class Blend(Local):
    """Keeps blocks, not paths. What is live is no path, so it is cleared after every question."""

    def kind_of(self, name: str) -> Kind:
        number = name.removeprefix(PREFIX)
        if not number.isdecimal():
            raise SettingsError(f"blend:R takes a number of tokens, not {number!r}.")
        self._n_again = int(number)
        self._blocks: OrderedDict[str, Snapshot] = OrderedDict()
        self._head: Snapshot | None = None
        self._n_bytes = 0
        return Kind(AS_FOUND, ram=False, ssd=False, schedules=False)

    @property
    def _engine(self) -> ProbingEngine:
        engine = self.shared.engine
        if not engine.can_shift:
            raise SettingsError("This model's memory cannot be moved.", hint="Leave blend out.")
        return engine

    def ask(self, asked: Asked) -> Measured:
        self._clear()
        row = super().ask(asked)
        self._clear()
        return replace(row, path=f"{self.name} {row.path}")

    def _clear(self) -> None:
        self.seat.clear()
        self.shared.engine.clear()
        self.shared.note([])

    def _read(
        self, made: Draft, located: Sequence[Tier], n_on_disk: int
    ) -> tuple[dict[Tier, int], dict[Tier, float]]:
        del located, n_on_disk
        tokens = dict.fromkeys(Tier, 0)
        took = dict.fromkeys(Tier, 0.0)
        segments = made.prompt.segments
        head = segments[0]
        clock = self.seat.clock

        at = len(head.tokens)
        started = clock()
        if self._head is not None and self._engine.load(self._head, 0, at):
            tokens[Tier.RAM] += at
            took[Tier.RAM] += clock() - started
        else:
            self._prefill(head.tokens, 0)
            self._head = self._engine.save(0, at)
            tokens[Tier.PREFILLED] += at
            took[Tier.PREFILLED] += clock() - started
        started = clock()
        missing = {s.block_id: s for s in segments if s.block_id and s.block_id not in self._blocks}
        for segment in missing.values():
            self._prefill(segment.tokens, at)
            if len(segment.tokens) > self._n_again:
                self._keep(segment.block_id, self._engine.save(at + self._n_again, at + len(segment.tokens)))
            self._engine.cut(at)
        took[Tier.PREFILLED] += clock() - started

        made_at = at + self._n_again
        fresh = set(missing)
        for segment in segments[1:]:
            moved = self._place(segment, made_at, at, took)
            known = moved if segment.block_id not in fresh else 0
            fresh.discard(segment.block_id)
            tokens[Tier.RAM] += known
            tokens[Tier.PREFILLED] += len(segment.tokens) - known
            at += len(segment.tokens)
        self._make_room()
        return tokens, took

    def _place(self, segment: Segment, made_at: int, at: int, took: dict[Tier, float]) -> int:
        """Append a segment; how many of its tokens were moved there."""
        clock = self.seat.clock
        snapshot = self._blocks.get(segment.block_id) if segment.kind is SegmentKind.BLOCK else None
        n_again = len(segment.tokens) if snapshot is None else self._n_again
        n_moved = len(segment.tokens) - n_again
        if self.shared.recalling:
            return n_moved
        started = clock()
        if n_again:
            self._prefill(segment.tokens[:n_again], at)
        took[Tier.PREFILLED] += clock() - started
        if snapshot is not None:
            started = clock()
            self._blocks.move_to_end(segment.block_id)
            if not self._engine.load_moved(snapshot, made_at, at + n_again, n_moved):
                raise BugError("A block could not be moved.")
            took[Tier.RAM] += clock() - started
        return n_moved

    def _prefill(self, tokens: Tokens, at: int) -> None:
        offset = 0
        for size in chunk_sizes(len(tokens)):
            self._engine.prefill(tokens[offset : offset + size], at + offset, CancelFlag())
            offset += size

    def _keep(self, block_id: str, snapshot: Snapshot | None) -> None:
        if snapshot is not None:
            self._blocks[block_id] = snapshot
            self._n_bytes += len(snapshot)

    def _make_room(self) -> None:
        while self._n_bytes > self.budgets.ram and self._blocks:
            _, snapshot = self._blocks.popitem(last=False)
            self._n_bytes -= len(snapshot)

    def _assessed(self, row: Measured, asked: Asked, made: Draft) -> Measured:
        engine = self._engine
        logits = engine.logits().copy()
        quality = self.qualities.of(engine, asked, f"{self.name} {row.path}", row.n_prompt)
        exact = self.qualities.exact(row.path)
        if exact is None:
            exact = self._exactly(made.prompt)
            self.qualities.keep_exact(row.path, exact)
        named = xxhash.xxh3_64_hexdigest(logits.tobytes())
        return replace(row, logits=named, kl=divergence(exact, logits), **asdict(quality))

    def _exactly(self, prompt: Prompt) -> Logits:
        self._engine.clear()
        for chunk in prompt.chunks:
            self._engine.prefill(chunk.tokens, chunk.start, CancelFlag())
        return np.array(self._engine.logits())

    def _rest(self, asked: Asked) -> None:
        del asked
        self.bench.keep_tokens()

    def _leave(self) -> None:
        super()._leave()
        self._blocks.clear()
        self._head, self._n_bytes = None, 0

    def figures(self) -> dict[str, int | float]:
        return super().figures() | {"ram_bytes": self._n_bytes}
