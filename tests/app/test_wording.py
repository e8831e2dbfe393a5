from dataclasses import replace

import pytest

from app import wording
from core import metrics as metrics_words
from core.types import (
    AnswerSentence,
    CollectionInfo,
    DocumentWarmth,
    EmbeddingProgress,
    IngestProgress,
    MissReason,
    RequestMetrics,
    Warmth,
    WatchedFolder,
)


@pytest.mark.parametrize(
    ("value_s", "words"),
    [
        (0.009, "9 ms"),
        (0.2, "0.2 s"),
        (3.14, "3.1 s"),
        (59.97, "1 min 0 s"),
        (130, "2 min 10 s"),
        (3900, "1 h 5 min"),
    ],
)
def test_seconds(value_s, words):
    assert metrics_words.seconds(value_s) == words


@pytest.mark.parametrize(
    ("n_bytes", "words"), [(0, "0 B"), (999, "999 B"), (1240, "1.2 KB"), (1.24e9, "1.2 GB")]
)
def test_size(n_bytes, words):
    assert wording.size(int(n_bytes)) == words


def test_cost_sentence_names_tokens_and_times(parts):
    assert (
        metrics_words.cost_sentence(parts.METRICS)
        == "1,840 of 2,310 tokens reused · 3.1 s instead of about 15.2 s"
    )


def test_cost_sentence_claims_no_saving_that_is_not_known(parts):
    metrics = replace(parts.METRICS, saved_ms=0.0)
    assert metrics_words.cost_sentence(metrics) == "1,840 of 2,310 tokens reused · 3.1 s"


def test_cost_sentence_of_a_cold_question():
    metrics = RequestMetrics(n_prompt_tokens=500, n_prefilled_tokens=500, prefill_ms=2000)
    assert metrics_words.cost_sentence(metrics) == "500 tokens read in 2.0 s · nothing to reuse yet"


def test_first_miss_says_what_and_why(parts):
    assert metrics_words.miss_sentence(parts.METRICS) == "first miss: contract-b.pdf, p. 4: not read before"
    assert (
        metrics_words.miss_sentence(replace(parts.METRICS, miss_reason=MissReason.NONE))
        == "nothing was missing"
    )


def test_every_metric_carries_a_unit(parts):
    units = ("token", "ms", " s", "tokens/s")
    assert all(any(unit in value for unit in units) for _, value in wording.metric_rows(parts.METRICS))


def test_ingest_says_how_far_and_how_long():
    running = IngestProgress(True, 40, 12, 2, 312, 25, 100, "/x/a.pdf", 30.0)
    assert (
        wording.ingest_sentence(running)
        == "12 of 40 files · 312 blocks · 2 could not be read · about 2 min left"
    )
    ended = replace(running, running=False, n_done=40, n_failed=0)
    assert wording.ingest_sentence(ended) == "Read 40 files in 30.0 s · 312 blocks"
    assert wording.ingest_sentence(replace(ended, cancelled=True)).startswith("Stopped. Kept 40 files")


def test_doubt_counts_only_what_could_be_looked_up():
    yes = AnswerSentence(0, 4, (), claims=False)
    backed, open_ = AnswerSentence(4, 9, (1,)), AnswerSentence(9, 12, ())
    assert wording.doubt_sentence((yes, backed)) == ""
    assert wording.doubt_sentence((yes, open_)) == "No passage supports this sentence (dotted)."
    assert wording.doubt_sentence((yes, backed, open_)) == (
        "1 of 2 sentences found no support in the passages (dotted)."
    )


def test_a_quote_from_markdown_shows_no_signs():
    assert wording.plain_quote("a.md", "## Rent\n") == "Rent"
    assert wording.plain_quote("a.md", "The rent is **€1,140\na month**.") == "The rent is €1,140 a month."
    assert wording.plain_quote("a.txt", "2 ** 3") == "2 ** 3"


