"""Text from data, made harmless: names come from files and servers and may hold anything."""

import html
import re

_REPLACEMENT = "\ufffd"
_BEFORE_UNIT = re.compile(r"(?<=[≥≤]) |(?<=\d) (?=(?:%|m?s|[kMG]B|GB/s|nats|tokens)(?:\W|$))")


def escape(text: str) -> str:
    """For HTML and SVG, also in quoted attributes; control codes and half surrogates become a mark."""
    return html.escape("".join(one if one.isprintable() or one in "\n\t" else _REPLACEMENT for one in text))


def prose(text: str) -> str:
    """As ``escape``; a number and its unit stay on one line."""
    return _BEFORE_UNIT.sub("\u00a0", escape(text))


def one_line(text: str, width: int) -> str:
    """For a terminal: printable, at most ``width`` characters, an ellipsis where it was longer."""
    line = "".join(one if one.isprintable() else " " for one in text)
    return line if len(line) <= width else line[: width - 1] + "…"
