"""Sources of kept lines: each a function from the head to lines with weights.

``SOURCES`` lists those of every summary; ``story`` is what a summary without a model tells
beside them.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from compacter.messages.fields import flat
from compacter.summary.head import ELLIPSIS, SHORT, Head, Said
from compacter.text.sentences import LONGEST
from compacter.text.values import parse
from compacter.text.words import clip, words


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
# what went wrong. Only their order and their distances matter.
_STATE = 90.0
_TASK = 80.0
_NAMES = 75.0
_CORRECTION = 70.0
_DECISION = 60.0
_WISH = 55.0
_MESSAGE = 50.0
_FAILURE = 40.0
_STORY = 10.0
# Each further line of a kind, an older one, is worth a little less than the one before.
_FADES = 0.95
# A question is worth little: most were answered. A closed item of a list is worth less, too.
_ASKED = 0.1
_CLOSED = 0.7
# Characters of the first request, of which the beginning is kept.
_FIRST = 600
# Longest call with a list of work that is kept whole; of a longer one the items.
_WHOLE_LIST = 1_200
# Levels of JSON in which such a list is looked for.
_DEEPEST = 6
# Characters of the line of names: in real runs it cut the steps that lack one from .060 to .018;
# with 300 characters .028. And how many are tried.
_NAMES_SIZE = 600
_MOST_NAMES = 200
# Longest line of other kinds: three lines of print.
_LONGEST = 300
# Characters added to each cost: a fragment ("Yes.", "Oh no!") is worth less than its size.
_HANDLING = 12
# Times that a statement of somebody with a figure in it is worth another.
_VALUED = 3
# Of a tool's lines that differ only in digits, in their first characters, the first ones show what
# the series is.
_SHAPE = 60
_SERIES = 3
# Letters of the shortest word that tells something.
_SHORTEST_WORD = 3
# Place of what is found by its form, behind the numbers of sentences.
_BEHIND = 10_000
_STATE_KEYS = ("status", "state")
_TEXT_KEYS = ("content", "step", "title", "subject", "task", "text", "name", "description", "item")
_ID_KEYS = ("id", "taskId", "task_id", "todo_id", "todoId", "item_id")
_IS_CLOSED = re.compile(
    r"(?i)complete|done|finish|resolv|cancel|skip|drop|abandon|delet|called off"
)
_CHECK = re.compile(
    r"(?m)^\s{0,12}\+?(?:[-*+•]|\d{1,3}[.)])?\s{0,4}(?:\[[ xX~/-]\]|[☐☑☒])\s+\S.{0,300}$"
)
_CREATED = re.compile(
    r"(?im)^(?:task|todo|item) #?(\w{1,36}) (?:was )?(?:created|added)\b.{0,30}: .{2,300}$"
)
_CORRECTS = re.compile(
    r"(?i)^\W{0,3}(?:no|nope|wrong|actually|correction|instead|wait|sorry|nein|falsch|doch|non|"
    r"en fait|нет)\b|\b(?:changed? (?:my|our) mind|change of plan|i meant|must be|(?:is|are) now|"
    r"new .{1,40}:|instead of|rather than|no longer|not (?!only).{1,40}\bbut\b|decided again|"
    r"scratch that|renamed|(?:moved|changed|extended) (?:\S+ ){0,6}to|undo|revert|from now on|"
    r"nicht mehr|stattdessen|sondern|"
    r"(?:is|are|it's|ist|est|es|è|é) (?:\S+ ){0,2}(?:now|jetzt|maintenant|ahora|ora|agora)|теперь|"
    r"plutôt|au lieu|ya no|en vez)\b|instead\W{0,3}$|改成|改为|変更|取消|不对|而是|ではなく|아니라"
)
_DECIDES = re.compile(
    r"(?i)^\W{0,6}(?:decisions?|decided|resolved|agreed|conclusion|entscheidung|beschlossen|"
    r"décision|decisión|decisão|решение|решено)\b|\b(?:(?:we|i|they|you)(?:'ve| have)? (?:decided|"
    r"agreed|settled|chose|chosen)|(?:go|going|went) with|let's use|we(?:'ll| will) use|"
    r"wir nehmen|on prend|nos quedamos con)\b|决定|決定"
)
_CORRECTING_WORDS = """
    no wrong actually correction instead wait sorry nein falsch doch fait нет mind plan meant must
    now new rather longer not again scratch name moved changed extended undo revert nicht statt
    sondern plutôt lieu vez jetzt maintenant ahora ora теперь 改 変 取消 不 而是 ではなく 아니라
