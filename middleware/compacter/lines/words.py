"""Words of texts in any language, in one normal form, and how rare they are. All functions take
linear time.

The normal form is lower case without accents. Words of letters alone are cut to five, so that
"Rybak" meets "Rybaka", and "applied" meets "apply"; a word with a digit stays whole. Names in
camelCase count as a whole and by their words. Scripts without spaces are read in pairs of
characters.
"""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections.abc import Iterable
from operator import add

DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af"
)
"""Thai, Lao, Burmese, Khmer, Japanese, Chinese, Korean: written without spaces, or with words of
few characters. For use inside the brackets of a pattern."""
UNSPACED = re.compile(f"[{DENSE}]+")

# Letters by which a word without a digit is looked for: more of them are mostly an ending.
_STEM = 5
_ENDING = re.compile(r"(?:(?<=[a-z]{3})(?:ing|e[dns]|s)|(?<=[a-z]{4})[eiy])$")
# Digits of a number that means little without the word before it.
_SHORT_NUMBER = 3
# Characters of any word: a row of one letter, or data, is no rarer for its length.
_LONGEST_WORD = 24
# For ``re`` neither vowel signs of Indic scripts nor their full stops are word characters.
_WORD = re.compile(r"(?:[^\W_]|[\u0900-\u0963\u0966-\u0dff])+")
# Accents of Latin, Greek and Cyrillic letters, and points of Hebrew and Arabic ones.
_ACCENT = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u064b-\u065f]")
_MARKS = {code: " " for code in range(128) if not chr(code).isalnum()}
_CAMEL = re.compile(r"\b[A-Za-z]{0,40}?[a-z0-9][A-Z][A-Za-z0-9]{0,40}")
_IN_CAMEL = re.compile("[a-z0-9][A-Z]")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_COMPOUND = re.compile(r"[A-Za-z0-9]{1,40}(?:[_./-][A-Za-z0-9]{1,40}){1,12}")
_IDENTIFIER = re.compile(r"[\w./#:@-]{6,100}")
_ONE_THING = re.compile(r"[^\W\d_].*\d|\d.*[^\W\d_]|\w[/_.]\w|[a-z][A-Z]")


def plain(text: str) -> str:
    """Return the words of ``text`` in lower case and without accents, with blanks around each, to
    look for what ``sought`` returns. Names in camelCase count as a whole and by their words.
    """
    if _IN_CAMEL.search(text):
        text = _CAMEL.sub(lambda name: f"{_HUMP.sub(' ', name[0])} {name[0]}", text)
    lower = text.lower()
    if lower.isascii():
        return f" {' '.join(lower.translate(_MARKS).split())} "
    lower = unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFKD", lower)))
    return f" {' '.join(_WORD.findall(UNSPACED.sub(_pairs, lower)))} "


def sought(key: str) -> str:
    """Return the characters to look for in ``plain`` text, to find the words that begin with
    ``key``. If ``key`` ends with a digit, only the whole word is found, because room 1 is not room
    12.
    """
    return f" {key} " if key[-1:].isdigit() and len(key) < _LONGEST_WORD else f" {key}"


def words(text: str) -> list[str]:
    """Return the words of ``text`` in lower case and without accents, in their order."""
    return plain(text).split()


def stems(text: str) -> set[str]:
    """Return all beginnings by which the words of ``text`` may be looked for, see ``keys``."""
    return {*keys(text), *(word[:_STEM] for word in words(text) if word.isalpha())}


def keys(text: str) -> list[str]:
    """Return the keys by which the words of ``text`` are looked for, one for each word, in the
    order of the words. A key is the beginning of the word: at most five letters, without an English
    ending. Behind these keys come short numbers together with the word before them (``room 12``),
    and compound names with a blank between their words (``max depth``).
    """
    said = words(text)
    cut = [
        _ENDING.sub("", word)[:_STEM] if word.isalpha() else word[:_LONGEST_WORD] for word in said
    ]
    pairs = itertools.pairwise(said)
    # A number counts with the word before it: room 12 is no price of 12.
    cut += [
        f"{before} {word}"
        for before, word in pairs
        if word.isdigit() and len(word) <= _SHORT_NUMBER
    ]
    return cut + [name.lower().translate(_MARKS) for name in _COMPOUND.findall(text)]


def _pairs(match: re.Match[str]) -> str:
    run = match[0]
    return f" {' '.join(map(add, run, run[1:])) or run} "


def identifiers(text: str) -> Iterable[str]:
    """Return the words of ``text`` that identify one thing, such as paths, ids and names of
    functions: each once, in their order.
    """
    stripped = (word.rstrip("/").strip(".:-#@") for word in _IDENTIFIER.findall(text))
    return filter(_ONE_THING.search, dict.fromkeys(stripped))


def rarity(rows: int, count: int) -> float:
    """Return the weight of a word in ``rows`` of ``count`` lines; 0 rows count as one."""
    rows = max(1, rows)
    return math.log(1 + max(0.5, count - rows + 0.5) / (rows + 0.5)) if count else 0.0
