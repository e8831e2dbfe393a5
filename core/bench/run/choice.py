"""Policies by name: those on our engine, and peers outside it that may or may not be there."""

from collections.abc import Sequence
from pathlib import Path

from core.bench.run.blend import PREFIX as BLEND
from core.bench.run.blend import Blend
from core.bench.run.memory import SharedEngine
from core.bench.run.package import NAME as PACKAGE
from core.bench.run.package import Package, is_installed
from core.bench.run.policies import KINDS, VARIANTS, Budgets, Local, Policy
from core.bench.run.quality import Qualities
from core.bench.run.server import PACKAGE_PREFIX as ORDERED_SERVER
from core.bench.run.server import PREFIX as SERVER
from core.bench.run.server import Server, answers
from core.errors import SettingsError

ALL = (*(name for name in KINDS if name not in VARIANTS), f"{BLEND}0", f"{BLEND}8", f"{BLEND}32")
"""What ``all`` stands for. Peers outside are named one by one."""


def check(names: Sequence[str]) -> None:
    """Raises SettingsError for a policy that there is none of."""
    for name in names:
        if name in KINDS or name == PACKAGE:
            continue
        kind, found, rest = name.partition(":")
        if not found or not rest or f"{kind}:" not in (BLEND, SERVER, ORDERED_SERVER):
            raise SettingsError(
                f"There is no policy {name}.",
                hint=f"There are: {', '.join((*ALL, *VARIANTS, PACKAGE))}, {SERVER}URL, {ORDERED_SERVER}URL.",
            )
        if f"{kind}:" == BLEND and not rest.isdecimal():
            raise SettingsError(f"blend:R takes a number of tokens, not {rest!r}.")


def is_here(name: str) -> bool:
    """Whether a peer outside is present; policies on our engine always are."""
    if (name == PACKAGE or name.startswith(ORDERED_SERVER)) and not is_installed():
        return False
    return not name.startswith((SERVER, ORDERED_SERVER)) or answers(name.partition(":")[2])


def open_policy(
    name: str, shared: SharedEngine, library: Path, folder: Path, budgets: Budgets, qualities: Qualities
) -> Policy:
    kind: type[Local] = Local
    if name.startswith(BLEND):
        kind = Blend
    elif name == PACKAGE:
        kind = Package
    elif name.startswith((SERVER, ORDERED_SERVER)):
        kind = Server
    return kind(name, shared, library, folder, budgets, qualities)
