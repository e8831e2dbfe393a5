"""What one request cost and saved, in words: the window and the command line say it alike."""

from core.types import MissReason, RequestMetrics


def count(n: int, noun: str) -> str:
    """``1,840 tokens``, ``1 token``."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def seconds(value_s: float) -> str:
    """``9 ms``, ``3.1 s``, ``2 min 10 s``, ``1 h 5 min``."""
    if value_s < 0.0995:
        return f"{value_s * 1000:.0f} ms"
    if value_s < 59.95:
        return f"{value_s:.1f} s"
    whole = round(value_s)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def cost_sentence(metrics: RequestMetrics) -> str:
    """One line under an answer: what was reused and what that saved."""
    n_prompt, n_cached = metrics.n_needed_tokens, metrics.n_reused_tokens
    took_s = (metrics.prefill_ms + metrics.restore_ms) / 1000
    if n_prompt == 0:
        return ""
    if n_cached == 0:
        return f"{count(n_prompt, 'token')} read in {seconds(took_s)} · nothing to reuse yet"
    words = f"{n_cached:,} of {count(n_prompt, 'token')} reused · {seconds(took_s)}"
    if metrics.saved_ms >= 100:
        words += f" instead of about {seconds(took_s + metrics.saved_ms / 1000)}"
    return words


def miss_sentence(metrics: RequestMetrics) -> str:
    """Why the first token that had to be read was not in the cache."""
    if metrics.miss_reason is MissReason.FIRST_QUESTION:
        return ""  # "nothing to reuse yet" has said it
    if metrics.miss_reason is MissReason.NONE:
        return "nothing was missing" if metrics.n_prompt_tokens else ""
    what = f"{metrics.miss_detail}: " if metrics.miss_detail else ""
    return f"first miss: {what}{metrics.miss_reason}"


def in_words(metrics: RequestMetrics) -> str:
    """Both sentences, and what a reference made unnecessary."""
    parts = [cost_sentence(metrics), miss_sentence(metrics)]
    if metrics.n_deduplicated_tokens:
        parts.insert(1, f"{count(metrics.n_deduplicated_tokens, 'token')} not repeated")
    return " · ".join(part for part in parts if part)
