"""Which identifiers are worth keeping, each with the few words that make it usable."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from compacter.history.entry import Entry
from compacter.summaries.identifiers import IDENTIFIER

_BEFORE, _AFTER = 28, 20
_LONGEST = 120
_SPACES = re.compile(r"\s+")


@dataclass(slots=True)
class _Seen:
    entries: int = 0
    last: int = -1
    used: int = 0
    snippet: str = ""


def references(
    entries: Sequence[Entry],
    *,
    carried: Sequence[str] = (),
    extractors: Sequence[Callable[[str], Iterable[str]]] = (),
    said: str = "",
) -> Iterator[str]:
    """Yield snippets around identifiers, the most useful first; what ``said`` holds already is left out."""
    seen: dict[str, _Seen] = {}
    for place, entry in enumerate(entries):
        for match in IDENTIFIER.finditer(entry.text):
            name = match[0]
            if len(name) > _LONGEST:
                continue
            item = seen.get(name)
            if item is None:
                item = seen[name] = _Seen()
            if item.last != place:
                item.entries += 1
                item.last = place
                item.used += entry.role != "tool" and entry.kind != "result"
                item.snippet = _around(entry.text, match.start(), match.end())
    total = len(entries) or 1
    ranked = sorted(seen.items(), key=lambda pair: -_worth(pair[0], pair[1], total))
    done = said
    for extractor in extractors:
        for entry in entries:
            for found in extractor(entry.text):
                flat = _SPACES.sub(" ", found).strip()
                if flat and flat not in done:
                    done += "\n" + flat
                    yield flat
    carried_left = [text for text in carried if text not in done]
    yield from carried_left
    done += "\n".join(carried_left)
    emitted: set[str] = set(IDENTIFIER.findall(done))
    for name, item in ranked:
        if name in emitted:
            continue
        emitted.update(IDENTIFIER.findall(item.snippet))
        yield item.snippet


def _worth(name: str, item: _Seen, total: int) -> float:
    return math.log1p(item.entries) + 1.5 * math.log1p(item.used) + 2 * item.last / total + (0.5 if len(name) > 5 else 0)  # noqa: PLR2004


def _around(text: str, start: int, end: int) -> str:
    """Return the identifier with the words beside it on its line."""
    left = max(text.rfind("\n", 0, start) + 1, start - _BEFORE)
    stop = text.find("\n", end)
    right = min(len(text) if stop < 0 else stop, end + _AFTER)
    if left > 0 and text[left - 1] not in " \n\t":
        space = text.find(" ", left, start)
        left = space + 1 if space >= 0 else start
    if right < len(text) and text[right] not in " \n\t":
        space = text.rfind(" ", end, right)
        right = space if space >= 0 else end
    return _SPACES.sub(" ", text[left:right]).strip()
