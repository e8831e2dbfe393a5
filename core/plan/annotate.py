"""Annotations: what was moved keeps its meaning. They stand after the blocks, before the question."""

from collections.abc import Sequence

from core.types import Passage

_LONGEST_NAME = 60
_SHORTENED = "Where a passage says [see …], the text named stands in that earlier passage."
_WORTH_SAYING = 60
"""Tokens that references must have saved before a sentence explains them: they speak for themselves."""


def annotation(
    passages: Sequence[Passage],
    referenced: Sequence[Passage],
    *,
    moved: bool,
    sources: bool = True,
    n_saved_tokens: int = 0,
) -> str:
    """Files of the passages, which of them stand further up, and their ranking if that is not their order.

    ``passages``: new and referenced ones together, in relevance order. ``moved``: they do not stand in the
    prompt in that order. ``sources``: name the files. ``n_saved_tokens``: by references within them. Empty
    text for no passages. File names are untrusted like all document text: one line each, shortened,
    tokenized without special tokens.
    """
    if not passages:
        return ""
    by_file: dict[str, list[str]] = {}
    for passage in passages:
        by_file.setdefault(file_name(passage.place.title), []).append(passage.block.label)
    lines = []
    if sources:
        files = "; ".join(f"{', '.join(labels)} from {name}" for name, labels in by_file.items())
        lines.append(f"Sources: {files}.")
    if referenced:
        labels = ", ".join(passage.block.label for passage in referenced)
        lines.append(f"Given earlier in this conversation: {labels}.")
    if n_saved_tokens >= _WORTH_SAYING:
        lines.append(_SHORTENED)
    if moved:
        lines.append("Most relevant first: " + " > ".join(passage.block.label for passage in passages) + ".")
    return "\n".join(lines)


def annotation_of_whole(scope: Sequence[Passage], found: Sequence[Passage], *, sources: bool = True) -> str:
    """Files that stand there whole, and which of their passages match the question, best first."""
    names = list(dict.fromkeys(file_name(passage.place.title) for passage in scope))
    if not names:
        return ""
    lines = [f"Sources: all of {'; '.join(names)}."] if sources else []
    if found:
        lines.append("Most relevant first: " + " > ".join(passage.block.label for passage in found) + ".")
    return "\n".join(lines)


def file_name(title: str) -> str:
    """A document's title on one line, at most 60 characters."""
    name = " ".join(title.split())
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
