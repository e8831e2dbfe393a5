"""De-duplication by block: what the prompt already holds is referenced, not repeated (paper, section 5)."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from core.types import Passage


def split_held(
    passages: Sequence[Passage], held: AbstractSet[str]
) -> tuple[tuple[Passage, ...], tuple[Passage, ...]]:
    """Passages whose block must be put into the prompt, and those whose block an earlier turn still holds.

    Both in the order given; of a block that was retrieved twice only the first stays. References point
    backwards only: ``held`` names blocks that stand before this question in this very prompt.
    """
    new: list[Passage] = []
    references: list[Passage] = []
    seen: set[str] = set()
    for passage in passages:
        if passage.block.id in seen:
            continue
        seen.add(passage.block.id)
        (references if passage.block.id in held else new).append(passage)
    return tuple(new), tuple(references)
