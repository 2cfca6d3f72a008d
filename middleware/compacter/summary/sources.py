"""Sources of kept lines: each a function from the head to lines of one kind with weights.

``KINDS`` lists them, the most important first.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from sys import maxsize
from typing import NamedTuple

from compacter.messages.fields import flat
from compacter.summary.head import Head, Said, leaves
from compacter.summary.message import NAMES, WORK
from compacter.text.sentences import LONGEST, has_code
from compacter.text.values import records
from compacter.text.words import TALK_WORDS, clip, identifiers, stems, words


class Line(NamedTuple):
    """Something that may stay word for word."""

    weight: float
    said: Said
    text: str
    """A sentence, a line or a short message, on one line."""
    at: int = 0
    """Its place within what was said."""


Source = Callable[[Head], Iterator[Line]]

SHORT = 320
"""Characters of the longest message of a user that is kept whole: about three lines."""
# Characters of a state of the list of work.
_WORK_SIZE = 200
# Longest sentence that is an order: three lines of print.
_LONGEST = 300
# Characters of a name or an address in a talk, which has as many signs as code.
_LONGEST_TERM = 40
# Characters of a sentence that only says for how long the next one holds.
_SCOPE_SIZE = 40
# Names that are tried: in real runs they cut the steps that lack one from .325 to .22.
_MOST_NAMES = 200
# Most of the user's sentences that have a word by which a later one is about an earlier one.
_RARE = 3
# Significant words that a sentence with one of talk needs to tell something.
_LEAST_TOLD = 4
# Characters added to each cost: a fragment ("Yes.", "Oh no!") is worth less than its size.
_HANDLING = 12
# Times that a sentence of somebody is worth a line of a file or a log.
_TALKED = 2
_QUESTIONS = ("?", "？", "؟")
_ITEM_KEYS = ("content", "step", "title", "subject", "task", "text", "name", "description", "item")
_IS_CLOSED = re.compile(
    r"(?i)complete|done|finish|resolv|cancel|skip|drop|abandon|delet|called off"
)
_CHECK = re.compile(r"(?m)^\s{0,12}\+?(?:[-*+•]|\d{1,3}[.)])?\s{0,4}\[[ ~/-]\]\s+(\S.{0,200})$")
# What may stand before an order: a number, "One rule:", "And please".
_LEAD = re.compile(
    r"\W{0,8}(?:\d{1,2}[.)]\s)?(?:[^:.!?]{1,60}:\s+)?"
    r"(?:(?:and|but|so|ok(?:ay)?|also|then|well|just|please|again|important)\b[\s,:-]{1,3}){0,3}"
)


def _forms(text: str) -> tuple[str, ...]:
    """Return the forms in a row of the table, each with a blank behind its last word."""
    return tuple(f"{form} " for form in " ".join(text.split()).split(", "))


_SCOPES = _forms("from now, from here on, for the rest, going forward, at all times")
# Plain English forms by which users say what to do or not to do, in small letters: how plainly,
# how such a sentence begins, and what stands anywhere in it. The second row has corrections. Other
# languages stay as the user's short messages.
_TABLE = (
    (
        3,
        _forms("""always, never, do not, don't, don’t, only, make sure, ensure, be sure, avoid,
            stop, remember, no longer, under no, before you, when you, whenever you, if you, unless
            you, until you, after you, each time you, every time you"""),
        _SCOPES
        + _forms(
            """please, must not, you should not, you shouldn't, you may not, you may only, you
            should only, you should always, you should never, you cannot, i want you to, i need you
            to, i'd like you to, i would like you to"""
        ),
    ),
    (
        2,
        _forms("""no, no,, nope, nope,, wrong, actually, actually,, correction, correction,,
            instead, instead,, wait, wait,, sorry, sorry,, undo, revert"""),
        _forms("""changed my mind, change of plan, i meant, is now, are now, decided again, scratch
            that, renamed, moved to, changed to, extended to, instead, any more, is fine,
            is allowed"""),
    ),
    (
        1,
        _forms("""add, answer, ask, begin, call, change, check, create, delete, do, end, explain,
            fix, follow, format, give, go, implement, include, keep, leave, let, list, look, make,
            merge, move, name, open, pick, prefer, put, read, remove, rename, reply, report,
            respond, return, review, run, send, set, show, start, tell, test, try, update, use,
            wait, work, write"""),
        _forms("""you must, you should, you have to, you need to, instead of, rather than, should
            be, needs to be, has to be, have to be"""),
    ),
)
_LASTING = frozenset(("all", "any", "each", "every", "no", "only"))
_MERGES = re.compile(r"\"merge\":\s?true")
_DIGITS = re.compile(r"\d+")