"""
_DECIDING_WORDS = """
    decid decision resolv agree conclusion entscheidung beschlossen décision decisi реш settled
    chose with let's use we'll nehmen prend quedamos 决定 決定
"""
_CORRECTING = tuple(_CORRECTING_WORDS.split())
_DECIDING = tuple(_DECIDING_WORDS.split())
"""Parts of words of corrections and decisions: a text without any is read no further."""
_WISHES = re.compile(
    r"(?i)\b(?:always|never|must|should|shall|do not|don't|only|please|make sure|ensure|prefer|"
    r"avoid|remember|instead|want|need|rather|better|try to|use|keep|note|immer|nie|bitte|soll\w*|"
    r"muss|nur|nicht|toujours|jamais|doit|dois|faut|siempre|nunca|debe|solo|всегда|никогда|нужно|"
    r"надо)\b|必须|不要|请|必ず|ください|항상|하지"
)
_FAILS = re.compile(
    r"(?m)^.{0,60}?(?:\b(?:ERROR|Error|FAILED|Failed|FATAL|Fatal|Exception|Traceback|denied|"
    r"rejected|refused|not found|No such|timed out|failed|cannot|fatal)\b|"
    r"[a-z](?:Error|Exception)\b).{0,300}$"
)
_MERGES = re.compile(r"\"merge\":\s?true")
_DIGITS = re.compile(r"\d+")
_IDENTIFIER = re.compile(r"[\w./#:@-]{6,100}")
_TELLING = re.compile(r"[^\W\d_].*\d|\d.*[^\W\d_]|\w[/_.]\w|[a-z][A-Z]")


def task(head: Head) -> Iterator[Line]:
    """The first request: its beginning."""
    first = next((said for said in head.said if said.speaker == "User"), None)
    left = _FIRST
    for at, sentence in first.pieces if first else ():
        left -= len(sentence)
        if left > 0 and first:
            yield Line(_TASK - at / 10, first, sentence, at)


def messages(head: Head) -> Iterator[Line]:
    """The user's short messages, and of longer ones the sentences that say how it shall be done;
    the newest first. Corrections come before the rest, questions after it.
    """
    weights = {_CORRECTION: 1.0, _WISH: 1.0, _MESSAGE: 1.0}
    for said in head.by("User"):
        is_long = len(said.text) > SHORT and said.place >= 0
        low = said.text.lower()
        corrects = any(word in low for word in _CORRECTING) and _CORRECTS.search(low)
        kind = _WISH if is_long else _CORRECTION if corrects else _MESSAGE
        for at, text in said.pieces:
            if not is_long or (len(text) <= _LONGEST and _WISHES.search(text)):
                asks = _ASKED if text.endswith(("?", "？", "؟")) else 1
                yield Line(kind * weights[kind] * asks, said, text, at)
        weights[kind] *= _FADES


def decisions(head: Head) -> Iterator[Line]:
    """What was settled, the newest first."""
    weight = _DECISION
    for said in head.by("Assistant", "User"):
        low = said.text.lower()
        if any(word in low for word in _DECIDING) and _DECIDES.search(low):
            for at, text in said.pieces:
                if len(text) <= _LONGEST and _DECIDES.search(text):
                    yield Line(weight, said, text, at)
                    weight *= _FADES


def failures(head: Head) -> Iterator[Line]:
    """What went wrong, the newest first: one line of each result."""
    weight = _FAILURE
    shapes = set[str]()
    for said in head.by("Tool", kind="result"):
        line = _FAILS.search(said.text)
        text = flat(line[0]) if line else ""
        shape = _DIGITS.sub("0", text)
        if line and shape not in shapes and len(text) <= _LONGEST:
            shapes.add(shape)
            yield Line(weight, said, text, _BEHIND + line.start())
            weight *= _FADES


def states(head: Head) -> Iterator[Line]:
    """The newest state of lists of work: the last call of each tool that keeps one, word for word,
    changes of single items since, and the last checklist.
    """
    listed = set[str]()
    fresh_ids: dict[str, str] = {}
    has_checklist = False
    view = ((said, True) for said in reversed(head.view))
    for said, is_in_view in chain(view, ((said, False) for said in head.by("Tool", "Assistant"))):
        text = said.text
        lines: Iterable[Line] = ()
        if said.kind == "call" and "stat" in text and said.speaker not in listed:
            records = list(find_records(parse(text)))
            fresh = [each for each in records if _name_of(each) not in fresh_ids]
            fresh_ids.update((_name_of(each), state_of(each)) for each in fresh)
            if len(records) > 1 and not _MERGES.search(text):
                listed.add(said.speaker)
            lines = _state_lines(said, fresh, len(records)) if fresh else ()
        elif said.kind == "result" and (made := _CREATED.match(text)):
            closed = _IS_CLOSED.search(fresh_ids.get(made[1], "")) is not None
            lines = [Line(_STATE * (_CLOSED if closed else 1), said, flat(made[0]), _BEHIND)]
        elif not has_checklist and len(items := _CHECK.findall(text)) > 1:
            has_checklist = True
            lines = (
                Line(_STATE - at / 10, said, flat(item), _BEHIND + 2 * at)
                for at, item in enumerate(items)
            )
        if not is_in_view:
            yield from lines


def _state_lines(said: Said, records: Sequence[dict[str, Any]], every: int) -> Iterator[Line]:
    """Yield a call with a list word for word, and the items of it that are still true."""
    if len(records) == every and len(said.text) <= _WHOLE_LIST:
        yield Line(_STATE, said, flat(said.text))
    for at, record in enumerate(records):
        closed = is_closed(record)
        shown = {key: value for key, value in record.items() if isinstance(value, (str, int))}
        text = clip(json.dumps(shown, ensure_ascii=False), _LONGEST)
        yield Line(_STATE * (_CLOSED if closed else 1) - 1 - at / 10, said, text, 2 * at)


def find_records(data: object, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the records with a state and a text or an id inside JSON, also inside its texts."""
    if isinstance(data, str):
        data = parse(data)
    if isinstance(data, dict) and state_of(data) and _name_of(data):
        yield data
    elif isinstance(data, (dict, list)) and depth < 6:
        for member in data.values() if isinstance(data, dict) else data:
            yield from find_records(member, depth + 1)


