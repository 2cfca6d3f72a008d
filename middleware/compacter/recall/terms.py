"""Words of a search: the terms of a text for the index, and of a question."""

from __future__ import annotations

from compacter.text.words import FUNCTION_WORDS, TALK_WORDS, stem, words

# Weight of a word of talk about anything, and of a number of so few digits that it means little
# without the word beside it.
_LESS = 0.3
_SHORT_NUMBER = 3
_COMMON = FUNCTION_WORDS | TALK_WORDS
# A text is about a sentence's topic if it has more than this share of the sentence's words. With .2
# steps of real agents get twice the quotes, with .3 .03 less of made-up tasks are right.
_ABOUT = 0.25


def telling(text: str) -> list[str]:
    """Return the words of ``text`` but the commonest and those of talk about anything."""
    return [word for word in words(text) if word not in _COMMON]


def terms(text: str) -> dict[str, float]:
    """Return the terms of a question with their weights: its words except the commonest, and short
    numbers with the word beside them, separated by a blank.
    """
    said = words(text)
    weights = {word: 1.0 for word in said if word not in FUNCTION_WORDS}
    for before, word, after in zip(("", *said), said, (*said[1:], ""), strict=False):
        is_short = word.isdigit() and len(word) <= _SHORT_NUMBER
        if is_short:
            # A number counts with the word before it (town 12) or after it (on 12 June).
            weights[f"{word} {after if before in FUNCTION_WORDS else before or after}"] = 1.0
        if is_short or (word in TALK_WORDS and word in weights):
            weights[word] = _LESS
    return weights


def is_about(sentence: str, text: str) -> bool:
    """Return whether a text has enough words of a sentence to be about its topic, not only one by
    chance.
    """
    said = set(map(stem, telling(sentence)))
    return len(said.intersection(map(stem, words(text)))) > _ABOUT * len(said)
