"""The ledger: what must survive word for word, found without a model.

One item to a line. ``Rule:`` lines are the user's standing instructions, ``Task:`` the first request, ``Latest:`` the
last one, ``Open:`` a tool call without its result; ``-`` lines hold identifiers with the few words that say what they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from compacter.history.entry import Entry
from compacter.summaries import instructions
from compacter.summaries.references import references
from compacter.summaries.supersede import Statement, latest

Extractor = Callable[[str], Iterable[str]]

RULE, TASK, LATEST, OPEN, REFERENCE = "Rule: ", "Task: ", "Latest: ", "Open: ", "- "
_SPACES = re.compile(r"\s+")
_REQUEST_SIZE = 300
_CALL_SIZE = 160
_RULE_SHARE = 0.7


@dataclass(slots=True)
class _Parts:
    rules: list[str] = field(default_factory=list)
    task: str = ""
    newest: str = ""
    calls: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)


def build(entries: Sequence[Entry], *, prior: str = "", budget: int, extractors: Sequence[Extractor] = ()) -> str:
    """Return the ledger of ``entries`` in at most ``budget`` characters; empty when there is nothing to keep.

    ``prior`` is the ledger of the summary these entries are folded into; its items are carried on, unless a later
    statement changed them. ``extractors`` are the caller's own: each gets an entry's text and yields what to keep.
    """
    old = _parse(prior)
    taken: list[str] = []
    left = budget

    def take(line: str, limit: int) -> bool:
        nonlocal left
        if not line.strip() or len(line) + 1 > min(left, limit):
            return False
        taken.append(line)
        left -= len(line) + 1
        return True

    ruled = _rules(entries, old)
    chosen: list[Statement] = []
    room = budget * _RULE_SHARE
    for rule in sorted(ruled, key=lambda rule: (-rule.score, -rule.order)):
        size = len(RULE) + len(rule.text) + 1
        if size <= room:
            chosen.append(rule)
            room -= size
    for rule in sorted(chosen, key=lambda rule: rule.order):
        take(RULE + rule.text, left)
    for label, text in ((TASK, old.task or _first(entries)), (LATEST, _last(entries) or old.newest)):
        line = label + _clip(text, min(_REQUEST_SIZE, budget // 5))
        if text and not any(text in other for other in taken):
            take(line, left)
    for call in _open_calls(entries):
        take(OPEN + _clip(call, _CALL_SIZE), left // 2)
    for snippet in references(entries, carried=old.references, extractors=extractors, said="\n".join(taken)):
        if left < len(REFERENCE) + 4:
            break
        take(REFERENCE + snippet, left)
    return "\n".join(taken)


def essentials(entries: Sequence[Entry], *, prior: Sequence[str] = (), limit: int) -> tuple[str, ...]:
    """Return the standing instructions and most important identifiers, most important first, at most ``limit``."""
    ruled = _rules(entries, _Parts(rules=list(prior)))
    rules = [rule.text for rule in ruled if rule.score >= instructions.STRONG]
    return tuple(rules[-limit:])


def rules_of(*ledgers: str) -> tuple[str, ...]:
    """Return the rules that ledgers carry."""
    return tuple(rule for ledger in ledgers for rule in _parse(ledger).rules)


def _rules(entries: Sequence[Entry], old: _Parts) -> list[Statement]:
    carried = [Statement(text, instructions.STRONG + 1, place - len(old.rules)) for place, text in enumerate(old.rules)]
    found = [Statement(_flat(rule.text), rule.score, rule.index) for rule in instructions.find(entries)]
    return latest([*carried, *found])


def _parse(ledger: str) -> _Parts:
    parts = _Parts()
    for line in ledger.splitlines():
        if line.startswith(RULE):
            parts.rules.append(line[len(RULE) :])
        elif line.startswith(TASK):
            parts.task = line[len(TASK) :]
        elif line.startswith(LATEST):
            parts.newest = line[len(LATEST) :]
        elif line.startswith(OPEN):
            parts.calls.append(line[len(OPEN) :])
        elif line.startswith(REFERENCE):
            parts.references.append(line[len(REFERENCE) :])
    return parts


def _asked(entry: Entry) -> bool:
    return entry.role == "user" and entry.kind == "text" and bool(entry.text.strip())


def _first(entries: Sequence[Entry]) -> str:
    return next((_flat(entry.text) for entry in entries if _asked(entry)), "")


def _last(entries: Sequence[Entry]) -> str:
    return next((_flat(entry.text) for entry in reversed(entries) if _asked(entry)), "")


def _open_calls(entries: Sequence[Entry]) -> list[str]:
    """Calls at the very end that no result follows."""
    calls: list[str] = []
    for entry in reversed(entries):
        if entry.kind != "call":
            break
        calls.append(f"{entry.name} {_flat(entry.text)}".strip())
    return calls[::-1]


def _flat(text: str) -> str:
    return _SPACES.sub(" ", text).strip()


def _clip(text: str, size: int) -> str:
    if len(text) <= size:
        return text
    at = text.rfind(" ", size // 2, size - 1)
    return text[: at if at > 0 else size - 1] + "…"
