"""What must be kept letter by letter: paths, URLs, ids, code symbols, error codes, dates, amounts."""

from __future__ import annotations

import re
from collections.abc import Iterator

IDENTIFIER = re.compile(
    r"""
      (?P<url>https?://[^\s"'<>()\[\]{}|\\^`,;]+[\w/=&%#-])
    | (?P<mail>[\w.+-]+@[\w-]+(?:\.[\w-]+)+)
    | (?P<path>(?:~|\.{1,2}|\b[A-Za-z]:|@?\w[\w.@+-]*)?(?:[/\\][\w.@+()\[\]*-]*[\w*.])+/?)
    | (?P<uuid>\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b)
    | (?P<money>[$€£¥]\d[\d.,]*[kKmMbB]?\b)
    | (?P<date>\b\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?)?)
    | (?P<time>\b\d\d?:\d\d(?::\d\d)?(?:[ap]m)?\b)
    | (?P<unit>\b\d+(?:[.,]\d+)*(?:%|ms|s|min|h|[kKMGT]i?B|[kM]?Hz|px|rps|USD|EUR|GBP|k|M)(?!\w))
    | (?P<file>\b\w[\w-]*(?:\.[\w-]+)*\.[A-Za-z][A-Za-z0-9]{0,5}\b(?!\())
    | (?P<dotted>\b\w+(?:(?:\.|::)\w+)+)
    | (?P<snake>\b\w*[A-Za-z0-9]_\w*[A-Za-z0-9]\w*)
    | (?P<code>\b(?=\w*\d)(?=\w*[A-Za-z])\w{3,}(?:-\w+)*)
    | (?P<camel>\b\w*[a-z]\w*[A-Z]\w*)
    | (?P<kebab>\b\w+(?:-\w+)+)
    | (?P<caps>\b[A-Z]{4,}\b)
    | (?P<number>\b\d{3,}\b)
    """,
    re.VERBOSE,
)
"""One identifier, as it stands in a text; the group's name says of which kind."""

WORTH = {
    "url": 1.2, "mail": 1.0, "path": 1.3, "uuid": 1.2, "money": 0.8, "date": 0.5, "time": 0.3, "unit": 0.5,
    "file": 1.1, "dotted": 0.7, "snake": 1.0, "code": 1.0, "camel": 1.0, "kebab": 0.4, "caps": 0.4,
    "number": 0.4, "opaque": 2.2,
}  # fmt: skip
"""How much an identifier of a kind tells, against an ordinary one."""

Found = tuple[tuple[str, str, bool], ...]
_LONGEST = 120
_MAY_BE_OPAQUE = frozenset({"snake", "code", "kebab", "uuid"})
_OPAQUE_SIZE = 6
_DIGITS_OF_AN_ID = 3
_DIGIT = re.compile(r"\d")


def identifiers(text: str, known: dict[str, Found] | None = None) -> Iterator[tuple[str, str, bool]]:
    """Yield the identifiers of ``text``, their kinds, and whether they are only the label of what follows.

    ``known`` remembers what each run between spaces holds; passing it from call to call saves most of the
    time.
    """
    runs = {} if known is None else known
    for run in text.split():
        found = runs.get(run)
        if found is None:
            found = runs[run] = () if run.isalpha() and run.islower() else tuple(_in_run(run))
        yield from found


def _in_run(run: str) -> Iterator[tuple[str, str, bool]]:
    for match in IDENTIFIER.finditer(run):
        name, kind = match[0], match.lastgroup or "code"
        if len(name) > _LONGEST:
            continue
        has_digit = _DIGIT.search(name) is not None
        if kind in _MAY_BE_OPAQUE and len(name) >= _OPAQUE_SIZE and has_digit:
            kind = "opaque"
        yield name, kind, run[match.end() :] == ":" and len(_DIGIT.findall(name)) < _DIGITS_OF_AN_ID
