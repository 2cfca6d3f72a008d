"""The summary without a model: what was said, turn by turn, word for word, thinner the older.

Three sections: the story (sentences of users and assistants), artifacts (lines of tools and code, for the paths, ids
and addresses in them) and rules. Sentences are chosen by weighted coverage: each word and each identifier counts once,
a rare one more than a common one. That needs no word list, so it holds for every language.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from compacter.messages.parts import Entry
from compacter.summary import rules as standing
from compacter.summary.sentences import ELLIPSIS, TYPED, Sentence, quote, read, reads, split

ARTIFACTS = "Artifacts:"
"""The heading of the lines from tools."""

_RULE_SHARE = 3
"""Rules take at most one part in this many of a summary."""
_HANDLING = 12
"""Characters added to each cost: a fragment reads worse than its size tells."""
_LINE = re.compile(r"(User|Assistant|Tool [^:\n]{1,80}|Summary): ")
_TOKEN = re.compile(r"[^\s\"'`<>()\[\]{}|,;=“”‘’…，。；：、！？「」]+")
_ID_MARK = re.compile(r"[/\\_@]|\d|\w[.:-]\w|[a-z][A-Z]")
_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_TRIM = ".:!?*#-"
_LONGEST_NAME = 160
_OPAQUE=30.0
_TYPED, _FIRST, _OUTCOME, _TASK, _CHANGE = 1.3, 1.3, 1.3, 2.0, 1.5
_TOOL = 0.6
_ANSWER = 60
"""Characters of an answer that says little without its question."""
_STORY = 0.6
"""Share of the room that the story gets first."""
_TELLING = re.compile(r"(?<=[a-z,] )[A-Z][a-z]|\d")
"""A name or a number within a sentence."""
_OLDEST = 0.6
"""What the oldest sentence is worth, against 1 for the newest."""
_RELATED = 0.5
"""Share of the lesser of two statements' weight that both must hold to be about the same."""
_RARE = 5
"""Sentences with a word up to which it tells two statements apart."""


@dataclass(slots=True)
class _Pool:
    """All sentences with what each of them tells."""

    sentences: list[Sentence] = field(default_factory=list)
    words: list[tuple[int, ...]] = field(default_factory=list)
    names: list[tuple[int, ...]] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    """Of each word and name."""
    boosts: list[float] = field(default_factory=list)
    needs: dict[int, set[int]] = field(default_factory=dict)
    """What must stand beside a sentence: a later statement about the same, the question before an answer."""