def state_of(record: dict[str, Any]) -> str:
    """Return the state of a record, or an empty text."""
    return next((word for key in _STATE_KEYS if isinstance(word := record.get(key), str)), "")


def is_closed(record: dict[str, Any]) -> bool:
    """Return whether the state of a record says that it is done or called off."""
    return _IS_CLOSED.search(state_of(record)) is not None


def text_of(record: dict[str, Any]) -> str:
    """Return the text of an item of a list, or an empty text."""
    return next((text for key in _TEXT_KEYS if isinstance(text := record.get(key), str)), "")


def _name_of(record: dict[str, Any]) -> str:
    """Return the id of an item, or else its text."""
    return next((str(record[key]) for key in _ID_KEYS if key in record), text_of(record))


def names(head: Head) -> Iterator[Line]:
    """The names that calls used most, on one line."""
    counts = Counter[str]()
    newest: Said | None = None
    for said in head.by("Tool"):
        if said.kind == "call" or said.speaker == NAMES:
            newest = newest or said
            every = {
                word.rstrip("/").strip(".:-#@")
                for word in _IDENTIFIER.findall(" ".join(said.sentences))
            }
            again = 2 if said.speaker == NAMES else 1
            counts.update({word: again for word in every if _TELLING.search(word)})
    chosen: list[str] = []
    left = _NAMES_SIZE
    for name, times in counts.most_common(_MOST_NAMES):
        if times and len(name) + 3 <= left and name not in head.view_text:
            chosen.append(name)
            left -= len(name) + 3
    if newest and chosen:
        yield Line(
            _NAMES, Said("", NAMES, newest.place, "call"), f" {ELLIPSIS} ".join(chosen), _BEHIND
        )


NAMES = "Tool calls"
"""Speaker of the line of names."""
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
    return _tell([said for said in head.said if said.speaker != NAMES])


def recent_story(head: Head) -> Iterator[Line]:
    """The same of the newest texts: for what a model made no summary of."""
    return _tell(list(head.by("User", "Assistant", "Tool")))


def _tell(said: Sequence[Said]) -> Iterator[Line]:
    texts = [[words(text) for text in one.sentences] for one in said]
    counts = Counter(word for lines in texts for each in lines for word in set(each))
    most = math.log(2 + sum(map(len, texts)))
    shapes = Counter[str]()
    for one, lines in zip(said, texts, strict=True):
        for (at, text), each in zip(one.pieces, lines, strict=True):
            telling = [word for word in set(each) if len(word) > 2]
            worth = sum(most - math.log(counts[word]) for word in telling)
            if one.speaker in ("User", "Assistant"):
                worth *= _VALUED if _DIGITS.search(text) else 1
            else:
                shape = _DIGITS.sub("0", text)[:_SHAPE]
                shapes[shape] += 1
                worth /= 1 + shapes[shape] // _SERIES
            if worth > 0 and len(text) <= LONGEST:
                yield Line(_STORY * worth / (len(text) + _HANDLING), one, text, at)
