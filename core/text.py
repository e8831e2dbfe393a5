"""Words and sentences of any script: what the full text index, retrieval and citations compare.

SQLite's ``unicode61`` tokenizer knows no word limits in Chinese, Japanese or Korean, so runs of those
characters become single characters and overlapping pairs before they are indexed, and a question goes
through the same function. Accents, vowel marks, case and width are folded on both sides alike.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache

_CJK = (
    "\u3005\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_ASCII_WORDS = "".join(chr(code) if re.match(r"\w", chr(code)) else " " for code in range(128))
"""For ``str.translate``: what is no part of a word becomes a space. Quicker than a pattern."""
_WORD = re.compile(r"\w+")
_CJK_CHARACTER = re.compile(f"[{_CJK}]")
_RUN = re.compile(rf"([{_CJK}]+)|([^\W{_CJK}]+)")
_MARKS = re.compile("[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670]")
"""Accents, Hebrew points, Arabic vowel marks and the stretching line, one at a time: with ``+`` the search
for the first of them takes nearly three times as long. Not the marks of kana or of Indic
scripts: there they make other words."""
_CAMEL_HINT = re.compile(r"[a-z][A-Z]")
_CAMEL_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_MAX_TERM = 64
"""Longer words are data (base64, hashes); their first characters are enough to find them."""

_STOPWORDS = {
    "en": """
        a about after all also an and any are as at be because been before being but by can
        could did do does doing for from had has have he her here hers him his how i if in into
        is it its just many me might more most much my no nor not of on or other our out over own per s
        she should so some such t than that the their them then there these they this those
        through to too under up us very was we were what when where which while who whom whose
        why will with would you your tell please""",
    "de": """
        der das den dem des ein eine einen einem einer eines und oder ist sind waren
        wird werden nicht mit von zu zum zur im auf bei aus nach uber wie wer wo warum
        welche welcher welches sich auch als""",
    "fr": """
        le la les un une du de et ou est sont etait dans par sur avec ce cette ces qui que
        quoi quel quelle quels quelles pourquoi ne pas il elle ils elles se sa ses
        au aux en l d c qu""",
    "es, pt, it": """
        el los las una unos unas y o es fue por para con del al como cual cuales donde
        cuando quien lo su sus se no os um uma e da dos das em que qual quem il gli di che per
        della nel sono cosa chi""",
    "ar": """
        في من الى على عن ما ماذا متى اين كيف لماذا هل هو هي هذا هذه ذلك التي الذي و او ان كان
        كانت مع لا كم اي""",
    "zh, ja": """
        的 了 是 在 和 与 有 也 吗 呢 什 么 什么 哪 哪些 哪个 谁 怎么 如何 为什 多少 几 の
        に は を が と で も た て ます です した する ある いる この その 何 どの""",
}

STOPWORDS: frozenset[str] = frozenset(" ".join(_STOPWORDS.values()).split())
"""Folded, like ``terms``: Arabic without vowel marks and hamza; Chinese and Japanese characters and pairs.
Words that mean something in another of these languages (``die``, ``war``) are not in here."""


def fold(text: str) -> str:
    """Case, width, ligatures, accents and vowel marks folded away. Offsets are not kept."""
    if text.isascii():
        return text.lower()
    # Case after decomposing: a sign for "SM" is no letter before it.
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return unicodedata.normalize("NFKC", _MARKS.sub("", decomposed))


def terms(text: str) -> list[str]:
    """The words of a text, folded; CJK runs as single characters and pairs.

    An identifier with inner capitals or underscores gives its parts as well: ``getUserName`` gives
    ``getusername``, ``get``, ``user``, ``name``.
    """
    return _terms(text, singles=True)


def content_terms(text: str) -> list[str]:
    """The terms that carry meaning, each once, in order: no stop words, and no single CJK character
    where a pair holds it. Empty if the text consists of stop words.
    """
    return [term for term in dict.fromkeys(_terms(text, singles=False)) if term not in STOPWORDS]


def _terms(text: str, *, singles: bool) -> list[str]:
    """``singles``: also the CJK characters that a pair holds."""
    folded = fold(text)
    if folded.isascii():
        found = _words(folded.translate(_ASCII_WORDS).split(), folded)
    elif _CJK_CHARACTER.search(folded) is None:
        found = _words(_WORD.findall(folded), folded)
    else:
        found = []
        for run, word in _RUN.findall(folded):
            if word:
                found += _words([word], word)
                continue
            if singles or len(run) == 1:
                found += run
            found += [run[index : index + 2] for index in range(len(run) - 1)]
    found += _camel_parts(text)
    return found


def _words(words: list[str], text: str) -> list[str]:
    """The words of ``text`` as terms: cut to size, those with underscores also in parts."""
    if "_" not in text and max(map(len, words), default=0) <= _MAX_TERM:
        return words
    found = []
    for word in words:
        parts = [part for part in word.split("_") if part]
        if len(parts) > 1:
            found.append(word[:_MAX_TERM])
        found += [part[:_MAX_TERM] for part in parts]
    return found


def _camel_parts(text: str) -> list[str]:
    """Parts of the words with inner capitals."""
    parts: list[str] = []
    end = 0
    for hint in _CAMEL_HINT.finditer(text):
        start = hint.start()
        if start < end:
            continue
        while start > end and text[start - 1].isascii() and text[start - 1].isalnum():
            start -= 1
        end = hint.end()
        while end < len(text) and text[end].isascii() and text[end].isalnum():
            end += 1
        parts += [part.lower() for part in _CAMEL_PART.findall(text, start, end) if len(part) > 1]
    return parts


# --- sentences -----------------------------------------------------------------------------------

_SENTENCE_END = re.compile(
    r"[.!?…]+[\"'”’»)\]]*(?=\s)"  # Latin and alike: white space must follow
    r"|[。！？｡]+[」』”’）\]]*"  # CJK: nothing needs to follow
    r"|[؟۔।]+[\"'”’»)\]]*"  # Arabic question mark, Urdu full stop, danda
    r"|\n"
)
_LIST_ITEM = re.compile(r"(?:[-*•‣▪–—·+]|\(?[0-9]{1,3}[.)]|\(?[A-Za-z][.)])[ \t]|#{1,6} |\|")
_SHORT_LINE = 36
"""Characters. A shorter line without an end mark is a heading, an address or a table cell: it was not
broken because it was full."""


def sentences(text: str) -> list[tuple[int, int]]:
    """Character spans of the sentences, white space at both ends left out; in order, never empty.

    List items, table rows, headings and paragraphs end a sentence as well; abbreviations, initials and
    decimal points do not.
    """
    spans: list[tuple[int, int]] = []
    start = 0
    for match in _SENTENCE_END.finditer(text):
        if match.group() == "\n":
            ends = _line_ends_sentence(text, match.start())
        elif text[match.start()] == "." and match.group()[1:2] != ".":
            ends = _full_stop_ends_sentence(text, match.start(), match.end())
        else:
            ends = True
        if ends:
            _append_trimmed(spans, text, start, match.end())
            start = match.end()
    _append_trimmed(spans, text, start, len(text))
    return spans


def _append_trimmed(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    piece = text[start:end]
    begin = start + len(piece) - len(piece.lstrip())
    stop = start + len(piece.rstrip())
    if stop > begin:
        spans.append((begin, stop))


def _line_ends_sentence(text: str, newline: int) -> bool:
    # The whole line, also where the sentence began in the middle of it: its length tells hard-wrapped prose.
    line = text[text.rfind("\n", 0, newline) + 1 : newline].strip()
    following = text[newline + 1 : newline + 200].lstrip(" \t")
    if not line or not following or following.startswith(("\n", "\r\n")):
        return True
    if line.startswith("#") or _LIST_ITEM.match(following):
        return True
    if any(mark in row for row in (line, following.partition("\n")[0]) for mark in ("|", "\t")):
        return True
    return len(line) < _SHORT_LINE and not following[0].islower() and line[-1] not in ",;-"


def _full_stop_ends_sentence(text: str, dot: int, end: int) -> bool:
    after = text[end : end + 80].lstrip()
    if after and after[0].islower():
        return False
    word_start = dot
    while word_start > 0 and not text[word_start - 1].isspace():
        word_start -= 1
    word = text[word_start:dot].lstrip("([\"'“‘«")
    if "." in word:  # e.g., U.S., 1.2.
        return False
    if word.isdigit() and len(word) <= 3:  # 3. at the start of a line is the number of an item or heading
        line_start = text.rfind("\n", 0, word_start) + 1
        return text[line_start:word_start].strip("#>*- \t") != ""
    return not (len(word) <= 3 and word[:1].isupper() and not word.isupper()) and not (
        len(word) == 1 and word.isalpha() and word.isupper()
    )


@lru_cache(maxsize=1 << 16)  # the words of a language come again and again
def stem(term: str) -> str:
    """English endings cut off, crudely: enough to see that ``causes`` and ``caused`` are one word."""
    if len(term) < 5 or not term.isascii():
        return term
    for ending in ("ings", "ing", "ies", "edly", "ed", "es", "s", "ly"):
        if term.endswith(ending) and len(term) - len(ending) >= 3:
            term = term[: -len(ending)]
            break
    return term.removesuffix("e").removesuffix("y") if len(term) > 4 else term


def _is_heading(text: str, start: int, end: int) -> bool:
    """A short line of its own that ends like no sentence; a table row is none."""
    span = text[start:end]
    return (
        len(span) <= 80
        and "\n" not in span
        and " | " not in span
        and span[-1] not in ".!?;,。！？؟…"
        and (start == 0 or text[start - 1] == "\n")
        and text[end : end + 1] in ("", "\n")
    )


def best_sentence(
    text: str,
    question_terms: Sequence[str],
    *,
    weights: Mapping[str, float] | None = None,
    max_chars: int = 400,
) -> tuple[int, int]:
    """Span of the sentence of ``text`` that shares most with ``question_terms``.

    ``weights`` says how much each term counts (1.0 if it is not in there). A heading says what is told
    below it, but tells nothing: its terms count half, for itself and for the sentences under it. A
    sentence over ``max_chars`` characters is cut at a word. The first sentence wins ties and wins if
    nothing matches; ``(0, 0)`` for a text without sentences.
    """
    wanted = {stem(term): (weights or {}).get(term, 1.0) for term in question_terms}
    best, best_score = (0, 0), -1.0
    heading: set[str] = set()
    for start, end in sentences(text):
        found = {stem(term) for term in content_terms(text[start:end])}
        shared = sum(weight for term, weight in wanted.items() if term in found)
        if _is_heading(text, start, end):
            heading = found
            shared *= 0.5
        else:
            shared += 0.5 * sum(weight for term, weight in wanted.items() if term in heading - found)
        score = shared / (1.0 + 0.01 * len(found))  # of two that share as much, the shorter one
        if score > best_score:
            best, best_score = (start, end), score
    start, end = best
    if end - start > max_chars:
        space = text.rfind(" ", start + max_chars // 2, start + max_chars)
        end = space if space > start else start + max_chars
    return start, end
