"""Kernels of eviction: leaves of a tree by class, and how likely each class is used again.

One row of ``nodes`` int32 ``(capacity, 11)`` is a node of the tree whose leaves may be evicted; the columns
are named below. Leaves that are not pinned stand in one pairing heap per class, the one unused for longest
on top (``tops`` int32 ``(N_CLASSES,)``, −1 for none): entering costs O(1), leaving O(log n) amortized.

The rate at which a node is used again, per request, is exp(w · f): a Poisson regression on its class and its
age (requests since it was used last), learned from every use and from a few nodes looked at in turn on every
request, each standing for its share of all nodes.
"""

import numpy as np
from numpy.typing import NDArray

from core.jit import kernel

PARENT, N_CHILDREN, USED_AT, CLASS, VISITS, COUNT, PINS, DOWN, NEXT, PREVIOUS, DEPTH = range(11)
N_COLUMNS = 11
FREE = -2
"""In PARENT of a free row; free rows are chained through NEXT."""
OUT = -2
"""In PREVIOUS of a node that stands in no heap; −1 there is the top of one."""

N_DEPTHS, N_VISITS, N_COUNTS, N_WORTHS = 10, 3, 3, 3
N_CLASSES = N_DEPTHS * N_VISITS * N_COUNTS * N_WORTHS
N_FEATURES = 13

REQUEST, FIRST_FREE, N_NODES, HAND = 0, 1, 2, 3
N_STATE = 4

N_LOOKED_AT = 64
"""Nodes looked at per request, about."""
_STEP = 0.1
_FORGET = 0.9998
"""Per request, of the squared gradients: the step never becomes too small to follow a change of habits."""
_LARGEST_WEIGHT = 12.0

Nodes = NDArray[np.int32]
Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]
Floats = NDArray[np.float64]


@kernel("b1(i4[:, ::1], i8, i8)")
def is_older(nodes: Nodes, one: int, other: int) -> bool:
    """Was ``one`` used before ``other``? Of two used by the same request the lower row is the older."""
    if nodes[one, USED_AT] != nodes[other, USED_AT]:
        return bool(nodes[one, USED_AT] < nodes[other, USED_AT])
    return bool(one < other)


@kernel("i8(i4[:, ::1], i8, i8)")
def meld(nodes: Nodes, one: int, other: int) -> int:
    """Join two heaps (−1 for an empty one) whose tops have no sisters; returns the top."""
    if one < 0:
        return other
    if other < 0:
        return one
    if is_older(nodes, other, one):
        one, other = other, one
    first = nodes[one, DOWN]
    nodes[other, NEXT] = first
    nodes[other, PREVIOUS] = one  # of the first child PREVIOUS is the parent, of the others the sister before
    if first >= 0:
        nodes[first, PREVIOUS] = other
    nodes[one, DOWN] = other
    nodes[one, NEXT] = -1
    nodes[one, PREVIOUS] = -1
    return one


@kernel("i8(i4[:, ::1], i8)")
def meld_sisters(nodes: Nodes, first: int) -> int:
    """Join the heaps of a chain of sisters: in pairs from the left, then all of them from the right."""
    pairs = -1  # joined pairs, the last one first, chained through NEXT
    while first >= 0:
        second = int(nodes[first, NEXT])
        rest = int(nodes[second, NEXT]) if second >= 0 else -1
        nodes[first, NEXT] = -1
        nodes[first, PREVIOUS] = -1
        if second >= 0:
            nodes[second, NEXT] = -1
            nodes[second, PREVIOUS] = -1
        joined = meld(nodes, first, second)
        nodes[joined, NEXT] = pairs
        pairs = joined
        first = rest
    top = -1
    while pairs >= 0:
        rest = int(nodes[pairs, NEXT])
        nodes[pairs, NEXT] = -1
        top = meld(nodes, top, pairs)
        pairs = rest
    return top


@kernel("void(i4[:, ::1], i4[::1], i8)")
def leave_heap(nodes: Nodes, tops: Int32s, node: int) -> None:
    """Take a node out of the heap of its class, if it stands in one."""
    previous = nodes[node, PREVIOUS]
    if previous == OUT:
        return
    below = meld_sisters(nodes, nodes[node, DOWN])
    if previous < 0:
        tops[nodes[node, CLASS]] = below
    else:
        after = nodes[node, NEXT]
        if nodes[previous, DOWN] == node:
            nodes[previous, DOWN] = after
        else:
            nodes[previous, NEXT] = after
        if after >= 0:
            nodes[after, PREVIOUS] = previous
        tops[nodes[node, CLASS]] = meld(nodes, tops[nodes[node, CLASS]], below)
    nodes[node, DOWN] = -1
    nodes[node, NEXT] = -1
    nodes[node, PREVIOUS] = OUT


