"""The nouns of Slipstream, as frozen dataclasses. This module imports nothing of ours.

``core/ARCHITECTURE.md`` explains the words. Arrays inside dataclasses are read-only by convention and
are compared by identity (``eq=False``), never element by element.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import xxhash
from numpy.typing import NDArray

Tokens = NDArray[np.int32]
"""Token ids of one model's vocabulary, int32 ``(n,)``."""

_CONSONANTS = "bdfghjklmnprstvz"
_SYLLABLES = tuple(consonant + vowel for vowel in "aiou" for consonant in _CONSONANTS)


def label_of(text: str) -> str:
    """A speakable five-letter name (``babad``) for a text: 16 bits of its hash.

    It stands in the prompt in front of a block, so it depends on the block's text alone: not on its
    place, not on the file it was found in. Two blocks may share a label; ids never do.
    """
    bits = xxhash.xxh3_64_intdigest(text.encode()) & 0xFFFF
    return _SYLLABLES[bits & 63] + _SYLLABLES[bits >> 6 & 63] + _CONSONANTS[bits >> 12]


@dataclass(frozen=True, slots=True)
class Block:
    """A content-defined piece of a document, named by its content and by nothing else."""

    id: str
    """xxh3_64 of ``rendered``'s UTF-8 bytes, 16 hexadecimal digits."""
    text: str
    """What the document says, white space at both ends removed."""

    @staticmethod
    def of(text: str) -> "Block":
        text = text.strip()
        return Block(xxhash.xxh3_64_hexdigest(rendered(text).encode()), text)

    @property
    def label(self) -> str:
        return label_of(self.text)

    @property
    def rendered(self) -> str:
        """The exact characters that stand in the prompt."""
        return rendered(self.text)


def rendered(text: str) -> str:
    """How a block of this text stands in a prompt. Changing this changes every block id."""
    return f"[{label_of(text)}]\n{text}\n\n"


class DocumentStatus(StrEnum):
    READY = "ready"
    READY_WITH_NOTE = "ready with a note"
    NEEDS_PASSWORD = "needs a password"  # noqa: S105  (a status, no secret)
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """One file of the library, as the list shows it."""

    id: int
    path: str
    title: str
    status: DocumentStatus
    note: str
    """Why it failed, or what the user should know; empty if nothing."""
    n_bytes: int
    n_blocks: int
    n_pages: int
    """0 where the format has no pages."""
    added_at: float
    """Unix time in seconds."""
    collection_id: int | None = None
    """None where it is in no collection."""
    keep_warm: bool = False
    """The user wants it read whole, once, and kept."""


@dataclass(frozen=True, slots=True)
class CollectionInfo:
    """A named part of the library, and what its documents allow."""

    id: int
    name: str
    n_documents: int = 0
    apart: bool = False
    """Its prompts share no cached path with others: nobody can tell by speed what was asked of it."""
    on_disk: bool = True
    """What was read of its documents may be kept on SSD."""
    keep_warm: bool = False
    """Its documents are read whole, once, and kept, where that fits."""
    as_found: bool = False
    """Its passages are not moved, shortened or accompanied, whatever that costs; kept warm goes before."""


@dataclass(frozen=True, slots=True)
class WatchedFolder:
    """A folder that the user wants kept up to date in the library."""

    path: str
    collection_id: int | None
    """Where the documents found in it go; None for no collection."""
    n_documents: int
    """Of the library, below it."""
    is_there: bool
    """False while it is gone, or its disk is not connected: its documents stay."""
    note: str = ""
    """What the user should know: why it is not there, or why changes are seen late. Empty if nothing."""


@dataclass(frozen=True, slots=True)
class CachePlace:
    """Where the cache keeps a conversation's prompts: they may hold what a collection keeps apart."""

    namespace: str = ""
    """Numbers of the collections kept apart that it ever touched, ascending (``3+7``)."""
    on_disk: bool = True
    """Whether it may be written to SSD behind the instructions that all prompts begin with."""

    def touching(self, collections: Iterable[CollectionInfo]) -> "CachePlace":
        """The same conversation once it holds something of these collections, or was asked of them."""
        apart = {int(number) for number in self.namespace.split("+") if number}
        on_disk = self.on_disk
        for info in collections:
            on_disk = on_disk and info.on_disk
            if info.apart:
                apart.add(info.id)
        return CachePlace("+".join(str(number) for number in sorted(apart)), on_disk)


