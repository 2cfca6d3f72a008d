"""Kept lines: lines that a summary quotes word for word, with a model or without one.

Each source is a function from the head to lines of one kind with weights. One budget and one choice
serve all kinds: a kind comes before the next one, and within a kind the heavier line and then the
newer. The chosen lines stand in order of time, each under its speaker, with an ellipsis where
something is left out.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import chain
from operator import itemgetter
from sys import maxsize
from typing import NamedTuple

from compacter.messages.fields import flat
from compacter.summary.head import ELLIPSIS, OUTPUT, SINCE, Head, Said
from compacter.lines.labels import NAMES, WORK
from compacter.text.pieces import LONGEST, clip, leaves, values
from compacter.text.words import FUNCTION_WORDS, TALK_WORDS, identifiers, read_words, words


class Line(NamedTuple):
    """Something that a summary may quote word for word."""

    weight: float
    said: Said
    text: str
    """A sentence, a line or a short message, on one line."""
    at: int = 0
    """Its place within its text."""


Source = Callable[[Head], Iterator[Line]]

# Characters of a state of the list of work.
_WORK_SIZE = 200
# Characters of a name or an address in a talk, which has as many signs as code.
_LONGEST_TERM = 40
# Most names to try: in real runs they cut the steps that lack one from .325 to .22.
_MOST_NAMES = 200
# A word in more of the user's sentences than this does not relate a later sentence to an earlier
# one.
_RARE = 3
# Significant words that a sentence of talk needs to be worth keeping.
_LEAST_TOLD = 4
# Characters added to each cost: a fragment ("Yes.", "Oh no!") is worth less than its size.
_HANDLING = 12
# Weight of a spoken sentence relative to a line of a file or a log.
_TALKED = 2
# Shorter lines are kept even if they also stand in messages that stay: "Yes." is everywhere.
_SHORTEST = 16
# Symbols of code and output; less than a tenth of a text of prose.
_SYMBOL = re.compile(r"[{}()\[\];=<>|\\$/_`]")
_QUESTIONS = ("?", "？", "؟")
_ITEM_KEYS = ["content", "step", "title", "subject", "task", "text", "name", "description", "item"]
_IS_CLOSED = re.compile(
    r"(?i)complete|done|finish|resolv|cancel|skip|drop|abandon|delet|called off"
)
_CHECK = re.compile(r"(?m)^\s{0,12}(?:[-*+•]|\d{1,3}[.)])?\s{0,4}\[[ ~/-]\]\s+(\S.{0,200})$")
# Text that may precede an order: a number, "One rule:", "And please".
_LEAD = re.compile(
    r"\W{0,8}(?:\d{1,2}[.)]\s)?(?:[^:.!?]{1,60}:\s+)?"
    r"(?:(?:and|but|so|ok(?:ay)?|also|then|well|just|please|again|important)\b[\s,:-]{1,3}){0,3}"
)


# Plain English forms of orders, in small letters: how plain they are, how such a sentence begins,
# and words anywhere in it. The second row has corrections. Other languages stay as the user's short
# messages.
_TABLE = (
    (
        3,
        """always, never, do not, don't, don’t, only, make sure, ensure, be sure, avoid,
            stop, remember, no longer, under no, before you, when you, whenever you, if you, unless
            you, until you, after you, each time you, every time you""",
        """from now, from here on, for the rest, going forward, at all times, please, must not,
            you should not, you shouldn't, you may not, you may only, you
            should only, you should always, you should never, you cannot, i want you to, i need you
            to, i'd like you to, i would like you to""",
    ),
    (
        2,
        """no, no,, nope, nope,, wrong, actually, actually,, correction, correction,,
            instead, instead,, wait, wait,, sorry, sorry,, undo, revert""",
        """changed my mind, change of plan, i meant, is now, are now, decided again, scratch
            that, renamed, moved to, changed to, extended to, instead, any more, is fine,
            is allowed""",
    ),
    (
        1,
        """add, answer, ask, begin, call, change, check, create, delete, do, end, explain,
            fix, follow, format, give, go, implement, include, keep, leave, let, list, look, make,
            merge, move, name, open, pick, prefer, put, read, remove, rename, reply, report,
            respond, return, review, run, send, set, show, start, tell, test, try, update, use,
            wait, work, write""",
        """you must, you should, you have to, you need to, instead of, rather than, should
            be, needs to be, has to be, have to be""",
    ),
)
# The forms by their longest words, each with its weight and a blank behind it, those of a beginning
# after a line break.
_FORMS = defaultdict[str, list[tuple[int, str]]](list)
for _weight, *_places in _TABLE:
    for _before, _place in zip(("\n", ""), _places, strict=True):
        for _form in flat(_place).split(", "):
            _FORMS[max(words(_form), key=len)].append((_weight, f"{_before}{_form} "))


