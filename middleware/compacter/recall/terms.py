"""Terms of a search: what of a question is looked for, and how a text is written into the index."""

from __future__ import annotations

import re
from dataclasses import dataclass

from compacter.text.words import DENSE, FUNCTION_WORDS

# Most terms of one search, the first and the last of a question; each costs a query.
_MOST_TERMS = 64
# Most digits of a number that means little without the word beside it, and its weight alone.
_SHORT_NUMBER = 3
_NUMBER_WEIGHT = 0.3
# Most characters read of a question; of a longer one the beginning and the end, where the request
# mostly is.
_LONGEST_QUESTION = 4_000

_RUN = re.compile(f"[{DENSE}]+")
_WORD = re.compile(r"[^\W_]+")
_NAME = re.compile(r"(?<![^\W_])[^\W_]+(?:[-_./:@\\#]{1,3}[^\W_]+){1,12}")


@dataclass(frozen=True, slots=True)
class Term:
    """Search term: a word, a pair of characters, or a name such as a path, matched as one
    phrase.
    """

    text: str
    weight: float = 1.0
    known: bool = False
    """Whether the message right before the question has it, so that it is not a reason to quote."""


def terms(text: str) -> tuple[Term, ...]:
    """Return the terms of a question: its words except the commonest, and each name of several
    words as one phrase.
    """
    half = _LONGEST_QUESTION // 2
    asked = (text if len(text) <= _LONGEST_QUESTION else f"{text[:half]} {text[-half:]}").lower()
    words = _WORD.findall(space_out(asked))
    wanted = list(words)
    short = {word for word in words if len(word) <= _SHORT_NUMBER and word.isdigit()}
    for before, word, after in zip(("", *words), words, (*words[1:], ""), strict=False):
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
    """Return ``text`` as it is indexed: scripts without spaces in pairs of characters, without lone
    surrogates.
    """
    return text if text.isascii() else _RUN.sub(_pairs, text.encode("utf-8", "replace").decode())


def _pairs(match: re.Match[str]) -> str:
    run = match[0]
    return f" {' '.join(run[place : place + 2] for place in range(max(1, len(run) - 1)))} "
