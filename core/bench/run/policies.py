"""What is compared: the same questions, each policy with a cache, an index and a database of its own."""

import contextlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Protocol, cast

import numpy as np
import xxhash

from core import idle
from core.bench.run.counting import CountingEngine
from core.bench.run.energy import EnergyMeter
from core.bench.run.measured import Measured
from core.bench.run.memory import Seat, SharedEngine
from core.bench.run.pilot import Pilot
from core.bench.run.quality import Qualities, evidence_kept
from core.bench.run.questions import Asked
from core.config import DATABASE_FILE, Settings
from core.draft import Draft, draft, n_on_disk
from core.engine.protocol import CancelFlag, Engine
from core.engine.snapshots import SnapshotStore
from core.engine.ssd_tier import SsdTier
from core.plan import EVERYTHING, Rules
from core.plan.schedule import schedule
from core.store.database import Database, open_database
from core.types import (
    Answer,
    Context,
    FinishReason,
    Prompt,
    Question,
    RequestMetrics,
    SegmentKind,
    Tier,
    Tokens,
)
from core.workbench import Workbench

_NO_DAILY_LIMIT = 1 << 60
_ROOM_FOR_ANSWER = 64
"""Tokens; the known answers are hardly longer. Taken from every prompt alike."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How a policy on our engine differs from the product."""

    rules: Rules = EVERYTHING
    ram: bool = True
    ssd: bool = True
    forgets: bool = False
    """Cold before every question."""
    pilot: bool = False
    """ContextPilot's order in place of ours."""
    ahead: bool = False
    """Reads on in the documents asked while nobody waits."""
    dedup: str = "blocks"
    first_word_s: float = 0.0
    """These two as in the settings."""
    schedules: bool = True
    """Changes the order of questions that are known in advance."""

    @property
    def minds_time(self) -> bool:
        """Plans by this machine's rates, so that it does not plan the same again."""
        return bool(self.first_word_s) or self.dedup == "auto"


AS_FOUND = Rules(align=False, tail=False, dedup=False, rank=False, ride=False, whole=False)
PILOT = replace(AS_FOUND, dedup=True, rank=True)
OURS = Kind(ahead=True, dedup=Settings().dedup)
VARIANTS = {
    "annotation:ranking": replace(OURS, rules=replace(EVERYTHING, sources=False)),
    "annotation:none": replace(OURS, rules=replace(EVERYTHING, sources=False, rank=False)),
    "annotation:last": replace(OURS, rules=replace(EVERYTHING, annotation_last=True)),
    "dedup:blocks": replace(OURS, dedup="blocks"),
    "dedup:auto": replace(OURS, dedup="auto"),
    "first-word:2": replace(OURS, first_word_s=2.0),
}
"""Choices that were compared to find the product's; not among ``all``."""
KINDS = {
    "none": Kind(AS_FOUND, ram=False, ssd=False, forgets=True, schedules=False),
    "last-prompt": Kind(AS_FOUND, ram=False, ssd=False, schedules=False),
    "prefix": Kind(AS_FOUND, ssd=False, schedules=False),
    "offload": Kind(AS_FOUND, schedules=False),
    "contextpilot": Kind(PILOT, pilot=True),
    "contextpilot-schedule": Kind(PILOT, pilot=True, schedules=False),
    "slipstream": OURS,
    "slipstream-align": replace(OURS, rules=replace(EVERYTHING, align=False)),
    "slipstream-tail": replace(OURS, rules=replace(EVERYTHING, tail=False)),
    "slipstream-dedup": replace(OURS, rules=replace(EVERYTHING, dedup=False)),
    "slipstream-annotate": replace(OURS, rules=replace(EVERYTHING, rank=False)),
    "slipstream-ride": replace(OURS, rules=replace(EVERYTHING, ride=False)),
    "slipstream-ahead": replace(OURS, ahead=False),
    "slipstream-tiers": replace(OURS, ram=False, ssd=False),
    "slipstream-whole-document": replace(OURS, rules=replace(EVERYTHING, whole=False)),
    "slipstream-schedule": replace(OURS, schedules=False),
    **VARIANTS,
}


