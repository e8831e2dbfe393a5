"""The run: every policy asks every question, in rounds, so that a drifting machine hits all of them alike."""

import contextlib
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from core.bench.run import annotations, bounds, references, result, sensitivity
from core.bench.run.choice import check, is_here, open_policy
from core.bench.run.counting import BYTES_PER_TOKEN, CountingEngine
from core.bench.run.measured import Measured
from core.bench.run.memory import SharedEngine
from core.bench.run.policies import KINDS, Budgets, Local, Policy
from core.bench.run.quality import Qualities
from core.bench.run.questions import Asked, Workload
from core.bench.run.record import Record
from core.bench.run.workloads import Source, build
from core.config import Settings
from core.engine.model_files import choose_model
from core.engine.probe import ProbingEngine
from core.errors import KnownError, SettingsError
from core.metrics import seconds
from core.store.database import open_database

ROUND = 2
"""Questions that a policy asks before the next one has its turn: parking is rare, drift is shared."""
QUICK_QUESTIONS, QUICK_CHARACTERS = 10, 480
"""A quick run: so many questions, passages cut to so many characters."""
_LARGEST_RAM = 4 << 30
_RAM_SHARE = 0.6
"""Of the memory that is free, for all policies together. Of their snapshots about half are distinct."""
_DISK_SHARE = 0.5
_LARGEST_SSD = 16 << 30
_TIGHT = 0.2
_COUNTED = (
    "Counted, not timed: seconds of prefill are tokens times what this machine took for one; restoring takes "
    "none, and bytes are not told."
)


@dataclass(frozen=True, slots=True)
class Options:
    workload: str
    source: Source
    policies: tuple[str, ...]
    quick: bool = False
    answers: bool = False
    count: bool = False
    """Tokens only: nothing is computed."""
    resume: Path | None = None
    orders: int = 0
    """Questions whose passages are put into random orders, to see how much the model minds."""
    annotations: int = 0
    """Questions that are read with every kind of annotation."""
    references: int = 0
    """Questions whose passages share text that are read with them whole and shortened."""


Open = Callable[[str, SharedEngine, Path, Path, Budgets, Qualities], Policy]


def measure(options: Options, settings: Settings, *, opener: Open = open_policy) -> dict[str, Any]:
    """Run it all; the result as the JSON that is printed. Raises SettingsError, KnownError."""
    if not options.policies or len(set(options.policies)) != len(options.policies):
        raise SettingsError("Name at least one policy, and each only once.")
    check(options.policies)
    if options.count:
        _check_countable(options)
    if options.resume and any(KINDS[name].minds_time for name in options.policies if name in KINDS):
        raise SettingsError(
            "A policy that plans by measured rates cannot be resumed.", hint="Leave out --resume."
        )
    here = tuple(name for name in options.policies if is_here(name))
    absent = [name for name in options.policies if name not in here]
    for name in absent:
        _say(f"{name} was not found: left out")
    if not here:
        raise KnownError("None of these policies was found on this machine.")
    options = replace(options, policies=here)
    if options.quick:
        source = replace(
            options.source, limit=options.source.limit or QUICK_QUESTIONS, longest=QUICK_CHARACTERS
        )
        options = replace(options, source=source, answers=False)
    with contextlib.ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="slipstream-bench-")))
        library = root / "library"
        with open_database(library) as db:
            workload = build(options.workload, options.source, db)
        kind = CountingEngine if options.count else ProbingEngine
        engine = kind(choose_model(settings.model), settings)
        stack.callback(engine.close)
        run = _Run(options, workload, engine, settings, root, opener)
        stack.callback(run.close)
        run.resume()
        run.finish()
        found = run.result() | {"not_found": absent}
        if isinstance(engine, CountingEngine):
            engine.counts_only = False  # these compute, whatever was counted
        for name, read, n in (
            ("order_sensitivity", sensitivity.measure, options.orders),
            ("annotations", annotations.measure, options.annotations),
            ("references", references.measure, options.references),
        ):
            if n:
                _say(name.replace("_", " "))
            found[name] = read(engine, workload.questions, n) if n else None
        return found


def _check_countable(options: Options) -> None:
    if options.resume or options.answers:
        raise SettingsError("A run that only counts takes no --resume and no --answers.")
    if any(name not in KINDS for name in options.policies):
        raise SettingsError(
            "Policies that compute something else, or elsewhere, cannot be counted.",
            hint=f"These can: {', '.join(KINDS)}.",
        )


