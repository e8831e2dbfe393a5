"""In which order blocks that are not cached should follow: the one that later questions can share.

Only the beginning of a prompt can be reused, so what is likely to be asked for together again should come
first. Nobody knows the next questions; the last ones are the best guess. A few *experts* order the blocks: by
relevance alone, and by how often they were asked for together with those before them, mildly or strongly
blended with relevance. Each expert is credited by how long a run of the orders that it would have chosen
later contexts could have reused, and the best-credited one speaks. That finds by itself that conversations
want relevance and questions over one library want what belongs together.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from core.errors import DamagedState
from core.index import order_kernels as kernels

_N_ENTRIES = 262_144
"""Blocks of recent contexts remembered: 26,000 contexts of ten."""
_N_STORED = 4096
"""Contexts whose orders are kept to credit the experts; even the longest ones fit ``_N_ENTRIES``."""
_CREDIT_DECAY = 0.999
"""Per context: habits of some thousand questions ago no longer decide who speaks."""
_ALL_CREDITED = 2048
_CREDITED_SHARE = 4
"""After so many contexts one in so many is enough to follow how the experts do: crediting costs 50 µs."""
_FIRST_BLOCKS = 256
_STATE_VERSION = 1

MAX_STATE_BYTES = 8 * _N_ENTRIES + 4 * _N_ENTRIES + 64
"""Bound of what ``state`` returns (3.1 MB): every remembered block and the length of every context."""


@dataclass(frozen=True, slots=True)
class Expert:
    """How much relevance and the document weigh against what was asked for together."""

    name: str
    by_rank: float
    by_group: float


EXPERTS = (
    Expert("relevance", np.inf, 0.0),
    Expert("together, mildly", 20.0, 10.0),
    Expert("together, strongly", 5.0, 5.0),
)


class OrderStatistics:
    """What was asked for together lately. Owned by the engine thread; no locks.

    Bounded: 3 MB of entries, 1 MB of stored orders, and 20 bytes (plus a dictionary entry) for each block
    that the entries hold. Old contexts are overwritten, so nothing needs to be reset. Deterministic.
    """

    def __init__(self) -> None:
        self._entries = np.zeros((_N_ENTRIES, kernels.N_COLUMNS), np.int32)
        self._held = np.zeros(_N_ENTRIES, np.int32)
        self._state = np.zeros(2, np.int64)
        self._newest = np.full(_FIRST_BLOCKS, -1, np.int64)
        self._counts = np.zeros(_FIRST_BLOCKS, np.int32)
        self._position = np.full(_FIRST_BLOCKS, -1, np.int32)
        self._dense: dict[int, int] = {}
        self._elements: list[int] = []
        self._free_dense: list[int] = []
        self._stored = np.full((_N_STORED, len(EXPERTS), kernels.STORED_BLOCKS), -1, np.int32)
        self._first_stored = 0
        self._n_asked = 0
        self._credits = np.zeros(len(EXPERTS), np.float64)
        self._table = np.full(kernels.TABLE_SIZE, -1, np.int32)
        self._contexts = np.empty(kernels.MAX_NEIGHBOURS, np.int32)
        self._masks = np.empty(kernels.MAX_NEIGHBOURS, np.int64)
        self._equal = np.ones(kernels.MAX_BLOCKS, np.float64)
        self._single = np.full(kernels.MAX_BLOCKS, -1, np.int64)
        self._freed = np.empty(kernels.MAX_BLOCKS, np.int32)
        self._seen = np.empty((kernels.MAX_RECENT, kernels.MAX_BLOCKS), np.int32)

    def __len__(self) -> int:
        """Different blocks that are remembered."""
        return len(self._dense)

    @property
    def expert(self) -> Expert:
        """The one that speaks."""
        return EXPERTS[int(np.argmax(self._credits))]

    def count(self, element: int) -> int:
        """How many of the remembered contexts hold this block."""
        dense = self._dense.get(element)
        return 0 if dense is None else int(self._counts[dense])

    def tail(
        self,
        fixed: Sequence[int],
        rest: Sequence[int],
        *,
        lengths: Sequence[int] | None = None,
        groups: Sequence[int] | None = None,
    ) -> list[int]:
        """An order of ``rest`` (its indices) to follow ``fixed``; a permutation, whatever comes in.

        ``fixed``, ``rest``: elements, 64 bits; ``rest`` in relevance order. ``lengths`` (tokens) and
        ``groups`` (an integer ≥ 0 per document, −1 for none) are those of ``(*fixed, *rest)``: a longer block
        is worth more in front, and blocks of one document are asked for together.
        """
        expert = int(np.argmax(self._credits))
        n_rest = len(rest)
        if n_rest < 2 or expert == 0 or len(fixed) >= kernels.MAX_BLOCKS - 1:
            return list(range(n_rest))
        blocks = self._known(fixed, rest)
        n = self._neighbours(blocks)
        order = self._order(expert, n, len(fixed), len(blocks), lengths, groups)
        seen = len(blocks) - len(fixed)
        return [index - len(fixed) for index in order.tolist()] + list(range(seen, n_rest))

    def record(
        self,
        context: Sequence[int],
        *,
        fixed: Sequence[int] = (),
        lengths: Sequence[int] | None = None,
        groups: Sequence[int] | None = None,
        asked: bool = True,
    ) -> None:
        """Remember a context after its request: its elements in relevance order, repeats allowed.

        ``fixed``: the cached path that its prompt began with. ``lengths`` and ``groups`` are those of
        ``context``. ``asked=False`` for a context that nobody asked for (found by a made-up question about a
        block): it tells what belongs together and credits no expert.
        """
        self._n_asked += asked
        if not asked or (self._n_asked > _ALL_CREDITED and self._n_asked % _CREDITED_SHARE):
            self._append(list(dict.fromkeys(context))[: kernels.MAX_BLOCKS])
            return
        place = {element: index for index, element in reversed(list(enumerate(context)))}
        path = [element for element in dict.fromkeys(fixed) if element in place]
        taken = set(path)
        rest = [element for element in dict.fromkeys(context) if element not in taken]
        elements = (path + rest)[: kernels.MAX_BLOCKS]
        if len(elements) > 1:
            places = [place[element] for element in elements]
            self._credit_experts(
                elements,
                min(len(path), len(elements)),
                None if lengths is None else [lengths[index] for index in places],
                None if groups is None else [groups[index] for index in places],
            )
        self._append(elements)

    # --- keeping it over a restart ----------------------------------------------------------------------

    def state(self) -> dict[str, NDArray[np.generic]]:
        """All that ``restore`` needs, at most ``MAX_STATE_BYTES``: ``version`` int64 ``()``, ``blocks``
        uint64 ``(n,)`` (elements of the remembered contexts, oldest first), ``lengths`` int32 ``(m,)``
        (blocks of each context), ``credits`` float64 ``(n_experts,)``.
        """
        end = int(self._state[kernels.NEXT_ENTRY])
        rows = np.arange(max(0, end - _N_ENTRIES), end) & (_N_ENTRIES - 1)
        elements = np.array(self._elements or [0], np.uint64)
        starts = np.flatnonzero(np.diff(self._entries[rows, kernels.CONTEXT], prepend=-1))
        return {
            "version": np.array(_STATE_VERSION, np.int64),
            "blocks": elements[self._held[rows]],
            "lengths": np.diff(starts, append=len(rows)).astype(np.int32),
            "credits": self._credits.copy(),
        }

    def restore(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        """Take over what ``state`` returned, in linear time. Raises DamagedState, with nothing changed."""
        blocks, lengths, credits_ = _checked(state)
        self.__init__()  # type: ignore[misc]  # from here on it is a new one
        elements, dense = np.unique(blocks, return_inverse=True)
        self._elements = elements.tolist()
        self._dense = {element: index for index, element in enumerate(self._elements)}
        self._reserve(len(elements))
        numbers = dense.astype(np.int32)
        start = 0
        for end in np.cumsum(lengths).tolist():
            kernels.record(
                self._entries,
                self._held,
                self._newest,
                self._counts,
                self._state,
                numbers[start:end],
                self._freed,
            )
            start = end
        self._credits[:] = credits_
        self._first_stored = len(lengths)

    def forget(self, elements: AbstractSet[int]) -> None:
        """Take elements out of everything that is remembered, as if they had never been asked for."""
        if not any(element in self._dense for element in elements):
            return
        state = self.state()
        blocks, lengths = state["blocks"].tolist(), state["lengths"].tolist()
        kept_blocks: list[int] = []
        kept_lengths: list[int] = []
        start = 0
        for length in lengths:
            kept = [element for element in blocks[start : start + length] if element not in elements]
            start += length
            if kept:
                kept_blocks += kept
                kept_lengths.append(len(kept))
        self.restore(
            {
                **state,
                "blocks": np.array(kept_blocks, np.uint64),
                "lengths": np.array(kept_lengths, np.int32),
            }
        )

    # --- inside -------------------------------------------------------------------------------------------

    def _known(self, fixed: Sequence[int], rest: Sequence[int]) -> NDArray[np.int32]:
        """Dense numbers of the first ``MAX_BLOCKS``, −1 for one that is not known or stands there already."""
        elements = [*fixed, *rest][: kernels.MAX_BLOCKS]
        get = self._dense.get
        if len(set(elements)) == len(elements):
            return np.array([get(element, -1) for element in elements], np.int32)
        first = {element: index for index, element in reversed(list(enumerate(elements)))}
        numbers = [get(e, -1) if first[e] == index else -1 for index, e in enumerate(elements)]
        return np.array(numbers, np.int32)

    def _neighbours(self, blocks: NDArray[np.int32]) -> int:
        return int(
            kernels.neighbours(
                self._entries,
                self._newest,
                self._state,
                blocks,
                self._table,
                self._contexts,
                self._masks,
                self._seen,
            )
        )

    def _order(
        self,
        expert: int,
        n_neighbours: int,
        n_fixed: int,
        k: int,
        lengths: Sequence[int] | None,
        groups: Sequence[int] | None,
    ) -> NDArray[np.int32]:
        relative = self._equal[:k]
        if lengths is not None:
            relative = np.array(lengths[:k], np.float64)
            relative /= max(float(relative.mean()), 1e-9)
        group = self._single[:k] if groups is None else np.array(groups[:k], np.int64)
        order = np.empty(k - n_fixed, np.int32)
        chosen = EXPERTS[expert]
        kernels.tail(
            self._masks, n_neighbours, n_fixed, relative, group, chosen.by_rank, chosen.by_group, order
        )
        return order

    def _credit_experts(
        self,
        elements: list[int],
        n_fixed: int,
        lengths: Sequence[int] | None,
        groups: Sequence[int] | None,
    ) -> None:
        blocks = self._known(elements, ())
        n = self._neighbours(blocks)
        context = int(self._state[kernels.NEXT_CONTEXT])
        kernels.credit(
            self._contexts, n, self._stored, blocks, self._position, context, self._first_stored,
            _CREDIT_DECAY, self._credits,
        )  # fmt: skip
        numbers = [self._number(element) for element in elements]
        row = self._stored[context & (_N_STORED - 1)]
        row[:] = -1
        kept = min(len(numbers), kernels.STORED_BLOCKS)
        row[0, :kept] = numbers[:kept]
        for expert in range(1, len(EXPERTS)):
            order = self._order(expert, n, n_fixed, len(elements), lengths, groups).tolist()
            row[expert, :kept] = (numbers[:n_fixed] + [numbers[index] for index in order])[:kept]

    def _append(self, elements: list[int]) -> None:
        if not elements:
            return
        blocks = np.array([self._number(element) for element in elements], np.int32)
        n = kernels.record(
            self._entries, self._held, self._newest, self._counts, self._state, blocks, self._freed
        )
        for dense in self._freed[:n].tolist():
            del self._dense[self._elements[dense]]
            self._free_dense.append(dense)

    def _number(self, element: int) -> int:
        dense = self._dense.get(element)
        if dense is None:
            if self._free_dense:
                dense = self._free_dense.pop()
                self._elements[dense] = element
            else:
                dense = len(self._elements)
                self._elements.append(element)
                self._reserve(dense + 1)
            self._dense[element] = dense
        return dense

    def _reserve(self, n_blocks: int) -> None:
        """Room for so many dense numbers: the arrays double."""
        size = len(self._newest)
        if n_blocks <= size:
            return
        while size < n_blocks:
            size *= 2
        self._newest = _longer(self._newest, size, -1)
        self._counts = _longer(self._counts, size, 0)
        self._position = _longer(self._position, size, -1)


_T = TypeVar("_T", np.int32, np.int64)


def _longer(array: NDArray[_T], size: int, fill: int) -> NDArray[_T]:
    new = np.full(size, fill, array.dtype)
    new[: len(array)] = array
    return new


def _checked(
    state: Mapping[str, NDArray[np.generic]],
) -> tuple[NDArray[np.generic], NDArray[np.generic], NDArray[np.generic]]:
    """The three arrays of a state that is sound. Raises DamagedState."""
    try:
        version, blocks, lengths, credits_ = (
            np.asarray(state[name]) for name in ("version", "blocks", "lengths", "credits")
        )
        sound = (
            version.shape == ()
            and int(version) == _STATE_VERSION
            and blocks.dtype == np.uint64
            and blocks.ndim == 1
            and len(blocks) <= _N_ENTRIES
            and lengths.dtype == np.int32
            and lengths.ndim == 1
            and bool(np.all((lengths > 0) & (lengths <= kernels.MAX_BLOCKS)))
            and int(lengths.sum()) == len(blocks)
            and credits_.dtype == np.float64
            and credits_.shape == (len(EXPERTS),)
            and bool(np.all(np.isfinite(credits_) & (credits_ >= 0)))
        )
        if sound:
            ends = np.cumsum(lengths)
            sound = all(
                len(set(blocks[end - n : end].tolist())) == n
                for end, n in zip(ends.tolist(), lengths.tolist(), strict=True)
            )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DamagedState("The order statistics are damaged.", details=str(error)) from error
    if not sound:
        raise DamagedState("The order statistics are damaged.", hint="They start afresh.")
    return blocks, lengths, credits_