def test_hard_wrapped_prose_flows_and_offsets_stay():
    text = "# Title\n\n" + "word " * 12 + "end\ngoes on here\n- item\n\nNext."
    flowed = wording.unwrapped(text)
    assert len(flowed) == len(text)
    assert "end goes on here\n- item\n\nNext." in flowed
    assert flowed.startswith("# Title\n\n")
    table = "a | b\nc | d\n"
    assert wording.unwrapped(table) == table


def test_reading_that_failed_in_part_is_not_called_read():
    done = IngestProgress(False, 16, 16, 4, 40, 100, 100, "", 0.3)
    assert wording.ingest_sentence(done) == "Read 12 of 16 files in 0.3 s · 40 blocks · 4 could not be read"


@pytest.mark.parametrize(
    ("warmth", "left_s", "words"),
    [
        (Warmth.WARM, 0.0, "warm"),
        (Warmth.PARTLY, 4.2, "partly warm · about 4 s left to read"),
        (Warmth.PARTLY, 0.0, "partly warm"),
        (Warmth.COLD, 0.2, "cold · about 1 s to read"),
        (Warmth.COLD, 12.3, "cold · about 12 s to read"),
        (Warmth.COLD, 200.0, "cold · about 3 min to read"),
        (Warmth.COLD, 0.0, "cold"),  # nothing was measured yet
        (Warmth.TOO_LONG, 0.0, "too long to keep warm"),
    ],
)
def test_how_warm_a_document_is(warmth, left_s, words):
    assert wording.warmth_words(DocumentWarmth(1, warmth, 1840, 600, left_s)) == words


@pytest.mark.parametrize("warmth", list(Warmth))
def test_every_warmth_is_explained(warmth):
    meaning = wording.warmth_meaning(DocumentWarmth(1, warmth, 1840, 600, 4.0))
    assert meaning.endswith(".")
    assert ("1,840 tokens" in meaning) == (warmth not in (Warmth.TOO_LONG, Warmth.NO_ROOM))


def test_what_a_collection_allows_in_a_few_words():
    assert wording.collection_rules(CollectionInfo(1, "Flat")) == ""
    strict = CollectionInfo(1, "Flat", apart=True, on_disk=False, as_found=True)
    assert wording.collection_rules(strict) == "kept apart · in memory only · as found"


def test_what_a_question_may_miss_while_files_are_read():
    running = IngestProgress(True, 320, 120, 2, 312, 25, 100, "/x/a.pdf", 30.0)
    expected = "Still reading, 120 of 320 files so far: answers may miss what is not read yet."
    assert wording.still_reading(running) == expected
    paused = replace(running, paused=True)
    assert wording.still_reading(paused).startswith(
        "Reading is paused after 120 of 320 files: answers may miss"
    )
    assert wording.ingest_sentence(paused).endswith("2 could not be read · 200 files left to read")
    assert wording.still_reading(replace(running, n_done=320)) == ""
    assert wording.still_reading(replace(running, running=False)) == ""
    assert wording.still_reading(replace(running, n_files=0, n_done=0)) == ""


def test_a_watched_folder_in_a_few_words():
    there = WatchedFolder("/docs", 1, 48, True)
    gone = WatchedFolder("/media/disk", None, 1, False, "It is not there now. Its documents stay.")
    late = WatchedFolder("/net", None, 0, True, "Changes are found within a minute.")
    assert wording.folder_facts(there, "Flat") == "48 documents · in Flat"
    assert wording.folder_facts(gone, "") == "not there now · 1 document"
    assert wording.folder_facts(late, "") == "0 documents · changes are found within a minute"
    assert wording.watched_sentence([there]) == "1 folder is kept up to date"
    assert wording.watched_sentence([gone]) == "1 folder is kept up to date · it is not there now"
    assert wording.watched_sentence([there, gone]) == "2 folders are kept up to date · 1 is not there now"


def test_how_much_is_found_by_meaning():
    assert (
        wording.embedding_sentence(EmbeddingProgress(0, 50, 0.0))
        == "0 of 50 passages are found by their meaning, too"
    )
    sentence = wording.embedding_sentence(EmbeddingProgress(1200, 7768, 8.0))
    assert sentence.startswith("1,200 of 7,768 passages are found by their meaning, too · about 14 min")
