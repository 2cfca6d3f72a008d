"""Join the lines of a text that a program has broken at a column, as mail and many hosts do.

A line is broken so where the next word would not have fitted. Whoever types breaks lines elsewhere,
so that a text with one break of each kind is left as it is. All of it is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from compacter.text.sentences import has_code, split

_WIDTHS = range(40, 121)
"""Columns at which programs break lines: 72, 76, 79, 80, 100, 120; some quote with less."""
_SURE = 60
"""Columns from which on one break is enough, if the sentence goes on with a small letter: typed
lines are shorter."""
_FEWEST = 2
"""Full lines in mid-sentence that show a column."""
_EARLY = 3
"""Full lines in mid-sentence for each that stops early."""
_SMALL = 3
"""One full line in so many must go on with a small letter; in German two words in five have a
capital."""
_FENCE = re.compile(r"\s{0,12}(?:`{3}|~{3})")
_MARKED = re.compile(r"\s{0,40}(?:[-*•+] {1,4}\S|\(?\d{1,3}[.)]\s|[a-z]\)\s)")
"""An item of a list."""
_BLOCK = re.compile(
    r"\s{0,40}(?:[#|>$<=~_+@]|-[-\t]|[\w.]{1,60}\(|\*{2}[^*\n]{1,80}\*{2}:?\s*$|"
    r"[^\W\d_][\w -]{0,24}[:：]\s|[\w.]{1,60}(?:, [\w.]{1,60})? (?::|\+)?= |"
    r"from [\w.]{1,80} import\b|import [\w.]{1,80}$|at \S{1,160} \(|.{0,80}?[.=*_-]{6})"
)
"""A heading, a row of a table, a quotation, a command, a rule, a line of code, of a difference
or of a stack, a line with a label or with leaders."""
_END = re.compile(r"[.!?:;({\[…。！？：；؟][\"'”’)\]*_`]{0,3}$")


def unwrap(text: str) -> str:
    """Return ``text`` with the lines of a paragraph joined where a program has broken them; lists,
    headings, tables and code stay.
    """
    rows = text.split("\n")
    if len(rows) == 1:
        return text
    breaks = _breaks(rows)
    if not breaks:
        return text
    width = max(len(rows[at].rstrip()) for at in (*breaks, *(at + 1 for at in breaks)))
    full = {at for at in breaks if _is_full(rows[at], rows[at + 1], width)}
    small = {at for at in breaks if rows[at + 1].lstrip()[:1].islower()}
    has_column = (
        width in _WIDTHS
        and len(full) >= _FEWEST
        and len(full) >= _EARLY * len(breaks - full)
        and _SMALL * len(full & small) >= len(full)
    )
    is_sure = width in _WIDTHS and width >= _SURE
    pieces = [rows[0]]
    item = 0 if _MARKED.match(rows[0]) else None
    begins = 0
    for at, row in enumerate(rows[1:]):
        is_deeper = item is not None and _indent(row) > _indent(rows[item])
        goes_on = at in small and not rows[begins].lstrip()[:1].islower()
        joins = at in breaks and (
            is_deeper
            or (has_column and (at in full or at in small))
            or (is_sure and at in full and goes_on)
        )
        if joins:
            pieces[-1] = f"{pieces[-1].rstrip()} {row.lstrip()}"
            continue
        pieces.append(row)
        begins = at + 1
        if _MARKED.match(row):
            item = at + 1
        elif not row.strip():
            item = None
    return "\n".join(pieces)


def split_each(texts: Iterable[str]) -> set[str]:
    """Return the sentences of all these texts, joined and cut as they are quoted."""
    return {sentence for text in texts for sentence in split(unwrap(text))}


def _breaks(rows: Sequence[str]) -> set[int]:
    """Return the rows after which a sentence may go on in the next row."""
    is_code = False
    prose: list[bool] = []
    for row in rows:
        is_fence = _FENCE.match(row) is not None
        is_code ^= is_fence
        prose.append(not (is_code or is_fence) and bool(row.strip()) and not has_code(row.strip()))
    return {
        at
        for at, (row, then) in enumerate(pairwise(rows))
        if prose[at]
        and prose[at + 1]
        and not _END.search(row.rstrip())
        and not _BLOCK.match(then)
        and not _MARKED.match(then)
        and not _is_apart(row)
    }


def _is_apart(row: str) -> bool:
    """Return whether no row continues this one. A label does: "Note: we meet at"."""
    found = _BLOCK.match(row)
    return found is not None and not found[0].rstrip().endswith((":", "："))


def _is_full(row: str, then: str, width: int) -> bool:
    """Return whether the first word of the next row would not have fitted."""
    word = then.split(maxsplit=1)[0]
    return len(row.rstrip()) + 1 + len(word) > width


def _indent(row: str) -> int:
    return len(row) - len(row.lstrip())
