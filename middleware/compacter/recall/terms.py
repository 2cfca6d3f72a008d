"""Words of a search: how a text is read into the index, and what of a question is looked for."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import starmap
from typing import NamedTuple

from compacter.text.words import FUNCTION_WORDS, TALK_WORDS, words

# Most words of a question that are read: of a longer one the first and the last, where the request
# mostly is.
_MOST_WORDS = 120
# Most digits of a number that means little without the word beside it.
_SHORT_NUMBER = 3
# Weight of such a number, and of a word of talk about anything.
_LESS = 0.3
# Endings of words that do not tell topics apart, with three letters before them, and what they
# leave: "applied" and "apply", "running" and "run", "spoken" and "spoke", "Rechnungen".
_ENDING = re.compile(r"(?<=[a-z]{3})(?:ing|e[dns]|s)$")
_LAST = re.compile(r"(?<=[a-z]{2})(?:[eiy]|(?<=([bdgmnprt]))\1)$")
# Share of a sentence's words that a text about the same has more than. With .2 steps of real agents
# get twice the quotes, with .3 .03 less of made-up tasks are right.
_ABOUT = 0.25


class Term(NamedTuple):
    """Search term: a word, a pair of characters, or a number with the word beside it; words with a
    blank between them.
    """

    text: str
    weight: float = 1.0


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
    """Return the terms of a question: its words except the commonest, and short numbers with the
    word beside them.
    """
    said = words(text)
    if len(said) > _MOST_WORDS:
        said[_MOST_WORDS // 2 : -_MOST_WORDS // 2] = []
    told = [word for word in said if word not in FUNCTION_WORDS]
    little = TALK_WORDS.union(
        word for word in told if word.isdigit() and len(word) <= _SHORT_NUMBER
    )
    weights = {word: _LESS if word in little else 1.0 for word in told}
    for before, word, after in zip(("", *said), said, (*said[1:], ""), strict=False):
        if word in little and word.isdigit():
            # A short number counts with the word before it (town 12), or after it (on 12 June).
            weights[f"{word} {after if before in FUNCTION_WORDS else before or after}"] = 1.0
    return tuple(starmap(Term, weights.items()))


def is_about(sentence: str, text: str) -> bool:
    """Return whether a text has so many words of a sentence that it is about the same, and does not
    have one of them by chance.
    """
    said = set(map(stem, set(words(sentence)) - FUNCTION_WORDS - TALK_WORDS))
    return len(said.intersection(map(stem, words(text)))) > _ABOUT * len(said)