class Warmth(StrEnum):
    """How much of a document is cached as a whole."""

    WARM = "warm"
    PARTLY = "partly warm"
    COLD = "cold"
    TOO_LONG = "too long"
    """It does not fit the model's context with room for a question."""
    NO_ROOM = "no room"
    """The memory for what is kept warm is too small for it."""


@dataclass(frozen=True, slots=True)
class DocumentWarmth:
    """What the first question about a document would wait for if the whole of it is read."""

    document_id: int
    warmth: Warmth
    n_tokens: int
    """Of the whole document; an estimate for one that was never tokenized."""
    n_cached_tokens: int
    cold_s: float
    """Seconds of prefill that are left, by this machine's measured rate; 0 until one was measured."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a block stands in a document. One block may have many places."""

    document_id: int
    title: str
    """The file's name: shown to people, put after the blocks in the prompt, never before them."""
    path: str
    ordinal: int
    """0 for the document's first block."""
    start: int
    end: int
    """Character offsets in the document's extracted text."""
    page: int | None
    """1-based page on which the block begins; None where the format has no pages."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A block that was retrieved for a question."""

    block: Block
    places: tuple[Place, ...]
    """Its places within the scope of the question, the first one first; never empty."""
    score: float
    """Higher is more relevant; comparable within one context only."""
    quote: str
    """The sentence of the block that matches the question best."""
    quote_start: int
    """Character offset of ``quote`` in ``block.text``."""

    @property
    def place(self) -> Place:
        return self.places[0]


@dataclass(frozen=True, slots=True)
class Scope:
    """What a question is about: some documents, or a collection, or (by default) everything."""

    document_ids: frozenset[int] = frozenset()
    collection_id: int | None = None
    """All documents in it; one that is gone or empty holds none. Not together with ``document_ids``."""


@dataclass(frozen=True, slots=True)
class Context:
    """The blocks retrieved for one question, in relevance order."""

    passages: tuple[Passage, ...]
    n_found: int
    """Passages that matched, before the budget cut."""
    retrieve_ms: float
    is_opening: bool = False
    """No passage holds a word of the question: these are the beginnings of the documents asked."""


# --- prompts -------------------------------------------------------------------------------------


MAX_CHUNK_TOKENS = 512
"""Longest prefill batch. A part of the canonical grid: changing it changes every chunk key."""

GRID_VERSION = 1
"""Version of the rule that cuts segments into chunks (``core.prompt.chunk_sizes``)."""


class SegmentKind(StrEnum):
    HEAD = "head"
    BLOCK = "block"
    EXCERPT = "excerpt"
    """The part of a block that there was time for."""
    ASK = "ask"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """A part of a prompt that is tokenized by itself; chunks never cross its ends."""

    kind: SegmentKind
    tokens: Tokens
    block_id: str = ""
    """Set for BLOCK and EXCERPT segments."""

    @property
    def element(self) -> int:
        """Identity of these tokens, 64 bits: what the context index compares (never the place)."""
        return xxhash.xxh3_64_intdigest(self.tokens.tobytes())


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """The tokens of one prefill batch, on the canonical grid, under the path before it."""

    key: bytes
    """xxh3_128 over the parent's key, the segment's element and these tokens (16 bytes)."""
    parent: bytes
    tokens: Tokens
    start: int
    """Position of the first token in the prompt."""
    segment: int
    """Index of the segment it belongs to."""
    ends_segment: bool

    @property
    def end(self) -> int:
        return self.start + len(self.tokens)


