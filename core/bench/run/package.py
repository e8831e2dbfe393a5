"""Policy ``contextpilot-package``: the order of the package of the paper's authors, where it is installed."""

import contextlib
import importlib
import io
from collections.abc import Sequence
from typing import Any

from core.bench.run.policies import PILOT, Kind, Local

NAME = "contextpilot-package"


def is_installed() -> bool:
    """Whether the package can be used; without what it needs it cannot be imported."""
    try:
        PackageOrder()
    except Exception:  # noqa: BLE001  (foreign code: whatever it raises, it is of no use)
        return False
    return True


class PackageOrder:
    """The package's live index. It takes small integers only, and what it returns is checked."""

    def __init__(self) -> None:
        self._index: Any = importlib.import_module("contextpilot").ContextPilot(use_gpu=False)
        self._numbers: dict[int, int] = {}
        self.n_refused = 0
        """Answers that were no permutation of the question, or errors: relevance order was used."""

    def arrange(self, blocks: Sequence[int]) -> list[int]:
        """Indices into ``blocks``, in the order in which they should stand."""
        asked = [self._numbers.setdefault(block, len(self._numbers)) for block in blocks]
        places = {number: place for place, number in enumerate(asked)}
        try:
            with contextlib.redirect_stdout(io.StringIO()):  # it prints what it does
                reordered, _ = self._index.reorder([asked])
            order = [places[int(number)] for number in reordered[0]]
        except Exception:  # noqa: BLE001  (foreign code: whatever it raises, the question goes on)
            order = []
        if sorted(order) != list(range(len(blocks))):
            self.n_refused += bool(blocks)
            return list(range(len(blocks)))
        return order


class Package(Local):
    """The paper's rules on our engine, with the package's order in place of our own rendering of it."""

    def kind_of(self, name: str) -> Kind:
        del name
        self._order = PackageOrder()
        return Kind(PILOT, pilot=True, schedules=False)

    def _arrange(self, names: Sequence[int]) -> list[int] | None:
        return self._order.arrange(names)

    def _leave(self) -> None:
        super()._leave()
        self._order = PackageOrder()

    def figures(self) -> dict[str, int | float]:
        return super().figures() | {"orders_refused": self._order.n_refused}