def work(head: Head) -> Iterator[Line]:
    """The newest state of a list of work: what is still open, by its state, on one line."""
    if any(read_items(said) for said in head.view):
        return
    for said in head.by("Tool", "Assistant", WORK):
        if said.speaker == WORK:
            yield Line(1, said, said.text)
            return
        items = read_items(said)
        if len(items) > 1 and not _MERGES.search(said.text):
            still_open = {state: None for state, _ in items if not _IS_CLOSED.search(state)}
            told = [
                f"{state}: {', '.join(name for each, name in items if each == state)}"
                for state in sorted(still_open)
            ]
            line = Said("", WORK, (maxsize, 0))
            yield Line(1, line, clip("; ".join(told) or "all closed", _WORK_SIZE))
            return


def read_items(said: Said) -> list[tuple[str, str]]:
    """Return state and text of each item of a list of work: records of a call's JSON, or open boxes
    of a checklist.
    """
    if said.kind != "call" or "stat" not in said.text:
        return [("pending", flat(item)) for item in _CHECK.findall(said.text)]
    items: list[tuple[str, str]] = []
    for record in records(said.text):
        if isinstance(record, dict):
            state = record.get("status", record.get("state"))
            name = next((record[key] for key in _ITEM_KEYS if key in record), None)
            if isinstance(state, str) and isinstance(name, str):
                items.append((state, flat(name)))
    return items


def first(head: Head) -> Iterator[Line]:
    """The first request: whole if it is short, else its beginning and what it asks."""
    request = head.first
    if request is None:
        return
    own = {
        text
        for said in head.said
        if said.speaker == "User" and said.place[0] == request.place[0]
        for _, text in said.pieces
    }
    left = SHORT
    for at, text in request.pieces:
        left -= len(text)
        asks = text in own and (text.endswith(_QUESTIONS) or _strength(text))
        if left >= 0 or asks:
            yield Line(2 if left >= 0 else 1, request, text, at)


def orders(head: Head) -> Iterator[Line]:
    """What the user tells the assistant to do or not to do, and corrections with what they
    correct.
    """
    spoken = [
        (said, at, text)
        for said in reversed(list(head.by("User")))
        for at, text in said.pieces
        if len(text) <= _LONGEST and not text.endswith(_QUESTIONS)
    ]
    topics = [stems(text) for *_, text in spoken]
    counts = Counter(chain.from_iterable(topics))
    rare = {stem for stem, count in counts.items() if 1 < count <= _RARE}
    # By each rare word: the newest sentence that has it. What that one is worth.
    newest: dict[str, int] = {}
    strengths: list[int] = []
    scope: Said | None = None
    for number, (said, at, text) in enumerate(spoken):
        own = topics[number]
        # "For the rest of this session. Reply in French." orders one thing.
        strength = 3 if said is scope else _strength(text)
        scope = said if len(text) <= _SCOPE_SIZE and text.lower().startswith(_SCOPES) else None
        is_plain = strength > 1
        places = [newest[stem] for stem in own & newest.keys()]
        for place in set(places):
            before, where, old = spoken[place]
            shared = places.count(place)
            # Another value of the same, or plainly a correction by its own words: the order of the
            # earlier ones in a set differs from process to process.
            differs = is_plain or any(map(_DIGITS.search, own ^ topics[place]))
            restates = differs and shared > 1 and 2 * shared >= min(len(own), len(topics[place]))
            if strengths[place] or restates:
                strength = max(strength, 2)
            if restates and not strengths[place]:
                yield Line(strength, before, old, where)
        newest.update(dict.fromkeys(own & rare, number))
        strengths.append(strength)
        if strength and not is_code(text):
            yield Line(strength, said, text, at)