@dataclass(frozen=True, slots=True, eq=False)
class Prompt:
    """A whole prompt: segments in order, and the same tokens cut into chunks on the canonical grid."""

    segments: tuple[Segment, ...]
    chunks: tuple[Chunk, ...]

    @property
    def n_tokens(self) -> int:
        return self.chunks[-1].end if self.chunks else 0


@dataclass(frozen=True, slots=True)
class CacheEvent:
    """The prefix cache tells what it holds, in order: a replay of all events gives its tree."""

    key: bytes
    """Key of the last chunk of a whole segment (16 bytes), or of a root."""


@dataclass(frozen=True, slots=True)
class Rooted(CacheEvent):
    """A namespace: prompts may begin behind this key. It is never evicted."""


@dataclass(frozen=True, slots=True)
class Committed(CacheEvent):
    parent: bytes
    """Key of the segment before it, or a root's."""
    element: int
    """``Segment.element``."""
    n_tokens: int
    block_id: str = ""
    """Of a block; empty for instructions, questions and answers."""


@dataclass(frozen=True, slots=True)
class Evicted(CacheEvent):
    """Sent for the deepest segment first."""


@dataclass(frozen=True, slots=True)
class Weighed(CacheEvent):
    """What a segment saves has changed, since it is loaded from elsewhere now."""

    weight: int
    """Tokens whose prefill takes as long as loading it saves; at least 1."""


class Tier(StrEnum):
    """Where the KV of a chunk came from, or why it needed none."""

    LIVE = "live"
    RAM = "ram"
    SSD = "ssd"
    PREFILLED = "prefilled"
    REFERENCED = "referenced"
    PENDING = "pending"


@dataclass(frozen=True, slots=True)
class ChunkView:
    """One chunk as the prefill instrument draws it."""

    label: str
    """In words: ``contract-b.pdf, p. 4`` or ``question``."""
    n_tokens: int
    tier: Tier


# --- what a question cost ---------------------------------------------------------------------------


class MissReason(StrEnum):
    """Why the first prompt token that had to be prefilled was not in the cache."""

    NONE = "nothing was missing"
    FIRST_QUESTION = "nothing was cached yet"
    NEVER_SEEN = "not read before"
    OTHER_PREFIX = "read before, but after other passages"
    EVICTED = "no longer kept"
    DOCUMENT_EDITED = "its document was edited since"
    MODEL_CHANGED = "read before, but by another model or with other settings"
    ANSWER_PENDING = "the last answer had not been read again yet"
    NEW_QUESTION = "only the question is new"


@dataclass(frozen=True, slots=True)
class RequestMetrics:
    """The engine's own counts for one question. n_live + n_ram + n_ssd + n_prefilled = n_prompt."""

    n_prompt_tokens: int = 0
    n_live_tokens: int = 0
    n_ram_tokens: int = 0
    n_ssd_tokens: int = 0
    n_prefilled_tokens: int = 0
    n_deduplicated_tokens: int = 0
    """Prompt tokens that a reference made unnecessary."""
    n_rider_tokens: int = 0
    """Of the cached ones: blocks that nobody asked for. They saved nothing: without them the prompt would
    have been shorter."""
    n_answer_tokens: int = 0
    hit_ratio: float = 0.0
    """Reused prompt tokens / prompt tokens, riders left out of both."""
    retrieve_ms: float = 0.0
    plan_ms: float = 0.0
    restore_ms: float = 0.0
    prefill_ms: float = 0.0
    ttft_ms: float = 0.0
    """From the start of work on the engine thread to the first token (time to first token)."""
    decode_tokens_per_s: float = 0.0
    """0 for an answer of fewer than two tokens: there was nothing to measure."""
    prefill_tokens_per_s: float = 0.0
    """Measured in this request; 0 where nothing was prefilled."""
    saved_ms: float = 0.0
    """What computing the reused chunks took when they were computed (or would take at this machine's
    measured rate, where that was in another run), less the time of restoring them."""
    miss_reason: MissReason = MissReason.NONE
    miss_detail: str = ""
    """What was missing, in words: a passage's document and page."""

    @property
    def n_cached_tokens(self) -> int:
        return self.n_live_tokens + self.n_ram_tokens + self.n_ssd_tokens

    @property
    def n_reused_tokens(self) -> int:
        """Cached ones that the question needed."""
        return self.n_cached_tokens - self.n_rider_tokens

    @property
    def n_needed_tokens(self) -> int:
        return self.n_prompt_tokens - self.n_rider_tokens


