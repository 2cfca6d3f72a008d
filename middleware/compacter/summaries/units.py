"""Cut entries into the pieces a summary is chosen from: sentences of prose, lines of code and output."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from compacter.history.entry import Entry

LONGEST = 320
"""Characters of the longest unit; longer runs are cut between words."""

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?=[\w\"'“‘(\[*`$€£¿¡-])|(?<=[。！？])|\n+")
_NUMBERED = re.compile(r"^\s*\d+(?:\t|→|[:|] )")
_SPACES = re.compile(r"\s+")
_SPEAKER = re.compile(r"^(\([^)\n]{1,60}\)\s*)?([A-Z][\w'’.-]{0,24}(?: [A-Z][\w'’.-]{0,24})?): (?=\S)")
_ROLE_MARK = {"user": "U: ", "assistant": "A: ", "system": "S: ", "tool": "T: "}


@dataclass(frozen=True, slots=True)
class Unit:
    """One piece of an entry that can be kept or dropped on its own."""

    text: str
    entry: int
    """Position of its entry among those given."""
    prose: bool
    """Whether it is a sentence, which may be shortened, rather than code or output."""


@dataclass(frozen=True, slots=True)
class Source:
    """What a unit inherits from its entry."""

    role: str
    kind: str
    mark: str
    """What is put before the entry's first kept unit, so that the reader knows who speaks."""


def cut(entries: Sequence[Entry]) -> tuple[list[Source], list[Unit]]:
    """Return the sources (one for each entry) and the units of all entries, in order."""
    texts = [entry for entry in entries if entry.kind == "text"]
    named = sum(1 for entry in texts if _SPEAKER.match(entry.text)) * 2 > len(texts)
    sources: list[Source] = []
    units: list[Unit] = []
    for place, entry in enumerate(entries):
        mark, rest = _ROLE_MARK[entry.role], entry.text
        prose = entry.kind in ("text", "summary", "media")
        if entry.kind == "text" and named and (match := _SPEAKER.match(rest)):
            mark, rest = f"{match[2]}: ", (match[1] or "") + rest[match.end() :]
        elif entry.kind == "call":
            mark = f"{entry.name or 'call'}: "
        elif entry.kind == "result":
            mark = "→ "
        sources.append(Source(entry.role, entry.kind, mark))
        pieces = sentences(rest) if prose else lines(rest)
        units.extend(Unit(piece, place, prose) for piece in pieces)
    return sources, units


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of prose, white space folded."""
    for piece in _SENTENCE_END.split(_ANSI.sub("", text)):
        yield from _wrap(_SPACES.sub(" ", piece).strip())


def lines(text: str) -> Iterator[str]:
    """Yield the lines of code or output, JSON as ``key: value`` runs, without colours and line numbers."""
    flat = flatten(text)
    if flat is not None:
        for piece in flat:
            yield from _wrap(piece)
        return
    for line in _ANSI.sub("", text).splitlines():
        yield from _wrap(_SPACES.sub(" ", _NUMBERED.sub("", line)).strip())


def flatten(text: str) -> list[str] | None:
    """Return JSON as compact lines, one for each object that holds plain values; None when it is not JSON."""
    stripped = text.strip()
    if stripped[:1] not in ("{", "["):
        return None
    try:
        value = json.loads(stripped)
    except (ValueError, RecursionError):
        return None
    try:
        return list(_flat(value, ""))
    except RecursionError:
        return None


def _flat(value: object, name: str) -> Iterator[str]:
    if isinstance(value, dict):
        plain = []
        for key, item in value.items():
            if isinstance(item, (dict, list)) and item:
                continue
            if isinstance(item, str) and ("\n" in item or len(item) > LONGEST):
                continue
            plain.append(f"{key}: {_scalar(item)}")
        if plain:
            yield (f"{name} " if name else "") + ", ".join(plain)
        for key, item in value.items():
            if isinstance(item, (dict, list)) and item:
                yield from _flat(item, str(key))
            elif isinstance(item, str) and ("\n" in item or len(item) > LONGEST):
                yield from lines(item)
    elif isinstance(value, list):
        if all(not isinstance(item, (dict, list)) for item in value):
            yield (f"{name}: " if name else "") + ", ".join(_scalar(item) for item in value)
        else:
            for item in value:
                yield from _flat(item, name)
    elif isinstance(value, str):
        yield from lines(value) if flatten_again(value) else sentences(value)
    else:
        yield _scalar(value)


def flatten_again(text: str) -> bool:
    """Whether a string inside JSON is itself JSON."""
    return text.strip()[:1] in ("{", "[")


def _scalar(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False) if not isinstance(value, (dict, list)) else ""


def _wrap(piece: str) -> Iterable[str]:
    """Yield ``piece`` in runs of at most ``LONGEST`` characters, cut between words where there are any."""
    while len(piece) > LONGEST:
        at = max(piece.rfind(" ", LONGEST // 2, LONGEST), piece.rfind(", ", LONGEST // 2, LONGEST))
        at = at if at > 0 else LONGEST
        yield piece[:at]
        piece = piece[at:].lstrip()
    if piece and any(character.isalnum() for character in piece):
        yield piece