@kernel("void(i4[:, ::1], i4[::1], i8)")
def enter_heap(nodes: Nodes, tops: Int32s, node: int) -> None:
    """Put a node into the heap of its class if it may be evicted: a leaf, not pinned, not the root."""
    if (
        nodes[node, PARENT] < 0
        or nodes[node, N_CHILDREN] > 0
        or nodes[node, PINS] > 0
        or nodes[node, PREVIOUS] != OUT
    ):
        return
    nodes[node, DOWN] = -1
    nodes[node, NEXT] = -1
    nodes[node, PREVIOUS] = -1
    tops[nodes[node, CLASS]] = meld(nodes, tops[nodes[node, CLASS]], node)


@kernel("i8(i8, i8, i8, f8)")
def class_of(depth: int, visits: int, count: int, relative_worth: float) -> int:
    """Depth 1–10+, visits 1/2/3+, count of its block 1/2–4/5+, worth < ½, around 1, > 2 times the mean."""
    by_depth = min(max(depth, 1), N_DEPTHS) - 1
    by_visits = min(max(visits, 1), N_VISITS) - 1
    by_count = 0 if count <= 1 else 1 if count <= 4 else 2
    by_worth = 0 if relative_worth < 0.5 else 1 if relative_worth <= 2.0 else 2
    return ((by_depth * N_VISITS + by_visits) * N_COUNTS + by_count) * N_WORTHS + by_worth


@kernel("void(i8, i8, b1, f8[::1])")
def describe(node_class: int, age: int, has_children: bool, features: Floats) -> None:
    """Features float64 ``(N_FEATURES,)`` of a node; about 1 in size each."""
    by_count = node_class // N_WORTHS % N_COUNTS
    by_visits = node_class // (N_WORTHS * N_COUNTS) % N_VISITS
    by_depth = node_class // (N_WORTHS * N_COUNTS * N_VISITS)
    log_age = np.log(age + 1.0) / 3.0
    once = 1.0 if by_visits == 0 else 0.0
    depth = (by_depth + 1) / 5.0
    features[0] = 1.0
    features[1] = log_age
    features[2] = depth
    features[3] = 1.0 if by_visits == N_VISITS - 1 else 0.0
    features[4] = 1.0 if by_count == N_COUNTS - 1 else 0.0
    features[5] = 1.0 if by_count == 0 else 0.0
    features[6] = once
    features[7] = 1.0 if by_depth == 0 else 0.0
    features[8] = 1.0 if by_depth >= 7 else 0.0
    features[9] = log_age * once
    features[10] = depth * once
    features[11] = 1.0 if has_children else 0.0
    features[12] = log_age * log_age


@kernel("f8(f8[:, ::1], i8, i8, b1, f8[::1])")
def rate(model: Floats, node_class: int, age: int, has_children: bool, features: Floats) -> float:
    """Expected uses per request of such a node. ``model`` float64 ``(2, n)``: weights, squared gradients."""
    describe(node_class, age, has_children, features)
    exponent = 0.0
    for index in range(N_FEATURES):
        exponent += model[0, index] * features[index]
    return float(np.exp(min(exponent, 2.0)))


@kernel("void(f8[:, ::1], f8[::1], f8)")
def learn(model: Floats, features: Floats, surprise: float) -> None:
    """One step (Adagrad) up or down: ``surprise`` is uses seen less uses expected."""
    for index in range(N_FEATURES):
        gradient = surprise * features[index]
        if gradient != 0.0:
            model[1, index] += gradient * gradient
            weight = model[0, index] + _STEP * gradient / np.sqrt(model[1, index])
            model[0, index] = min(max(weight, -_LARGEST_WEIGHT), _LARGEST_WEIGHT)


@kernel("i8(i4[:, ::1], f8[::1], i4[::1], i8[::1], i8, i8, f8, f8)")
def insert(
    nodes: Nodes,
    worths: Floats,
    tops: Int32s,
    state: Int64s,
    parent: int,
    count: int,
    worth: float,
    relative_worth: float,
) -> int:
    """A new node below ``parent`` (row 0 is the root), used by this request; there must be a free row."""
    node = state[FIRST_FREE]
    state[FIRST_FREE] = nodes[node, NEXT]
    state[N_NODES] += 1
    depth = nodes[parent, DEPTH] + 1
    nodes[node, PARENT] = parent
    nodes[node, N_CHILDREN] = 0
    nodes[node, USED_AT] = state[REQUEST]
    nodes[node, VISITS] = 1
    nodes[node, COUNT] = count
    nodes[node, PINS] = 0
    nodes[node, DEPTH] = depth
    nodes[node, CLASS] = class_of(depth, 1, count, relative_worth)
    nodes[node, DOWN] = -1
    nodes[node, NEXT] = -1
    nodes[node, PREVIOUS] = OUT
    worths[node] = worth
    if nodes[parent, N_CHILDREN] == 0:
        leave_heap(nodes, tops, parent)
    nodes[parent, N_CHILDREN] += 1
    enter_heap(nodes, tops, node)
    return int(node)