# --- questions and answers ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SamplingOptions:
    """How the next token is chosen. Temperature 0 is greedy."""

    temperature: float = 0.0
    top_p: float = 0.95
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    conversation_id: int | None = None
    """None starts a new conversation."""
    scope: Scope = Scope()
    max_tokens: int = 256
    sampling: SamplingOptions = SamplingOptions()


@dataclass(frozen=True, slots=True)
class Citation:
    """A passage of the prompt that supports a part of the answer, by our own matching."""

    block_id: str
    document: str
    path: str
    document_id: int
    page: int | None
    quote: str
    """Verbatim from the block."""
    number: int
    """The small superior number of this answer: 1 for the first cited passage."""


@dataclass(frozen=True, slots=True)
class AnswerSentence:
    """One sentence of an answer and the numbers of the citations that support it."""

    start: int
    end: int
    """Character offsets in the answer."""
    citations: tuple[int, ...]
    """Citation numbers; empty if no passage of the prompt supports the sentence."""
    claims: bool = True
    """False for a sentence that says nothing which could be looked up ("Yes.")."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A block in a document, or a part of it: what the reading pane opens."""

    block_id: str
    document_id: int
    title: str
    page: int | None
    """1-based page on which the block begins; None where the format has no pages."""
    quote: str = ""
    """Verbatim from the block; empty for all of it, and where its document was removed."""


class Stands(StrEnum):
    """How a block stands in a prompt, where it is not whole in its place among the passages found."""

    EARLIER = "earlier"
    """An earlier turn gave it: it is named, not repeated."""
    SHORTENED = "shortened"
    """References to blocks before it take the place of what these say already."""
    RIDING = "riding"
    """Nobody asked for it: it was read before, and what follows it is cached behind it."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One such block, and where its text is to be found."""

    how: Stands
    spot: Spot
    """The block itself, in its own document."""
    turn_id: int | None = None
    """The turn of the conversation that gave its text, for EARLIER."""
    stretches: tuple[Spot, ...] = ()
    """The parts of other blocks that it refers to, in its order, for SHORTENED."""


class FinishReason(StrEnum):
    STOP = "stop"
    LENGTH = "length"
    REPETITION = "repetition"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Answer:
    text: str
    citations: tuple[Citation, ...]
    sentences: tuple[AnswerSentence, ...]
    passages: tuple[Passage, ...]
    """Passages in the prompt (new, or referenced from earlier turns), in relevance order."""
    n_found: int
    finish: FinishReason
    metrics: RequestMetrics
    chunks: tuple[ChunkView, ...] = ()
    notes: tuple[str, ...] = ()
    """What the user must know about this answer (`7 of 12 passages used`), one sentence each."""
    plan: tuple[str, ...] = ()
    """Why the prompt was made as it was, one sentence each."""
    standings: tuple[Standing, ...] = ()
    """The blocks whose text stands elsewhere, or that nobody asked for; every other passage stands whole."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One finished question and answer of a conversation, as it was stored."""

    id: int
    question: str
    answer: Answer


@dataclass(frozen=True, slots=True)
class ConversationInfo:
    id: int
    title: str
    n_turns: int
    updated_at: float


@dataclass(frozen=True, slots=True)
class ModelInfo:
    name: str
    path: str
    n_params: int
    n_ctx: int
    device: str
    """``CPU``, ``Metal``, ``CUDA`` as llama.cpp names it."""
    note: str = ""
    """A caution to show with the model; empty if none."""
    attention: float = 0.0
    """What one token before it adds to the work of computing a token, as a share of that work without any."""


# --- events: everything the core tells the outside -----------------------------------------------------


@dataclass(frozen=True, slots=True)
class Event:
    """Base of all events. Events are delivered on the thread that made them, in order per ticket."""


