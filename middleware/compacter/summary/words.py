"""Words, sentences and runs of words, in any language. Every function is linear in the text."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORD = re.compile(r"(?:[^\W_]|[\u0900-\u0dff])+")  # Vowel signs of Indic scripts are no word characters to ``re``.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n+")
_STEM = 4
"""Letters that inflected forms of one word have in common, and letters below which a word tells little apart.

Shorter words tell little apart (the, and, not), unless they hold a digit or a script writes without spaces."""

Run = tuple[str, ...]


def words(text: str) -> list[str]:
    """Return the words of ``text`` in lower case; scripts written without spaces give pairs of characters."""
    found: list[str] = []
    for word in _WORD.findall(text.lower()):
        if word.isascii() or not _UNSPACED.search(word):
            found.append(word)
        else:
            found += [word[place : place + 2] for place in range(max(1, len(word) - 1))]
    return found


def runs(said: list[str]) -> list[Run]:
    """Return all runs of three words, or the whole where it is shorter."""
    return list(zip(said, said[1:], said[2:], strict=False)) if len(said) > 2 else [tuple(said)] if said else []


def stems(said: Iterable[str]) -> set[str]:
    """Return the beginnings of those words that tell statements apart."""
    return {word[:_STEM] for word in said if len(word) >= _STEM or not word.isascii() or any(map(str.isdigit, word))}


def flat(text: str) -> str:
    """Return ``text`` on one line, white space folded."""
    return " ".join(text.split())


def clip(text: str, size: int) -> str:
    """Return ``text``, or its beginning and an ellipsis, in at most ``size`` characters."""
    if len(text) <= size:
        return text
    at = text.rfind(" ", size // 2, size - 1)
    return text[: at if at > 0 else max(0, size - 1)] + "…"


def sentences(text: str) -> list[str]:
    """Return the sentences and lines of ``text``, white space folded, empty ones left out."""
    return [sentence for part in _SENTENCE_END.split(text) if (sentence := flat(part))]
