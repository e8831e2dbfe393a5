import pytest

from app import turns
from app.turns import Phase, TurnState
from core.types import AnswerDone, AnswerText, Context, QuestionFailed, SourcesFound, Turn


def test_the_phases_of_an_answer(parts):
    turn = TurnState("Q", None, 1)
    assert turn.running
    turn.apply(SourcesFound(1, 7, Context(parts.answer().passages, 12, 1.0)))
    assert (turn.phase, turn.conversation_id, len(turn.passages)) == (Phase.WAITING, 7, 2)
    turn.apply(parts.progress(1))
    assert turn.phase is Phase.READING
    turn.apply(AnswerText(1, "Ei"))
    turn.apply(AnswerText(1, "ther"))
    assert (turn.phase, turn.text) == (Phase.ANSWERING, "Either")
    turn.apply(AnswerDone(1, Turn(3, "Q", parts.answer()), 7))
    assert turn.phase is Phase.DONE
    assert not turn.running
    assert turn.text == parts.TEXT
    assert turn.chunks == parts.CHUNKS
    assert [turn.number_of(one) for one in turn.passages] == [1, 2]


def test_a_failure_keeps_what_was_found(parts):
    turn = TurnState("Q", None, 1)
    turn.apply(SourcesFound(1, 7, Context(parts.answer().passages, 12, 1.0)))
    turn.apply(QuestionFailed(1, "No.", "", ""))
    assert turn.phase is Phase.FAILED
    assert len(turn.passages) == 2


def test_the_clock_of_a_running_prefill_goes_on_between_chunks(parts, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(turns, "monotonic", lambda: now[0])
    turn = TurnState("Q", 7, 1)
    turn.apply(parts.progress(1, 6))
    assert turn.n_ahead_tokens == 0
    now[0] += 0.25
    assert turn.live_progress.prefill_s == pytest.approx(turn.progress.prefill_s + 0.25)
    assert turn.n_ahead_tokens == pytest.approx(0.25 * 152)
    now[0] += 60  # never more than the chunk itself, and not all of it
    assert turn.n_ahead_tokens == 80 * turns.MOST_AHEAD
    turn.apply(AnswerText(1, "Ei"))
    assert turn.live_progress == turn.progress
    assert turn.n_ahead_tokens == 0
