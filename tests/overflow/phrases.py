"""The token limit of a text alone, and the sentences of ``phrases.txt``: for words in braces one
sentence with each of them.
"""

from __future__ import annotations

import re
from pathlib import Path

from compacter.overflow import TokenLimit
from compacter.overflow.detect import judge
from compacter.overflow.signals import signals_of
from compacter.overflow.table import default_table

_WORDS = re.compile(r"\{([^{}]*)\}")


def detect_text(
    text: str, *, status: int | None = None, code: str | None = None
) -> TokenLimit | None:
    """The token limit that the text of an error states."""
    return judge(signals_of(text, status=status, code=code), default_table()).limit


def spelled_out(line: str) -> list[str]:
    """``{a|b} is too {long|large}`` with each word once, and the first ones elsewhere."""
    places = [
        words.split("|") if number % 2 else [words]
        for number, words in enumerate(_WORDS.split(line))
    ]
    first = [words[0] for words in places]
    return [
        "".join([*first[:number], word, *first[number + 1 :]])
        for number, words in enumerate(places)
        for word in words
    ]


def phrases() -> dict[str, bool]:
    """Each sentence, and whether it states a token limit."""
    lines = (Path(__file__).parent / "phrases.txt").read_text(encoding="utf-8").splitlines()
    return {
        sentence: line.startswith("+ ")
        for line in lines
        if line.startswith(("+ ", "- "))
        for sentence in spelled_out(line[2:])
    }
