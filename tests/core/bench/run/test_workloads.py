"""What becomes of the data: sessions, scopes, evidence, order; and what is refused."""

import bench_data
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.bench.run.questions import Asked
from core.bench.run.workloads import Source, build, chosen, interleaved
from core.errors import KnownError, SettingsError
from core.store.database import open_database


@pytest.fixture
def data(tmp_path):
    bench_data.library(tmp_path / "library", n_documents=4, n_questions=12)
    bench_data.conversations(tmp_path / "mtrag", n_conversations=3)
    bench_data.dialogues(tmp_path / "locomo")
    return tmp_path


@pytest.fixture
def make(data, tmp_path):
    def make(name, trace="", **options):
        with open_database(tmp_path / f"db-{name.replace(':', '-')}") as db:
            return build(name, Source(data, trace, **options), db)

    return make


def test_a_trace_by_document_is_asked_within_the_document(make):
    made = make("multi-session", "made_document", k=2, limit=6)
    assert len(made.questions) == 6
    documents = [asked.passages[0].place.document_id for asked in made.questions]
    assert len(set(documents)) == 2, "few whole documents, not a sample of all"
    for asked in made.questions:
        assert len(asked.passages) == 2
        assert asked.scope.document_ids == {asked.passages[0].place.document_id}
        assert asked.evidence[0] in asked.passages[0].block.text
        assert asked.gold_blocks == {asked.passages[0].block.id}
        assert not asked.continues


def test_without_a_trace_the_product_searches(make):
    made = make("multi-session", k=2)
    assert len(made.questions) == 12
    found = [asked.gold_blocks <= {p.block.id for p in asked.passages} for asked in made.questions]
    assert sum(found) > 6


def test_turns_follow_each_other_in_their_session(make):
    made = make("multi-turn", k=5)
    assert [asked.continues for asked in made.questions] == [True, True, False] * 3
    assert len({asked.session for asked in made.questions[:3]}) == 1
    first, second = made.questions[:2]
    assert first.passages[1].block == second.passages[0].block
    assert first.reply.startswith("It costs")


def test_sessions_mix(make):
    made = make("hybrid:2", k=5)
    sessions = [asked.session for asked in made.questions]
    assert sessions[0] != sessions[1]
    assert sessions[0] == sessions[2]
    assert len(sessions) == 9
    with pytest.raises(SettingsError, match="one of 2, 4"):
        make("hybrid:3")


def test_a_restart_asks_the_same_again(make):
    made = make("restart", "made_document", limit=3)
    first, again = made.questions[:3], made.questions[3:]
    assert [a.text for a in first] == [b.text for b in again]
    assert [a.counted for a in made.questions] == [False] * 3 + [True] * 3
    assert [a.restart for a in made.questions] == [False] * 3 + [True] + [False] * 2
    assert len({a.qid for a in made.questions}) == 6


def test_a_dialogue_is_asked_as_one_document(make):
    made = make("memory", k=2)
    assert {len(asked.scope.document_ids) for asked in made.questions} == {1}
    assert {asked.answers for asked in made.questions} == {(), ("71 euros",), ("72 euros",)}


def test_passages_can_be_cut(make):
    made = make("storm", "made_document", longest=30, limit=2)
    assert made.tight
    assert {len(p.block.text) for asked in made.questions for p in asked.passages} == {30}


def test_what_is_not_there_is_named(make, tmp_path):
    with pytest.raises(KnownError, match="no trace nonesuch"):
        make("multi-session", "nonesuch")
    with pytest.raises(KnownError, match="no trace locomo"), open_database(tmp_path / "other") as db:
        build("memory", Source(tmp_path / "library"), db)
    with pytest.raises(SettingsError, match="makes no sense"):
        make("memory", k=0)


@given(st.lists(st.integers(0, 4), max_size=40), st.integers(0, 12), st.integers(0, 3))
def test_few_groups_are_taken_and_each_name_once(groups, limit, seed):
    names = [f"{n}" for n in range(len(groups))]
    taken = chosen(names, lambda name: str(groups[int(name)]), limit, seed)
    assert len(set(taken)) == len(taken) == (min(limit, len(names)) if limit else len(names))
    assert taken == chosen(names, lambda name: str(groups[int(name)]), limit, seed)


@given(st.lists(st.integers(0, 5), max_size=40), st.integers(1, 4))
def test_interleaving_keeps_every_session_in_order(sessions, n):
    asked = [Asked(str(number), str(session), "", ()) for number, session in enumerate(sessions)]
    mixed = list(interleaved(asked, n))
    assert sorted(a.qid for a in mixed) == sorted(a.qid for a in asked)
    for session in set(sessions):
        numbers = [int(a.qid) for a in mixed if a.session == str(session)]
        assert numbers == sorted(numbers)
