"""Words of a search: how a text is read into the index, and what of a question is looked for."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from compacter.text.words import DENSE, FUNCTION_WORDS

# Most terms of one search, the first and the last of a question.
_MOST_TERMS = 64
# Most digits of a number that means little without the word beside it, and its weight alone.
_SHORT_NUMBER = 3
_NUMBER_WEIGHT = 0.3
# Most characters read of a question; of a longer one the beginning and the end, where the request
# mostly is.
_LONGEST_QUESTION = 4_000

_RUN = re.compile(f"[{DENSE}]+")
_ASCII_WORD = re.compile("[a-z0-9]+")
# Vowel signs of Indic scripts are no word characters for ``re``.
_WORD = re.compile(r"(?:[^\W_]|[\u0900-\u0963\u0966-\u0dff])+")
_NAME = re.compile(r"(?<![^\W_])[^\W_]+(?:[-_./:@\\#]{1,3}[^\W_]+){1,12}")
# Endings of English words that do not tell topics apart, with three letters before them, and what
# they leave: "applied" and "apply", "running" and "run".
_ENDING = re.compile(r"(?<=[a-z]{3})(?:ing|ed|es|s)$")
_LAST = re.compile(r"(?<=[a-z]{2})(?:[eiy]|(?<=([bdgmnprt]))\1)$")


@dataclass(frozen=True, slots=True)
class Term:
    """Search term: a word, a pair of characters, or a name such as a path, matched as one
    phrase.
    """

    text: str
    weight: float = 1.0
    known: bool = False
    """Whether the message right before the question has it, so that it is not a reason to quote."""


def words(text: str) -> list[str]:
    """Return the words of ``text`` in lower case, pairs of characters of scripts without spaces."""
    lower = text.lower()
    return _ASCII_WORD.findall(lower) if lower.isascii() else _WORD.findall(space_out(lower))


@lru_cache(65_536)
def stem(word: str) -> str:
    """Return a word without accents and without an English ending."""
    if not word.isascii():
        word = "".join(
            letter
            for letter in unicodedata.normalize("NFKD", word)
            if unicodedata.category(letter) != "Mn" or letter > "\u0900"
        )
    return _LAST.sub("", _ENDING.sub("", word))


def terms(text: str) -> tuple[Term, ...]:
    """Return the terms of a question: its words except the commonest, and each name of several
    words as one phrase.
    """
    half = _LONGEST_QUESTION // 2
    asked = (text if len(text) <= _LONGEST_QUESTION else f"{text[:half]} {text[-half:]}").lower()
    said = words(asked)
    wanted = list(said)
    short = {word for word in said if len(word) <= _SHORT_NUMBER and word.isdigit()}
    for before, word, after in zip(("", *said), said, (*said[1:], ""), strict=False):
        # A short number counts with the word before it (town 12), or the one after it (on 12 May).
        if word in short and before and before not in FUNCTION_WORDS:
            wanted.append(f"{before} {word}")
        elif word in short and after:
            wanted.append(f"{word} {after}")
    # Paths, addresses, ids and symbols consist of several words.
    wanted += [space_out(match[0]).strip() for match in _NAME.finditer(asked)]
    distinct = [word for word in dict.fromkeys(wanted) if word not in FUNCTION_WORDS]
    if len(distinct) > _MOST_TERMS:
        distinct[_MOST_TERMS // 2 : -_MOST_TERMS // 2] = []
    return tuple(Term(word, _NUMBER_WEIGHT if word in short else 1.0) for word in distinct)


def space_out(text: str) -> str:
    """Return ``text`` with scripts without spaces in pairs of characters."""
    return _RUN.sub(_pairs, text)


def _pairs(match: re.Match[str]) -> str:
    run = match[0]
    return f" {' '.join(run[place : place + 2] for place in range(max(1, len(run) - 1)))} "
