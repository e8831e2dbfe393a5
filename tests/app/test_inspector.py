import pytest
from PySide6.QtWidgets import QLabel

from app.inspector import Inspector, NumberTable
from app.turns import TurnState, counted
from app.widgets import Label
from core.types import CacheState, SessionTotals, Turn


@pytest.fixture
def inspector(qtbot, theme):
    made = Inspector(theme)
    qtbot.addWidget(made)
    return made


def test_the_numbers_are_the_metrics(inspector, parts):
    inspector.show_turn(TurnState.of(Turn(1, "Q", parts.answer()), 7))
    rows = dict(inspector.table.rows())
    assert rows["Prompt"] == "2,310 tokens"
    assert rows["Live"] == "1,024 tokens"
    assert rows["From RAM"] == "512 tokens"
    assert rows["From SSD"] == "304 tokens"
    assert rows["Prefilled"] == "470 tokens"
    assert rows["Referenced"] == "120 tokens not repeated"
    assert rows["Hit ratio"] == "79.7 % (1,840 of 2,310 tokens)"
    assert rows["Prefill"] == "3.1 s at 152 tokens/s"
    assert rows["First token"] == "after 3.2 s"
    assert rows["Answer"] == "84 tokens at 11.2 tokens/s"
    assert inspector.sentence.text() == (
        "1,840 of 2,310 tokens reused · 3.1 s instead of about 15.2 s"
        " · first miss: contract-b.pdf, p. 4: not read before"
    )


def test_it_is_live_while_prefill_runs(inspector, parts):
    turn = TurnState("Q", 7, 1)
    turn.apply(parts.progress(1, 6))
    inspector.show()
    inspector.show_turn(turn)
    assert inspector.live.text() == "2.6 s · 152 tokens/s"
    assert inspector.sentence.text().startswith("Reading 2,230 of 2,310 tokens, 1,840 reused")
    assert inspector.bar.chunks[5].n_tokens == 390
    assert not inspector.table.isVisibleTo(inspector)


def test_the_session_has_its_base(inspector, parts):
    totals = counted(counted(SessionTotals(), parts.METRICS), parts.METRICS)
    inspector.set_totals(totals)
    rows = dict(inspector.session.rows())
    assert rows["Hit ratio"] == "79.7 % (3,680 of 4,620 tokens)"
    assert rows["Questions"] == "2"


def test_nothing_asked_yet(inspector):
    assert "Ask something" in inspector.sentence.text()


def test_what_is_kept_stands_with_its_limits(theme, qtbot):
    inspector = Inspector(theme)
    qtbot.addWidget(inspector)
    assert inspector.kept.isHidden()
    inspector.set_kept(CacheState(12, 184_000_000, 4_200_000_000, 310_000_000, 8_000_000_000, 120_000_000))
    assert inspector.kept.rows() == [
        ("In memory", "184 MB of 4.2 GB"),
        ("On disk", "310 MB of 8.0 GB"),
        ("Written today", "120 MB"),
    ]
    inspector.set_kept(CacheState(12, 184_000_000, 4_200_000_000, 0, 0, 0))
    assert [name for name, _ in inspector.kept.rows()[:1]] == ["In memory"]


def test_it_says_why_the_prompt_was_made_so(inspector, parts):
    inspector.show()
    plan = ("Read whole, since it is kept warm.", "Two passages stand in the last answer.")
    inspector.show_turn(TurnState.of(Turn(1, "Q", parts.answer(plan=plan)), 7))
    assert (inspector.why.isVisible(), inspector.why.said) == (True, plan)
    inspector.show_turn(TurnState.of(Turn(2, "Q", parts.answer()), 7))
    assert not inspector.why.isVisible()
    inspector.show_turn(None)
    assert not inspector.why.isVisible()


def test_it_says_what_was_done_while_idle(inspector):
    inspector.show()
    assert not inspector.idle.isVisible()
    inspector.set_idle_work(("a.pdf is warm: 1,200 tokens read.", "b.pdf is warm: 300 tokens read."))
    inspector.set_idle_work(("c.pdf is warm: 90 tokens read.",))
    assert inspector.idle.isVisible()
    texts = [label.text() for label in inspector.idle.findChildren(QLabel) if label.isVisible()]
    assert texts == ["While idle", "c.pdf is warm: 90 tokens read."]


def test_a_question_with_fewer_numbers_leaves_none_of_the_last_one(theme, qtbot):
    table = NumberTable(theme)
    qtbot.addWidget(table)
    table.set_rows([("Prompt", "9 tokens"), ("Riding along", "4 tokens"), ("Answer", "2 tokens")])
    table.set_rows([("Prompt", "7 tokens"), ("Answer", "1 token")])
    assert table.rows() == [("Prompt", "7 tokens"), ("Answer", "1 token")]
    assert [label.text() for label in table.findChildren(Label) if not label.isHidden()] == [
        "Prompt", "7 tokens", "Answer", "1 token",
    ]  # fmt: skip
