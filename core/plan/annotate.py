"""Annotations: what was moved keeps its meaning. They stand after the blocks, before the question."""

from collections.abc import Sequence

from core.plan.phrases import ENGLISH, Phrases
from core.types import Passage

_LONGEST_NAME = 60


def annotation(
    passages: Sequence[Passage],
    referenced: Sequence[Passage],
    *,
    moved: bool,
    sources: bool = True,
    phrases: Phrases = ENGLISH,
) -> str:
    """Files of the passages, which of them stand further up, and their ranking if that is not their order.

    ``passages``: new and referenced ones together, in relevance order. ``moved``: they do not stand in the
    prompt in that order. ``sources``: name the files. Empty text for no passages. File names are
    untrusted like all document text: one line each, shortened, tokenized without special tokens.
    """
    if not passages:
        return ""
    by_file: dict[str, list[str]] = {}
    for passage in passages:
        by_file.setdefault(file_name(passage.place.title), []).append(passage.block.label)
    lines = []
    if sources:
        files = (
            phrases.of_file.format(labels=", ".join(labels), name=name) for name, labels in by_file.items()
        )
        lines.append(phrases.sources.format("; ".join(files)))
    if referenced:
        lines.append(phrases.earlier.format(", ".join(passage.block.label for passage in referenced)))
    if moved:
        lines.append(_ranking(passages, phrases))
    return "\n".join(lines)


def _ranking(passages: Sequence[Passage], phrases: Phrases) -> str:
    return phrases.ranking.format(" > ".join(passage.block.label for passage in passages))


def annotation_of_whole(
    scope: Sequence[Passage],
    found: Sequence[Passage],
    *,
    sources: bool = True,
    phrases: Phrases = ENGLISH,
) -> str:
    """Files that stand there whole, and which of their passages match the question, best first."""
    names = list(dict.fromkeys(file_name(passage.place.title) for passage in scope))
    if not names:
        return ""
    lines = [phrases.whole.format("; ".join(names))] if sources else []
    if found:
        lines.append(_ranking(found, phrases))
    return "\n".join(lines)


def file_name(title: str) -> str:
    """A document's title on one line, at most 60 characters."""
    name = " ".join(title.split())
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