def _strength(text: str) -> int:
    """Return how plainly a sentence is an order or a correction: 0 to 3."""
    low = f"{text.lower().rstrip('.!')} "
    rest = low[match.end() :] if (match := _LEAD.match(low)) else low
    found = (
        weight
        for weight, begins, has in _TABLE
        if rest.startswith(begins) or any(map(low.__contains__, has))
    )
    strength = next(found, 0)
    # "End every reply with ..." is meant to last.
    if strength == 1 and not _LASTING.isdisjoint(low.split()):
        strength = 3
    # Somebody who calls out orders less: "Never give up!"
    return max(0, strength - text.endswith("!"))


def messages(head: Head) -> Iterator[Line]:
    """The user's short messages, without mere talk; questions after the rest."""
    for said in head.by("User"):
        if len(said.text) <= SHORT or said.was_kept:
            for at, text in said.pieces:
                if _tells(text) and not is_code(text):
                    yield Line(not text.endswith(_QUESTIONS), said, text, at)


def _tells(text: str) -> bool:
    """Return whether a sentence is more than talk: "Hey Dave!", "Thanks, that is great."."""
    if text.startswith("#"):  # A heading says nothing without its content.
        return False
    told = len(stems(text) - TALK_WORDS)
    return told >= _LEAST_TOLD or (told > 0 and TALK_WORDS.isdisjoint(words(text)[:3]))


def names(head: Head) -> Iterator[Line]:
    """The names that calls used most, which stand on one line."""
    counts = Counter[str]()
    for said in head.by("Tool", NAMES, kind="call"):
        if not read_items(said):
            counts.update(identifiers(" ".join(leaves(said.text))))
    for at, (name, count) in enumerate(counts.most_common(_MOST_NAMES)):
        if name not in head.view_text:
            yield Line(count, head.names, name, at)


def is_code(text: str) -> bool:
    """Return whether a piece of talk is code or output: a short one may be a name."""
    return len(text) > _LONGEST_TERM and has_code(text)


def story(head: Head) -> Iterator[Line]:
    """Every sentence and line, by the rare words in it."""
    # Talk and output by themselves: one long file must not hide what was said before it.
    both = chain(head.by("User", "Assistant"), head.by("Tool"))
    every = [(said, at, text) for said in both for at, text in said.pieces]
    own = [stems(text) - TALK_WORDS for *_, text in every]
    counts = Counter(chain(*own))
    worths = {word: math.log((1 + len(every)) / count) for word, count in counts.items()}
    for (said, at, text), each in zip(every, own, strict=True):
        # The exact sum: the order of words in a set differs from process to process.
        worth = math.fsum(map(worths.__getitem__, each))
        worth *= _TALKED if said.kind == "text" else 1
        is_noise = text.startswith("#") or text.endswith((":", "："))
        if each and len(text) <= LONGEST and not is_noise:
            yield Line(worth / (len(text) + _HANDLING), said, text, at)


KINDS: tuple[tuple[Source, float], ...] = (
    (work, 1),
    (first, 0.5),
    (names, 0.25),
    (orders, 1),
    (messages, 0.5),
    (names, 1),
    (story, 1),
    (messages, 1),
)
"""The kinds of lines, in their order, each with the share of the room that it may take; the story
is for a summary without a model. In long talks half of the room is enough for the user's newest
messages: LoCoMo's facts in a fifth of the size fell from .37 to .25 when they had all of it. Of
the names that real runs used next, .94 were known with all names before the story, .82 without."""
