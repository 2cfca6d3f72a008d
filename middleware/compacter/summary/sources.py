"""Sources of kept lines: each a function from the head to lines with weights, the newest first.

``SOURCES`` lists those of every summary; ``story`` is what a summary without a model tells
beside them.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from typing import NamedTuple

from compacter.messages.fields import flat
from compacter.summary.head import NAMES, SHORT, Head, Said
from compacter.text.sentences import LONGEST, has_code
from compacter.text.values import records
from compacter.text.words import clip, identifiers, is_about, stems


class Line(NamedTuple):
    """Something that may stay word for word."""

    weight: float
    said: Said
    text: str
    """A sentence, a line or a short message, on one line."""
    at: int = 0
    """Its place within what was said."""


Source = Callable[[Head], Iterator[Line]]

# What a line of each kind is worth: what is still to do before what was said, what was asked before
# what went wrong. Only their order and their distances matter; each further line of one weight, an
# older one, is worth a little less.
_STATE = 90.0
_TASK = 80.0
_NAMES = 75.0
_CORRECTION = 70.0
_DECISION = 60.0
_WISH = 55.0
_MESSAGE = 50.0
_FAILURE = 40.0
_STORY = 10.0
# A question is worth little: most were answered. A closed item of a list is worth less, too.
_ASKED = 0.1
_CLOSED = 0.7
# Characters of the first request, of which the beginning is kept.
_FIRST = 600
# Longest call with a list of work that is kept whole; of a longer one the items.
_WHOLE_LIST = 1_000
# How many names are tried, and how much less each is worth than the one before: in real runs they
# cut the steps that lack one from .325 to .22.
_MOST_NAMES = 200
_RARER = 0.2
# Sentences of an answer that may say that something is done, and what they are worth of what was
# asked.
_FIRST_OF_REPLY = 3
_ANSWERED = 0.99
# Longest line of other kinds: three lines of print.
_LONGEST = 300
# Characters added to each cost: a fragment ("Yes.", "Oh no!") is worth less than its size.
_HANDLING = 12
# Times that a sentence of somebody is worth a line of a file or a log.
_TALKED = 2
# Times that a statement with a figure in it is worth another.
_VALUED = 3
# The same of a line that was kept before: a summary that changes little can be read from a cache.
_CHOSEN = 1.5
# Of lines that differ only in digits, in their first characters, the first ones show what the
# series is.
_SHAPE = 60
_SERIES = 3
_ITEM_KEYS = frozenset(
    ("content", "step", "title", "subject", "task", "text", "name", "description", "item", "id")
) | {"taskId", "task_id", "todo_id", "todoId", "item_id"}
_IS_CLOSED = re.compile(
    r"(?i)complete|done|finish|resolv|cancel|skip|drop|abandon|delet|called off"
)
_CHECK = re.compile(
    r"(?m)^\s{0,12}\+?(?:[-*+•]|\d{1,3}[.)])?\s{0,4}(?:\[[ xX~/-]\]|[☐☑☒])\s+\S.{0,300}$"
)
_CREATED = re.compile(
    r"(?im)^(?:task|todo|item) #?\w{1,36} (?:was )?(?:created|added)\b.{0,30}: .{2,300}$"
)
_CORRECTS = re.compile(
    r"^\W{0,3}(?:no|nope|wrong|actually|correction|instead|wait|sorry|nein|falsch|doch|non|"
    r"en fait|нет)\b|\b(?:changed? (?:my|our) mind|change of plan|i meant|must be|(?:is|are) now|"
    r"new .{1,40}:|instead of|rather than|no longer|not (?!only).{1,40}\bbut\b|decided again|"
    r"scratch that|renamed|(?:moved|changed|extended) (?:\S+ ){0,6}to|undo|revert|from now on|"
    r"nicht mehr|stattdessen|sondern|"
    r"(?:is|are|it's|ist|est|es|è|é) (?:\S+ ){0,2}(?:now|jetzt|maintenant|ahora|ora|agora)|теперь|"
    r"plutôt|au lieu|ya no|en vez)\b|instead\W{0,3}$|改成|改为|変更|取消|不对|而是|ではなく|아니라"
)
_DECIDES = """
    Decid decid Decis decis Décid décid Décis décis Resolved resolved Agreed agreed Conclu conclu
    Settled settled Chose chose Entschied entschied Entscheid entscheid Beschlossen beschlossen
    Решение решение Решено решено 决定 決定
