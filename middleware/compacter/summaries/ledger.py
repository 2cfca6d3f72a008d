"""The ledger: what must survive word for word, found without a model.

One item to a line. ``Rule:`` lines are the user's standing instructions, ``Task:`` the first request,
``Latest:`` the last one, ``Open:`` a tool call without its result; ``-`` lines hold identifiers with the few
words that say what they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from compacter.messages.parts import Entry
from compacter.summaries import instructions, oneself, references, units, vocabulary
from compacter.summaries.supersede import stale

Extractor = Callable[[str], Iterable[str]]
"""Gets an entry's text and yields what is to be kept word for word."""

RULE, TASK, LATEST, OPEN, REFERENCE = "Rule: ", "Task: ", "Latest: ", "Open: ", "- "
_GREETING = re.compile(
    r"^\W*(?:hi|hello|hey|good (?:morning|afternoon|evening|day)|hallo|guten (?:tag|morgen|abend)|moin|servus|bonjour|"
    r"salut|bonsoir|hola|buen[oa]s (?:días|tardes|noches)|olá|oi|bom dia|boa (?:tarde|noite)|ciao|buongiorno|salve|"
    r"hoi|goede(?:morgen|middag|navond)|cześć|dzień dobry|merhaba|selam|привет|здравствуй(?:те)?|добрый (?:день|вечер)|"
    r"你好|您好|大家好|こんにちは|おはようございます|안녕하세요|안녕|مرحبا|السلام عليكم|नमस्ते|xin chào|halo)"
    r"(?:[ ,]+(?:there|all|everyone|everybody|again|zusammen|à tous|a todos|\w+(?=\s*[!,.:;]|\s*$)))?"
    r"(?:\s*[!,.:;！，。、—–-]+\s*|\s*$)",
    re.IGNORECASE,
)
_SPACES = re.compile(r"\s+")
_REQUEST_SIZE, _REQUEST_SHARE = 300, 5
_CALL_SIZE = 160
_RULE_SHARE = 0.75
_ONESELF_SHARE = 3


@dataclass(slots=True)
class Ledger:
    """The items of a ledger, read back from its text."""

    rules: list[str] = field(default_factory=list)
    task: str = ""
    latest: str = ""
    references: list[str] = field(default_factory=list)


def read(text: str) -> Ledger:
    """Return the items of a ledger's ``text``; open calls are left out, they are answered or gone by now."""
    found = Ledger()
    for line in text.splitlines():
        if line.startswith(RULE):
            found.rules.append(line[len(RULE) :])
        elif line.startswith(TASK):
            found.task = line[len(TASK) :]
        elif line.startswith(LATEST):
            found.latest = line[len(LATEST) :]
        elif line.startswith(REFERENCE):
            found.references.append(line[len(REFERENCE) :])
    return found


