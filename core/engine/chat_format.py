"""The fixed text of a chat template, taken apart so that a conversation is only ever appended to.

Rendering a template again over old turns would change what stands before them (templates trim answers
and drop reasoning), and with it every cached token. So the template is rendered once, with markers in
place of the contents, and cut at the markers.
"""

import datetime as dt
from dataclasses import dataclass

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

_SYSTEM, _USER, _ANSWER, _NEXT = "SLIPSTREAMSYSTEM", "SLIPSTREAMUSER", "SLIPSTREAMANSWER", "SLIPSTREAMNEXT"


_FIXED_DAY = dt.date(2025, 1, 1)
_CANNOT_RENDER = (
    TemplateError,
    TypeError,
    ValueError,
    KeyError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)


class _Generation(Extension):
    """``{% generation %}`` marks answers for training; here it only passes its contents through."""

    tags = {"generation"}  # noqa: RUF012  (Jinja declares it as an instance variable)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


@dataclass(frozen=True, slots=True)
class ChatFormat:
    """Text around the contents of a conversation; it may hold control tokens, contents may not."""

    before_system: str
    system_to_user: str
    user_to_answer: str
    answer_to_user: str


PLAIN = ChatFormat("", "\n\n", "\n\nAnswer:", "\n\n")
"""For base models, which have no template."""


def chat_format(template: str | None, bos: str, eos: str) -> ChatFormat:
    """Take a GGUF's chat template apart; PLAIN where there is none or it cannot be used.

    The template is untrusted: it runs in Jinja's sandbox and may change nothing.
    """
    if not template:
        return PLAIN
    system = {"role": "system", "content": _SYSTEM}
    turns = [
        {"role": "user", "content": _USER},
        {"role": "assistant", "content": _ANSWER},
        {"role": "user", "content": _NEXT},
    ]
    text = _render(template, [system, *turns], bos, eos)
    if text is not None and text.count(_SYSTEM) == 1:
        parts = _split(text, (_SYSTEM, _USER, _ANSWER, _NEXT))
        if parts is not None:
            return ChatFormat(parts[0], parts[1], parts[4], parts[3])
    # Some templates know no system role: its text then opens the first user message.
    text = _render(template, turns, bos, eos)
    parts = _split(text, (_USER, _ANSWER, _NEXT)) if text is not None else None
    if parts is None:
        return PLAIN
    return ChatFormat(parts[0], "\n\n", parts[3], parts[2])


def _render(template: str, messages: list[dict[str, str]], bos: str, eos: str) -> str | None:
    def refuse(message: str) -> None:
        raise TemplateError(message)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _Generation]
    )
    environment.globals["raise_exception"] = refuse
    # A date in the head would empty the cache every midnight, so there is no clock: templates that can do
    # without do, and those that cannot get a fixed day.
    for clock in ({}, {"strftime_now": _FIXED_DAY.strftime}):
        try:
            return environment.from_string(template).render(
                messages=messages,
                add_generation_prompt=True,
                bos_token=bos,
                eos_token=eos,
                tools=None,
                **clock,
            )
        except _CANNOT_RENDER:
            continue
    return None


def _split(text: str, markers: tuple[str, ...]) -> list[str] | None:
    """The parts of ``text`` between the markers, or None unless each stands there once and in order."""
    parts = []
    for marker in markers:
        before, found, text = text.partition(marker)
        if not found or marker in text:
            return None
        parts.append(before)
    parts.append(text)
    return parts
