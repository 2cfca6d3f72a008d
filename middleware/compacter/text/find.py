"""Find quotations in a text, in a time that does not depend on how long the text is."""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator

from compacter.text.words import DENSE

# A word, or two characters of a script without spaces.
_TOKEN = re.compile(rf"(?=([{DENSE}]{{2}}))|([^\W_{DENSE}]+)")
# Places of a word that are remembered, the newest: what is quoted was mostly said last. Without a
# limit a quotation would be compared at each place of a text of one word.
_MOST_PLACES = 64


class Finder:
    """A text in which quotations can be found."""

    def __init__(self, text: str, quotations: Iterable[str]) -> None:
        """Read ``text``; only words of the ``quotations`` are remembered."""
        self.text = text
        wanted = {token for quotation in quotations for _, token in _tokens(quotation)}
        self._places: dict[str, deque[int]] = defaultdict(lambda: deque(maxlen=_MOST_PLACES))
        self._counts: Counter[str] = Counter()
        for place, token in _tokens(text) if wanted else ():
            if token in wanted:
                self._places[token].append(place)
                self._counts[token] += 1

    def find(self, quotation: str) -> Iterator[int]:
        """Yield where ``quotation`` stands in the text, the last place first.

        Its rarest word is looked up, and the rest compared. The first and the last word are only
        used if there are no others, as they may be parts of longer ones.
        """
        tokens = list(_tokens(quotation))
        inner = tokens[1:-1] or tokens
        if not inner:
            return
        offset, rarest = min(inner, key=lambda token: self._counts[token[1]])
        for place in reversed(self._places.get(rarest, ())):
            start = place - offset
            if start >= 0 and self.text.startswith(quotation, start):
                yield start

    def holds(self, quotation: str) -> bool:
        """Return whether ``quotation`` stands in the text."""
        return next(self.find(quotation), None) is not None


def _tokens(text: str) -> Iterator[tuple[int, str]]:
    for match in _TOKEN.finditer(text):
        yield match.start(), match[1] or match[2]