def work(head: Head) -> Iterator[Line]:
    """The newest state of a list of work: its open items, by their state, on one line."""
    if any(map(read_items, head.view)):
        return
    for said in head.by("Tool", "Assistant", WORK):
        if said.speaker == WORK:
            yield Line(1, said, said.text)
            return
        items = read_items(said)
        if len(items) > 1:
            still_open: dict[str, list[str]] = {}
            for state, name in sorted(items, key=itemgetter(0)):
                if not _IS_CLOSED.search(state):
                    still_open.setdefault(state, []).append(name)
            told = "; ".join(f"{state}: {', '.join(each)}" for state, each in still_open.items())
            line = Said("", WORK, (maxsize, 0))
            yield Line(1, line, clip(told or "all closed", _WORK_SIZE))
            return


def read_items(said: Said) -> list[tuple[str, str]]:
    """Return state and text of each item of a list of work: records of a call's JSON, or open boxes
    of the assistant's checklist; a file's checklist may be outdated.
    """
    if said.speaker == "Assistant":
        return [("pending", flat(item)) for item in _CHECK.findall(said.text)]
    items: list[tuple[str, str]] = []
    for record in values(said.text) if said.is_call and "stat" in said.text else ():
        if isinstance(record, dict):
            state = record.get("status", record.get("state"))
            name = next((record[key] for key in _ITEM_KEYS if key in record), None)
            if isinstance(state, str) and isinstance(name, str):
                items.append((state, flat(name)))
    return items


def names(head: Head) -> Iterator[Line]:
    """The names that calls used most, which stand on one line."""
    counts = Counter[str]()
    for said in head.by("Tool", NAMES, calls=True):
        if not read_items(said):
            counts.update(identifiers(" ".join(leaves(said.text))))
    line = Said("", NAMES, (maxsize, 1))
    for at, (name, count) in enumerate(counts.most_common(_MOST_NAMES)):
        if name not in head.view_text:
            yield Line(count, line, name, at)


def first(head: Head) -> Iterator[Line]:
    """The first request, or its beginning."""
    left = LONGEST
    if said := head.first:
        for at, text in said.pieces:
            left -= len(text)
            if left >= 0:
                yield Line(1, said, text, at)


def spoken(head: Head) -> Iterator[Line]:
    """Sentences of the user: the request in the first message; orders and corrections, with the
    sentences that they correct; short messages without mere talk; questions.
    """
    told: list[Line] = []
    for said in reversed(list(head.by("User", OUTPUT))):
        is_output = said.speaker == OUTPUT
        is_short = not is_output and (said.was_kept or len(said.text) <= LONGEST)
        # Text above a shell's output may be the user's or the shell's: count it as the shell's.
        for at, text in said.pieces[:1] if is_output else said.pieces:
            is_code = 10 * len(_SYMBOL.findall(text)) >= len(text) > _LONGEST_TERM
            if is_code or not can_stand(text):
                continue
            line = Line(0.5 * is_short, said, text, at)
            if not text.endswith(_QUESTIONS):
                told.append(line)
            elif head.first and text in head.first.text:
                yield Line(4, said, text, at)
            elif is_short and _tells(words(text)):
                yield Line(0.25, said, text, at)
    yield from _with_corrected(told)


def _with_corrected(told: list[Line]) -> Iterator[Line]:
    """Yield lines, the oldest first, with the weight of a correction for those that state anew what
    an earlier one states or take up an order, and for that one.
    """
    read = read_words([line.text for line in told])
    weights = [
        _strength(line.text, said) or line.weight * _tells(said)
        for line, (said, _) in zip(told, read, strict=True)
    ]
    counts = Counter(chain.from_iterable(topic for _, topic in read))
    rare = {stem for stem, count in counts.items() if 1 < count <= _RARE}
    # By each rare word, the newest line that has it.
    newest: dict[str, int] = {}
    for number, (_, topic) in enumerate(read):
        known = topic & rare
        shared = [newest[stem] for stem in known & newest.keys()]
        for place in {*shared}:
            # The line repeats a statement, or refers to an order.
            if 2 * shared.count(place) >= len(topic) or weights[place] >= 1:
                for each in (number, place):
                    weights[each] = max(2, weights[each])
        newest |= dict.fromkeys(known, number)
    for line, weight in zip(told, weights, strict=True):
        if weight:
            yield Line(weight, *line[1:])