@dataclass(frozen=True, slots=True)
class Budgets:
    """Bytes for each policy that has the tier."""

    ram: int
    ssd: int


class Policy(Protocol):
    """One way to answer all questions of a workload."""

    name: str

    def order(self, questions: Sequence[Asked]) -> list[int]:
        """The order in which it asks questions that are known in advance."""

    def enter(self) -> None:
        """Its turn comes: what it left in the model's memory is put back. Not measured."""

    def ask(self, asked: Asked) -> Measured: ...

    def figures(self) -> dict[str, int | float]:
        """Bytes of what it holds."""

    def close(self) -> None: ...


class Local:
    """A policy on our own engine, through the product's own draft, cache, index, order and store."""

    def __init__(
        self,
        name: str,
        shared: SharedEngine,
        library: Path,
        folder: Path,
        budgets: Budgets,
        qualities: Qualities,
    ) -> None:
        """``library``: the database with the documents, of which it takes a copy into ``folder``."""
        self.name = name
        self.kind = self.kind_of(name)
        self.seat = Seat(shared)
        self.shared = shared
        self._folder = folder
        self.budgets = budgets
        self.qualities = qualities
        self._energy = EnergyMeter()
        self._pilot = Pilot()
        self._arranged: dict[tuple[int, ...], list[int]] = {}
        self._conversations: dict[str, int] = {}
        self._last_tokens: Tokens = np.empty(0, np.int32)
        self._reads_on = self.kind.ahead
        self._ssd: SsdTier | None = None
        folder.mkdir()
        shutil.copyfile(library / DATABASE_FILE, folder / DATABASE_FILE)
        self._open()

    def kind_of(self, name: str) -> Kind:
        return KINDS[name]

    def _open(self) -> None:
        self._db: Database = open_database(self._folder)
        if self.kind.ssd:
            store = SnapshotStore(self._folder / "kv", self.budgets.ssd, _NO_DAILY_LIMIT, lambda _text: None)
            self._ssd = SsdTier(store)
        self.bench = Workbench(
            cast("Engine", self.seat),
            self._db,
            ram_budget=self.budgets.ram if self.kind.ram else 0,
            ssd=self._ssd,
            rules=self.kind.rules,
            dedup=self.kind.dedup,
            first_word_s=self.kind.first_word_s,
            clock=self.seat.clock,
        )

    def order(self, questions: Sequence[Asked]) -> list[int]:
        self._reads_on = False  # there is always one waiting
        if not self.kind.schedules:
            return list(range(len(questions)))
        contexts = [[int(p.block.id, 16) for p in asked.passages] for asked in questions]
        weights = {
            int(id_, 16): max(1, len(segment.tokens))
            for asked in questions
            for id_, segment in self.bench.segments_of([p.block for p in asked.passages]).items()
        }
        made = schedule(contexts, method="contextpilot" if self.kind.pilot else "overlap", weights=weights)
        for context, places in zip(contexts, made.blocks, strict=True):
            self._arranged.setdefault(tuple(context), [context[place] for place in places])
        return list(made.order)

    def enter(self) -> None:
        self.shared.enter(self.seat)

    def _arrange(self, names: Sequence[int]) -> list[int] | None:
        """The order of the schedule, or ContextPilot's; None: the product aligns."""
        scheduled = self._arranged.get(tuple(names))
        if scheduled is not None:
            places = {name: place for place, name in enumerate(names)}
            return [places[name] for name in scheduled]
        return self._pilot.arrange(names) if self.kind.pilot else None

    def ask(self, asked: Asked) -> Measured:
        bench = self.bench
        reopen_s = self._restart() if asked.restart else None
        bench = self.bench
        conversation = self._conversations.get(asked.session)
        opening = conversation is None
        arrange = self._arrange if opening and (self.kind.pilot or self._arranged) else None
        bench.rules = replace(self.kind.rules, arrange=arrange)
        question = Question(asked.text, conversation, asked.scope, max_tokens=_ROOM_FOR_ANSWER)
        context = Context(asked.passages, len(asked.passages), 0.0)

        clock = self.seat.clock
        power = self._energy.read()
        started = clock()
        made = draft(bench, question, context)
        drafted = clock()
        limit = n_on_disk(bench, made.prompt, made.place)
        located = bench.cache.locate(made.prompt, len(made.prompt.chunks) - 1)
        planned = clock()
        tokens, seconds = self._read(made, located, limit)
        first = clock()
        joules = self._energy.joules(power, self._energy.read())

        row = Measured(
            asked.qid,
            made.prompt.n_tokens,
            tokens[Tier.LIVE],
            tokens[Tier.RAM],
            tokens[Tier.SSD],
            tokens[Tier.PREFILLED],
            made.plan.n_deduplicated_tokens,
            self._n_annotation(made, asked),
            planned - started,
            seconds[Tier.PREFILLED],
            seconds[Tier.RAM] + seconds[Tier.SSD],
            first - started,
            0.0,
            0.0,
            made.prompt.chunks[-1].key.hex(),
            "",
            made.plan.moved,
            self._evidence(made, asked),
            n_token_level=self._token_level(made.prompt) if self.name == "last-prompt" else None,
            energy_j=joules,
            n_riding=sum(len(made.prompt.chunks[i].tokens) for i in made.riding_chunks() if i < len(located)),
            order_s=made.order_s,
            locate_s=planned - drafted,
            reopen_s=reopen_s,
        )
        if not self.shared.recalling:
            row = self._assessed(row, asked, made)
        resumed = clock()
        self._finish(made, asked, conversation)
        stored = clock()
        if not self.kind.forgets:
            self._rest(asked)
        if self._reads_on:
            prompt = (*made.branch, *made.added)
            idle.read_on(bench, prompt, made.place, asked.scope, CancelFlag())
        done = clock()
        if self.kind.forgets:
            bench.cache.forget_everything()
        return replace(row, wall_s=first - started + done - resumed, idle_s=done - stored)

    def _read(
        self, made: Draft, located: Sequence[Tier], n_on_disk: int
    ) -> tuple[dict[Tier, int], dict[Tier, float]]:
        """Make the prompt live. Tokens and seconds by where they came from."""
        tokens = dict.fromkeys(Tier, 0)
        took = dict.fromkeys(Tier, 0.0)
        for chunk, tier in zip(made.prompt.chunks, located, strict=False):
            tokens[tier] += len(chunk.tokens) if tier is Tier.LIVE else 0
        for step in self.bench.cache.prefill(made.prompt, CancelFlag(), n_on_disk=n_on_disk):
            tokens[step.tier] += len(made.prompt.chunks[step.chunk].tokens)
            took[step.tier] += step.seconds
        if not self.shared.recalling:
            int(np.argmax(self.bench.engine.logits()))  # the first token is chosen
        return tokens, took

    def _assessed(self, row: Measured, asked: Asked, made: Draft) -> Measured:
        """What the model makes of the prompt that is live. Not measured."""
        del made
        engine = self.shared.engine
        logits = engine.logits().copy()
        self.qualities.keep_exact(row.path, logits)
        quality = self.qualities.of(engine, asked, row.path, row.n_prompt)
        return replace(row, logits=xxhash.xxh3_64_hexdigest(logits.tobytes()), **asdict(quality))

    def _finish(self, made: Draft, asked: Asked, conversation: int | None) -> None:
        """Store the turn with the known answer, so that every policy goes on with the same conversation."""
        bench = self.bench
        if asked.continues or conversation is not None:
            ledger = (
                *made.added,
                bench.writer.answer(bench.engine.tokenize(asked.reply, special=False).tolist()),
            )
            if made.is_new_branch:
                ledger = (*made.branch, *ledger)
            answer = Answer(
                asked.reply,
                (),
                (),
                made.plan.passages,
                len(asked.passages),
                FinishReason.STOP,
                RequestMetrics(),
            )
            with bench.db.write():
                if conversation is None:
                    conversation = bench.conversations.create(asked.text)
                    self._conversations[asked.session] = conversation
                bench.conversations.set_cache_place(conversation, made.place)
                bench.conversations.append_turn(
                    conversation, asked.text, answer, ledger, bench.engine.tokenizer_id
                )
        bench.learn_order(made.plan, made.place.namespace)

    def _rest(self, asked: Asked) -> None:
        """What is done while the user reads: the answer is read in where the conversation goes on."""
        if asked.continues:
            idle.settle(self.bench, self._conversations[asked.session], CancelFlag())
        else:
            self.bench.keep_tokens()
            self.bench.keep_learned(now=False)
            while self.bench.cache.tend():
                pass

    def _n_annotation(self, made: Draft, asked: Asked) -> int:
        bare = self.bench.writer.ask("", asked.text)
        last = made.added[-1]
        return len(last.tokens) - len(bare.tokens) if last.kind is SegmentKind.ASK else 0

    def _evidence(self, made: Draft, asked: Asked) -> tuple[int, int]:
        ids = [segment.block_id for segment in made.prompt.segments if segment.kind is SegmentKind.BLOCK]
        parts = [form.shown for form in made.plan.forms if form.block_id == made.plan.excerpt]
        if not asked.evidence:
            return evidence_kept(asked, (), ids)
        wanted = set(ids)
        known = {p.block.id: p.block.text for p in (*made.plan.quotable, *asked.passages)}
        texts = self.bench.db.rows_in(
            "SELECT text FROM blocks WHERE id IN (?*)", sorted(wanted - known.keys())
        )
        return evidence_kept(
            asked, [*(known[id_] for id_ in wanted & known.keys()), *(row[0] for row in texts), *parts], ids
        )

    def _token_level(self, prompt: Prompt) -> int:
        """Tokens in common with the last prompt, but for the last one, which must be computed."""
        tokens = np.concatenate([chunk.tokens for chunk in prompt.chunks])
        n = min(len(tokens) - 1, len(self._last_tokens))
        differs = np.flatnonzero(tokens[:n] != self._last_tokens[:n])
        self._last_tokens = tokens
        return int(differs[0]) if len(differs) else n

    def _restart(self) -> float:
        """End the program and start it again: what is not on the disk is gone. Returns seconds of opening."""
        self._leave()
        self._conversations.clear()
        self._last_tokens = np.empty(0, np.int32)
        self._pilot = Pilot()
        started = self.seat.clock()
        self._open()
        return self.seat.clock() - started

    def _leave(self) -> None:
        self.bench.cache.retire()
        self.bench.keep_learned()
        self.bench.keep_tokens()
        if self._ssd is not None:
            self._ssd.close()
            _drop_page_cache(self._folder / "kv")
        self._ssd = None
        self._db.close()

    def figures(self) -> dict[str, int | float]:
        if isinstance(self.shared.engine, CountingEngine):
            return {"index_bytes": self.bench.index.n_bytes}
        return {
            "index_bytes": self.bench.index.n_bytes,
            "ram_bytes": self.bench.cache.n_ram_bytes,
            "ssd_bytes": self._ssd.n_bytes if self._ssd is not None else 0,
            "database_bytes": (self._folder / DATABASE_FILE).stat().st_size,
        }

    def close(self) -> None:
        if self._ssd is not None:
            self._ssd.close()
        self._ssd = None
        self._db.close()


def _drop_page_cache(folder: Path) -> None:
    """So that a restart reads from the disk and not from memory. Not possible on macOS."""
    if not hasattr(os, "posix_fadvise"):
        return
    os.sync()
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)
