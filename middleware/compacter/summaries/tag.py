"""The text of a summary message: a tag line, the prose, and the ledger under its heading.

The tag makes the message readable for people and lets it be found again. It is no proof: anybody can type it,
so whoever needs to know which message is really a summary must remember that (the memory and ``History`` do).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

TAG = "[compacter: summary of what came before]"
"""First line of every summary message."""

HEADING = "Kept from it:"
"""The line above the ledger."""

_SEPARATOR = f"\n\n{HEADING}\n"
_HEADING_LINE = re.compile(rf"^(\\*)(?={re.escape(HEADING)}$)", re.MULTILINE)
_ESCAPED_LINE = re.compile(rf"^\\(?=\\*{re.escape(HEADING)}$)", re.MULTILINE)

FRAME = len(TAG) + 1 + len(_SEPARATOR)
"""Characters that ``compose`` adds to prose and ledger."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """The two parts of a summary: free prose, and the ledger's lines (empty when there is none)."""

    prose: str
    ledger: str = ""


def compose(prose: str, ledger: str = "") -> str:
    """Return the full text of a summary message; ``parse`` undoes it exactly."""
    return f"{TAG}\n{join(_escape(prose), _escape(ledger))}"


def join(prose: str, ledger: str) -> str:
    """Return prose and ledger as one text, without the tag."""
    return prose + _SEPARATOR + ledger if ledger else prose


def parse(text: str) -> Parsed | None:
    """Return the parts of a summary message's text, or None when it does not begin with the tag line."""
    if not text.startswith(TAG):
        return None
    rest = text[len(TAG) :]
    if rest and not rest.startswith("\n"):
        return None
    prose, _, ledger = rest[1:].partition(_SEPARATOR)
    return Parsed(_unescape(prose), _unescape(ledger))


def divide(text: str) -> Parsed:
    """Return the parts of a summary whether its text is tagged (``compose``) or not (``join``)."""
    tagged = parse(text)
    if tagged is not None:
        return tagged
    prose, _, ledger = text.partition(_SEPARATOR)
    return Parsed(prose, ledger)


def _escape(text: str) -> str:
    """Mark lines of the content that look like our heading, so that only the real one is read as such."""
    return _HEADING_LINE.sub(lambda match: "\\" + match[1], text) if HEADING in text else text


def _unescape(text: str) -> str:
    return _ESCAPED_LINE.sub("", text) if HEADING in text else text