def build(
    entries: Sequence[Entry],
    *,
    prior: str = "",
    budget: int,
    extractors: Sequence[Extractor] = (),
    latest: bool = True,
) -> str:
    """Return the ledger of ``entries`` in at most ``budget`` characters; empty when there is nothing to keep.

    ``prior`` is the ledger of the summary these entries are folded into; its items are carried on, unless a
    later statement changed them. ``extractors`` are the caller's own. ``latest`` asks for the last request too.
    """
    old = read(prior)
    kept = essence(entries, old, rules(entries, old.rules), budget, extractors, latest=latest)
    kept += _about_oneself(entries, old, min(budget // _ONESELF_SHARE, budget - _size(kept)), kept)
    room = budget - _size(kept)
    carried = [Entry("assistant", "summary", reference) for reference in old.references]
    sources, pieces = units.cut([*carried, *entries])
    known = vocabulary.learn(sources, pieces)
    kept += [REFERENCE + text for text in references.best(known, pieces, room, known.covered_by("\n".join(kept)))]
    return "\n".join(kept)


def essence(
    entries: Sequence[Entry],
    old: Ledger,
    ruled: Sequence[tuple[str, float]],
    budget: int,
    extractors: Sequence[Extractor] = (),
    *,
    latest: bool = True,
) -> list[str]:
    """Return the ledger's lines without references: rules, requests, open calls, what ``extractors`` want."""
    lines = _fitting(ruled, int(budget * _RULE_SHARE))
    left = budget - sum(len(line) + 1 for line in lines)
    asked = [entry.text for entry in entries if entry.role == "user" and entry.kind == "text" and entry.text.strip()]
    size = min(_REQUEST_SIZE, budget // _REQUEST_SHARE)
    items = [(REFERENCE, text) for text in references.supplied(entries, extractors)[::-1]]
    if asked or old.task:
        items.append((TASK, clip(old.task or _first_task(asked), size)))
    if latest and (asked[0 if old.task else 1 :] or old.latest):
        items.append((LATEST, clip(flat(asked[-1]) if asked else old.latest, size)))
    items += [(OPEN, clip(call, _CALL_SIZE)) for call in _open_calls(entries)]
    for label, text in items:
        if len(label) + len(text) + 1 <= left and not any(text in line for line in lines):
            lines.append(label + text)
            left -= len(label) + len(text) + 1
    return lines


def _first_task(asked: Sequence[str]) -> str:
    """The first request without the greeting before it; a greeting alone is none."""
    wanted = (_GREETING.sub("", flat(text)) for text in asked)
    return next((text for text in wanted if any(map(str.isalnum, text))), flat(asked[0]))


def rules(
    entries: Sequence[Entry], carried: Sequence[str] = (), scores: dict[str, float] | None = None
) -> list[tuple[str, float]]:
    """Return the standing instructions that still hold, oldest first, each with its score."""
    found: dict[str, float] = dict.fromkeys(carried, instructions.STRONG)
    for text, score in instructions.find(entries, scores):
        found[text] = max(score, found.pop(text, 0.0))
    gone = stale(found, fewest=1)
    return [(text, score) for text, score in found.items() if text not in gone]


def flat(text: str) -> str:
    """Return ``text`` on one line."""
    return _SPACES.sub(" ", text).strip()


def clip(text: str, size: int) -> str:
    """Return ``text``, or its beginning and an ellipsis, in at most ``size`` characters."""
    if len(text) <= size:
        return text
    at = text.rfind(" ", size // 2, size - 1)
    return text[: at if at > 0 else max(0, size - 1)] + "…"


def _about_oneself(entries: Sequence[Entry], old: Ledger, room: int, kept: Sequence[str]) -> list[str]:
    """Return the lines of what the user says of themselves, as many of the newest as fit, in their order."""
    said = oneself.statements(entries, old.references)
    gone = stale(said, fewest=1)
    lines: list[str] = []
    for text in reversed(said):
        line = REFERENCE + text
        if text not in gone and len(line) + 1 <= room and not any(text in other for other in kept):
            lines.append(line)
            room -= len(line) + 1
    return lines[::-1]


def _size(lines: Sequence[str]) -> int:
    return sum(len(line) + 1 for line in lines)


def _fitting(ruled: Sequence[tuple[str, float]], room: int) -> list[str]:
    """Return the lines of the rules that fit, surest and newest first served, in the order given."""
    ranked = list(enumerate(ruled))
    chosen: list[int] = []
    for place, (text, _) in sorted(ranked, key=lambda pair: (-pair[1][1], -pair[0])):
        size = len(RULE) + len(text) + 1
        if size <= room:
            chosen.append(place)
            room -= size
    return [RULE + ranked[place][1][0] for place in sorted(chosen)]


def _open_calls(entries: Sequence[Entry]) -> list[str]:
    """Calls at the very end that no result follows."""
    calls: list[str] = []
    for entry in reversed(entries):
        if entry.kind != "call":
            break
        calls.append(f"{entry.name} {flat(entry.text)}".strip())
    return calls[::-1]
