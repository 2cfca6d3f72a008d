"""Summary without a model: sentences of the conversation in order, word for word, fewer of older
messages.

Two sections: the story (sentences of users and assistants), and artifacts (lines of tools and of
code, for the paths, ids and addresses in them). Sentences are chosen by weighted coverage: each
word and each identifier counts once, a rare one more than a common one (Lin and Bilmes 2011,
https://aclanthology.org/P11-1052). This works for every language, as it does not need a list of
words.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, pairwise
from operator import add

from compacter.messages.parts import Part
from compacter.summary.rules import takes_back
from compacter.text.sentences import is_prose, split
from compacter.text.speech import BARE, ELLIPSIS, TYPED, Sentence, quote, read
from compacter.text.words import UNSPACED

ARTIFACTS = "Artifacts:"
"""Heading of the lines of tools and of code."""

BESIDE = "Beside"
"""Speaker of lines that stand in another chapter."""

_STORY = 0.4
"""Share of the room for the first choice of the story; artifacts get the rest, and the story their
remainder."""
_FIRST = 0.15
_CHANGES = 0.25
_REQUEST = 3
"""Shares of the room reserved for the first sentences of the first request, and for the user's
statements that changed later; and the number of these first sentences."""
_VALUES = 0.15
"""Share of the room for statements of people with a value that nothing else holds, beside the
output of tools, whose many names would take it. Of thirty such values in real runs, in a tenth of
the size: .64 for .54; with a share of .3 fewer of the names that agents needed later were left."""
_FEW_VALUES = 1_200
_MOST_VALUES = 0.4
"""Characters that such statements may take of a small summary, about thirty of them, and the
largest share of its room: in a small window they were lost one by one, compaction by compaction."""
_HANDLING = 12
"""Characters added to each cost, as a fragment ("Yes.", "Oh no!") is worth less than its size."""
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
_RELATED = 0.4
_CHANGED = 0.1
_WORDS = 2
_RARE = 5
"""Two statements are about the same if the words in both have this share of the smaller one's
weight (the second if the user mentions a change), and are at least this many; words in more
sentences than the last number are ignored."""
_NAMES = 0.3
"""Weight of identifiers in the story, in relation to artifacts."""
_SERIES = 0.1
_SHOWN = 2
"""Weight of identifiers in artifacts that differ from earlier lines of their part only in digits,
from the third such line on: the first ones show what the series is. Names that agents needed later,
in a tenth of the size: .77 for .74."""
_DIGITS = re.compile(r"\d+")
_ANSWER = 60
_PATH = re.compile(r"[^\s'\"]{0,120}[/\\][^\s'\"]{1,60}")
"""Longest answer, in characters, that needs its question; and the path of a file, which its lines
need."""

_LINE = re.compile(r"(User|Assistant|Tool [^:\n]{1,80}?|Summary)(?: \(([^()\n]{1,80})\))?: ")
_WORD = re.compile(r"[^\W_]+")
_STEM = 7
_TOKEN = re.compile(r"[^\s\"'`<>()\[\]{}|,;=“”‘’…，。；：、！？「」]+")
_IDENTIFIER = re.compile(r"[/\\_@]|\d|\w[.:-]\w|[a-z][A-Z]")
_LONGEST_NAME = 160
_EQUAL = 1e-9
_LEAST = 16
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]|\d")
_ASKS = ("?", "？", "؟")
_CHEERS = ("!", "！")


def timeline(
    parts: Sequence[Part],
    budget: int,
    prior: str = "",
    in_view: Collection[str] = (),
    beside: Sequence[str] = (),
    is_outdated: Callable[[str], bool] | None = None,
) -> str:
    """Return a summary of ``parts`` and of an earlier summary, ``prior``, in at most ``budget``
    characters.

    ``in_view`` are sentences that the model reads anyway: rules, and those of messages that stay.
    ``beside`` are lines of another chapter, whose names need not be told again. Sentences that are
    outdated, as ``is_outdated`` says, are left out.
    Time and memory are linear in the text.
    """
    apart = [Sentence(line, BESIDE, -1, prose=False) for line in beside]
    said = [*_prior(prior), *read(parts)]
    if is_outdated is not None:
        said = [one for one in said if not is_outdated(one.text)]
    pool = _Pool([*apart, *said])
    # Sentences in view count as chosen.
    stated = {place for place, one in enumerate(pool.sentences) if one.text in in_view}
    stated.update(range(len(apart)))
    for needed in pool.needs.values():
        needed.difference_update(stated)
    chosen: set[int] = set()
    covered: set[int] = set().union(*(pool.words[place] for place in stated))
    # Of equal sentences of one speaker only the last one is used.
    newest = (
        set({(one.speaker, one.text): place for place, one in enumerate(pool.sentences)}.values())
        - stated
    )
    story = [place for place in newest if pool.told[place]]
    others = [place for place in newest if not pool.told[place]]
    left = budget
    asked = next((one.part for one in pool.sentences if one.speaker == "User"), None)
    request = [place for place, one in enumerate(pool.sentences) if one.part == asked][:_REQUEST]
    # Statements that the user changed later; each is chosen together with the later one.
    changed = [
        place for place, later in pool.later.items() if pool.sentences[later].speaker == "User"
    ]
    for first, share in ((request, _FIRST), (changed, _CHANGES)):
        left -= _fill(pool, newest.intersection(first), int(budget * share), chosen, covered)
    valued = [place for place in story if pool.valued[place]]
    spent = 0
    if any(one.speaker.startswith("Tool ") for one in pool.sentences):
        spent = _fill(pool, valued, int(budget * _VALUES), chosen, covered)
    # Where the room is small, more of those with a figure: names of code are found again.
    if _VALUES * budget < _FEW_VALUES:
        figured = [place for place in valued if _DIGITS.search(pool.sentences[place].text)]
        more = int(min(_MOST_VALUES * budget, _FEW_VALUES)) - spent
        spent += _fill(pool, figured, min(left - spent, more), chosen, covered)
    left -= spent
    left -= _fill(pool, story, int(left * _STORY) if others else left, chosen, covered)
    if others:
        left -= len(ARTIFACTS) + 3
        left -= _fill(pool, others, left, chosen, covered)
        left -= _fill(pool, story, left, chosen, covered)
    # All words are covered once: fill the rest with sentences that repeat some, which often matter.
    again: set[int] = set()
    left -= _fill(pool, story, left, chosen, again)
    _fill(pool, others, left, chosen, again)
    told = "\n".join(quote(pool.sentences, sorted(place for place in chosen if pool.told[place])))
    artifacts = "\n".join(
        quote(pool.sentences, sorted(place for place in chosen if not pool.told[place]))
    )
    return "\n\n".join(filter(None, [told, artifacts and f"{ARTIFACTS}\n{artifacts}"]))


def _prior(text: str) -> Iterator[Sentence]:
    """Yield the sentences of an earlier summary; lines without a speaker are prose of a model."""
    artifacts = False
    lines = text.splitlines()
    for number, row in enumerate(lines, -len(lines)):  # The numbers of parts begin with 0.
        line = row.strip()
        if not line or line.startswith("#") or (line.endswith(":") and _LINE.match(line) is None):
            artifacts = line == ARTIFACTS or (artifacts and bool(line))
            continue
        said = _LINE.match(line)
        speaker, rest = (said[1], line[said.end() :]) if said else ("Summary", line)
        keys = tuple(said[2].split(", ")) if said and said[2] else ()
        for piece in rest.split(f" {ELLIPSIS} "):
            follows = False
            for sentence in split(piece):
                prose = not artifacts and (
                    speaker in ("User", "Assistant")
                    or (speaker == "Summary" and is_prose(sentence))
                )
                needed = keys if BARE.fullmatch(sentence) else ()
                yield Sentence(
                    sentence, speaker, number, follows, prose, size=len(line), keys=needed
                )
                follows = True


class _Pool:
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
            shape = (one.part, _DIGITS.sub("0", one.text))
            self.naming.append(_SERIES if alike[shape] >= _SHOWN else 1)
            alike[shape] += 1
        # Upper bound of each sentence's gain per character, with nothing covered.
        self.most = [
            self.gain(at, ()) / (len(one.text) + 3 + _HANDLING) for at, one in enumerate(sentences)
        ]
        # For a statement of the user, the last later one about the same; and the sentences that
        # each sentence needs: that one, the question before an answer, a file's name.
        self.later = _later(self)
        self.needs: dict[int, set[int]] = defaultdict(set)
        for place, other in (*self.later.items(), *_needs(self)):
            self.needs[place].add(other)

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


def _needs(pool: _Pool) -> Iterator[tuple[int, int]]:
    """Yield each sentence that needs an earlier one to be understood, with that one.

    These are a short answer of the user and its question, and a line of a tool's result and the
    path in its call.
    """
    paths: dict[int, int] = {}
    for place, one in enumerate(pool.sentences):
        last = pool.sentences[place - 1]
        if one.speaker == "User" and one.size <= _ANSWER:
            if (
                last.speaker == "Assistant"
                and pool.told[place - 1]
                and last.text.endswith(_ASKS)
                and place
            ):
                yield place, place - 1
        elif one.call in paths:
            yield place, paths[one.call]
        elif one.part >= 0 and one.part != last.part and _PATH.fullmatch(one.text):
            paths[one.part] = place


def _later(pool: _Pool) -> dict[int, int]:
    """Return the last later statement about the same for each of the user's: a change, a
    withdrawal, a report.
    """
    stories = [place for place, told in enumerate(pool.told) if told]
    counts = Counter(chain.from_iterable(pool.words[place] for place in stories))
    few = {word for word, times in counts.items() if times <= _RARE} - pool.figures
    rare: dict[int, list[int]] = defaultdict(list)
    for place in stories:
        for word in pool.words[place] & few:
            rare[word].append(place)
    said = [
        place
        for place, one in enumerate(pool.sentences)
        if one.speaker == "User"
        and pool.told[place]
        and one.size <= TYPED
        and not one.text.endswith((*_ASKS, *_CHEERS))
    ]
    found: dict[int, int] = {}
    for place in said:
        part = pool.sentences[place].part
        shared: dict[int, list[int]] = defaultdict(list)
        for word in pool.words[place]:
            for other in rare.get(word, ()):
                if pool.sentences[other].part > part and not pool.sentences[other].text.endswith(
                    _ASKS
                ):
                    shared[other].append(word)
        close = {other: _alike(pool, place, other, words, rare) for other, words in shared.items()}
        most = max(close.values(), default=0.0)
        latest = [
            (pool.sentences[other].speaker == "User", other)
            for other in close
            if close[other] >= most / 2 > 0
        ]
        if latest:
            found[place] = max(latest)[1]
    return found


def _alike(
    pool: _Pool, place: int, other: int, shared: Sequence[int], rare: Container[int]
) -> float:
    """Return the share of these rare words in two statements; 0 if these are not about the same
    thing.

    One word is enough if both have a name or a value, or if the user mentions a change.
    """
    later = pool.sentences[other]
    change = later.speaker == "User" and takes_back(later.text)
    if len(shared) < _WORDS and not change and not (pool.names[place] and pool.names[other]):
        return 0.0
    least = min(
        sum(pool.weights[word] for word in pool.words[one] if word in rare)
        for one in (place, other)
    )
    alike = sum(pool.weights[word] for word in shared) / least
    return alike if alike >= (_CHANGED if change else _RELATED) else 0.0


def _fill(
    pool: _Pool, places: Iterable[int], room: int, chosen: set[int], covered: set[int]
) -> int:
    """Add the best of ``places`` for ``room`` characters to ``chosen``, and return the number of
    characters used.

    Lazy greedy by gain per character: the gain of a sentence only falls while others are chosen, so
    only the top of the heap is evaluated again (Minoux 1978). A sentence is chosen together with
    those it needs, or not at all.
    """
    sentences = pool.sentences
    needs = pool.needs
    most = pool.most.__getitem__
    left = room
    lines: dict[tuple[int, bool], set[str]] = defaultdict(set)
    for place in chosen:
        lines[sentences[place].part, pool.told[place]].update(sentences[place].keys)
    heap = [
        (-most(place) - sum(map(most, needs[place] - chosen if place in needs else ())), place)
        for place in places
        if place not in chosen
    ]
    heapq.heapify(heap)
    while heap and left >= _LEAST:
        _, place = heapq.heappop(heap)
        if place in chosen or len(sentences[place].text) + 3 > left:
            continue
        group = [place, *(needs[place] - chosen)] if place in needs else [place]
        price = 0
        for one in group:
            line = (sentences[one].part, pool.told[one])
            keys = sentences[one].keys
            price += (
                len(sentences[one].text) + 3 + (0 if line in lines else len(sentences[one].speaker))
            )
            price += sum(len(key) + 3 for key in keys if key not in lines.get(line, ()))
        gain = (
            sum([pool.gain(one, covered) for one in group]) / (price + _HANDLING)
            if price <= left
            else 0.0
        )
        if gain <= 0:
            continue
        if heap and -gain > heap[0][0] + _EQUAL:
            heapq.heappush(heap, (-gain, place))
            continue
        left -= price
        for one in group:
            chosen.add(one)
            lines[sentences[one].part, pool.told[one]].update(sentences[one].keys)
            covered.update(pool.words[one], pool.names[one])
    return room - left
