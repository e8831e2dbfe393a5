"""RTF, read tolerantly: unknown words are skipped, damaged files give what is left of them."""

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from core.errors import Cancelled, DocumentError
from core.ingest.extracted import Extracted
from core.ingest.writer import TextWriter

MEDIA_TYPE = "application/rtf"
_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z])|([{}])|[\r\n\0]+|([^\\{}\r\n\0]+)",
    re.DOTALL,
)
_MAX_DEPTH = 10_000
_TOKENS_BETWEEN = 10_000
"""Between two looks at whether to stop."""
_CODEPAGE_OF_CHARSET = {
    0: "cp1252",
    77: "mac_roman",
    128: "cp932",
    129: "cp949",
    130: "johab",
    134: "gb18030",
    136: "big5",
    161: "cp1253",
    162: "cp1254",
    163: "cp1258",
    177: "cp1255",
    178: "cp1256",
    186: "cp1257",
    204: "cp1251",
    222: "cp874",
    238: "cp1250",
    254: "cp437",
    255: "cp850",
}
_CODEPAGES = {10000: "mac_roman", 936: "gb18030", 950: "big5", 949: "cp949", 932: "cp932", 65001: "utf-8"}
_CHARACTERS = {
    "tab": "\t",
    "line": "\n",
    "emdash": "—",
    "endash": "–",
    "lquote": "‘",
    "rquote": "’",
    "ldblquote": "“",
    "rdblquote": "”",
    "bullet": "•",
    "emspace": " ",
    "enspace": " ",
    "qmspace": " ",
}
_SKIPPED_WORDS = """
    colortbl stylesheet info pict object objdata fldinst header headerl headerr headerf footer footerl
    footerr footerf themedata colorschememapping datastore latentstyles listtable listoverridetable rsidtbl
    generator xmlnstbl nonshppict sp bkmkstart bkmkend revtbl filetbl template operator
    datafield annotation atnid atnauthor atnref atndate mmathPr pgptbl wgrffmtfilter falt panose fontemb
    private tc xe"""
_SKIPPED = frozenset(_SKIPPED_WORDS.split())
_STARRED_TEXT = frozenset(("shpinst", "shptxt", "pn", "ud"))
"""Destinations that may be ignored by readers that do not know them, and hold text."""


@dataclass(frozen=True, slots=True)
class _State:
    """What a group inherits and its end undoes."""

    encoding: str
    skipped: bool = False
    fonts: bool = False
    """In the table of fonts."""
    marker: bool = False
    """In the text of a list's bullet or number."""
    hidden: bool = False
    n_fallback: int = 1
    """Characters that stand in for one that is written as a number."""


def read_rtf(data: bytes, stop: Callable[[], bool] = lambda: False) -> Extracted:
    """Raises DocumentError where groups are nested as in no document, Cancelled by ``stop``."""
    reader = _Reader()
    reader.read(data, stop)
    text, _starts, _n_blank = reader.writer.result()
    return Extracted(text, MEDIA_TYPE)


