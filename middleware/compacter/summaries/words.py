"""Words as the summarizer counts them: lower case, lightly stemmed, the empty ones left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_ENGLISH = """
    a an the and or but if then than so as of to in on at by for from with about into over under
    out up down off is are was were be been being am do does did done doing have has had having
    will would shall should can could may might must i you he she it we they me him her us them
    my your his its our their mine yours this that these those there here who whom whose which
    what when where why how not no nor only own same too very just also again more most some any
    all each few other such both don doesn didn isn aren wasn weren won wouldn couldn shouldn
    hasn haven hadn ll ve re s t d m yes yeah yep oh ok okay well hey hi hello wow haha lol
    thanks thank please really quite pretty actually much many lot lots get got let like know
    think want need one thing things way great good nice glad sure
"""
# The commonest function words of German, French, Spanish, Portuguese, Italian and Dutch.
_OTHERS = """
    der die das und oder aber ein eine einen einem einer ist sind war waren ich du er sie es wir
    ihr nicht mit von zu im in den dem des auf für als auch le la les un une et ou mais est sont
    je tu il elle nous vous ils ne pas avec de dans sur pour que qui ce cette au aux el los las
    una y o pero son yo no con en por para se su lo al del os as um uma e mas são eu não com em
    seu do da dos ao gli uno ed ma è sono io non per che si suo della nel het een of maar zijn
    ik jij hij niet met van voor op aan
"""
EMPTY = frozenset(_ENGLISH.split()) | frozenset(_OTHERS.split())
"""Words that are in every sentence and tell none of them apart."""

_ASCII_WORD = re.compile(r"[a-z0-9]+")
# Vowel signs of Indic scripts are no word characters to ``re``.
_WORD = re.compile(r"(?:[^\W_]|[\u0900-\u0dff])+")
_SUFFIXES = ("ings", "ing", "edly", "ed", "ies", "es", "s", "ly")
_SHORTEST_STEM = 4
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0eff]")


def stem(word: str) -> str:
    """Return ``word`` (lower case) without a common English ending."""
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) >= len(suffix) + _SHORTEST_STEM:
            return word[: -len(suffix)]
    return word


def words(text: str) -> Iterator[str]:
    """Yield the stemmed words of ``text``; scripts written without spaces give pairs of characters."""
    for word in raw_words(text):
        if word not in EMPTY:
            yield stem(word)


def raw_words(text: str) -> Iterable[str]:
    """Return the words of ``text`` in lower case, empty ones included, neither stemmed."""
    return _ASCII_WORD.findall(text.lower()) if text.isascii() else _paired(_WORD.findall(text.lower()))


def _paired(found: Iterable[str]) -> Iterator[str]:
    for word in found:
        if _CJK.search(word):
            yield from (word[place : place + 2] for place in range(max(1, len(word) - 1)))
        else:
            yield word
