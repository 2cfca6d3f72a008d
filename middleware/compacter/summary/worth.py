"""What each sentence of a conversation is worth to a summary without a model: the weights of its
words and names.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection
from functools import cache
from itertools import chain, pairwise
from operator import add

from compacter.text.speech import TYPED, Sentence
from compacter.text.words import UNSPACED

HANDLING = 12
"""Characters added to each cost, as a fragment ("Yes.", "Oh no!") is worth less than its size."""
DIGITS = re.compile(r"\d+")
"""A number."""

_OLDEST = 0.8
_TOLD = 1.3
_NAMED = 1.3
_ANNOUNCED = 0.5
"""Factors of the weight of a sentence: the oldest one, the user's, one with a name or a number, and
one that announces a step. Factors for questions and exclamations were tried, without a measurable
effect."""
_NUMBER = 6.0
_IDENTIFIED = 30.0
"""Weights of a number and of any other identifier, in relation to a rare word: higher if harder to
guess."""
_NAMES = 0.3
"""Weight of identifiers in the story, in relation to artifacts."""
_SERIES = 0.1
_SHOWN = 2
"""Weight of identifiers in artifacts that differ from earlier lines of their part only in digits,
from the third such line on: the first ones show what the series is. Names that agents needed later,
in a tenth of the size: .77 for .74."""
_WORD = re.compile(r"[^\W_]+")
_STEM = 7
_TOKEN = re.compile(r"[^\s\"'`<>()\[\]{}|,;=“”‘’…，。；：、！？「」]+")
_IDENTIFIER = re.compile(r"[/\\_@]|\d|\w[.:-]\w|[a-z][A-Z]")
_LONGEST_NAME = 160
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]|\d")


class Pool:
    """Sentences to choose from, each with the numbers of its words and names."""

    def __init__(self, sentences: list[Sentence]) -> None:
        self.sentences = sentences
        # Whether each sentence belongs to the story, and its words and names.
        self.told = [one.prose and not one.speaker.startswith("Tool ") for one in sentences]
        self.words = list[set[int]]()
        self.names = list[set[int]]()
        # Weight of each number. Figures are words with a digit: values in a statement, not its
        # topic.
        self.weights = list[float]()
        self.figures = set[int]()
        self._weigh()
        # Text of the assistant right before a tool call announces a step, without its result.
        announced = {
            one.part
            for one, after in pairwise(sentences)
            if one.speaker == "Assistant" and after.speaker.startswith("Tool ") and not after.output
        }
        # Factor for the words of each sentence, by its position and form.
        self.boosts = [
            (_OLDEST + (1 - _OLDEST) * place / len(sentences))
            * (_TOLD if one.speaker == "User" and one.size <= TYPED else 1)
            * (_NAMED if one.prose and _NAME.search(one.text) else 1)
            * (_ANNOUNCED if one.prose and one.part in announced else 1)
            for place, one in enumerate(sentences)
        ]
        # Factor for the names of each sentence.
        alike = Counter[tuple[int, str]]()
        self.naming = list[float]()
        for told, one in zip(self.told, sentences, strict=True):
            if told:
                self.naming.append(_NAMES)
                continue
            shape = (one.part, DIGITS.sub("0", one.text))
            self.naming.append(_SERIES if alike[shape] >= _SHOWN else 1)
            alike[shape] += 1
        # Upper bound of each sentence's gain per character, with nothing covered.
        self.most = [
            self.gain(at, ()) / (len(one.text) + 3 + HANDLING) for at, one in enumerate(sentences)
        ]

    def gain(self, place: int, covered: Collection[int]) -> float:
        """Return the weight of a sentence's words and names that are not ``covered``."""
        weight = self.weights.__getitem__
        words = self.words[place]
        names = self.names[place]
        told = self.boosts[place] * sum(
            map(weight, words.difference(covered) if covered else words)
        )
        if not names:
            return told
        named = sum(map(weight, names.difference(covered) if covered else names))
        return told + named * self.naming[place]

    def _weigh(self) -> None:
        """Number words and names. Words in few sentences weigh more; names weigh more the more they
        are used.
        """
        features: dict[str, int] = {}
        name_of: dict[int, str] = {}

        @cache
        def numbers(token: str) -> tuple[int, ...]:
            """Return the numbers of the words and names in a token without spaces.

            A word is identified by its beginning, without endings; in scripts without spaces by
            pairs of letters.
            """
            found: list[int] = []
            for word in _WORD.findall(token.casefold()):
                unspaced = len(word) > 1 and not word.isascii() and UNSPACED.search(word)
                for feature in map(add, word, word[1:]) if unspaced else (word[:_STEM],):
                    found.append(features.setdefault(feature, len(features)))
                    if not word.isalpha():
                        self.figures.add(found[-1])
            for piece in _TOKEN.findall(token) if _IDENTIFIER.search(token) else ():
                name = piece.lstrip("*#-:!?").rstrip(".:!?*#-") or piece
                if len(name) <= _LONGEST_NAME and _IDENTIFIER.search(name):
                    found.append(features.setdefault(f"\n{name}", len(features)))
                    name_of[found[-1]] = name
            return tuple(found)

        for one in self.sentences:
            told = set(chain.from_iterable(map(numbers, one.text.split())))
            names = told & name_of.keys()
            self.words.append(told - names if names else told)
            self.names.append(names)
        # Statements of a value that nothing else holds.
        holding = Counter(name for names in self.names for name in names)
        self.valued = [
            told and any(holding[name] == 1 for name in names)
            for told, names in zip(self.told, self.names, strict=True)
        ]
        last = {name: place for place, names in enumerate(self.names) for name in names}
        used = Counter(
            name
            for names, one in zip(self.names, self.sentences, strict=True)
            if not one.output
            for name in names
        )
        counts = Counter(chain.from_iterable(chain(self.words, self.names)))
        total = len(self.sentences) or 1
        self.weights = [math.log1p(total / counts[number]) for number in range(len(features))]
        for number, name in name_of.items():
            use = math.log1p(counts[number]) + math.log1p(used[number]) + 2 * last[number] / total
            self.weights[number] = (_IDENTIFIED if any(map(str.isalpha, name)) else _NUMBER) * (
                1 + use
            )