class _Reader:
    def __init__(self) -> None:
        self.writer = TextWriter()
        self._encoding = "cp1252"
        """The document's."""
        self._state = _State("cp1252")
        self._stack: list[_State] = []
        self._font_encodings: dict[int, str] = {}
        self._font = 0
        self._text: list[str] = []
        self._bytes = bytearray()
        """Not decoded yet: a character may be of two."""
        self._cells: list[str] = []
        self._in_table = self._is_item = False
        self._level = 0
        self._to_skip = 0

    def read(self, data: bytes, stop: Callable[[], bool]) -> None:
        at = 0
        starred = False
        for number_of_token in itertools.count():
            if number_of_token % _TOKENS_BETWEEN == 0 and stop():
                raise Cancelled
            match = _TOKEN.match(data, at)
            if match is None:
                if at >= len(data):
                    break
                at += 1  # a backslash at the very end
                continue
            at = match.end()
            word, number, code, symbol, brace, plain = match.groups()
            if brace:
                self._group(opens=brace == b"{")
                starred = False
            elif word:
                value = int(number) if number else None
                if word == b"bin":
                    at += max(value or 0, 0)
                else:
                    self._word(word.decode(), value, starred=starred)
                starred = False
            elif symbol == b"*":
                starred = True
            elif code:
                self._characters(bytes((int(code, 16),)))
            elif symbol:
                self._symbol(symbol)
            elif plain:
                self._characters(plain)
        self._end_paragraph()
        self._end_row()

    def _group(self, *, opens: bool) -> None:
        self._decode()
        self._to_skip = 0
        if opens:
            if len(self._stack) >= _MAX_DEPTH:
                raise DocumentError(
                    "This RTF file is damaged.", hint="Open it in a word processor and save it again."
                )
            self._stack.append(self._state)
        elif self._stack:
            self._state = self._stack.pop()

    def _word(self, word: str, value: int | None, *, starred: bool) -> None:
        state = self._state
        if word in _SKIPPED or (starred and word not in _STARRED_TEXT):
            self._set(skipped=True)
        elif word == "u" and value is not None:
            self._unicode(value)
        elif word == "uc":
            self._set(n_fallback=min(max(value if value is not None else 1, 0), 100))
        elif word == "ansicpg" and value is not None:
            self._encoding = known_encoding(_CODEPAGES.get(value, f"cp{value}"))
            self._set(encoding=self._encoding)
        elif word in ("mac", "pc", "pca"):
            self._encoding = {"mac": "mac_roman", "pc": "cp437", "pca": "cp850"}[word]
            self._set(encoding=self._encoding)
        elif word == "fonttbl":
            self._set(fonts=True)
        elif word == "f" and value is not None:
            self._font = value
            self._set(encoding=self._font_encodings.get(value, self._encoding))
        elif word == "fcharset" and value is not None and state.fonts:
            # 1 means the document's own, 2 pictures that stand for no text
            self._font_encodings[self._font] = _CODEPAGE_OF_CHARSET.get(value, self._encoding)
        elif word == "plain":
            self._set(encoding=self._encoding, hidden=False)
        elif word == "v":
            self._set(hidden=value != 0)
        elif state.skipped or state.fonts or state.hidden:
            return
        elif word in ("listtext", "pntext"):
            self._set(marker=True)
            self._is_item = True
        else:
            self._layout(word, value)

    def _layout(self, word: str, value: int | None) -> None:
        if word in ("par", "sect", "page"):
            if self._in_table and word == "par":
                self._add("\n")
            else:
                self._end_paragraph()
        elif word in ("cell", "nestcell"):
            self._decode()
            self._cells.append(self._taken())
        elif word in ("row", "nestrow"):
            self._end_row()
        elif word == "intbl":
            self._in_table = True
        elif word == "pard":
            self._in_table = self._is_item = False
            self._level = 0
        elif word == "outlinelevel" and value is not None and 0 <= value < 9:
            self._level = value + 1
        elif word == "footnote":
            self._add(" – ")
        elif word in _CHARACTERS:
            self._add(_CHARACTERS[word])

    def _symbol(self, symbol: bytes) -> None:
        if symbol in (b"\n", b"\r"):
            self._layout("par", None)
        elif symbol in (b"\\", b"{", b"}"):
            self._characters(symbol)
        elif symbol == b"~":
            self._add("\u00a0")
        elif symbol == b"_":
            self._add("-")

    def _characters(self, data: bytes) -> None:
        skipped = min(self._to_skip, len(data))
        self._to_skip -= skipped
        if self._is_seen():
            self._bytes += data[skipped:]

    def _unicode(self, value: int) -> None:
        self._decode()
        code = value + 65536 if value < 0 else value
        if 0 < code < 0x110000:
            self._add(chr(code))
        self._to_skip = self._state.n_fallback

    def _add(self, text: str) -> None:
        self._decode()
        self._to_skip = 0
        if self._is_seen():
            self._text.append(text)

    def _is_seen(self) -> bool:
        state = self._state
        return not (state.skipped or state.fonts or state.marker or state.hidden)

    def _set(self, **changes: object) -> None:
        self._decode()
        self._state = replace(self._state, **changes)  # type: ignore[arg-type]

    def _decode(self) -> None:
        if self._bytes:
            self._text.append(self._bytes.decode(self._state.encoding, "replace"))
            self._bytes.clear()

    def _taken(self) -> str:
        text = "".join(self._text)
        self._text.clear()
        # Characters outside the first plane are written as two numbers.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    def _end_paragraph(self) -> None:
        self._decode()
        text = self._taken()
        if self._level:
            self.writer.heading(text, self._level)
        elif self._is_item:
            self.writer.item(text)
        else:
            self.writer.paragraph(text)

    def _end_row(self) -> None:
        cells, self._cells = self._cells, []
        self.writer.row(cells)


def known_encoding(name: str) -> str:
    """``name`` if text can be decoded from it, else the most common one."""
    try:
        b"a".decode(name)
    except (LookupError, UnicodeError):
        return "cp1252"
    return name
