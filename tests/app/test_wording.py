from dataclasses import replace

import pytest

from app import wording
from core.types import IngestProgress, MissReason, RequestMetrics


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
    assert wording.seconds(value_s) == words


@pytest.mark.parametrize(
    ("n_bytes", "words"), [(0, "0 B"), (999, "999 B"), (1240, "1.2 KB"), (1.24e9, "1.2 GB")]
)
def test_size(n_bytes, words):
    assert wording.size(int(n_bytes)) == words


def test_cost_sentence_names_tokens_and_times(parts):
    assert (
        wording.cost_sentence(parts.METRICS) == "1,840 of 2,310 tokens reused · 3.1 s instead of about 15.2 s"
    )


def test_cost_sentence_without_a_rate_claims_no_saving(parts):
    metrics = replace(parts.METRICS, prefill_tokens_per_s=0.0)
    assert wording.cost_sentence(metrics) == "1,840 of 2,310 tokens reused · 3.1 s"


def test_cost_sentence_of_a_cold_question():
    metrics = RequestMetrics(n_prompt_tokens=500, n_prefilled_tokens=500, prefill_ms=2000)
    assert wording.cost_sentence(metrics) == "500 tokens read in 2.0 s · nothing to reuse yet"


def test_first_miss_says_what_and_why(parts):
    assert wording.miss_sentence(parts.METRICS) == "first miss: contract-b.pdf, p. 4: not read before"
    assert wording.miss_sentence(replace(parts.METRICS, miss_reason=MissReason.NONE)) == "nothing was missing"


def test_every_metric_carries_a_unit(parts):
    units = ("token", "ms", " s", "tokens/s")
    assert all(any(unit in value for unit in units) for _, value in wording.metric_rows(parts.METRICS))


def test_ingest_says_how_far_and_how_long():
    running = IngestProgress(True, 40, 12, 2, 312, 25, 100, "/x/a.pdf", 30.0)
    assert (
        wording.ingest_sentence(running)
        == "12 of 40 files · 312 blocks · 2 files could not be read · about 2 min left"
    )
    ended = replace(running, running=False, n_done=40, n_failed=0)
    assert wording.ingest_sentence(ended) == "Read 40 files in 30.0 s · 312 blocks"
    assert wording.ingest_sentence(replace(ended, cancelled=True)).startswith("Stopped. Kept 40 files")