@kernel("void(i4[:, ::1], f8[:, ::1], i4[::1], i8[::1], i8, i8, f8, f8[::1])")
def use(
    nodes: Nodes,
    model: Floats,
    tops: Int32s,
    state: Int64s,
    node: int,
    count: int,
    relative_worth: float,
    features: Floats,
) -> None:
    """A node is used by this request: learn from it, and make it the youngest of its class."""
    age = state[REQUEST] - nodes[node, USED_AT]
    nodes[node, COUNT] = max(count, nodes[node, COUNT]) if count > 0 else nodes[node, COUNT]
    if age <= 0:
        return
    describe(nodes[node, CLASS], age, nodes[node, N_CHILDREN] > 0, features)
    learn(model, features, 1.0)
    leave_heap(nodes, tops, node)
    nodes[node, VISITS] += 1
    nodes[node, USED_AT] = state[REQUEST]
    nodes[node, CLASS] = class_of(nodes[node, DEPTH], nodes[node, VISITS], nodes[node, COUNT], relative_worth)
    enter_heap(nodes, tops, node)


@kernel("b1(i4[:, ::1], i4[::1], i8[::1], i8)")
def remove(nodes: Nodes, tops: Int32s, state: Int64s, node: int) -> bool:
    """Take a leaf out of the tree; its parent may become a leaf. False if it is no leaf."""
    if nodes[node, PARENT] < 0 or nodes[node, N_CHILDREN] > 0:
        return False
    leave_heap(nodes, tops, node)
    parent = nodes[node, PARENT]
    nodes[parent, N_CHILDREN] -= 1
    nodes[node, PARENT] = FREE
    nodes[node, NEXT] = state[FIRST_FREE]
    state[FIRST_FREE] = node
    state[N_NODES] -= 1
    enter_heap(nodes, tops, parent)
    return True


@kernel("void(i4[:, ::1], i4[::1], i8, i8)")
def pin(nodes: Nodes, tops: Int32s, node: int, by: int) -> None:
    """Add ``by`` (1 or −1) to the pins of a node; a pinned one stands in no heap."""
    nodes[node, PINS] += by
    if nodes[node, PINS] > 0:
        leave_heap(nodes, tops, node)
    else:
        enter_heap(nodes, tops, node)


@kernel("i8(i4[:, ::1], f8[::1], f8[:, ::1], i4[::1], i8[::1], b1, f8[::1])")
def victim(
    nodes: Nodes, worths: Floats, model: Floats, tops: Int32s, state: Int64s, learned: bool, features: Floats
) -> int:
    """The leaf to evict, or −1: the oldest one of the class whose oldest leaf has the lowest rate · worth.

    Not ``learned``: the one unused for longest. The first class wins a tie.
    """
    best = -1
    lowest = np.inf
    for node_class in range(N_CLASSES):
        node = int(tops[node_class])
        if node < 0:
            continue
        if learned:
            age = state[REQUEST] - nodes[node, USED_AT]
            value = rate(model, node_class, age, False, features) * worths[node]
            if value < lowest:
                lowest = value
                best = node
        elif best < 0 or is_older(nodes, node, best):
            best = node
    return int(best)


@kernel("void(i4[:, ::1], f8[:, ::1], i8[::1], f8[::1])")
def next_request(nodes: Nodes, model: Floats, state: Int64s, features: Floats) -> None:
    """A new request begins: learn from nodes that stand for all that were not used by the last one.

    Walks on from the row where it stopped last time, so every node is looked at in turn.
    """
    for index in range(N_FEATURES):
        model[1, index] = max(model[1, index] * _FORGET, 1e-3)
    state[REQUEST] += 1
    n_nodes = state[N_NODES]
    if n_nodes == 0:
        return
    n_rows = nodes.shape[0] - 1
    walked = min(n_rows, N_LOOKED_AT * min(n_rows // n_nodes + 1, 4))
    share = n_rows / walked
    row = state[HAND]
    for _ in range(walked):
        row = row + 1 if row < n_rows else 1
        if nodes[row, PARENT] < 0:
            continue
        age = state[REQUEST] - nodes[row, USED_AT]
        expected = rate(model, nodes[row, CLASS], age, nodes[row, N_CHILDREN] > 0, features)
        learn(model, features, -expected * share)
    state[HAND] = row


@kernel("void(i4[:, ::1], i8[::1], i8)")
def free_rows(nodes: Nodes, state: Int64s, first: int) -> None:
    """Make the rows from ``first`` on free, the lowest one to be taken first."""
    for row in range(nodes.shape[0] - 1, first - 1, -1):
        nodes[row, PARENT] = FREE
        nodes[row, NEXT] = state[FIRST_FREE]
        nodes[row, DOWN] = -1
        nodes[row, PREVIOUS] = OUT
        state[FIRST_FREE] = row
