import gzip
import json

import pytest

from core.bench import retrieval
from core.config import Settings
from core.errors import KnownError

TEXTS = {
    "bees": "Honey bees dance to tell where flowers are.\n\nA queen bee lays two thousand eggs a day.",
    "moon": "The moon is 384,400 kilometres away.\n\nIts gravity is a sixth of the earth's.",
}


def write(path, rows):
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def question(number, text, doc, evidence, scope="corpus"):
    start = TEXTS[doc].index(evidence)
    return {
        "qid": str(number),
        "subset": "nature",
        "scope": scope,
        "question": text,
        "gold_doc_ids": [doc],
        "evidence": [{"doc_id": doc, "text": evidence, "start": start}],
    }


@pytest.fixture
def library(tmp_path):
    folder = tmp_path / "library"
    folder.mkdir()
    docs = [{"doc_id": name, "title": name, "subset": "nature", "text": text} for name, text in TEXTS.items()]
    write(folder / "docs.jsonl.gz", docs)
    asked = [
        question(1, "How many eggs does a queen lay?", "bees", "two thousand eggs"),
        question(2, "How far is the moon?", "moon", "384,400 kilometres", "document"),
        question(3, "Which planets have rings?", "moon", "a sixth of the earth"),
    ]
    write(folder / "questions.jsonl.gz", asked)
    return folder


def measure(folder, model, **more):
    chosen = {
        "questions": None, "budget": 60, "scope": "corpus", "embeddings": False, "limit": 0, "n_blocks": 0,
        "keep": None, **more,
    }  # fmt: skip
    settings = Settings(model=str(model), embedder=str(chosen.pop("embedder", "")))
    return retrieval.measure(folder, settings, **chosen)


@pytest.mark.model
def test_evidence_counts_where_a_block_that_was_taken_covers_it(library, tiny_model):
    found = measure(library, tiny_model)
    assert found["all"]["n"] == 3
    assert found["all"]["evidence_recall"] == pytest.approx(2 / 3)  # nothing is said about rings
    assert found["subsets"] == {"nature": found["all"]}
    assert found["query_ms_p95"] >= found["query_ms_p50"] > 0
    nothing_fits = measure(library, tiny_model, budget=5)
    assert nothing_fits["all"]["evidence_recall"] == 0


@pytest.mark.model
def test_with_embeddings_and_what_is_kept_is_not_embedded_again(library, tiny_model, tiny_embedder, tmp_path):
    keep = tmp_path / "kept"
    first = measure(library, tiny_model, embeddings=True, embedder=tiny_embedder, keep=keep)
    assert first["passages_per_s"] > 0
    assert first["blocks"] == 2
    second = measure(
        library, tiny_model, embeddings=True, embedder=tiny_embedder, keep=keep, scope="document"
    )
    assert "passages_per_s" not in second
    assert second["all"]["evidence_recall"] == 1.0  # one block a document: meaning takes it anyway
    grown = measure(library, tiny_model, embeddings=True, embedder=tiny_embedder, keep=keep, n_blocks=50)
    assert 2 < grown["blocks"] <= 50  # made of few sentences, some are the same


@pytest.mark.model
def test_contexts_prefer_what_was_seen_and_are_written_as_a_trace(library, tiny_model, tmp_path):
    trace = tmp_path / "trace.jsonl"
    found = measure(library, tiny_model, prefer_cached=0.5, emit=trace)
    assert found["n"] == 3
    assert 0 < found["passages_seen_before"] <= 1
    assert len(trace.read_text().splitlines()) == 3


def test_what_is_wrong_with_the_data_is_said(tmp_path, tiny_model):
    with pytest.raises(KnownError, match="no documents"):
        measure(tmp_path, tiny_model)
    (tmp_path / "docs.jsonl.gz").write_bytes(b"no gzip")
    with pytest.raises(KnownError, match="cannot be read"):
        measure(tmp_path, tiny_model)


@pytest.mark.model
def test_follow_up_questions(tmp_path, tiny_model):
    passages = [
        {"passage_id": name, "domain": "nature", "title": name, "text": text} for name, text in TEXTS.items()
    ]
    turns = [
        {"turn": 1, "question": "How far is the moon?", "standalone_question": "How far is the moon?",
         "answer": "384,400 kilometres.", "gold_passage_ids": ["moon"]},
        {"turn": 2, "question": "And why?", "standalone_question": "Why is the moon so far?", "answer": "",
         "gold_passage_ids": ["moon"]},
    ]  # fmt: skip
    write(tmp_path / "passages.jsonl.gz", passages)
    write(tmp_path / "conversations.jsonl.gz", [{"domain": "nature", "turns": turns}])
    found = measure(tmp_path, tiny_model)
    assert found["turns"] == 2
    assert found["recall_at_10_conversation"] == found["recall_at_10_rewrite_by_words"] == 1.0
    assert found["recall_at_10_last_question"] == 0.5
