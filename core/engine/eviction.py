"""What leaves a full cache: the leaf that is least likely to be used again per second that it would save.

A tree of cached parts (segments or chunks, each after its parent) is mirrored here by *slots*, small
integers. Only leaves leave. How likely one is used again is learned from the uses themselves, by its depth,
how often it was used, how often its block was asked for, and for how long it has not been used; what it is
worth is the seconds that computing it takes, per byte that keeping it takes. ``lru`` is there to compare.
"""

from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.engine import eviction_kernels as kernels
from core.errors import BugError, DamagedState

Policy = Literal["learned", "lru"]

ROOT = 0
"""Slot of the root: never evicted, parent of the first parts."""
_FIRST_CAPACITY = 256
_STATE_VERSION = 1
_MEAN_WEIGHT = 0.01
"""Of each new node in the running mean of seconds per byte, against which worth classes are told apart."""

_FIRST_WEIGHTS = (-3.0, -1.2, -0.7, 0.2, 0.1, -0.4, -0.2, 0.3, -1.0, -0.1, -0.7, 0.2, -0.1)
"""Where learning starts: about what it came to on seven public question sets, rounded."""

MAX_STATE_BYTES = 8 + 8 + 16 * kernels.N_FEATURES
"""Bound of what ``state`` returns."""


class LeafQueue:
    """Who is to be evicted next. Owned by the engine thread; no locks. 52 to 104 bytes a slot.

    The caller tells when a request begins (``next_request``), what it adds, uses and removes, and pins what
    must stay. Slots are given here and used again after ``remove``. Deterministic.
    """

    def __init__(self, policy: Policy = "learned") -> None:
        self._learned = policy == "learned"
        self._state = np.array([0, -1, 0, 0], np.int64)
        self._nodes = np.zeros((_FIRST_CAPACITY, kernels.N_COLUMNS), np.int32)
        self._nodes[ROOT, kernels.PARENT] = -1
        self._nodes[ROOT, kernels.PREVIOUS] = kernels.OUT
        self._worths = np.zeros(_FIRST_CAPACITY, np.float64)
        self._tops = np.full(kernels.N_CLASSES, -1, np.int32)
        self._model = np.zeros((2, kernels.N_FEATURES), np.float64)
        self._model[0] = _FIRST_WEIGHTS
        self._model[1] = 1.0
        self._features = np.empty(kernels.N_FEATURES, np.float64)
        self._mean_worth = 0.0
        kernels.free_rows(self._nodes, self._state, 1)

    def __len__(self) -> int:
        """Slots in use, the root not counted."""
        return int(self._state[kernels.N_NODES])

    @property
    def n_bytes(self) -> int:
        """Bytes of the flat arrays."""
        return self._nodes.nbytes + self._worths.nbytes

    def next_request(self) -> None:
        """A new request begins; ages count requests."""
        kernels.next_request(self._nodes, self._model, self._state, self._features)

    def insert(self, parent: int, *, count: int = 1, seconds: float = 1.0, n_bytes: int = 1) -> int:
        """The slot of a new part after ``parent``. ``count``: recent contexts that hold its block;
        ``seconds``: what computing it takes; ``n_bytes``: what keeping it takes.
        """
        self._check(parent, root=True)
        if self._state[kernels.FIRST_FREE] < 0:
            self._grow()
        worth = max(seconds, 1e-9) / max(n_bytes, 1)
        if not self._mean_worth:
            self._mean_worth = worth
        self._mean_worth += _MEAN_WEIGHT * (worth - self._mean_worth)
        relative = worth / self._mean_worth
        return int(
            kernels.insert(self._nodes, self._worths, self._tops, self._state, parent, count, worth, relative)
        )

    def use(self, slot: int, *, count: int = 0) -> None:
        """The current request uses this part; twice in one request is once. ``count`` 0: as before."""
        self._check(slot)
        relative = self._worths[slot] / self._mean_worth
        kernels.use(self._nodes, self._model, self._tops, self._state, slot, count, relative, self._features)

    def remove(self, slot: int) -> None:
        """The part is gone, pinned or not. It must be a leaf."""
        self._check(slot)
        if not kernels.remove(self._nodes, self._tops, self._state, slot):
            raise BugError("A part was removed before those that follow it.", details=f"slot {slot}")

    def pin(self, slot: int) -> None:
        """Keep this part until as many ``unpin`` have come. One that others follow stays anyhow."""
        self._check(slot)
        kernels.pin(self._nodes, self._tops, slot, 1)

    def unpin(self, slot: int) -> None:
        self._check(slot)
        if self._nodes[slot, kernels.PINS] <= 0:
            raise BugError("A part was unpinned more often than pinned.", details=f"slot {slot}")
        kernels.pin(self._nodes, self._tops, slot, -1)

    def victim(self) -> int | None:
        """The slot to evict next, None if nothing may go. The caller removes it."""
        slot = int(
            kernels.victim(
                self._nodes, self._worths, self._model, self._tops, self._state, self._learned, self._features
            )
        )
        return slot if slot >= 0 else None

    def value(self, slot: int) -> float:
        """Seconds that a byte of this part should save on the next request: what ``victim`` compares."""
        self._check(slot)
        node = self._nodes[slot]
        age = int(self._state[kernels.REQUEST] - node[kernels.USED_AT])
        rate = kernels.rate(self._model, int(node[kernels.CLASS]), age, False, self._features)
        return float(rate * self._worths[slot])

    # --- keeping it over a restart ----------------------------------------------------------------------

    def state(self) -> dict[str, NDArray[np.generic]]:
        """What was learned, not the tree: ``version`` int64 ``()``, ``model`` float64 ``(2, n)``, ``mean``
        float64 ``()``. At most ``MAX_STATE_BYTES``.
        """
        return {
            "version": np.array(_STATE_VERSION, np.int64),
            "model": self._model.copy(),
            "mean": np.array(self._mean_worth, np.float64),
        }

    def restore(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        """Take over what ``state`` returned; the tree stays. Raises DamagedState, with nothing changed."""
        try:
            version, model, mean = (np.asarray(state[name]) for name in ("version", "model", "mean"))
            sound = (
                version.shape == ()
                and int(version) == _STATE_VERSION
                and model.dtype == np.float64
                and model.shape == self._model.shape
                and bool(
                    np.all(np.isfinite(model)) and np.all(np.abs(model[0]) <= 12) and np.all(model[1] > 0)
                )
                and mean.dtype == np.float64
                and mean.shape == ()
                and bool(np.isfinite(mean) and mean >= 0)
            )
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedState("What eviction had learned is damaged.", details=str(error)) from error
        if not sound:
            raise DamagedState("What eviction had learned is damaged.", hint="It learns afresh.")
        self._model[:] = model
        self._mean_worth = float(mean) or self._mean_worth

    # --- inside -------------------------------------------------------------------------------------------

    def _check(self, slot: int, *, root: bool = False) -> None:
        if not (ROOT if root else 1) <= slot < len(self._nodes) or (
            self._nodes[slot, kernels.PARENT] == kernels.FREE
        ):
            raise BugError("Eviction was asked about a part that is not there.", details=f"slot {slot}")

    def _grow(self) -> None:
        old = len(self._nodes)
        nodes = np.zeros((2 * old, kernels.N_COLUMNS), np.int32)
        nodes[:old] = self._nodes
        self._nodes = nodes
        worths = np.zeros(2 * old, np.float64)
        worths[:old] = self._worths
        self._worths = worths
        kernels.free_rows(self._nodes, self._state, old)