def timeline(
    parts: Sequence[Entry],
    budget: int,
    prior: str = "",
    kept: Sequence[str] = (),
    rules: Sequence[str] = (),
) -> str:
    """Return a summary of ``parts`` and of an earlier summary in at most ``budget`` characters.

    ``prior`` is the earlier summary without its rules, ``kept`` the lines of these (``rules.divide`` parts them): a
    line of a model's prose must not become a rule because of its form. ``rules`` are declared by the program: each
    stands in the result verbatim. Raises ``ValueError`` where they alone take more than ``budget``. Time and memory
    grow linearly with the text.
    """
    before = "\n".join([prior, *(part.text for part in parts if part.kind == "summary")])
    declared = sum(len(standing.RULE) + len(rule) + 1 for rule in rules)
    lines = standing.lines(parts, kept, rules, max(declared, budget // _RULE_SHARE - len(standing.HEADING) - 2))
    ruled = "\n".join([standing.HEADING, *lines]) if lines else ""
    if len(ruled) > budget:
        raise ValueError(f"the declared rules take {len(ruled)} of {budget} characters")
    sentences = list(_prior(before))
    sentences += read(parts, sentences[-1].part + 1 if sentences else 0)
    pool = _weighed(sentences)
    chosen = sorted(_choose(pool, budget - len(ruled) - 2 * bool(ruled), {line.partition(": ")[2] for line in lines}))
    story = quote(sentences, [place for place in chosen if _tells(sentences[place])])
    artifacts = list(quote(sentences, [place for place in chosen if not _tells(sentences[place])]))
    sections = ["\n".join(story), "\n".join([ARTIFACTS, *artifacts]) if artifacts else "", ruled]
    return "\n\n".join(section for section in sections if section)


def _tells(sentence: Sentence) -> bool:
    return sentence.prose and not sentence.speaker.startswith("Tool ")


def _prior(text: str) -> Iterator[Sentence]:
    """Yield the sentences of an earlier summary; what has no speaker is prose that a model wrote."""
    artifacts = False
    for number, line in enumerate(text.splitlines()):
        line = line.strip()
        if not line or (line.endswith(":") and len(line) < 60) or line.startswith("#"):
            artifacts = line == ARTIFACTS or (artifacts and bool(line))
            continue
        said = _LINE.match(line)
        speaker, rest = (said[1], line[said.end() :]) if said else ("Summary", line)
        for piece in rest.split(f" {ELLIPSIS} "):
            follows = False
            for sentence in split(piece):
                prose = not artifacts and not speaker.startswith("Tool ") and reads(sentence)
                yield Sentence(sentence, speaker, number, follows, prose, len(line))
                follows = True


def _weighed(sentences: list[Sentence]) -> _Pool:
    """Number what the sentences tell, and weigh it: a word by how few sentences hold it, an identifier by its use."""
    pool = _Pool(sentences)
    numbers: dict[str, int] = {}
    counts: Counter[int] = Counter()
    used: Counter[int] = Counter()
    last: dict[int, int] = {}
    for place, sentence in enumerate(sentences):
        names = tuple(_numbered(_names(sentence.text), numbers))
        words = tuple(_numbered(_words(sentence.text), numbers))
        pool.words.append(words)
        pool.names.append(names)
        counts.update(words)
        counts.update(names)
        for name in names:
            used[name] += not sentence.speaker.startswith("Tool ")
            last[name] = place
    total = len(sentences) or 1
    names_of = {number: word[1:] for word, number in numbers.items() if word[0] == "\n"}
    for number in range(len(numbers)):
        weight = math.log1p(total / counts[number])
        name = names_of.get(number)
        if name is not None:
            weight = _worth(name) * (1 + math.log1p(counts[number]) + math.log1p(used[number]) + 2 * last[number] / total)
        pool.weights.append(weight)
    pool.boosts = _boosts(sentences)
    pool.needs = _needs(pool)
    return pool


def _numbered(words: Iterator[str], numbers: dict[str, int]) -> set[int]:
    return {numbers.setdefault(word, len(numbers)) for word in words}


def _words(text: str) -> Iterator[str]:
    for word in _WORD.findall(text.casefold()):
        if _UNSPACED.search(word):
            yield from (word[at : at + 2] for at in range(max(1, len(word) - 1)))
        else:
            yield word[:7]


def _names(text: str) -> Iterator[str]:
    """Yield the identifiers of ``text``, marked by a line break, which no word holds."""
    if _ID_MARK.search(text):
        for token in _TOKEN.findall(text):
            name = token.strip(_TRIM)
            if len(name) <= _LONGEST_NAME and _ID_MARK.search(name):
                yield "\n" + name


def _worth(name: str) -> float:
    """What an identifier is worth against a rare word: most where nobody could guess it."""
    if not any(map(str.isalpha, name)):
        return 4.0 if len(name) > 3 else 1.0
    if any(map(str.isdigit, name)) and len(name) > 5:
        return _OPAQUE
    return 14.0 if "/" in name or "_" in name or "." in name else 6.0


def _boosts(sentences: Sequence[Sentence]) -> list[float]:
    """What the words of each sentence count for: more where it is newer, or says who, when or how much.

    What the user asks, and what the assistant says last before that, counts twice.
    """
    total = len(sentences) or 1
    boosts: list[float] = []
    task = next((one.part for one in sentences if one.speaker == "User"), -1)
    for place, one in enumerate(sentences):
        boost = _OLDEST + (1 - _OLDEST) * place / total
        if one.speaker == "User":
            opens = place == 0 or sentences[place - 1].part != one.part
            boost *= (_TYPED if one.typed <= TYPED else 1.0) * (_FIRST if opens else 1.0)
            boost *= _TASK if one.part == task else 1.0
        if not _tells(one):
            boost *= _TOOL
        elif one.text.endswith(("?", "？", "؟")):
            boost *= 1.0 if one.speaker == "User" else 0.5
        elif one.text.endswith(("!", "！")):
            boost *= 0.8
        if one.prose and _TELLING.search(one.text):
            boost *= 1.3
        boosts.append(boost)
    for place in _outcomes(sentences):
        boosts[place] *= _OUTCOME
    return boosts


def _outcomes(sentences: Sequence[Sentence]) -> Iterator[int]:
    """Yield the sentences of the assistant's last text before each message of the user."""
    last = -1
    for place in range(len(sentences) - 1, -1, -1):
        one = sentences[place]
        if one.speaker == "User":
            last = 0
        elif one.speaker == "Assistant" and last in (0, one.part) and one.prose:
            last = one.part
            yield place
        elif last == 0 or one.part != last:
            last = last if last == 0 else -1


def _needs(pool: _Pool) -> dict[int, set[int]]:
    """For each sentence what it needs beside it to be understood."""
    needs: dict[int, set[int]] = defaultdict(set)
    for place, later in _later(pool).items():
        needs[place].add(later)
        if pool.sentences[later].speaker == "User":
            pool.boosts[later] *= _CHANGE
    asked = -1
    for place, one in enumerate(pool.sentences):
        if one.lead and place >= one.lead:
            needs[place].add(place - one.lead)
        if one.speaker == "User" and asked >= 0 and one.typed <= _ANSWER:
            needs[place].add(asked)
        asked = place if _tells(one) and one.speaker == "Assistant" and one.text.endswith(("?", "？")) else -1
    return needs


def _later(pool: _Pool) -> dict[int, int]:
    """For each statement of the user, the last later statement about the same: a change, a withdrawal, a report."""
    held: dict[int, list[int]] = defaultdict(list)
    told = [place for place, one in enumerate(pool.sentences) if _tells(one)]
    for place in told:
        for word in pool.words[place]:
            held[word].append(place)
    sizes = {
        place: sum(pool.weights[word] for word in pool.words[place] if len(held[word]) <= _RARE) for place in told
    }
    found: dict[int, int] = {}
    for place in told:
        one = pool.sentences[place]
        if one.speaker != "User" or one.typed > TYPED or one.text.endswith(("?", "？", "؟", "!")):
            continue
        shared: dict[int, float] = defaultdict(float)
        for word in pool.words[place]:
            if len(held[word]) <= _RARE:
                for other in held[word]:
                    if pool.sentences[other].part > one.part and not pool.sentences[other].text.endswith(("?", "？")):
                        shared[other] += pool.weights[word]
        close = [
            (pool.sentences[other].speaker == "User", other)
            for other, weight in shared.items()
            if weight >= _RELATED * min(sizes[place], sizes[other])
        ]
        if close:
            found[place] = max(close)[1]
    return found


def _choose(pool: _Pool, room: int, ruled: set[str]) -> set[int]:
    """Choose sentences for ``room`` characters: first of the story, then lines for artifacts, then whatever is left."""
    covered: set[int] = set()
    for place, one in enumerate(pool.sentences):
        if one.text in ruled:
            covered.update(pool.words[place])
    story = [place for place, one in enumerate(pool.sentences) if _tells(one)]
    others = [place for place, one in enumerate(pool.sentences) if not _tells(one)]
    chosen: set[int] = set()
    left = room - _fill(pool, story, int(room * _STORY), chosen, covered)
    if others:
        left -= len(ARTIFACTS) + 2
    left -= _fill(pool, others, left, chosen, covered)
    _fill(pool, story, left, chosen, covered)
    return chosen


def _fill(pool: _Pool, places: Sequence[int], room: int, chosen: set[int], covered: set[int]) -> int:
    """Add to ``chosen`` those of ``places`` that tell most in ``room`` characters; return the characters they take.

    Lazy greedy by gain per character: the gain of a sentence only falls while others are chosen, so only the top of
    the heap is looked at again (Minoux 1978). A sentence brings along what it needs, or is not chosen.
    """
    lines = {(pool.sentences[place].part, _tells(pool.sentences[place])) for place in chosen}

    def together(place: int) -> list[int]:
        return [place, *(other for other in pool.needs.get(place, ()) if other not in chosen)]

    def gain(place: int) -> float:
        words = sum([pool.weights[word] for word in pool.words[place] if word not in covered])
        names = sum([pool.weights[name] for name in pool.names[place] if name not in covered])
        return pool.boosts[place] * words + names

    def cost(place: int) -> int:
        one = pool.sentences[place]
        return len(one.text) + (3 if (one.part, _tells(one)) in lines else len(one.speaker) + 3)

    def ratio(place: int) -> float:
        both = together(place)
        return sum(map(gain, both)) / (sum(map(cost, both)) + _HANDLING)

    left = room
    heap = [(-ratio(place), place) for place in places if place not in chosen]
    heapq.heapify(heap)
    while heap:
        known, place = heapq.heappop(heap)
        now = 0.0 if place in chosen else ratio(place)
        if now <= 0:
            continue
        if heap and -now > heap[0][0] + 1e-9 and -now > known + 1e-9:
            heapq.heappush(heap, (-now, place))
            continue
        both = together(place)
        price = sum(map(cost, both))
        if price > left:
            continue
        left -= price
        for one in both:
            chosen.add(one)
            lines.add((pool.sentences[one].part, _tells(pool.sentences[one])))
            covered.update(pool.words[one], pool.names[one])
    return room - left
