"""Kept lines: lines that a summary quotes word for word, with a model or without one.

Each source is a function from the head to lines of one kind with weights. One budget and one choice
serve all kinds: a kind comes before the next one, and within a kind the heavier line and then the
newer. A line is chosen with what it needs, or not at all. The chosen lines stand in order of time,
each text under its speaker.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from compacter.lines.head import Head
from compacter.lines.labels import NAMES, SINCE, WORK
from compacter.lines.orders import order_strength
from compacter.lines.read import LONGEST, clip, parse
from compacter.lines.said import EARLIER, OUTPUT, Said
from compacter.lines.talk import ELLIPSIS, Pick, Talk
from compacter.lines.words import identifiers, rarity, words
from compacter.messages.fields import flat


class Choice(NamedTuple):
    """A line that a summary may quote."""

    weight: float
    pick: Pick


Source = Callable[[Head], Iterator[Choice]]

# Characters of a state of the list of work, and of the names of calls.
_WORK_SIZE = 200
# Most names to try: in real runs they cut the steps that lack one from .325 to .22.
_MOST_NAMES = 200
# A word in more of the user's lines than this does not relate a later one to an earlier one.
_RARE = 3
# Weight of a plain order: "Never ...".
_PLAIN_ORDER = 3
# Characters added to each cost: a fragment ("Yes.", "Oh no!") is worth less than its size.
_HANDLING = 12
# Weights of a line without a model's summary: of talk, of an answer that ends a turn, of an
# announcement before a call, of a line among many that are alike but for numbers, of markup.
_TALKED = 2
_CONCLUDED = 3
_ANNOUNCED = 0.3
_ALIKE = 0.3
_CODE = 0.05
_MOST_ALIKE = 3
# Most symbols of code and data in a text of prose, as a share of it; and characters of a name or an
# address in a talk, which may have more.
_SYMBOLS = 0.1
_LONGEST_TERM = 40
_SYMBOL = re.compile(r"[{}()\[\];=<>|\\$/_`]")
# Shorter lines are kept even if they also stand in messages that stay: "Yes." is everywhere.
_SHORTEST = 16
# Longest message that is short: two to three lines of print.
_SHORT = 320
_QUESTIONS = ("?", "？", "؟")
_ITEM_KEYS = ["content", "step", "title", "subject", "task", "text", "name", "description", "item"]
_IS_CLOSED = re.compile(
    r"(?i)complete|done|finish|resolv|cancel|skip|drop|abandon|delet|called off"
)
_CHECK = re.compile(r"(?m)^\s{0,12}(?:[-*+•]|\d{1,3}[.)])?\s{0,4}\[[ ~/-]\]\s+(\S.{0,200})$")
_DIGITS = re.compile(r"\d+")


def _work(head: Head) -> str:
    """Return the newest state of a list of work: its open items, by their state."""
    if any(map(_items, head.view)):
        return ""
    for _, said in head.by("Tool", "Assistant", WORK):
        if said.speaker == WORK:
            return said.text
        items = _items(said)
        if len(items) > 1:
            still_open: dict[str, list[str]] = {}
            for state, name in sorted(items, key=itemgetter(0)):
                if not _IS_CLOSED.search(state):
                    still_open.setdefault(state, []).append(name)
            told = "; ".join(f"{state}: {', '.join(each)}" for state, each in still_open.items())
            return clip(told or "all closed", _WORK_SIZE)
    return ""


def _items(said: Said) -> list[tuple[str, str]]:
    """Return state and text of each item of a list of work: records of a call's JSON, or open boxes
    of the assistant's checklist; a file's checklist may be outdated.
    """
    if said.speaker == "Assistant":
        return [("pending", flat(item)) for item in _CHECK.findall(said.text)]
    is_call = said.part.kind == "call"
    items: list[tuple[str, str]] = []
    for record in _values(said.text) if is_call and "stat" in said.text else ():
        if isinstance(record, dict):
            state = record.get("status", record.get("state"))
            name = next((record[key] for key in _ITEM_KEYS if key in record), None)
            if isinstance(state, str) and isinstance(name, str):
                items.append((state, flat(name)))
    return items


def _values(text: str) -> Iterator[object]:
    """Yield each object and list inside a text that is JSON, the outer ones first, and each value
    in it; or the text itself.
    """
    waiting: list[object] = [text]
    while waiting:
        item = waiting.pop()
        record = parse(item) if isinstance(item, str) else item
        yield item if record is None else record
        if isinstance(record, (dict, list)):
            waiting += reversed(list(record.values()) if isinstance(record, dict) else record)


def _names_of(head: Head) -> list[str]:
    """Return the names in calls' arguments, the most used first: each value counts by its share, so
    that a path counts more than a word of a file that was written.
    """
    counts = defaultdict[str, float](float)
    for _, said in head.by("Tool", NAMES, calls=True):
        if not _items(said):
            values = (str(each) for each in _values(said.text) if isinstance(each, (str, int)))
            for each in values:
                names = list(identifiers(each))
                for name in names:
                    counts[name] += 1 / len(names)
    common = sorted(counts, key=counts.__getitem__, reverse=True)[:_MOST_NAMES]
    return [name for name in dict.fromkeys(common) if name not in head.view_text]


def _names(head: Head) -> Iterator[Choice]:  # noqa: ARG001 - a kind as the others
    """The names of calls, which are no lines of the conversation: ``keep`` writes their line."""
    return iter(())


def _first(head: Head) -> Iterator[Choice]:
    """The first request: whole, or its beginning and what it asks."""
    if head.first is None:
        return
    said = head.talk.said[head.first]
    left = LONGEST
    for at, line in enumerate(said.lines):
        left -= len(line.text)
        if left >= 0 or at == len(said.lines) - 1:
            yield Choice(1 / (at + 1), (head.first, at))


def _spoken(head: Head) -> Iterator[Choice]:
    """Lines of the user: questions in the first message; orders and corrections; short messages
    that tell something.
    """
    for number, said in head.by("User", OUTPUT):
        is_short = said.speaker == "User" and (said.is_kept or len(said.text) <= _SHORT)
        # Text above a shell's output may be the user's.
        for at, line in enumerate(said.lines if said.speaker == "User" else said.lines[:1]):
            said_words = words(line.text)
            weight = order_strength(line.text, said_words) or (is_short and _tells(said_words)) / 2
            if not weight or line.is_head or not _is_prose(line.text):
                continue
            if line.text.endswith(_QUESTIONS):
                weight = 4 if number == head.first else weight / 2
            yield Choice(weight, (number, at))


def _tells(said: Sequence[str]) -> bool:
    """Return whether a line is more than a few small words: "Hey Dave!", "Thanks, great."."""
    return sum(len(word) > 3 or not word.isalpha() for word in said) > 3


def _is_prose(text: str) -> bool:
    """Return whether a line is mostly words, not markup, code or data."""
    return len(_SYMBOL.findall(text)) <= _SYMBOLS * len(text) or len(text) <= _LONGEST_TERM


def _story(head: Head) -> Iterator[Choice]:
    """Every line, by the rare words in it, and by its form."""
    # Weigh talk and output separately: one long file must not hide the conversation before it.
    every = list(chain(head.by("User", "Assistant", EARLIER), head.by("Tool")))
    newest = max((number for number, said in every if said.speaker == EARLIER), default=None)
    picks = [
        (number, at)
        for number, said in every
        if said.part.kind != "call" and (said.speaker != EARLIER or number == newest)
        for at, line in enumerate(said.lines)
        if not line.is_head
    ]
    counts = Counter(chain.from_iterable(head.talk.said[n].stems(at) for n, at in picks))
    shapes = Counter(_shape(head.talk.line(pick).text) for pick in picks)
    worths = {word: rarity(count, len(picks)) for word, count in counts.items()}
    for pick in dict.fromkeys(picks):
        number, at = pick
        said = head.talk.said[number]
        text = said.lines[at].text
        # The exact sum: the order of words in a set differs from process to process.
        worth = math.fsum(worths[word] for word in said.stems(at))
        worth *= _factor(head, number, text)
        worth *= _ALIKE if shapes[_shape(text)] > _MOST_ALIKE else 1
        if worth:
            yield Choice(worth / (len(text) + _HANDLING), pick)


def _shape(text: str) -> str:
    return _DIGITS.sub("#", text[:40])


def _factor(head: Head, number: int, text: str) -> float:
    """Return the weight of a line by what it is, for a summary without a model."""
    said = head.talk.said[number]
    after = head.talk.said[number + 1 : number + 2]
    if said.speaker == "Assistant":
        calls = [each for each in after if each.part.kind == "call"]
        is_before_call = any(each.part.index == said.part.index for each in calls)
        kind = _ANNOUNCED if is_before_call else _CONCLUDED
    else:
        kind = 1 if said.speaker.startswith("Tool") else _TALKED
    return kind if _is_prose(text) else kind * _CODE


KINDS: tuple[tuple[Source, float], ...] = (
    (_names, 0.25),
    (_first, 0.5),
    (_spoken, 0.5),
    (_names, 1),
    (_story, 1),
    (_spoken, 1),
)
"""The kinds of lines, in their order, each with the share of the room that it may take; the story
is for a summary without a model. In long talks half of the room is enough for the user's newest
messages. Names stand on one line, which grows once the other kinds have theirs."""


class _Choices:
    """The chosen lines, and the room that is left."""

    def __init__(self, head: Head, left: int) -> None:
        self.head = head
        self.left = left
        self.chosen: dict[int, set[int]] = {}
        self.told = set[str]()

    def add(self, pick: Pick, weight: float, most: float) -> int:
        """Add a line, together with the lines that it needs, if they take at most ``most``
        characters. Return the number of characters that they take; 0 if the line was not added.
        """
        talk = self.head.talk
        text = talk.line(pick).text
        if len(text) > min(self.left, most):
            return 0
        is_known = len(text) > _SHORTEST and flat(text) in self.head.view_text
        if is_known or text in self.told or pick[1] in self.chosen.get(pick[0], ()):
            return 0
        alone = [pick, *talk.needs(pick)]
        if self._price(alone) > min(self.left, most):
            return 0
        if weight > 0:
            alone += [*talk.changes(pick)[0]]
        # A plain order says by itself what is to be done, and is never left out for its needs.
        ways = [alone if weight >= _PLAIN_ORDER else [*alone, *talk.answered(pick)]]
        whole = talk.whole(pick[0])
        if whole:
            # Inside a short message of several lines anything may turn a line's meaning.
            is_edge = pick in (whole[0], whole[-1])
            ways = [whole, *(ways if weight >= 1 and is_edge else ())]
            most = self.left if weight >= 1 else most
        for picks in ways:
            new = [each for each in picks if each[1] not in self.chosen.get(each[0], ())]
            price = self._price(new)
            if new and price <= min(self.left, most):
                for number, at in new:
                    self.chosen.setdefault(number, set()).add(at)
                    self.told.add(talk.line((number, at)).text)
                self.left -= price
                return price
        return 0

    def _price(self, picks: Iterable[Pick]) -> int:
        """Return the characters that lines take, with their speakers."""
        price = 0
        talk = self.head.talk
        for number, at in picks:
            line = talk.line((number, at))
            price += len(line.lead) + len(line.text) + 3
            # A paragraph that depends on nothing above it is an entry of its own.
            begins = at and "\n" in talk.line((number, at - 1)).gap and not line.needs
            if begins or number not in self.chosen:
                price += len(talk.said[number].speaker) + 2
        return price


def keep(head: Head, budget: int, *, with_story: bool = False) -> str:
    """Return kept lines in at most ``budget`` characters, in order of time.

    Text in messages that stay is not kept again.

    Args:
        head: The texts to compact.
        budget: Characters of all lines.
        with_story: Whether lines of all speakers take the room that the other kinds leave.
    """
    head.budget = budget
    choices = _Choices(head, budget)
    work = _work(head)
    if work and len(WORK) + len(work) + 3 <= choices.left:
        choices.left -= len(WORK) + len(work) + 3
    else:
        work = ""
    every = _names_of(head)
    names = ""
    told: dict[Source, list[Choice]] = {}
    for source, share in KINDS:
        if source is _names:
            choices.left += len(names)
            names = _joined(every, int(min(choices.left, budget * share)))
            choices.left -= len(names)
            continue
        if source is _story and not with_story:
            continue
        if source not in told:
            told[source] = sorted(source(head), reverse=True)
        most = share * budget
        for weight, pick in told[source]:
            if min(choices.left, most) < _SHORTEST:
                break
            most -= choices.add(pick, weight if source is _spoken else 0, most)
    lines = [*_in_order(choices)]
    lines += [f"{WORK}: {work}"] if work else []
    lines += [names.rstrip()] if names else []
    return "\n".join(lines)


def _joined(names: Iterable[str], most: int) -> str:
    """Return the line of as many names as fit on it."""
    most -= len(NAMES) + 3
    taken: list[str] = []
    for name in names:
        if len(name) + 2 <= most:
            most -= len(name) + 2
            taken.append(name)
    return f"{NAMES}: {', '.join(taken)}\n" if taken else ""


def _in_order(choices: _Choices) -> Iterator[str]:
    """Yield the chosen lines in order of time, those that came after the user's newest message that
    stays below a head of their own.
    """
    head = choices.head
    stays = [said.part.index for said in head.view if said.speaker == "User"]
    asked = max(stays, default=None)
    for number in sorted(choices.chosen):
        said = head.talk.said[number]
        if asked is not None and said.part.index > asked:
            yield SINCE
            asked = None
        for places in _paragraphs(head.talk, number, choices.chosen[number]):
            # No line break of any kind may begin a line that looks like a speaker's.
            text = " ".join(head.talk.entry(number, places, ELLIPSIS).split())
            yield f"{said.speaker}: {text}"


def _paragraphs(talk: Talk, number: int, places: Iterable[int]) -> Iterator[list[int]]:
    """Yield lines of a text in groups, each an entry of its own: where a paragraph begins that
    depends on nothing above it.
    """
    lines = talk.said[number].lines
    is_talk = talk.said[number].part.kind == "text"
    group: list[int] = []
    for at in sorted(places):
        begins = group and "\n" in lines[at - 1].gap and not lines[at].needs
        if begins and is_talk and not talk.whole(number):
            yield group
            group = []
        group.append(at)
    yield group