@dataclass(frozen=True, slots=True)
class EngineReady(Event):
    model: ModelInfo


@dataclass(frozen=True, slots=True)
class EngineFailed(Event):
    """No model could be loaded; retrieval still works."""

    message: str
    hint: str
    details: str


@dataclass(frozen=True, slots=True)
class TicketEvent(Event):
    ticket: int


@dataclass(frozen=True, slots=True)
class SourcesFound(TicketEvent):
    """Shown before prefill starts."""

    conversation_id: int | None
    """None for a new conversation: it gets its number with its first answer."""
    context: Context


@dataclass(frozen=True, slots=True)
class PrefillProgress(TicketEvent):
    """The state of the prompt, chunk by chunk, while it is being read."""

    chunks: tuple[ChunkView, ...]
    n_prompt_tokens: int
    n_cached_tokens: int
    n_prefilled_tokens: int
    n_deduplicated_tokens: int
    prefill_s: float
    tokens_per_s: float
    """0 until measured."""


@dataclass(frozen=True, slots=True)
class AnswerText(TicketEvent):
    """A piece of the answer, whole characters only."""

    text: str


@dataclass(frozen=True, slots=True)
class AnswerDone(TicketEvent):
    """The last event of a ticket that succeeded or was stopped with part of an answer."""

    turn: Turn
    conversation_id: int


@dataclass(frozen=True, slots=True)
class QuestionFailed(TicketEvent):
    """The last event of a ticket that gave no answer."""

    message: str
    hint: str
    details: str
    cancelled: bool = False
    is_bug: bool = False


@dataclass(frozen=True, slots=True)
class IngestProgress(Event):
    """State of the running library task; ``running`` is False in the last one."""

    running: bool
    n_files: int
    n_done: int
    """Files dealt with, failed ones among them."""
    n_failed: int
    n_blocks: int
    n_bytes_done: int
    n_bytes: int
    current: str
    elapsed_s: float
    cancelled: bool = False
    problems: tuple[tuple[str, str], ...] = ()
    """In the last one: path, and why it could not be read and what to do."""
    paused: bool = False
    """The user paused it: nothing is read until it is resumed or stopped."""
    watched: bool = False
    """Nobody asked for it just now: files in a watched folder changed."""
    request: int = 0
    """The number that whoever asked for it was given. The last state of every request is told."""


@dataclass(frozen=True, slots=True)
class EmbeddingProgress(Event):
    """How much of the library can be found by its meaning, too."""

    n_done: int
    n_blocks: int
    blocks_per_s: float
    """Measured since it began, without the time in which it rested; 0 before anything is done."""


@dataclass(frozen=True, slots=True)
class LibraryChanged(Event):
    documents: tuple[DocumentInfo, ...]


@dataclass(frozen=True, slots=True)
class CollectionsChanged(Event):
    collections: tuple[CollectionInfo, ...]


@dataclass(frozen=True, slots=True)
class WatchedFoldersChanged(Event):
    """Told when asked, and when a folder, what is known of it or its number of documents changes."""

    folders: tuple[WatchedFolder, ...]


@dataclass(frozen=True, slots=True)
class IdleWorkDone(Event):
    """What was done while nobody waited, a sentence each."""

    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WarmthChanged(Event):
    """Told of the documents that are kept warm or were read whole, after every answer and idle work."""

    documents: tuple[DocumentWarmth, ...]


@dataclass(frozen=True, slots=True)
class ConversationsChanged(Event):
    conversations: tuple[ConversationInfo, ...]


@dataclass(frozen=True, slots=True)
class ConversationLoaded(Event):
    conversation_id: int
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class PassageText:
    """A stretch of a document around a block, for the reading pane."""

    document_id: int
    title: str
    path: str
    page: int | None
    """1-based page on which the quote begins; None where the format has no pages."""
    text: str
    highlight: tuple[int, int]
    """Character offsets in ``text`` of the cited quote."""
    block_id: str = ""
    quote: str = ""
    first: int = 0
    """Ordinal of the first block in ``text``."""
    cuts: tuple[int, ...] = (0,)
    """Where each block in ``text`` begins, with the white space before it."""
    n_blocks: int = 1
    """Of the whole document."""
    media_type: str = ""
    n_pages: int = 0
    heading: str = ""
    """The nearest heading at or before the quote, where the format has headings; else empty."""


