"""What one request cost and saved, in words."""

from core.types import MissReason, RequestMetrics


def in_words(metrics: RequestMetrics) -> str:
    """One sentence under the answer: reused tokens with their base, seconds, and what missed first."""
    parts = [f"{metrics.n_cached_tokens:,} of {metrics.n_prompt_tokens:,} tokens reused"]
    spent = (metrics.prefill_ms + metrics.restore_ms) / 1000
    if metrics.saved_ms >= 50:
        parts.append(f"{spent:.1f} s instead of about {spent + metrics.saved_ms / 1000:.1f} s")
    else:
        parts.append(f"read in {spent:.1f} s")
    if metrics.n_deduplicated_tokens:
        parts.append(f"{metrics.n_deduplicated_tokens:,} tokens not repeated")
    if metrics.miss_reason is not MissReason.NONE:
        where = f": {metrics.miss_detail}" if metrics.miss_detail else ""
        parts.append(f"first miss{where} — {metrics.miss_reason.value}")
    return " · ".join(parts)
