"""The lists of work that an agent keeps: what is done, what is open, what was called off.

An agent writes its whole list again at each step, ticks one line of a checklist, or says that
something is done. Only the last state of each item is told; an earlier one would send the agent to
do the same work again. Lists are known by their shape, as each agent names its tool in its own way:
records with a text and a state among the arguments of a call, and lines such as ``- [x] Write the
tests`` or ``2. Write the tests (done)``.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal

from compacter.messages.fields import flat
from compacter.messages.parts import Part
from compacter.summary.evidence import Items
from compacter.text.speech import ELLIPSIS, named
from compacter.text.values import parse
from compacter.text.words import clip

HEADING = "Lists of work, as they stood last:"
"""Heading of the chapter; no model's section is called so."""

State = Literal["done", "open", "off"]
"""State of an item: ``off`` is called off."""

_WORDS: Mapping[State, tuple[str, ...]] = {
    "done": ("completed", "complete", "done", "finished", "resolved"),
    "open": (
        *("pending", "in progress", "not started", "todo", "to do", "open", "active"),
        *("blocked", "started", "doing", "queued", "waiting"),
    ),
    "off": ("cancelled", "canceled", "called off", "skipped", "dropped", "abandoned", "deleted"),
}
_STATES: Mapping[str, State] = {
    word.replace(" ", ""): state for state, words in _WORDS.items() for word in words
}
_STATE_KEYS = ("status", "state")
# Names of an item's text, the most telling first.
_TEXT_KEYS = ("content", "step", "title", "subject", "task", "text", "name", "description")
_ID_KEYS = ("id", "taskId", "task_id", "todo_id", "todoId", "item_id")
_MARKS: Mapping[str, State] = {
    "x": "done",
    "X": "done",
    "☑": "done",
    "☒": "done",
    " ": "open",
    "☐": "open",
    "~": "open",
    "/": "open",
    "-": "off",
}
_BULLET = r"(?:[-*+•]|\d{1,3}[.)]|\#\d{1,4}[.:]?)"
_SAID = r"done|completed|finished|pending|in progress|not started|to do|todo|skipped|called off"
_SAID = rf"{_SAID}|cancell?ed|dropped"
_CHECK = re.compile(
    rf"\+?(?:{_BULLET}[ \t]+)?(?P<item>\[(?P<mark>[ xX~/-]|[a-z][a-z _-]{{3,12}})\][ \t]+"
    r"(?P<text>\S.{2,400}))"
)
_BOX = re.compile(rf"(?:{_BULLET}[ \t]+)?(?P<item>(?P<mark>[☑☒☐])[ \t]+(?P<text>\S.{{2,400}}))")
_TRAILING = re.compile(
    rf"(?:{_BULLET}[ \t]+)?(?P<item>(?P<text>\S.{{3,300}}?)[ \t]*"
    rf"(?:[-–—][ \t]+|\()[*_]{{0,3}}(?P<word>{_SAID})[*_]{{0,3}}\)?[.!]?)",
    re.IGNORECASE,
)
_BULLETED = re.compile(rf"\+?{_BULLET}[ \t]+\S|[☑☒☐][ \t]")
_TOLD = re.compile(
    r"[*_#> ]{0,6}(?P<word>Done|Completed|Finished|Called off|Cancelled|Canceled|Skipped|Dropped)"
    r"[*_]{0,2}:[*_]{0,2}[ \t]+(?P<text>\S.{3,300})"
)
_CREATED = re.compile(
    r"(?P<item>(?:Task|Todo|Item) #?(?P<id>\w{1,36}) (?:was )?(?:created|added)[^:\n]{0,30}:"
    r"[ \t]+(?P<text>\S.{2,300}))",
    re.IGNORECASE,
)
_CHANGED = re.compile(r"(?:Updated|Changed) (?:task|todo|item) #?(?P<id>\w{1,36})\b", re.IGNORECASE)
# A text without any of these has no item: most texts are read no further.
_HINT = re.compile(
    r"stat(?:us|e)\b|\[(?:[ xX~/-]|[a-z][a-z _-]{3,12})\][ \t]|[☐☑☒]|"
    rf"(?:[-–—][ \t]{{1,3}}|\()[*_]{{0,3}}(?:{_SAID})|"
    r"(?:Done|Completed|Finished|Called off|Cancell?ed|Skipped|Dropped)[*_]{0,2}:|"
    r"\A(?:Task|Todo|Item|Updated|Changed)\b",
    re.IGNORECASE,
)
_LINE = re.compile(r"(User|Assistant|Tool [^:\n]{1,80}): (.+)")
_RECORD = re.compile(
    rf"(?:#(?P<id>\w{{1,36}}) {ELLIPSIS} )?(?P<word>[A-Za-z][\w -]{{2,14}}) {ELLIPSIS} (?P<text>.+)"
)
_MOST_DONE = 20
"""Most items that are told as done, the newest."""
_LONGEST = 200
"""Most characters of an item in a line."""
_DEEPEST = 6
"""Levels of JSON in which a list is looked for."""


