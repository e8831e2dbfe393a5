from core.metrics import in_words
from core.types import MissReason, RequestMetrics

METRICS = RequestMetrics(
    n_prompt_tokens=2310, n_live_tokens=1840, n_prefilled_tokens=470, prefill_ms=3100, prefill_tokens_per_s=152, saved_ms=12_100,
    miss_reason=MissReason.NEVER_SEEN, miss_detail="contract-b.pdf, p. 4",
)  # fmt: skip


def test_a_sentence_with_units_and_bases():
    assert in_words(METRICS) == (
        "1,840 of 2,310 tokens reused · 3.1 s instead of about 15.2 s · first miss: contract-b.pdf, p. 4 — "
        "not read before"
    )


def test_saved_time_is_only_told_where_it_was_measured():
    cold = RequestMetrics(n_prompt_tokens=100, n_prefilled_tokens=100, prefill_ms=900)
    assert in_words(cold) == "0 of 100 tokens reused · read in 0.9 s"
