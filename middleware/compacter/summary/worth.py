"""What each sentence of a conversation is worth to a summary without a model: the weights of its
words and names.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator
from itertools import chain, pairwise
from operator import add
from string import ascii_lowercase

from compacter.text.speech import TYPED, Sentence
from compacter.text.words import COURTESIES, FUNCTION_WORDS, TALK_WORDS, UNSPACED

HANDLING = 12
"""Characters added to each cost, as a fragment ("Yes.", "Oh no!") is worth less than its size."""
DIGITS = re.compile(r"\d+")
"""A number."""

_OLDEST = 0.8
_TOLD = 1.3
_NAMED = 1.3
_ANNOUNCED = 0.2
"""Factors of the weight of a sentence: the oldest one, the user's, one with a name or a number, and
one that announces a step. Factors for questions and exclamations were tried, without a measurable
effect."""
_NUMBER = 6.0
_IDENTIFIED = 30.0
"""Weights of a number and of any other identifier, in relation to a rare word: higher if harder to
guess."""
_SHORTENED = ("couldn", "didn", "doesn", "don", "isn", "ll", "re", "ve", "won", "wouldn")
"""Words that an apostrophe leaves."""
_TALK = TALK_WORDS | FUNCTION_WORDS | COURTESIES | {*ascii_lowercase, *_SHORTENED}
"""Words that no statement is about. Without weight, as in a question, they cost facts: in a tenth
of the size .28 survived for .30."""
_LABEL = re.compile(r"(?:[\[(][^\])\n]{1,40}[\])] ?)?([^\W\d_]\w{1,20}): ")
"""Beginning of a message among people, with the time and a name."""
# Messages that begin with a name from which on that is somebody who takes part.
_SPEAKS = 3
_NAMES = 0.3
"""Weight of identifiers in the story, in relation to artifacts."""
_SERIES = 0.1
_SHOWN = 2
"""Weight of identifiers in artifacts that differ from earlier lines of their part only in digits,
from the third such line on: the first ones show what the series is. Names that agents needed later,
in a tenth of the size: .77 for .74."""
_BODY = 0.5
"""Weight of identifiers in a line of code that has no path and defines nothing: "model = s.run()"
tells a reader little by itself. Steps of agents' runs that lack a name: .073 for .079 without it,
.095 with 0.2."""
# Of so many characters of code one is a mark of code. With 16, names of commands went too.
_MARKED = 12
_MARKS = re.compile(r"[{}()\[\];=<>|\\$`]|[^\W\d]\.[^\W\d]")
_TELLS = re.compile(
    r"(?<![<*])/\w|\w/|"
    r"\w\.(?:py|js|ts|tsx|go|rs|java|json|md|toml|ya?ml|sh|c|h|cpp|css|html|txt|sql)\b|"
    r"\b(?:def|class|func|function|fn|interface|struct|enum|type|import|export)\b"
)
"""A path, the name of a file, or the word before what is defined."""
_WORD = re.compile(r"[^\W_]+")
# Letters by which a word is known, so that most endings do not count.
_STEM = 7
_TOKEN = re.compile(r"[^\s\"'`<>()\[\]{}|,;=“”‘’…，。；：、！？「」]+")
_IDENTIFIER = re.compile(r"[/\\_@]|\d|\w[.:-]\w|[a-z][A-Z]")
_LONGEST_NAME = 160
# A capital after another word, or a digit; at its beginning every sentence has a capital.
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
        # The last sentence before a call announces a step, and does not tell its result.
        announced = {
            place
            for place, (one, after) in enumerate(pairwise(sentences))
            if one.speaker == "Assistant" and after.speaker.startswith("Tool ") and not after.output
        }
        # Statements that tell nothing: greetings and thanks, a mere "I look at it now", and an
        # assistant's "Here it is:" before code. A user's is the request above a paste.
        self.idle = {
            place
            for place, told in enumerate(self.told)
            if told
            and (
                not self.topics[place]
                or (place in announced and not self.names[place])
                or self._leads_to_nothing(place)
            )
        }
        # Factor for the words of each sentence, by its position and form.
        self.boosts = [
            (_OLDEST + (1 - _OLDEST) * place / len(sentences))
            * (_TOLD if one.speaker == "User" and one.size <= TYPED else 1)
            * (_NAMED if one.prose and _NAME.search(one.text) else 1)
            * (_ANNOUNCED if one.prose and place in announced else 1)
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
            self.naming.append(
                (_SERIES if alike[shape] >= _SHOWN else 1) * (_BODY if _is_body(one.text) else 1)
            )
            alike[shape] += 1
        # Upper bound of each sentence's gain per character, with nothing covered.
        self.most = [
            self.gain(at, ()) / (len(one.text) + 3 + HANDLING) for at, one in enumerate(sentences)
        ]

    def leads(self, place: int) -> bool:
        """Return whether a statement only leads to what follows: "The flights:"."""
        return self.sentences[place].text.rstrip("*_ ").endswith((":", "："))

    def has_next(self, place: int) -> bool:
        """Return whether the next sentence belongs to the same message."""
        pair = self.sentences[place : place + 2]
        return len(pair) > 1 and pair[0].part == pair[1].part

    def _leads_to_nothing(self, place: int) -> bool:
        """Return whether an assistant's statement leads to what is not told after it."""
        if self.sentences[place].speaker != "Assistant" or not self.leads(place):
            return False
        return not (self.has_next(place) and self.told[place + 1])

    def gain(self, place: int, covered: Collection[int]) -> float:
        """Return the weight of a sentence's words and names that are not ``covered``."""
        # Methods of lists and sets, not loops: this is asked for each candidate again and again.
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
        numbered = _Numbered()
        self.figures = numbered.figures
        for one in self.sentences:
            told = set(chain.from_iterable(map(numbered.numbers, one.text.split())))
            names = told & numbered.names.keys()
            self.words.append(told - names if names else told)
            self.names.append(names)
        # Statements of a value that nothing else holds.
        holding = Counter(name for names in self.names for name in names)
        self.valued = [
            told and any(holding[name] == 1 for name in names)
            for told, names in zip(self.told, self.names, strict=True)
        ]
        people = self._find_speakers(numbered)
        # How many topics and names each sentence has. Who takes part is none.
        self.topics = [
            len((words & numbered.topical | names) - people)
            for words, names in zip(self.words, self.names, strict=True)
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
        self.weights = [
            0.0 if number in numbered.courteous else math.log1p(total / counts[number])
            for number in range(len(numbered))
        ]
        for number, name in numbered.names.items():
            use = math.log1p(counts[number]) + math.log1p(used[number]) + 2 * last[number] / total
            self.weights[number] = (_IDENTIFIED if any(map(str.isalpha, name)) else _NUMBER) * (
                1 + use
            )

    def _find_speakers(self, numbered: _Numbered) -> set[int]:
        """Return the numbers of the names of those whom labels of messages name."""
        speaking = Counter(
            label[1]
            for told, one in zip(self.told, self.sentences, strict=True)
            if told and not one.follows and (label := _LABEL.match(one.text))
        )
        names = [name for name, times in speaking.items() if times >= _SPEAKS]
        return set(chain.from_iterable(map(numbered.numbers, names)))


class _Numbered:
    """Words and names, each with a number."""

    def __init__(self) -> None:
        self._features: dict[str, int] = {}
        self._of_token: dict[str, tuple[int, ...]] = {}
        self.names: dict[int, str] = {}
        self.figures: set[int] = set()
        self.topical: set[int] = set()
        """Words that a statement can be about: no mere talk."""
        self.courteous: set[int] = set()

    def __len__(self) -> int:
        return len(self._features)

    def numbers(self, token: str) -> tuple[int, ...]:
        """Return the numbers of the words and names in a token without spaces."""
        numbers = self._of_token.get(token)
        if numbers is None:
            numbers = self._of_token[token] = (*self._words(token), *self._names(token))
        return numbers

    def _words(self, token: str) -> Iterator[int]:
        """Yield the numbers of the words in a token.

        A word is identified by its beginning, without endings; in scripts without spaces by pairs
        of letters.
        """
        for word in _WORD.findall(token.casefold()):
            unspaced = len(word) > 1 and not word.isascii() and UNSPACED.search(word)
            for feature in map(add, word, word[1:]) if unspaced else (word[:_STEM],):
                number = self._features.setdefault(feature, len(self._features))
                if not word.isalpha():
                    self.figures.add(number)
                if word not in _TALK:
                    self.topical.add(number)
                elif word in COURTESIES:
                    self.courteous.add(number)
                yield number

    def _names(self, token: str) -> Iterator[int]:
        """Yield the numbers of the names in a token."""
        for piece in _TOKEN.findall(token) if _IDENTIFIER.search(token) else ():
            name = piece.lstrip("*#-:!?").rstrip(".:!?*#-") or piece
            if len(name) <= _LONGEST_NAME and _IDENTIFIER.search(name):
                # No word has a line break: a name and a word of the same letters are two things.
                number = self._features.setdefault(f"\n{name}", len(self._features))
                self.names[number] = name
                yield number


def _is_body(text: str) -> bool:
    """Return whether a line is code without a path, and defines nothing."""
    return len(_MARKS.findall(text)) * _MARKED >= len(text) and _TELLS.search(text) is None
