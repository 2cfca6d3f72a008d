"""The text of a summary message: a tag line with a seal, the prose, and the ledger under its heading.

The tag makes the message readable for people and lets it be found again, also after a restart. The seal, a digest of
the text, tells it from a message in which somebody typed the tag or changed the text: that one is folded like any
other. It is no secret, and whoever computes it gains no more than a summary of the same words would have.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b

TAG = "[compacter: summary of what came before]"
"""How the first line of every summary message begins; its seal follows."""

HEADING = "Kept from it:"
"""The line above the ledger."""

_SEPARATOR = f"\n\n{HEADING}\n"
_HEADING_LINE = re.compile(rf"^(\\*)(?={re.escape(HEADING)}$)", re.MULTILINE)
_ESCAPED_LINE = re.compile(rf"^\\(?=\\*{re.escape(HEADING)}$)", re.MULTILINE)

_SEAL_BYTES = 4
_FIRST_LINE = re.compile(rf"{re.escape(TAG)} ([0-9a-f]{{{2 * _SEAL_BYTES}}})(?:\n|\Z)")

FRAME = len(TAG) + 2 * _SEAL_BYTES + 2 + len(_SEPARATOR)
"""Characters that ``compose`` adds to prose and ledger."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """The two parts of a summary: free prose, and the ledger's lines (empty when there is none)."""

    prose: str
    ledger: str = ""


def compose(prose: str, ledger: str = "") -> str:
    """Return the full text of a summary message; ``parse`` undoes it exactly."""
    body = join(_escape(prose), _escape(ledger))
    return f"{TAG} {_seal(body)}\n{body}"


def join(prose: str, ledger: str) -> str:
    """Return prose and ledger as one text, without the tag."""
    return prose + _SEPARATOR + ledger if ledger else prose


def parse(text: str) -> Parsed | None:
    """Return the parts of a summary message's text; None without a tag line, or with a seal that is not the rest's."""
    first = _FIRST_LINE.match(text)
    if first is None:
        return None
    body = text[first.end() :]
    if _seal(body) != first[1]:
        return None
    prose, _, ledger = body.partition(_SEPARATOR)
    return Parsed(_unescape(prose), _unescape(ledger))


def divide(text: str) -> Parsed:
    """Return the parts of a summary whether its text is tagged (``compose``) or not (``join``)."""
    tagged = parse(text)
    if tagged is not None:
        return tagged
    prose, _, ledger = text.partition(_SEPARATOR)
    return Parsed(prose, ledger)


def _seal(body: str) -> str:
    return blake2b(body.encode("utf-8", "surrogatepass"), digest_size=_SEAL_BYTES, person=b"compacter").hexdigest()


def _escape(text: str) -> str:
    """Mark lines of the content that look like our heading, so that only the real one is read as such."""
    return _HEADING_LINE.sub(lambda match: "\\" + match[1], text) if HEADING in text else text


def _unescape(text: str) -> str:
    return _ESCAPED_LINE.sub("", text) if HEADING in text else text
