"""Tasks over documents, a chain of workers, and a person's own questions."""

import json

import bench_data
import pytest

from core.bench.run.workloads import Source, build
from core.errors import KnownError, SettingsError
from core.store.database import open_database


@pytest.fixture
def db(tmp_path):
    with open_database(tmp_path / "db") as db:
        yield db


def test_a_family_is_read_compared_and_ranked(tmp_path, db):
    text = "The supplier delivers within ten days and the buyer pays within thirty days of delivery. " * 12
    rows = [
        {"doc_id": f"v{n}", "family": "terms", "title": f"Terms {n}", "text": f"Version {n}.\n\n{text}"}
        for n in range(3)
    ]
    bench_data.write(tmp_path / "docs.jsonl.gz", rows)
    made = build("documents", Source(tmp_path, k=4), db)
    assert [asked.text.split()[0] for asked in made.questions] == ["What", "Compare", "Compare", "Rank"]
    assert len({asked.session for asked in made.questions}) == 1
    assert [len(asked.scope.document_ids) for asked in made.questions] == [1, 2, 2, 3]
    assert all(asked.passages for asked in made.questions)


def test_workers_read_the_parts_and_one_joins_their_notes(tmp_path, db):
    bench_data.library(tmp_path, n_documents=1, n_blocks=4, n_questions=2)
    made = build("chain", Source(tmp_path, k=2), db)
    first, second, join, *again = made.questions
    assert {p.block.id for p in first.passages}.isdisjoint(p.block.id for p in second.passages)
    assert len(join.passages) == 2
    assert all(
        note.block.text in part.passages[0].block.text
        for note, part in zip(join.passages, (first, second), strict=True)
    )
    assert again[0].passages == first.passages, "the next question's workers read the same parts"


def test_a_person_s_questions_are_searched_as_the_program_does(tmp_path, db):
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "lease.txt").write_text("The monthly rent is 900 euros, due on the third day.\n")
    recorded = tmp_path / "asked.jsonl"
    lines = [
        {"question": "What is the monthly rent?", "session": "a", "answer": "900 euros"},
        {"question": "And when is it due?", "session": "a"},
    ]
    recorded.write_text("".join(json.dumps(line) + "\n" for line in lines))
    made = build("replay", Source(documents, str(recorded)), db)
    assert [asked.continues for asked in made.questions] == [True, False]
    assert all("900 euros" in asked.passages[0].block.text for asked in made.questions)
    assert made.questions[0].answers == ("900 euros",)
    assert made.questions[1].answers == ()


def test_what_is_no_record_of_questions_is_refused(tmp_path, db):
    recorded = tmp_path / "asked.jsonl"
    recorded.write_text('{"text": "?"}\n')
    (tmp_path / "documents").mkdir()
    with pytest.raises(KnownError, match="cannot be read"):
        build("replay", Source(tmp_path / "documents", str(recorded)), db)
    with pytest.raises(SettingsError, match="needs --trace"):
        build("replay", Source(tmp_path / "documents"), db)
