"""What stands before a question: its conversation's prompt so far, as a ledger of segments."""

from core.errors import KnownError
from core.types import Segment, SegmentKind
from core.workbench import Workbench


def branch_of(bench: Workbench, conversation_id: int | None) -> tuple[tuple[Segment, ...], bool]:
    """The conversation's prompt so far, and whether it is a new branch.

    A turn whose ledger begins with a head starts a branch: what stood before it was set aside. If a ledger
    since then is gone (its document was removed) or of another model, the turns' text is rendered anew.
    """
    if conversation_id is None:
        return (bench.writer.head(),), True
    ledgers = bench.conversations.ledger(conversation_id)
    if not ledgers:
        raise KnownError("This conversation was deleted.", hint="Start a new one.")
    heads = [n for n, (_, ledger) in enumerate(ledgers) if ledger and ledger[0].kind is SegmentKind.HEAD]
    current = ledgers[heads[-1] :] if heads else ledgers
    if all(ledger and tokenizer == bench.engine.tokenizer_id for tokenizer, ledger in current):
        return tuple(segment for _, ledger in current for segment in ledger), False
    turns = bench.conversations.turns(conversation_id)
    return bench.writer.history_from_text((t.question, t.answer.text) for t in turns), True


def latest_turns(bench: Workbench, conversation_id: int, room: int) -> tuple[Segment, ...]:
    """Questions and answers of as many of the latest turns as fit ``room`` tokens, without passages."""
    kept: list[Segment] = []
    for turn in reversed(bench.conversations.turns(conversation_id)):
        pair = bench.writer.turn_from_text(turn.question, turn.answer.text)
        room -= n_tokens(*pair)
        if room < 0:
            break
        kept[:0] = pair
    return tuple(kept)


def n_tokens(*segments: Segment) -> int:
    return sum(len(segment.tokens) for segment in segments)