@dataclass(frozen=True, slots=True)
class PassageLoaded(Event):
    passage: PassageText


@dataclass(frozen=True, slots=True)
class TextLoaded(Event):
    """More of a document's text: whole blocks, from one ordinal on."""

    document_id: int
    first: int
    text: str = field(repr=False)
    cuts: tuple[int, ...]
    """Where each block in ``text`` begins, with the white space before it; empty if the document is gone."""


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A part of a page in fractions of its width and height, from the top left corner."""

    left: float
    top: float
    right: float
    bottom: float

    def __post_init__(self) -> None:
        """Whoever draws it multiplies with it: ValueError for what is no part of a page, NaN included."""
        if not (0 <= self.left <= self.right <= 1 and 0 <= self.top <= self.bottom <= 1):
            raise ValueError("this is no part of a page")


_MAX_PAGE_BYTES = 64 << 20
_MAX_PAGES = 10_000_000
_MAX_RECTANGLES = 200_000


@dataclass(frozen=True, slots=True)
class PageImage:
    """One page of a PDF, drawn."""

    page: int
    n_pages: int
    width: int
    height: int
    """Pixels."""
    stride: int
    """Bytes from one row of pixels to the next."""
    rgb: bytes = field(repr=False)
    """Three bytes a pixel, red first."""
    highlights: tuple[Rectangle, ...] = ()
    """What was cited, a rectangle for each stretch of a line; empty if nothing of it is on this page."""
    passage: tuple[Rectangle, ...] = ()
    """The whole passage that it was cited from."""

    def __post_init__(self) -> None:
        """Whoever shows it reads memory by these numbers, and another process may have made them up."""
        if not (0 < self.width <= self.stride // 3 and 0 < self.height <= len(self.rgb) // self.stride):
            raise ValueError("the pixels are not those of such a page")
        if len(self.rgb) > _MAX_PAGE_BYTES or not 1 <= self.page <= self.n_pages <= _MAX_PAGES:
            raise ValueError("no page is like that")
        if len(self.highlights) + len(self.passage) > _MAX_RECTANGLES:
            raise ValueError("more is marked than stands on a page")


@dataclass(frozen=True, slots=True)
class PageLoaded(Event):
    document_id: int
    page: int
    """1-based, as it was asked for."""
    image: PageImage | None
    """None where the page cannot be shown: ``message`` says why, ``hint`` what to do."""
    message: str = ""
    hint: str = ""
    block_id: str = ""
    quote: str = ""
    """What was to be marked, as it was asked for."""


@dataclass(frozen=True, slots=True)
class CacheState(Event):
    """What the prefix cache keeps outside the model context; told after every answer and removal."""

    n_chunks: int
    ram_bytes: int
    ram_budget: int
    ssd_bytes: int
    ssd_budget: int
    """0 if the tier is off."""
    ssd_written_today: int


@dataclass(frozen=True, slots=True)
class Notice(Event):
    """Something the user should see that belongs to no question (a failed task, a bug)."""

    message: str
    hint: str = ""
    details: str = ""
    is_bug: bool = False
    is_warning: bool = False
    """Nothing failed that was asked for: it goes on with less."""
    request: int = 0
    """Of which reading it tells, as in IngestProgress; 0 for anything else."""


@dataclass(frozen=True, slots=True)
class SessionTotals:
    """Sums over this run of the program, for the inspector."""

    n_questions: int = 0
    n_prompt_tokens: int = 0
    n_cached_tokens: int = 0
    saved_ms: float = field(default=0.0)

    @property
    def hit_ratio(self) -> float:
        return self.n_cached_tokens / self.n_prompt_tokens if self.n_prompt_tokens else 0.0