"""
_DECIDING = _DECIDES.split()
_WISHES = re.compile(
    r"\b(?:always|never|must|should|shall|do not|don't|only|please|make sure|ensure|prefer|"
    r"avoid|remember|instead|want|need|rather|better|try to|use|keep|note|immer|nie|bitte|soll\w*|"
    r"muss|nur|nicht|toujours|jamais|doit|dois|faut|siempre|nunca|debe|solo|всегда|никогда|нужно|"
    r"надо)\b|必须|不要|请|必ず|ください|항상|하지"
)
"""Words of corrections, of decisions, and of how something shall be done, in small letters: to ask
for any case takes three times as long."""
_FAILS = re.compile(
    r"(?:\b(?:ERROR|Error|FAILED|Failed|FATAL|Fatal|Exception|Traceback|denied|"
    r"rejected|refused|not found|No such|timed out|failed|cannot|fatal)\b|"
    r"[a-z](?:Error|Exception)\b)"
)
_MERGES = re.compile(r"\"merge\":\s?true")
_DIGITS = re.compile(r"\d+")


def task(head: Head) -> Iterator[Line]:
    """The first request: its beginning."""
    left = _FIRST
    for first in [said for said in head.said if said.speaker == "User"][:1]:
        for at, sentence in first.pieces:
            left -= len(sentence)
            if left > 0:
                yield Line(_TASK - at / _FIRST, first, sentence, at)


def messages(head: Head) -> Iterator[Line]:
    """The user's short messages, and of longer ones the sentences that say how it shall be done.
    Corrections come before the rest, questions after it.
    """
    for said in head.by("User"):
        is_long = len(said.text) > SHORT and said.place >= 0
        for at, text in said.pieces:
            weight = _ASKED if text.endswith(("?", "？", "؟")) else 1.0
            if not is_long:
                weight *= _CORRECTION if _CORRECTS.search(text.lower()) else _MESSAGE
                yield Line(weight, said, text, at)
                yield from _answer(head, said, weight * _ANSWERED)
            elif len(text) <= _LONGEST and _WISHES.search(text.lower()) and not has_code(text):
                yield Line(weight * _WISH, said, text, at)


def _answer(head: Head, said: Said, weight: float) -> Iterator[Line]:
    """Yield the assistant's answer about the same as a message of the user: work that is done must
    not be read as asked for.
    """
    after = said.place - head.said[0].place + 1
    for reply in head.said[after : after + 1]:
        for at, text in reply.pieces[:_FIRST_OF_REPLY] if reply.speaker == "Assistant" else ():
            if len(text) <= _LONGEST and is_about(stems(text), said.stems):
                yield Line(weight, reply, text, at)


def _lines_with(find: Callable[[str], object], weight: float, speaker: str, kind: str) -> Source:
    """Return a source of pieces in which something is found, of those that differ only in digits
    the newest.
    """

    def source(head: Head) -> Iterator[Line]:
        shapes = set[str]()
        for said in head.by(speaker, kind=kind):
            for at, text in said.pieces if find(said.text) else ():
                shape = _DIGITS.sub("0", text)
                if len(text) <= _LONGEST and shape not in shapes and find(text):
                    shapes.add(shape)
                    yield Line(weight, said, text, at)

    return source


decisions = _lines_with(
    lambda text: any(map(text.__contains__, _DECIDING)), _DECISION, "Assistant", "text"
)
"""What was settled."""
failures = _lines_with(_FAILS.search, _FAILURE, "Tool", "result")
"""What went wrong."""


def states(head: Head) -> Iterator[Line]:
    """The newest state of lists of work: the last call of each tool that keeps one, changes of
    single items since, and the last checklist.
    """
    told = set[str]()
    for said in (*reversed(head.view), *head.by("Tool", "Assistant")):
        text = said.text
        lines: list[Line] = []
        if said.kind == "call" and "stat" in text and said.speaker not in told:
            items = list(read_items(text))
            fresh = [item for item in items if item.name not in told]
            told.update(item.name for item in fresh)
            if len(items) > 1 and not _MERGES.search(text):
                told.add(said.speaker)
            if fresh == items and len(text) <= _WHOLE_LIST:
                lines = [Line(_STATE, said, flat(text))] if items else []
            else:
                for at, item in enumerate(fresh):
                    weight = _STATE * (_CLOSED if item.is_closed else 1) - at / _FIRST
                    lines.append(Line(weight, said, item.shown, 2 * at))
        elif said.kind == "result" and (made := _CREATED.match(text)):
            lines = [Line(_STATE, said, flat(made[0]))]
        elif "checklist" not in told and len(checks := _CHECK.findall(text)) > 1:
            told.add("checklist")
            lines = [
                Line(_STATE - at / _FIRST, said, flat(item), 2 * at)
                for at, item in enumerate(checks)
            ]
        if said not in head.view:
            yield from lines


class Item(NamedTuple):
    """An item of a list of work."""

    name: str
    """What does not change with its state."""
    is_closed: bool
    """Whether it is done or called off."""
    shown: str
    """The item as one line of JSON."""


def read_items(text: str) -> Iterator[Item]:
    """Yield the records with a state and a text or an id inside JSON."""
    for data in records(text):
        record = {} if isinstance(data, list) else data
        state = record.get("status", record.get("state"))
        if isinstance(state, str) and record.keys() & _ITEM_KEYS:
            plain = {key: each for key, each in record.items() if isinstance(each, (str, int))}
            name = " ".join(str(each) for each in plain.values() if each != state)
            shown = clip(json.dumps(plain, ensure_ascii=False), _LONGEST)
            yield Item(name, _IS_CLOSED.search(state) is not None, shown)


def names(head: Head) -> Iterator[Line]:
    """The names that calls used most, which stand on one line."""
    counts = Counter[str]()
    newest: Said | None = None
    for said in head.by("Tool", kind="call"):
        newest = newest or said
        counts.update(identifiers(" ".join(text for _, text in said.pieces)))
    line = Said("", NAMES, newest.place if newest else 0, "call")
    for at, (name, _) in enumerate(counts.most_common(_MOST_NAMES)):
        if name not in head.view_text:
            yield Line(_NAMES - at * _RARER, line, name, 2 * at)


SOURCES: tuple[Source, ...] = (
    states,
    task,
    names,
    messages,
    decisions,
    failures,
)


def story(head: Head) -> Iterator[Line]:
    """Every sentence and line, by the rare words in it: what a summary without a model tells."""
    # Talk and output by themselves: one long file must not hide what was said before it.
    both = chain(head.by("User", "Assistant"), head.by("Tool"))
    said = [each for each in both if each.speaker != NAMES]
    every = [(each, at, text) for each in said for at, text in each.pieces]
    words = [stems(text) for *_, text in every]
    counts = Counter(chain(*words))
    worths = {word: math.log((1 + len(every)) / count) for word, count in counts.items()}
    shapes = Counter[str]()
    for (each, at, text), own in zip(every, words, strict=True):
        # The exact sum: the order of words in a set differs from process to process.
        worth = math.fsum(map(worths.__getitem__, own))
        shape = _DIGITS.sub("0", text)[:_SHAPE]
        shapes[shape] += 1
        worth *= _TALKED if each.kind == "text" else 1
        worth *= _VALUED if each.kind == "text" and "0" in shape else 1
        worth *= _CHOSEN if each.place < 0 else 1
        if len(text) <= LONGEST:
            worth /= 1 + shapes[shape] // _SERIES
            yield Line(_STORY * worth / (len(text) + _HANDLING), each, text, at)