def _strength(text: str, said: list[str]) -> int:
    """Return how plainly a sentence of these words is an order or a correction: 0 to 3."""
    if not (known := _FORMS.keys() & said):
        return 0
    low = _LEAD.sub(r"\g<0>\n", f"{text.lower().rstrip('.!')} ", count=1)
    found = [weight for word in known for weight, form in _FORMS[word] if form in low]
    # Somebody who calls out orders less: "Never give up!"
    return max(0, max(found, default=0) - text.endswith("!"))


def _tells(said: list[str]) -> bool:
    """Return whether a sentence is more than talk: "Hey Dave!", "Thanks, that is great."."""
    told = len({*said} - TALK_WORDS - FUNCTION_WORDS)
    return told >= (1 if TALK_WORDS.isdisjoint(said[:3]) else _LEAST_TOLD)


def can_stand(text: str) -> bool:
    """Return whether a piece makes sense by itself; a heading needs its content."""
    return not (text.startswith("#") or text.endswith((":", "：")))


def story(head: Head) -> Iterator[Line]:
    """Every sentence and line, by the rare words in it."""
    # Weigh talk and output separately: one long file must not hide the conversation before it.
    both = chain(head.by("User", "Assistant"), head.by("Tool"))
    every = [(said, at, text) for said in both for at, text in said.pieces]
    topics = [topic - TALK_WORDS for _, topic in read_words([text for *_, text in every])]
    counts = Counter(chain.from_iterable(topics))
    worths = {word: math.log((1 + len(every)) / count) for word, count in counts.items()}
    for (said, at, text), topic in zip(every, topics, strict=True):
        if topic and can_stand(text):
            # The exact sum: the order of words in a set differs from process to process.
            worth = math.fsum(map(worths.__getitem__, topic))
            worth *= 1 if said.speaker.startswith("Tool") else _TALKED
            yield Line(worth / (len(text) + _HANDLING), said, text, at)


KINDS: tuple[tuple[Source, float], ...] = (
    (work, 1),
    (names, 0.25),
    (first, 0.5),
    (spoken, 0.5),
    (names, 1),
    (story, 1),
    (spoken, 1),
)
"""The kinds of lines, in their order, each with the share of the room that it may take; the story
is for a summary without a model. In long talks half of the room is enough for the user's newest
messages: LoCoMo's facts in a fifth of the size fell from .37 to .25 when they had all of it. Of
the names that real runs used next, .94 were known with all names before the story, .82 without."""


def keep(head: Head, budget: int, *, with_story: bool = False) -> str:
    """Return kept lines in at most ``budget`` characters, in order of time.

    Text in messages that stay is not kept again.

    Args:
        head: The texts to compact.
        budget: Characters of all lines.
        with_story: Whether sentences of all speakers take the room that the other kinds leave.
    """
    head.budget = budget
    left = budget
    told = set[str]()
    lines: dict[Source, list[Line]] = {}
    chosen: dict[Said, dict[int, str]] = {}
    for source, share in KINDS:
        if source is story and not with_story:
            continue
        if source not in lines:
            lines[source] = sorted(
                source(head), key=lambda line: (line.weight, line.said.place), reverse=True
            )
        most = int(share * budget)
        for line in lines[source]:
            pieces = chosen.get(line.said, {})
            price = len(line.text) + 3 + (0 if pieces else len(line.said.speaker) + 2)
            if price > min(left, most) or line.text in told:
                continue
            if line.text in head.view_text and len(line.text) > _SHORTEST:
                continue
            left -= price
            most -= price
            told.add(line.text)
            chosen.setdefault(line.said, {})[line.at] = line.text
    asked = [said.place for said in head.view if said.speaker == "User"]
    return "\n".join(_in_order(chosen, max(asked, default=None)))


def _in_order(chosen: dict[Said, dict[int, str]], asked: tuple[int, int] | None) -> Iterator[str]:
    """Yield the chosen lines in order of time, those that came after the user's newest message,
    which is ``asked``, below a head of their own.
    """
    for said in sorted(chosen, key=lambda said: said.place):
        pieces = chosen[said]
        text = ", ".join(pieces.values())
        if said.speaker != NAMES:
            text = ""
            for at, piece in sorted(pieces.items()):
                text += f" {piece}" if at - 1 in pieces else f"{ELLIPSIS}{piece}"
        if asked and said.place > asked and said.speaker not in (NAMES, WORK):
            yield SINCE
            asked = None
        # No other kind of line break may begin a line that looks like a speaker's.
        yield f"{said.speaker}: {' '.join(text.removeprefix(ELLIPSIS).splitlines())}"