@dataclass(frozen=True, slots=True)
class _Item:
    """One item, in its last state."""

    text: str
    state: State
    line: str
    """What is told of it, word for word."""
    speaker: str
    tool: str = ""
    """Tool that keeps it, which writes its whole list again; empty for a line of text."""
    id: str = ""
    time: int = 0
    """When it was read: a number that grows."""
    is_in_view: bool = False
    """Whether the model reads its last state in a message that stays."""


def split_off(text: str) -> tuple[str, list[str]]:
    """Return an earlier summary's text without this chapter, and the chapter's lines."""
    before, heading, chapter = f"\n{text}".partition(f"\n{HEADING}\n")
    if not heading:
        return text, []
    block, _, after = chapter.partition("\n\n")
    return f"{before.strip()}\n\n{after}".strip(), block.splitlines()


class WorkList:
    """The items of all lists in some parts. Linear in their text."""

    def __init__(
        self, parts: Sequence[Part], earlier: Sequence[str] = (), stays: Sequence[Part] = ()
    ) -> None:
        """Read the lists of ``parts``, of ``earlier`` lines of this chapter, and of the messages
        that stay, which are read beside the summary.
        """
        self._items: dict[str, _Item] = {}
        self._ids: dict[str, str] = {}
        # Items that a text names twice: which one a later line means cannot be told.
        self._unclear: set[str] = set()
        # What the agent said to be done or called off, each with the time: a number that grows.
        self._told: list[tuple[int, str]] = []
        self._time = 0
        self._in_view = False
        for line in earlier:
            self._read_earlier(line)
        self._lists = self._read(parts)
        self._in_view = True
        self._read(stays)

    def __bool__(self) -> bool:
        return bool(self._items)

    # -- what is told ------------------------------------------------------------------------------

    def lines(self, room: int) -> list[str]:
        """Return the chapter's lines in at most ``room`` characters, heading included: what is done
        first, then what was called off, then what is open. If not all fit, the oldest that are done
        are left out first.
        """
        by_state: dict[State, list[str]] = {"done": [], "off": [], "open": []}
        for item in self._items.values():
            if not item.is_in_view:
                by_state[item.state].append(f"{item.speaker}: {item.line}")
        left = room - len(HEADING) - 3
        kept = set[str]()
        newest = by_state["done"][: -_MOST_DONE - 1 : -1]
        for lines in (by_state["open"], by_state["off"], newest):
            for line in lines:
                if len(line) + 1 <= left:
                    left -= len(line) + 1
                    kept.add(line)
        return [line for lines in by_state.values() for line in lines if line in kept]

    def without_lists(self, parts: Sequence[Part]) -> list[Part]:
        """Return the parts that were read, without the texts of calls that only keep a list."""
        return [
            replace(part, text="") if place in self._lists else part
            for place, part in enumerate(parts)
        ]

    def is_outdated(self, sentence: str) -> bool:
        """Return whether a line tells an item in a state that it is no longer in."""
        found = _read_line(sentence)
        if found is None:
            return False
        item = self._items.get(_key(found[1]))
        return item is not None and item.state != found[0]

    def closed(self) -> list[str]:
        """Return the items that are done or were called off, as their lists and the agent say."""
        items = [item.text for item in self._items.values() if item.state != "open"]
        return [*items, *(text for _, text in self._told)]

    def open(self) -> list[str]:
        """Return the items that are open."""
        return [item.text for item in self._items.values() if item.state == "open"]

    # -- reading -----------------------------------------------------------------------------------

    def _read(self, parts: Sequence[Part]) -> set[int]:
        """Read the lists of these parts, and return the places of the calls that only keep one, and
        of their results.
        """
        lists = set[int]()
        hinting = [_HINT.search(part.text) is not None for part in parts]
        if not any(hinting):
            return lists
        # Whether each call without a result yet keeps a list, by its id.
        waiting: dict[str | None, deque[bool]] = defaultdict(deque)
        for place, (name, part) in enumerate(named(parts)):
            if part.kind == "call":
                is_list = hinting[place] and self._read_call(name or "call", part.text)
                waiting[part.call_id].append(is_list)
                if is_list:
                    lists.add(place)
            elif part.kind == "result":
                is_known = bool(waiting[part.call_id]) and waiting[part.call_id].popleft()
                if is_known:
                    lists.add(place)
                if hinting[place]:
                    self._read_result(name, part.text, is_known=is_known)
            elif hinting[place] and part.kind == "text" and part.role in ("user", "assistant"):
                self._read_text(part.text, part.role.capitalize(), is_new=True)
        self._close_what_was_told()
        return lists

    def _read_call(self, tool: str, text: str) -> bool:
        """Read the arguments of a call, and return whether they are a list."""
        data = parse(text)
        if data is None:
            self._read_text(text, f"Tool {tool}", is_new=True)
            return False
        texts = list[str]()
        lists = [records for records in _find_lists(data, texts) if self._are_items(records)]
        for one in texts:
            self._read_text(one, f"Tool {tool}", is_new=True)
        if lists:
            if not (isinstance(data, dict) and data.get("merge") is True):
                self._drop_open_of(tool)
            for record in chain.from_iterable(lists):
                self._read_record(tool, record)
        elif isinstance(data, dict) and self._is_update(data):
            self._read_record(tool, data)
        else:
            return False
        return True

    def _are_items(self, records: Sequence[Mapping[str, Any]]) -> bool:
        """Return whether these records are items of a list: each has a state, and a text or the id
        of an item.
        """
        return all(
            _state_of(record) is not None and (_text_of(record) or _id_of(record) in self._ids)
            for record in records
        )

    def _is_update(self, data: Mapping[str, Any]) -> bool:
        """Return whether the arguments of a call change the state of one known item."""
        return _state_of(data) is not None and _id_of(data) in self._ids

    def _drop_open_of(self, tool: str) -> None:
        """Drop the open items of a list that is written again."""
        for key, item in list(self._items.items()):
            if item.tool == tool and item.state == "open":
                del self._items[key]

    def _read_record(self, tool: str, record: Mapping[str, Any]) -> None:
        state, word = _state_of(record) or ("open", "")
        number = _id_of(record)
        text = _text_of(record)
        known = self._items.get(self._ids.get(number, ""))
        if known is not None and (not text or known.text == text):
            text = known.text
        elif number and not text:
            return
        # A number that only another call has explained stays with the item.
        shown = f"#{number} {ELLIPSIS} " if known is not None and not _text_of(record) else ""
        line = f"{shown}{word} {ELLIPSIS} {clip(flat(text), _LONGEST)}"
        self._keep(_Item(text, state, line, f"Tool {tool}", tool, number))

    def _read_result(self, tool: str, text: str, *, is_known: bool) -> None:
        """Read a result; where the change that it tells ``is_known``, its call said it."""
        changed = _CHANGED.match(text)
        if changed and not is_known:
            # To what, nobody says: it may be done.
            self._items.pop(self._ids.get(changed["id"], ""), None)
            return
        created = _CREATED.match(text)
        if created:
            line = flat(created["item"])
            item = _Item(created["text"], "open", line, f"Tool {tool}".strip(), "", created["id"])
            self._keep(item)
            return
        # A file that is read may hold anybody's checklist: it only tells the state of known items.
        self._read_text(text, f"Tool {tool}".strip(), is_new=False)

    def _read_text(self, text: str, speaker: str, *, is_new: bool) -> None:
        """Read the lines of a text; where it ``is_new``, they may be items that are not known."""
        items: dict[str, _Item] = {}
        twice = set[str]()
        for raw in text.splitlines():
            line = raw.strip()
            found = _read_line(line) if _BULLETED.match(line) else None
            if found is None:
                self._read_told(line, speaker)
                continue
            state, words, verbatim = found
            key = _key(words)
            if key in items:
                twice.add(key)
            items[key] = _Item(words, state, clip(verbatim, _LONGEST), speaker)
        for key in twice:
            self._unclear.add(key)
            self._items.pop(key, None)
        for key, item in items.items():
            if is_new or key in self._items:
                self._keep(item)

    def _read_told(self, line: str, speaker: str) -> None:
        """Read a line of the assistant that says what is done."""
        told = _TOLD.match(line) if speaker == "Assistant" else None
        if told:
            self._time += 1
            self._told.append((self._time, told["text"]))

    def _read_earlier(self, line: str) -> None:
        """Read a line of this chapter of an earlier summary."""
        said = _LINE.fullmatch(line.strip())
        if said is None:
            return
        speaker, rest = said.groups()
        tool = speaker.removeprefix("Tool ") if speaker.startswith("Tool ") else ""
        created = _CREATED.fullmatch(rest)
        record = _RECORD.fullmatch(rest)
        found = _read_line(rest)
        if created:
            self._keep(_Item(created["text"], "open", rest, speaker, "", created["id"]))
        elif record and (state := _STATES.get(_plain(record["word"]))):
            self._keep(_Item(record["text"], state, rest, speaker, tool, record["id"] or ""))
        elif found:
            self._keep(_Item(found[1], found[0], rest, speaker))

    def _keep(self, item: _Item) -> None:
        """Keep the newest state of an item."""
        key = _key(item.text)
        if not key or key in self._unclear:
            return
        self._time += 1
        self._items.pop(key, None)
        self._items[key] = replace(item, is_in_view=self._in_view, time=self._time)
        if item.id:
            self._ids[item.id] = key

    def _close_what_was_told(self) -> None:
        """Drop the open items of which the agent has said since that they are done or called off:
        its own words tell it.
        """
        newest = self._told[::-1]
        told = Items(text for _, text in newest)
        times = {text: time for time, text in self._told}
        for key, item in list(self._items.items()):
            said = told.like(item.text) if newest and item.state == "open" else ""
            if said and times[said] > item.time:
                del self._items[key]


