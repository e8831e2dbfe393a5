"""Method "contextpilot": the paper's offline index and schedule, to be compared with inside our own harness.

arXiv 2511.03475: clustering by distance (section 4), alignment along the tree (5), schedule (6), as the
package's version 0.5.0 does them.
"""

import numpy as np

from core.errors import KnownError
from core.plan.batch import Batch, Ordered, equal_sets
from core.plan.contextpilot_kernels import average_linkage, distances

ALPHA = 0.001
MAX_SETS = 20_000
"""Distinct sets of blocks in one batch: their distances take 800 MB."""


def plan(batch: Batch) -> Ordered:
    """Tree and schedule. Takes O(n²) time and memory; raises KnownError above ``MAX_SETS`` distinct sets.

    Weights are not looked at: the paper counts blocks. A repeated set takes its first context's list.
    """
    sets = equal_sets(batch)
    firsts = np.unique(sets, return_index=True)[1]
    n = len(firsts)
    if n > MAX_SETS:
        raise KnownError(
            f"Method contextpilot orders at most {MAX_SETS:,} different contexts at a time, not {n:,}.",
            hint="Use method overlap, or smaller batches.",
        )
    lists = [batch.blocks[batch.starts[i] : batch.starts[i + 1]].tolist() for i in firsts]
    contents, children = _tree(lists, _merges(lists, len(batch.weights)))
    arranged_sets, paths = _walk(contents, children, n)
    members: list[list[int]] = [[] for _ in range(n)]
    for context, number in enumerate(sets.tolist()):
        members[number].append(context)
    positions = np.empty(len(batch.blocks), np.int32)
    for context, number in enumerate(sets.tolist()):
        start, end = int(batch.starts[context]), int(batch.starts[context + 1])
        position = {block: at for at, block in enumerate(batch.blocks[start:end].tolist())}
        positions[start:end] = [position[block] for block in arranged_sets[number]]
    order = [context for number in _schedule(paths, members) for context in members[number]]
    return Ordered(np.array(order, np.int32), positions, _n_saved(contents, children, members))


def _merges(lists: list[list[int]], n_blocks: int) -> list[tuple[int, int]]:
    """The dendrogram: pairs of node numbers, the i-th becoming node n + i, by rising distance."""
    n = len(lists)
    if n < 2:
        return []
    starts = np.zeros(n + 1, np.int64)
    np.cumsum([len(blocks) for blocks in lists], out=starts[1:])
    flat = np.array([block for blocks in lists for block in blocks], np.int32)
    condensed = np.empty(n * (n - 1) // 2, np.float32)
    distances(starts, flat, n_blocks, ALPHA, condensed)
    found = np.empty((n - 1, 2), np.int32)
    heights = np.empty(n - 1, np.float32)
    average_linkage(condensed, n, found, heights)
    node_of = list(range(n))  # by the largest context of a cluster
    merges = []
    for at in np.argsort(heights, kind="stable").tolist():
        x, y = found[at].tolist()
        merges.append((min(node_of[x], node_of[y]), max(node_of[x], node_of[y])))
        node_of[y] = n + len(merges) - 1
    return merges


def _tree(
    lists: list[list[int]], merges: list[tuple[int, int]]
) -> tuple[list[list[int]], dict[int, list[int]]]:
    """Content of every node, and the children of every inner node that is kept and of the root, −1.

    Content of an inner node: the intersection of its children, ordered as in the first. Nodes without
    content are left out; their children become the root's.
    """
    n = len(lists)
    contents = list(lists)
    for first, second in merges:
        common = set(contents[second])
        contents.append([block for block in contents[first] if block in common])
    children = {n + at: list(both) for at, both in enumerate(merges) if contents[n + at]}
    tops, stack = [], [len(contents) - 1] if contents else []
    while stack:
        node = stack.pop()
        if node < n or contents[node]:
            tops.append(node)
        else:
            stack.extend(reversed(merges[node - n]))
    children[-1] = tops
    return contents, children


def _walk(
    contents: list[list[int]], children: dict[int, list[int]], n: int
) -> tuple[list[list[int]], list[tuple[int, ...]]]:
    """From the root to the leaves: the list of each leaf, and its search path (child indices).

    A child's list is its parent's and then its own remaining blocks in their order.
    """
    arranged: list[list[int]] = [[] for _ in range(n)]
    paths: list[tuple[int, ...]] = [() for _ in range(n)]
    stack: list[tuple[int, list[int], tuple[int, ...]]] = [(-1, [], ())]
    while stack:
        node, blocks, path = stack.pop()
        for index, child in enumerate(children[node]):
            known = set(blocks)
            below = blocks + [block for block in contents[child] if block not in known]
            if child < n:
                arranged[child] = below
                paths[child] = (*path, index)
            else:
                stack.append((child, below, (*path, index)))
    return arranged, paths


def _schedule(paths: list[tuple[int, ...]], members: list[list[int]]) -> list[int]:
    """Sets in order of execution: by first element of the path, longer paths first, larger groups first."""
    groups: dict[int, list[int]] = {}
    for number, path in enumerate(paths):
        groups.setdefault(path[0], []).append(number)
    by_size = sorted(groups.values(), key=lambda group: -sum(len(members[number]) for number in group))
    return [number for group in by_size for number in sorted(group, key=lambda number: -len(paths[number]))]


def _n_saved(contents: list[list[int]], children: dict[int, list[int]], members: list[list[int]]) -> int:
    """Blocks that the tree shares: an inner node's once for each child but one, a repeated set's wholly."""
    inner = sum((len(below) - 1) * len(contents[node]) for node, below in children.items() if node >= 0)
    return inner + sum((len(group) - 1) * len(contents[number]) for number, group in enumerate(members))
