"""Words of texts in any language, their runs and stems, and scripts without spaces. All functions
take linear time.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from operator import add

DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af"
)
"""Thai, Lao, Burmese, Khmer, Japanese, Chinese, Korean: written without spaces, or with words of
few characters. For use inside the brackets of a pattern."""
UNSPACED = re.compile(f"[{DENSE}]+")
"""Characters of these scripts."""

# For ``re`` neither vowel signs of Indic scripts nor their full stops are word characters.
_WORD = re.compile(r"(?:[^\W_]|[\u0900-\u0963\u0966-\u0dff])+")
_ASCII_WORD = re.compile("[a-z0-9]+")
_IDENTIFIER = re.compile(r"[\w./#:@-]{6,100}")
_ONE_THING = re.compile(r"[^\W\d_].*\d|\d.*[^\W\d_]|\w[/_.]\w|[a-z][A-Z]")
# Endings of words that do not distinguish topics: "applied" and "apply", "spoken" and "spoke".
_ENDING = re.compile(r"(?<=[a-z]{3})(?:ing|e[dns]?|s|y|i)$")
# Characters of a stem: rows of one letter, and data, are no rarer for their lengths.
_LONGEST_STEM = 20

_COMMONEST = """
    a about after all also am an and any are as at be been before but by can could did do does doing
    done for from had has have having he her hers him his how i if in into is it its just like
    me might mine more most much must my of on one or our ours out please she should so some tell
    than that the their theirs them then there these they this those to us was we were what when
    where which while who whom whose why will with would you your yours
"""
FUNCTION_WORDS = frozenset(_COMMONEST.split())
"""The most common words of English, which do not distinguish statements."""

_TALK = """
    again ahead answer anything back bad best better bit bye care chat come continue day dear else
    every everything exactly explain feel fine friend fun get give glad go going gone good great
    ha haha happy hello help here hey hi hmm hope idea keep last let like little long look lot
    love made make makes many may maybe mean mind moment morning need needed never new next nice
    night no not nothing now ok okay oh once one ones only perfect please put question quick quite
    read ready really reply right s said same say see sentence shorter show simple simpler
    something soon sorry sounds start still stop sure t take talk tell thank thanks then there
    thing things think thought time times today tomorrow tonight too tried try two use used very
    want way week well word words work worked works world write wrong wrote ya yeah year years yep
    yes yesterday yet aren couldn d didn doesn don hadn hasn haven isn ll m re remind shouldn ve
    wasn weren won wonder wondering wouldn
"""
TALK_WORDS = frozenset(_TALK.split())
"""English words of talk about anything: few of a text's sentences have them, yet they name no
topic. Without them .71 in place of .81 of questions inside a message bring their answer."""


def words(text: str) -> list[str]:
    """Return the words of ``text`` in lower case; pairs of characters for scripts without
    spaces.
    """
    lower = text.lower()
    if lower.isascii():
        return _ASCII_WORD.findall(lower)
    return _WORD.findall(UNSPACED.sub(_pairs, lower))


def _pairs(match: re.Match[str]) -> str:
    run = match[0]
    return f" {' '.join(map(add, run, run[1:])) or run} "


def identifiers(text: str) -> Iterable[str]:
    """Return the words of ``text`` that identify one thing, such as paths, ids and names of
    functions: each once, in their order.
    """
    stripped = (word.rstrip("/").strip(".:-#@") for word in _IDENTIFIER.findall(text))
    return filter(_ONE_THING.search, dict.fromkeys(stripped))


def read_words(texts: Iterable[str]) -> list[tuple[list[str], set[str]]]:
    """Return the words of each of these texts, and their stems without the most common words."""
    read: list[tuple[list[str], set[str]]] = []
    for text in texts:
        said = words(text)
        read += [(said, set(map(stem, set(said) - FUNCTION_WORDS)))]
    return read


@lru_cache(65_536)
def stem(word: str) -> str:
    """Return a word without accents and without an English ending."""
    if not word.isascii():
        word = "".join(
            letter
            for letter in unicodedata.normalize("NFKD", word)
            if unicodedata.category(letter) != "Mn" or letter > "\u0900"
        )
    return _ENDING.sub("", word)[:_LONGEST_STEM]
