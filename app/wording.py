"""Numbers and states in words. Every number carries its unit, every share its base."""

import re
from collections.abc import Sequence
from pathlib import Path

from core.metrics import count, seconds
from core.types import (
    AnswerSentence,
    CacheState,
    ChunkView,
    CollectionInfo,
    DocumentInfo,
    DocumentWarmth,
    EmbeddingProgress,
    IngestProgress,
    PrefillProgress,
    RequestMetrics,
    SessionTotals,
    Spot,
    Standing,
    Stands,
    Tier,
    Warmth,
    WatchedFolder,
)

TIER_NAMES = {
    Tier.LIVE: "live",
    Tier.RAM: "from RAM",
    Tier.SSD: "from SSD",
    Tier.PREFILLED: "prefilled",
    Tier.REFERENCED: "referenced",
    Tier.PENDING: "still to read",
}


def about(value_s: float) -> str:
    """A time estimate, rounded as roughly as it is known."""
    if value_s < 10:
        return "a few seconds"
    if value_s < 55:
        return f"about {round(value_s / 10) * 10} s"
    if value_s < 3600:
        return f"about {max(1, round(value_s / 60))} min"
    return f"about {value_s / 3600:.1f} h"


def size(n_bytes: int) -> str:
    value = float(n_bytes)
    for unit in ("B", "KB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 10 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def share(ratio: float, part: int, base: int) -> str:
    """``79.7 % (1,840 of 2,310 tokens)``."""
    return f"{ratio * 100:.1f} % ({part:,} of {count(base, 'token')})"


def page_name(page: int | None) -> str:
    return "" if page is None else f"p. {page}"


def place_name(title: str, page: int | None) -> str:
    return title if page is None else f"{title}, {page_name(page)}"


def spot_name(spot: Spot) -> str:
    return place_name(spot.title, spot.page)


def standing_words(standing: Standing) -> str:
    """How a passage stands in the prompt, in a few words."""
    match standing.how:
        case Stands.EARLIER:
            return "given earlier"
        case Stands.SHORTENED:
            return f"shortened: {count(len(standing.stretches), 'part')}"
        case Stands.RIDING:
            return "read before"


def standing_sentence(standing: Standing) -> str:
    """What that means, and where the text is: for a tooltip and for those who cannot see the mark."""
    match standing.how:
        case Stands.EARLIER:
            return "Given earlier in this conversation and not repeated. Go to where it was given"
        case Stands.SHORTENED:
            n = len(standing.stretches)
            verb, it = ("stands", "it") if n == 1 else ("stand", "them")
            places = " and ".join(dict.fromkeys(spot_name(spot) for spot in standing.stretches))
            return f"Shortened: {count(n, 'part')} {verb} in {places} already. Show {it} there"
        case Stands.RIDING:
            return "Read before and still in the prompt, though not found for this question. Show it"


def chunk_name(chunk: ChunkView) -> str:
    """``contract-b.pdf, p. 4 · 312 tokens · from SSD``."""
    return f"{chunk.label} · {count(chunk.n_tokens, 'token')} · {TIER_NAMES[chunk.tier]}"


def doubt_sentence(sentences: Sequence[AnswerSentence]) -> str:
    """How much of an answer no passage supports, of what says something that could be looked up."""
    claims = [one for one in sentences if one.claims]
    n_open = sum(not one.citations for one in claims)
    if not n_open:
        return ""
    if len(claims) == 1:
        return "No passage supports this sentence (dotted)."
    return f"{n_open:,} of {count(len(claims), 'sentence')} found no support in the passages (dotted)."


def progress_sentence(progress: PrefillProgress) -> str:
    """What the running prefill is doing: ``Reading 1,240 of 2,310 tokens · 4.1 s · 152 tokens/s``."""
    return f"{reading(progress)} · {speed(progress)}"


def reading(progress: PrefillProgress) -> str:
    n_read = progress.n_cached_tokens + progress.n_prefilled_tokens
    words = f"Reading {n_read:,} of {count(progress.n_prompt_tokens, 'token')}"
    if progress.n_cached_tokens:
        words += f", {progress.n_cached_tokens:,} reused"
    return words


def speed(progress: PrefillProgress) -> str:
    words = seconds(progress.prefill_s)
    return f"{words} · {progress.tokens_per_s:,.0f} tokens/s" if progress.tokens_per_s > 0 else words


def metric_rows(metrics: RequestMetrics) -> list[tuple[str, str]]:
    """The numbers of one question, with units, in the order of the work."""
    rate = f" at {metrics.prefill_tokens_per_s:,.0f} tokens/s" if metrics.prefill_tokens_per_s > 0 else ""
    riders = f"{count(metrics.n_rider_tokens, 'token')} read before, not counted"
    riding = [("Riding along", riders)] if metrics.n_rider_tokens else []
    return [
        ("Prompt", count(metrics.n_prompt_tokens, "token")),
        ("Live", count(metrics.n_live_tokens, "token")),
        ("From RAM", count(metrics.n_ram_tokens, "token")),
        ("From SSD", count(metrics.n_ssd_tokens, "token")),
        ("Prefilled", count(metrics.n_prefilled_tokens, "token")),
        ("Referenced", f"{count(metrics.n_deduplicated_tokens, 'token')} not repeated"),
        *riding,
        ("Hit ratio", share(metrics.hit_ratio, metrics.n_reused_tokens, metrics.n_needed_tokens)),
        ("Retrieval", seconds(metrics.retrieve_ms / 1000)),
        ("Planning", seconds(metrics.plan_ms / 1000)),
        ("Restoring", seconds(metrics.restore_ms / 1000)),
        ("Prefill", seconds(metrics.prefill_ms / 1000) + rate),
        ("First token", f"after {seconds(metrics.ttft_ms / 1000)}"),
        (
            "Answer",
            f"{count(metrics.n_answer_tokens, 'token')} at {metrics.decode_tokens_per_s:,.1f} tokens/s",
        ),
    ]


def session_rows(totals: SessionTotals) -> list[tuple[str, str]]:
    return [
        ("Questions", f"{totals.n_questions:,}"),
        ("Hit ratio", share(totals.hit_ratio, totals.n_cached_tokens, totals.n_prompt_tokens)),
        ("Prefill saved", f"about {seconds(totals.saved_ms / 1000)}" if totals.saved_ms >= 1 else "none yet"),
    ]


def cache_rows(state: CacheState) -> list[tuple[str, str]]:
    """What is kept outside the model, each with the limit it has."""
    rows = []
    if state.ram_budget:
        rows.append(("In memory", f"{size(state.ram_bytes)} of {size(state.ram_budget)}"))
    if state.ssd_budget:
        rows.append(("On disk", f"{size(state.ssd_bytes)} of {size(state.ssd_budget)}"))
        rows.append(("Written today", size(state.ssd_written_today)))
    return rows


def document_facts(document: DocumentInfo) -> str:
    """``PDF · 12 pages · 48 blocks · 1.2 MB``."""
    kind = document.title.rpartition(".")[2].upper() if "." in document.title else "File"
    parts = [kind]
    if document.n_pages:
        parts.append(count(document.n_pages, "page"))
    if document.n_blocks:
        parts.append(count(document.n_blocks, "block"))
    return " · ".join([*parts, size(document.n_bytes)])


def warmth_words(warmth: DocumentWarmth) -> str:
    """``warm``, ``partly warm · about 4 s left to read``. Seconds only where this machine's pace is known."""
    if warmth.warmth is Warmth.TOO_LONG:
        return "too long to keep warm"
    if warmth.warmth is Warmth.NO_ROOM:
        return "no memory to keep it warm"
    if warmth.warmth is Warmth.WARM or warmth.cold_s <= 0:
        return warmth.warmth.value
    left_s = warmth.cold_s
    time = f"about {max(1, round(left_s))} s" if left_s < 59.5 else about(left_s)
    rest = "to read" if warmth.warmth is Warmth.COLD else "left to read"
    return f"{warmth.warmth} · {time} {rest}"


def warmth_meaning(warmth: DocumentWarmth) -> str:
    """What its warmth means for the next question about a document."""
    total = count(warmth.n_tokens, "token")
    match warmth.warmth:
        case Warmth.WARM:
            return (
                f"Warm: all its {total} are kept. A question about it alone reads nothing but the question."
            )
        case Warmth.PARTLY:
            return (
                f"Partly warm: {warmth.n_cached_tokens:,} of its {total} are kept. "
                "The rest is read while nobody waits, or with the next question about it alone."
            )
        case Warmth.COLD:
            return (
                f"Cold: none of its {total} are kept. "
                "They are read while nobody waits, or with the next question about it alone."
            )
        case Warmth.TOO_LONG:
            return "It does not fit the model as a whole: questions about it use the passages found."
        case Warmth.NO_ROOM:
            return "The memory for what is kept warm is too small for it."


def collection_rules(info: CollectionInfo) -> str:
    """What is special about a collection, in a few words; empty if nothing is."""
    rules = (
        ("kept apart", info.apart),
        ("in memory only", not info.on_disk),
        ("kept warm", info.keep_warm),
        ("as found", info.as_found),
    )
    return " · ".join(words for words, holds in rules if holds)


def embedding_sentence(progress: EmbeddingProgress) -> str:
    """``1,200 of 7,768 passages are found by their meaning, too · about 12 min left``."""
    words = f"{progress.n_done:,} of {progress.n_blocks:,} passages are found by their meaning, too"
    if progress.blocks_per_s <= 0:
        return words
    left_s = (progress.n_blocks - progress.n_done) / progress.blocks_per_s
    return f"{words} · {about(left_s)} left"


def ingest_sentence(progress: IngestProgress) -> str:
    """What reading files is doing, how far it is and how long it still takes; or how it ended."""
    failed = f" · {progress.n_failed:,} could not be read" if progress.n_failed else ""
    if not progress.running:
        n_read = progress.n_done - progress.n_failed
        whole = n_read == progress.n_files
        kept = count(n_read, "file") if whole else f"{n_read:,} of {count(progress.n_files, 'file')}"
        start = "Stopped. Kept" if progress.cancelled else "Read"
        took = seconds(progress.elapsed_s)
        return f"{start} {kept} in {took} · {count(progress.n_blocks, 'block')}{failed}"
    left = ""
    if progress.paused:
        left = f" · {count(progress.n_files - progress.n_done, 'file')} left to read"
    elif progress.n_bytes_done and progress.elapsed_s > 1:
        rest = progress.n_bytes - progress.n_bytes_done
        left = f" · {about(progress.elapsed_s * rest / progress.n_bytes_done)} left"
    n_blocks = count(progress.n_blocks, "block")
    return f"{progress.n_done:,} of {count(progress.n_files, 'file')} · {n_blocks}{failed}{left}"


def still_reading(progress: IngestProgress) -> str:
    """What a question asked now may miss; empty where nothing is left to read."""
    n_left = progress.n_files - progress.n_done
    if not progress.running or n_left <= 0:
        return ""
    how_far = f"{progress.n_done:,} of {count(progress.n_files, 'file')}"
    state = f"Reading is paused after {how_far}" if progress.paused else f"Still reading, {how_far} so far"
    return f"{state}: answers may miss what is not read yet."


def folder_facts(folder: WatchedFolder, collection: str) -> str:
    """``48 documents · in Flat``; of one that is not there, that comes first."""
    parts = [] if folder.is_there else ["not there now"]
    parts.append(count(folder.n_documents, "document"))
    if collection:
        parts.append(f"in {collection}")
    if folder.is_there and folder.note:
        parts.append(folder.note[0].lower() + folder.note[1:].rstrip("."))
    return " · ".join(parts)


def watched_sentence(folders: Sequence[WatchedFolder]) -> str:
    """How many folders are kept up to date, and whether any of them is not there."""
    verb = "is" if len(folders) == 1 else "are"
    words = f"{count(len(folders), 'folder')} {verb} kept up to date"
    n_gone = sum(not one.is_there for one in folders)
    if not n_gone:
        return words
    gone = "it is" if len(folders) == 1 else f"{n_gone:,} {'is' if n_gone == 1 else 'are'}"
    return f"{words} · {gone} not there now"


def ago(then: float, now: float) -> str:
    """When something was last used, in the calm words of a list. Both are Unix times in seconds."""
    past = max(0.0, now - then)
    if past < 60:
        return "just now"
    if past < 3600:
        return f"{int(past // 60)} min ago"
    if past < 86_400:
        return f"{int(past // 3600)} h ago"
    return f"{count(int(past // 86_400), 'day')} ago"


def problem_line(path: str, reason: str) -> str:
    """``scan.pdf: This PDF holds no text. …``"""
    return f"{Path(path).name or path}: {reason}"


_WITH_HEADINGS = (".md", ".markdown", ".html", ".htm", ".xhtml")


def has_headings(title: str) -> bool:
    """Whether lines of this document's text that start with ``#`` are headings."""
    return title.lower().endswith(_WITH_HEADINGS)


_MARKDOWN = re.compile(r"^\s*(?:#{1,6}\s+|>\s?|[-*+]\s+)|(\*\*|__|`)")


def plain_quote(title: str, quote: str) -> str:
    """A quote in one line, without the signs of Markdown where it comes from a Markdown file."""
    if has_headings(title):
        quote = _MARKDOWN.sub("", quote)
    return " ".join(quote.split())


_WRAPPED = re.compile(r"(?<=[^\n]{50})\n(?=[^\s\-*+#>|\d])")


def unwrapped(text: str) -> str:
    """``text`` with the line ends of hard-wrapped prose as spaces; every offset stays."""
    return _WRAPPED.sub(" ", text)