def _find_lists(
    data: Mapping[str, Any] | list[Any], texts: list[str]
) -> Iterator[list[dict[str, Any]]]:
    """Yield the lists of records inside JSON, and add the texts inside it to ``texts``, in order.
    JSON inside a text is read too.
    """
    waiting: list[tuple[Any, int]] = [(data, 0)]
    while waiting:
        item, depth = waiting.pop()
        if isinstance(item, str):
            inner = parse(item)
            if inner is None:
                texts.append(item)
                continue
            item = inner
        if depth >= _DEEPEST:
            continue
        if isinstance(item, dict):
            waiting.extend((member, depth + 1) for member in reversed(item.values()))
        elif isinstance(item, list):
            if item and all(isinstance(member, dict) for member in item):
                yield item
            waiting.extend((member, depth + 1) for member in reversed(item))


def _read_line(line: str) -> tuple[State, str, str] | None:
    """Return state, text and wording of an item in a line of a list; ``None`` if it is none."""
    check = _CHECK.fullmatch(line) or _BOX.fullmatch(line)
    if check:
        mark = check["mark"]
        state = _MARKS.get(mark) or _STATES.get(_plain(mark))
        return (state, check["text"], check["item"]) if state else None
    trailing = _TRAILING.fullmatch(line)
    if trailing:
        return _STATES[_plain(trailing["word"])], trailing["text"], trailing["item"]
    return None


def _state_of(record: Mapping[str, Any]) -> tuple[State, str] | None:
    """Return the state of a record, and the word for it."""
    for key in _STATE_KEYS:
        word = record.get(key)
        if isinstance(word, str) and (state := _STATES.get(_plain(word))):
            return state, word
    return None


def _text_of(record: Mapping[str, Any]) -> str:
    for key in _TEXT_KEYS:
        text = record.get(key)
        if isinstance(text, str) and text.strip():
            return text.strip()
    return ""


def _id_of(record: Mapping[str, Any]) -> str:
    for key in _ID_KEYS:
        number = record.get(key)
        if isinstance(number, (str, int)):
            return str(number).lstrip("#")
    return ""


def _plain(word: str) -> str:
    """Return the word for a state without case and marks: ``In-Progress`` is ``inprogress``."""
    return re.sub(r"[\W_]", "", word.casefold())


def _key(text: str) -> str:
    """Return what two wordings of one item have in common."""
    return " ".join(re.findall(r"\w+", text.casefold()))[:_LONGEST]
