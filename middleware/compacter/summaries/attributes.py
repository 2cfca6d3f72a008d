"""What a statement governs: a limit, a date, a name, a time zone, a duty, a branch, a secret, a tone.

Two statements about the same attribute of the same thing cannot both hold. The words differ, so they are
compared by what they mean: "trip costs stay below 400 dollars" replaces "field-trip expenses: at most $650",
and leaves the conference budget alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from compacter.summaries.identifiers import identifiers
from compacter.summaries.words import EMPTY, raw_words, stem


@dataclass(frozen=True, slots=True)
class Governed:
    """One attribute that a statement sets."""

    attribute: str
    scope: frozenset[str]
    """Stems of the words that say of what."""
    changes: bool
    """Whether the statement says that something has changed."""
    forbids: bool = False
    """Whether it is an order of the kind that only another order lifts."""
    side: str = ""
    """For attributes with a fixed set of values, which of them."""


_LINES = {
    "money": "budget spend spending spent expense expenses cost costs ceiling cap price funds",
    "date": "deadline due date timing scheduled schedule ship ships shipping freeze milestone",
    "name": "codename label named name calling called designated",
    "duty": "pager oncall rotation duty escalation incident incidents",
    "branch": "branch rebased rebase checkout",
    "secret": "code password passphrase passcode pin key token",
    "zone": "utc gmt pacific eastern cet cest pst est edt pdt",
    "tone": "terse concise brief short dry formal serious playful warm light chatty casual friendly detailed",
    "units": "metric imperial",
}
_ATTRIBUTES = {word: attribute for attribute, line in _LINES.items() for word in line.split()}
_TIME_WORDS = frozenset(["time", "times", "timestamp", "timestamps", "clock", "clocks", "timezone", "zone", "dates"])
_ADDRESSED = frozenset(["answer", "answers", "reply", "replies", "response", "responses", "tone", "style"])
_OPEN_WORDS = frozenset(["playful", "warm", "light", "chatty", "casual", "friendly", "detailed"])
_CHANGE_LINE = """
    new now changed changes moved update updated switched instead rotated rotation rebased replaced rather
    longer previously retired anymore revised raised lowered postponed
"""
_CHANGE = frozenset(_CHANGE_LINE.split())
_ORDERS = frozenset(["never", "always", "don", "only", "forbidden"])
# Words that do not say of what: neither two budgets nor two deadlines are told apart by them.
_VAGUE_LINE = """
    hard constraint fact rule safety goal state user preference prefers preferences wants keep stay must
    should total under below above most least limit maximum dollar dollars euro euros pounds exceed
    explicit approval explicitly never disclose reveal share shared old previous works work current
    currently week month today quick note important hundred thousand target final active owner owns
    belongs handling based base step next report reports show put use january february march april may
    june july august september october november december
"""
_VAGUE = frozenset(stem(word) for word in _VAGUE_LINE.split())
_DATE = re.compile(
    r"\d{4}-\d\d-\d\d|\b\d\d?[./-]\d\d?\b"
    r"|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? \d{1,2}\b"
    r"|\b\d{1,2}\.? (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)",
    re.IGNORECASE,
)
_AMOUNT = re.compile(
    r"[$€£¥]\s?\d|\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|hundred|thousand)\b", re.IGNORECASE
)
_PERSON = re.compile(r"\b[A-Z][\w’'-]+ [A-Z][\w’'-]+")
_NAMED = re.compile(r"\b[A-Z][\w-]*[A-Z0-9][\w-]*|[\"'“«][\w -]+[\"'”»]")


def governed(statement: str) -> Iterator[Governed]:
    """Yield the attributes that ``statement`` sets."""
    said = list(raw_words(statement.replace("on-call", "oncall").replace("on call", "oncall")))
    present = {_ATTRIBUTES[word] for word in said if word in _ATTRIBUTES}
    if not present:
        return
    changes = not _CHANGE.isdisjoint(said)
    forbids = not _ORDERS.isdisjoint(said)
    values = {run for name, _, _ in identifiers(statement) for run in raw_words(name)}
    names = (
        {word.lower() for pair in _PERSON.findall(statement) for word in pair.split()} if "duty" in present else set()
    )
    scope = frozenset(
        stem(word)
        for word in said
        if word not in EMPTY
        and word not in _ATTRIBUTES
        and word not in _CHANGE
        and word not in values - _hyphenated(statement)
        and word not in names
        and not word.isdigit()
        and stem(word) not in _VAGUE
    )
    for attribute in sorted(present):
        if _has_value(attribute, statement, said):
            yield Governed(attribute, scope, changes, forbids, _side(attribute, said))


def replaces(newer: Governed, older: Governed) -> bool:
    """Whether ``older`` cannot hold any more once ``newer`` was said."""
    if newer.attribute != older.attribute:
        return False
    if newer.side or older.side:
        return newer.side != older.side
    if not newer.changes:
        return False
    if newer.attribute in ("duty", "branch"):
        return newer.forbids or not older.forbids
    return bool(newer.scope & older.scope)


def _has_value(attribute: str, statement: str, said: list[str]) -> bool:
    if attribute == "money":
        return _AMOUNT.search(statement) is not None
    if attribute == "date":
        return _DATE.search(statement) is not None
    if attribute == "duty":
        return _PERSON.search(statement) is not None
    if attribute == "name":
        return _NAMED.search(statement) is not None
    if attribute in ("branch", "secret"):
        return any(
            kind in ("path", "opaque", "code", "snake", "kebab", "uuid") for _, kind, _ in identifiers(statement)
        )
    if attribute == "zone":
        return not _TIME_WORDS.isdisjoint(said) and not any(map(str.isdigit, statement))
    return not _ADDRESSED.isdisjoint(said)


def _side(attribute: str, said: list[str]) -> str:
    if attribute == "tone":
        return "open" if not _OPEN_WORDS.isdisjoint(said) else "reserved"
    if attribute in ("zone", "units"):
        return " ".join(sorted({word for word in said if _ATTRIBUTES.get(word) == attribute}))
    return ""


def _hyphenated(statement: str) -> set[str]:
    """Words inside plain compounds such as "field-trip", which are no values."""
    return {
        word
        for name, kind, _ in identifiers(statement)
        if kind == "kebab" and not any(map(str.isdigit, name))
        for word in raw_words(name)
    }
