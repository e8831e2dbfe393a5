"""What a reader gives back, and the cleaning that all of them share."""

import re
import unicodedata
from dataclasses import dataclass, field
from itertools import pairwise

from core.errors import PasswordRequired

MAX_CHARACTERS = 100_000_000
"""A library of books; cutting a text into blocks takes several times its size in memory."""
_MAX_PAGES = 1_000_000
_MAX_NOTE = 10_000
"""Characters of what is said about a file."""

# Control characters carry no text; half surrogate pairs cannot be stored; U+FFFE is no character.
_NO_TEXT = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ud800-\udfff\ufeff\ufffe\uffff]")
_LINE_ENDS = re.compile("\r\n?|\u0085|\u2028")
_NEW_PAGE = re.compile("\n?\f\n?|\u2029")


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What the user said about one file."""

    password: str = field(default="", repr=False)
    """Opens it, where it is protected."""
    ocr: bool = False
    """Recognize the text of pictures and scanned pages, which takes seconds a page."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """The text of a file: NFC, lines ended by line feeds."""

    text: str = field(repr=False)
    media_type: str
    page_starts: tuple[int, ...] = ()
    """Where each page begins in ``text``; empty where the format has no pages."""
    note: str = ""
    """What the user should know although it was read; empty if nothing."""

    def __post_init__(self) -> None:
        """Another process may have made it up: what could not be stored is refused with ValueError."""
        for said in (self.text, self.media_type, self.note):
            said.encode()  # UnicodeEncodeError is a ValueError
        if len(self.media_type) + len(self.note) > _MAX_NOTE or len(self.page_starts) > _MAX_PAGES:
            raise ValueError("more is said than belongs to a document")
        places = (0, *self.page_starts, len(self.text))
        if any(one > two for one, two in pairwise(places)):
            raise ValueError("the pages are not in the text")


def cleaned(text: str) -> str:
    """NFC, one kind of line end, nothing that cannot be shown or stored."""
    text = _LINE_ENDS.sub("\n", text)
    text = _NEW_PAGE.sub("\n\n", text)
    return unicodedata.normalize("NFC", _NO_TEXT.sub("", text))


def is_blank(text: str) -> bool:
    """Whether no letter, digit or symbol is left to be found."""
    return not any(character.isalnum() or unicodedata.category(character) == "So" for character in text)


def password_required(what: str, password: str) -> PasswordRequired:
    """The refusal of a protected file: without a password, or with one that is wrong."""
    if password:
        return PasswordRequired(
            f"This password does not open the {what}.", hint="Check it, capitals too, and try again."
        )
    return PasswordRequired(
        f"This {what} is protected by a password.",
        hint="Give its password, or add a copy that was saved without one.",
    )