class _Run:
    def __init__(
        self,
        options: Options,
        workload: Workload,
        engine: ProbingEngine,
        settings: Settings,
        root: Path,
        opener: Open,
    ) -> None:
        self._options = options
        self._workload = workload
        self._engine = engine
        self._restore_rate, bytes_per_token = bounds.machine(engine)
        budgets = self._budgets(settings, root, bytes_per_token)
        self._record = Record(options.resume, self._settings(settings, budgets))
        self._budget = Budgets(self._record.fixed["ram_bytes"], self._record.fixed["ssd_bytes"])
        self._shared = SharedEngine(engine)
        if isinstance(engine, CountingEngine):
            if not engine.can_cut:
                raise KnownError("A run with this model cannot be counted.", hint="Leave out --count.")
            engine.counts_only = self._shared.recalling = True
        self._qualities = Qualities(answers=options.answers)
        self._policies: list[Policy] = []
        for number, name in enumerate(options.policies):
            folder = root / f"policy-{number}"
            self._policies.append(
                opener(name, self._shared, root / "library", folder, self._budget, self._qualities)
            )
        for policy in self._policies:
            if options.count and isinstance(policy, Local):
                policy.seat.token_s = (self._restore_rate["prefill_token_ms"] or 0.0) / 1000
                policy.seat.attention = self._engine.info.attention
        self._orders = {
            policy.name: policy.order(workload.questions)
            if workload.known
            else list(range(len(workload.questions)))
            for policy in self._policies
        }
        self._rows: dict[str, list[Measured]] = {policy.name: [] for policy in self._policies}
        self._n_recalled = self._n_differing = 0
        self._asking_s = self._elapsed_s = 0.0

    def _settings(self, settings: Settings, budgets: Budgets) -> dict[str, Any]:
        """What a run that goes on must have in common with the one that was interrupted."""
        source = self._options.source
        return {
            "workload": self._options.workload,
            "policies": list(self._options.policies),
            "model": self._engine.fingerprint.hex(),
            "trace": Path(source.trace).name,
            "k": source.k,
            "limit": source.limit,
            "seed": source.seed,
            "longest": source.longest,
            "warm": source.warm,
            "answers": self._options.answers,
            "questions": len(self._workload.questions),
            "n_ctx": settings.n_ctx,
            "ram_bytes": budgets.ram,
            "ssd_bytes": budgets.ssd,
        }

    def _budgets(self, settings: Settings, root: Path, bytes_per_token: float) -> Budgets:
        """The same for every policy that has the tier; a fifth of the working set for a tight workload."""
        if self._workload.tight:
            blocks = {p.block.id: p.block for asked in self._workload.questions for p in asked.passages}
            n_tokens = sum(len(self._engine.tokenize(b.rendered, special=False)) for b in blocks.values())
            per_token = BYTES_PER_TOKEN if self._options.count else bytes_per_token
            size = int(_TIGHT * n_tokens * per_token)
            return Budgets(size, size)
        kinds = [KINDS[name] for name in self._options.policies if name in KINDS]
        n_ram = max(1, sum(kind.ram for kind in kinds) // 2)
        n_ssd = max(1, sum(kind.ssd for kind in kinds))
        free_ram, free_disk = psutil.virtual_memory().available, psutil.disk_usage(str(root)).free
        ram = min(_LARGEST_RAM, int(_RAM_SHARE * free_ram / n_ram))
        ssd = min(_LARGEST_SSD, int(_DISK_SHARE * free_disk / n_ssd))
        if settings.ram_cache_mb >= 0:
            ram = settings.ram_cache_mb * 10**6
        if settings.ssd_cache_mb >= 0:
            ssd = settings.ssd_cache_mb * 10**6
        if self._options.count and bytes_per_token:
            share = BYTES_PER_TOKEN / bytes_per_token
            ram, ssd = int(ram * share), int(ssd * share)
        return Budgets(ram, ssd)

    def resume(self) -> None:
        """Bring every policy to where the interrupted run was, computing each distinct prompt only once.

        What the record says stays; what depends on no clock is compared with it.
        """
        done = {policy.name: len(self._record.rows.get(policy.name, ())) for policy in self._policies}
        most = max(done.values())
        if not most:
            return
        if not self._engine.can_cut:
            raise KnownError("A run with this model cannot be resumed.", hint="Leave out --resume.")
        self._shared.recalling = True
        for start in range(0, most, ROUND):
            for policy in self._policies:
                for position in range(start, min(start + ROUND, done[policy.name])):
                    self._recall(policy, position)
            _say(f"recalling: {min(start + ROUND, most)} of {most} questions")
        self._shared.recalling = False

    def _recall(self, policy: Policy, position: int) -> None:
        asked = self._question(policy, position)
        was = self._record.rows[policy.name][position]
        if was.qid != asked.qid:
            raise KnownError("The record is of other questions.", hint="Name another file with --resume.")
        if isinstance(policy, Local):
            policy.seat.token_s = was.prefill_s / was.n_prefilled if was.n_prefilled else 0.0
        again = policy.ask(asked)
        self._n_recalled += 1
        self._n_differing += again.counts() != was.counts()
        self._qualities.know(asked, was)
        self._rows[policy.name].append(was)

    def finish(self) -> None:
        """Ask what is left."""
        started = time.perf_counter()
        done = {name: len(rows) for name, rows in self._rows.items()}
        total = len(self._workload.questions)
        steps = [(policy, at) for at in range(0, total, ROUND) for policy in self._turns(at)]
        n_left = len(self._policies) * total - sum(done.values())
        n_asked = 0
        for policy, at in steps:
            positions = range(max(at, done[policy.name]), min(at + ROUND, total))
            if not positions:
                continue
            policy.enter()
            for position in positions:
                begun = time.perf_counter()
                assessed = self._qualities.seconds
                row = policy.ask(self._question(policy, position))
                self._asking_s += time.perf_counter() - begun - (self._qualities.seconds - assessed)
                self._rows[policy.name].append(row)
                self._record.add(policy.name, row)
                n_asked += 1
            elapsed = time.perf_counter() - started
            left_s = elapsed / n_asked * (n_left - n_asked)
            _say(f"{policy.name}: {n_asked:,} of {n_left:,} asked, about {seconds(left_s)} left")
        self._elapsed_s = time.perf_counter() - started
        if sys.stderr.isatty():
            sys.stderr.write("\n")

    def _turns(self, at: int) -> list[Policy]:
        """Another policy begins each round."""
        first = (at // ROUND) % len(self._policies)
        return [*self._policies[first:], *self._policies[:first]]

    def _question(self, policy: Policy, position: int) -> Asked:
        return self._workload.questions[self._orders[policy.name][position]]

    def result(self) -> dict[str, Any]:
        """The JSON."""
        found = result.make(
            self._workload,
            self._rows,
            {policy.name: policy.figures() for policy in self._policies},
            model=self._engine.info.name,
            source=self._options.source,
        )
        found["bounds"] = bounds.of(self._workload, self._rows, self._options.source) | self._restore_rate
        n = max(1, sum(len(rows) for rows in self._rows.values()) - self._n_recalled)
        fastest_s = min(
            (mean for each in found["policies"].values() if (mean := each["wall_s"]["mean"]) is not None),
            default=None,
        )
        found["harness"] = {
            "parking_s": self._shared.seconds,
            "quality_s": self._qualities.seconds,
            "other_s_per_question": self._overhead() / n,
            "elapsed_s": self._elapsed_s,
            "overhead_share": self._overhead() / n / fastest_s if fastest_s else None,
            "parking_share": self._shared.seconds / n / fastest_s if fastest_s else None,
            "unequal_snapshots": self._shared.n_unequal,
            "recalled": self._n_recalled,
            "recalled_differently": self._n_differing,
            "ram_budget_bytes": self._budget.ram,
            "ssd_budget_bytes": self._budget.ssd,
            "round": ROUND,
            "quick": self._options.quick,
            "counted": self._options.count,
        }
        if self._options.count:
            found["notes"] = [_COUNTED]
        return found

    def _overhead(self) -> float:
        """Seconds that are neither a policy's nor spent on quality or parking."""
        return max(0.0, self._elapsed_s - self._asking_s - self._qualities.seconds - self._shared.seconds)

    def close(self) -> None:
        for policy in self._policies:
            policy.close()
        self._record.close()


def _say(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{text:<79}")
        sys.stderr.flush()
    else:
        sys.stderr.write(f"{text}\n")
