"""Whether a text says the request for a summary again instead of following it, as very small models do."""

from __future__ import annotations

from functools import cache

from compacter.summaries import prompts
from compacter.summaries.words import words

_FEWEST_WORDS = 8
_MOSTLY = 0.5

Run = tuple[str, ...]


def is_echo(text: str) -> bool:
    """Whether most of ``text``, in runs of three words, is the built-in request's own wording."""
    said = list(words(text))
    if len(said) < _FEWEST_WORDS:
        return False
    runs = _runs(said)
    return len(runs & _asked()) > _MOSTLY * len(runs)


@cache
def _asked() -> frozenset[Run]:
    return frozenset().union(*(_runs(list(words(line))) for line in prompts.wording().splitlines()))


def _runs(said: list[str]) -> frozenset[Run]:
    return frozenset(zip(said, said[1:], said[2:], strict=False))
