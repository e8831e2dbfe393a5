"""The tree of cached chunks: what is known of each, and the one way in which it disappears."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from core.engine.protocol import Snapshot
from core.errors import BugError
from core.types import CacheEvent, Chunk, Committed, Evicted, Rooted, Segment, Weighed

_SMALL_CHANGE = 0.02


@dataclass(slots=True, eq=False)
class Node:
    """One chunk under its path."""

    key: bytes
    parent: "Node | None"
    """None for a root only."""
    root: bytes
    """Key of the namespace it belongs to."""
    depth: int = 0
    """Chunks from the root."""
    start: int = 0
    n_tokens: int = 0
    ends_segment: bool = True
    segment_parent: bytes = b""
    """Key of the last chunk of the segment before this one's, or the root's."""
    segment_tokens: int = 0
    weight: int = 0
    """What the events said last that its segment saves, in tokens."""
    element: int = 0
    block_id: str = ""
    slot: int = 0
    """Of the RAM tier's eviction queue; 0 while it is not in RAM."""
    is_late: bool = False
    """Its parent is not the parent of its slot, since it came into RAM later or not at all."""
    is_held: bool = False
    """Pinned in the queue."""
    ahead: bool = False
    """Read ahead of any question and not used by one yet: not worth the SSD."""
    off_disk: bool = False
    """Never written to SSD, nor is what follows it."""
    live: bool = False
    ram: Snapshot | None = None
    on_ssd: bool = False
    n_bytes: int = 0
    """Size of its snapshot; 0 until there was one."""
    file_used_at: float = 0.0
    """Unix time at which its snapshot on SSD was used last; 0 if it came there in this run."""
    prefill_s: float = 0.0
    """What computing it took; 0 if that was in another run of the program."""
    save_tried: bool = False
    """Since it became live last."""
    used_at: int = 0
    """Number of the request that used it last."""
    n_uses: int = 0
    children: set["Node"] = field(default_factory=set)

    @property
    def end(self) -> int:
        return self.start + self.n_tokens

    @property
    def has_snapshot(self) -> bool:
        return self.on_ssd or self.ram is not None

    @property
    def has_tier(self) -> bool:
        return self.live or self.has_snapshot

    def path(self) -> list["Node"]:
        """The node and its ancestors below its root, the first one first."""
        nodes: list[Node] = []
        node = self
        while node.parent is not None:
            nodes.append(node)
            node = node.parent
        return nodes[::-1]

    def subtree(self) -> Iterator["Node"]:
        """The node and all below it, every node after its descendants."""
        stack: list[tuple[Node, Iterator[Node]]] = [(self, iter(list(self.children)))]
        while stack:
            node, children = stack[-1]
            child = next(children, None)
            if child is None:
                stack.pop()
                yield node
            else:
                stack.append((child, iter(list(child.children))))


class Tree:
    """All nodes by key. Nodes come with a tier and go with their last one; both are told as events.

    It is a forest: each namespace has a root, which holds no tokens and stays.
    """

    def __init__(self, on_event: Callable[[CacheEvent], None]) -> None:
        self.roots: dict[bytes, Node] = {}
        self.nodes: dict[bytes, Node] = {}
        self.on_ram: Callable[[Node], None] = lambda _node: None
        """Told of every snapshot that comes into RAM or goes."""
        self.worth: Callable[[Node], float] = lambda _node: 1.0
        """Share of its prefill that having a chunk where it is saves, 0 to 1."""
        self.ram_bytes = 0
        """Bytes of all snapshots in RAM."""
        self._on_event = on_event

    def get(self, key: bytes) -> Node | None:
        return self.nodes.get(key)

    def add_root(self, key: bytes) -> None:
        self.roots[key] = Node(key, None, key)
        self._on_event(Rooted(key))

    def before(self, parent: bytes) -> Node | None:
        """The node or root that stands before a chunk whose parent this is."""
        return self.nodes.get(parent) or self.roots.get(parent)

    def add_chunk(self, chunk: Chunk, segment: Segment) -> Node:
        """The node of a chunk that is about to have a tier; its parent must have one."""
        parent = self.before(chunk.parent)
        if parent is None:
            raise BugError("A chunk was cached before the one it follows.", details=chunk.key.hex())
        node = Node(
            key=chunk.key,
            parent=parent,
            root=parent.root,
            start=chunk.start,
            n_tokens=len(chunk.tokens),
            ends_segment=chunk.ends_segment,
            segment_parent=parent.key if parent.ends_segment else parent.segment_parent,
            segment_tokens=len(segment.tokens),
            element=segment.element,
            block_id=segment.block_id,
        )
        return self.add(node)

    def add(self, node: Node) -> Node:
        if node.parent is None or node.key in self.nodes:
            raise BugError("A chunk was cached twice.", details=node.key.hex())
        node.depth = node.parent.depth + 1
        node.off_disk = node.off_disk or node.parent.off_disk
        self.nodes[node.key] = node
        node.parent.children.add(node)
        if node.ends_segment:
            self._on_event(
                Committed(node.key, node.segment_parent, node.element, node.segment_tokens, node.block_id)
            )
            node.weight = max(1, node.segment_tokens)
            self.weigh(node)
        return node

    def set_ram(self, node: Node, snapshot: Snapshot | None) -> None:
        """Give a node a snapshot in RAM, or take it away, and count its bytes."""
        self.ram_bytes += (0 if snapshot is None else len(snapshot)) - (
            0 if node.ram is None else len(node.ram)
        )
        node.ram = snapshot
        self.on_ram(node)
        self.weigh(node)

    def weigh(self, node: Node) -> None:
        """Tell what a segment saves where that has changed by more than a little."""
        if node.ends_segment and node.key in self.nodes and node.has_tier:
            weight = max(1, round(self.worth(node) * node.segment_tokens))
            if abs(weight - node.weight) > _SMALL_CHANGE * node.segment_tokens:
                node.weight = weight
                self._on_event(Weighed(node.key, weight))

    def tier_lost(self, node: Node) -> None:
        """To be called after a tier was taken from ``node``: without any it goes, and all below it.

        Descendants that still have a tier lose it as well: they could not be reached any more.
        """
        if not node.has_tier:
            self.remove(node)

    def remove(self, node: Node) -> None:
        """Take a node and all below it out of every tier. None of them may be live."""
        if node.key not in self.nodes:
            return
        for gone in node.subtree():
            self.set_ram(gone, None)
            gone.on_ssd = False
            if gone.live:
                raise BugError("A live chunk lost the one before it.", details=gone.key.hex())
            del self.nodes[gone.key]
            if gone.parent is not None:
                gone.parent.children.discard(gone)
            if gone.ends_segment:
                self._on_event(Evicted(gone.key))
