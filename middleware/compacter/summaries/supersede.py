"""The latest value wins: of two statements about the same thing, only the newer one holds."""

from __future__ import annotations

import re
from collections.abc import Iterable

from compacter.summaries.attributes import Governed, governed, replaces
from compacter.summaries.identifiers import Found, identifiers
from compacter.summaries.words import stem, words

_REMEMBERED = 50
_VALUE_WORDS = """
    january february march april may june july august september october november december monday tuesday
    wednesday thursday friday saturday sunday today tomorrow one two three four five six seven eight
    nine ten eleven twelve twenty thirty forty fifty sixty seventy eighty ninety hundred thousand
    million
"""
_SPELLED = frozenset(_VALUE_WORDS.split())
_STEMS = frozenset(stem(word) for word in _SPELLED)
_NUMBER = re.compile(r"[$€£¥]\s?\d[\d.,]*|\b\d[\d.,:/-]*\b")
_MAY_HOLD = re.compile(r"[\d/_@]|[a-z][A-Z]|\w[.-]\w|[A-Z]{4}")


def subject(sentence: str, known: dict[str, Found] | None = None, fewest: int = 2) -> str:
    """Return what ``sentence`` is about: its words without values, empty if it holds none.

    ``known`` is what ``identifiers`` remembers; a subject has at least ``fewest`` words.
    """
    runs = sentence.split()
    if not _MAY_HOLD.search(sentence) and _SPELLED.isdisjoint(run.strip(".,;:!").lower() for run in runs):
        return ""
    plain = ["0" if any(identifiers(run, known)) else run for run in runs]
    bare, values = _NUMBER.subn(" ", " ".join(plain))
    said = list(words(bare))
    about = [word for word in said if word not in _STEMS]
    return " ".join(about) if (values or len(about) < len(said)) and len(about) >= fewest else ""


def stale(statements: Iterable[str], fewest: int = 2) -> set[str]:
    """Return those of the ``statements``, oldest first, whose value a later one has changed.

    Only statements of at least ``fewest`` words besides the value are compared.
    """
    holding: dict[str, str] = {}
    settings: dict[str, list[tuple[Governed, str]]] = {}
    gone: set[str] = set()
    known: dict[str, Found] = {}
    for statement in statements:
        gone.discard(statement)
        for setting in governed(statement):
            others = settings.setdefault(setting.attribute, [])
            gone.update(text for other, text in others if text != statement and replaces(setting, other))
            others[:] = [(other, text) for other, text in others[-_REMEMBERED:] if text not in gone]
            others.append((setting, statement))
        about = subject(statement, known, fewest)
        if about:
            before = holding.get(about)
            if before is not None and before != statement:
                gone.add(before)
            holding[about] = statement
    return gone
