from dataclasses import replace

from core.metrics import cost_sentence, count, in_words, miss_sentence, seconds
from core.types import MissReason, RequestMetrics

METRICS = RequestMetrics(
    n_prompt_tokens=2310, n_live_tokens=1840, n_prefilled_tokens=470, prefill_ms=3100, prefill_tokens_per_s=152, saved_ms=12_100,
    miss_reason=MissReason.NEVER_SEEN, miss_detail="contract-b.pdf, p. 4",
)  # fmt: skip


def test_a_sentence_with_units_and_bases():
    assert in_words(METRICS) == (
        "1,840 of 2,310 tokens reused · 3.1 s instead of about 15.2 s · first miss: contract-b.pdf, p. 4: not read before"
    )
    assert "· 120 tokens not repeated ·" in in_words(replace(METRICS, n_deduplicated_tokens=120))


def test_nothing_reused_and_nothing_missing():
    cold = RequestMetrics(
        n_prompt_tokens=500, n_prefilled_tokens=500, prefill_ms=2000, miss_reason=MissReason.FIRST_QUESTION
    )
    assert in_words(cold) == "500 tokens read in 2.0 s · nothing to reuse yet"
    assert miss_sentence(replace(METRICS, miss_reason=MissReason.NONE)) == "nothing was missing"
    assert cost_sentence(replace(METRICS, saved_ms=0.0)) == "1,840 of 2,310 tokens reused · 3.1 s"


def test_units_grow_with_the_value():
    assert [seconds(s) for s in (0.009, 3.14, 130, 3900)] == ["9 ms", "3.1 s", "2 min 10 s", "1 h 5 min"]
    assert (count(1, "token"), count(1840, "token")) == ("1 token", "1,840 tokens")
