"""Strategies without a model: drop the head, clear tool results, or shorten the largest messages.

The second part shortens one long text to its beginning and end, with a receipt of the omitted size between them.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from compacter.compaction.task import CompactionTask
from compacter.errors import ConfigurationError, whole_number
from compacter.messages.format import Message
from compacter.messages.parts import Part
from compacter.summary import message as summary_message
from compacter.summary.message import Summary

_NOTE = re.compile(r"(\d+) earlier messages? left out without a summary\.")


@dataclass(frozen=True, slots=True)
class Truncate:
    """Replaces the head with a note of how many messages were dropped. A prior summary is kept below the note."""

    name: str = "truncate"
    """Name that events carry."""

    def compact(self, task: CompactionTask) -> list[Message]:
        """Return the list of ``task`` without its head."""
        return self.noted(task, task.prior() or Summary())

    @staticmethod
    def noted(task: CompactionTask, summary: Summary) -> list[Message]:
        """Return the list of ``task`` without its head, with ``summary``, the prior one, below the note."""
        dropped = len(task.plan.folded) - (task.plan.prior is not None)
        if not dropped:
            return list(task.messages)
        others: list[str] = []
        for note in summary.notes:
            earlier = _NOTE.fullmatch(note)
            if earlier:
                dropped += int(earlier[1])
            else:
                others.append(note)
        note = f"{dropped} earlier message{'s' if dropped > 1 else ''} left out without a summary."
        return task.fold(replace(summary, notes=(*others, note)))


_RECEIPT = "[tool result cleared to save room: {size:,} characters]"


@dataclass(frozen=True, slots=True, init=False)
class ClearToolResults:
    """Replaces each old, large tool result with a receipt of its size. Tool calls stay paired with their results.

    Results of tools that the provider runs itself are cleared too (code execution, MCP, file search), except what
    Anthropic's web search and web fetch have found: that is encrypted, or cited by place, and must come back unchanged.

    Args:
        keep_recent: Number of the newest result messages to leave unchanged.
        min_size: Smallest size of a large result, in characters.
        exclude: Names of tools whose results are never cleared.

    Raises:
        ConfigurationError: An argument is invalid.
    """

    keep_recent: int
    """Number of the newest result messages to leave unchanged."""
    min_size: int
    """Smallest size of a large result, in characters."""
    exclude: frozenset[str]
    """Names of tools whose results are never cleared."""
    name: str
    """``clear_tool_results``."""
    edits: ClassVar[bool] = True
    """Its results contain changed copies of messages, one for one."""

    def __init__(self, *, keep_recent: int = 3, min_size: int = 400, exclude: Iterable[str] = ()) -> None:
        kept = whole_number("keep_recent", keep_recent, least=0, of="results")
        least = whole_number("min_size", min_size, least=0, of="characters")
        if isinstance(exclude, str):
            raise ConfigurationError(f'exclude takes several tool names, such as ("{exclude}",)')
        given: object = exclude
        names = tuple(given) if isinstance(given, Iterable) else (given,)
        if not all(isinstance(name, str) for name in names):
            raise ConfigurationError(f"exclude takes names of tools, not {exclude!r}")
        object.__setattr__(self, "keep_recent", kept)
        object.__setattr__(self, "min_size", max(least, len(_RECEIPT)))
        object.__setattr__(self, "exclude", frozenset(names))
        object.__setattr__(self, "name", "clear_tool_results")

    def compact(self, task: CompactionTask) -> list[Message]:
        """Return the list of ``task`` with receipts. Messages without a large result are the identical objects."""
        form = task.conversation.format
        names = form.tool_names(task.messages)
        carriers = [
            index
            for index, message in enumerate(task.messages)
            if index in names or _has_result(form.parts(message, index))
        ]
        out = list(task.messages)
        for index in carriers[: max(0, len(carriers) - self.keep_recent)]:
            if not task.protected[index] and self.exclude.isdisjoint(names.get(index, ())):
                out[index] = form.rewrite(out[index], self._receipt)
        return out

    def _receipt(self, kind: str, text: str, name: str) -> str:
        if kind != "result" or len(text) <= self.min_size or name in self.exclude:
            return text
        return _RECEIPT.format(size=_uncut(text))


def _has_result(parts: Sequence[Part]) -> bool:
    return any(part.kind == "result" for part in parts)


@dataclass(frozen=True, slots=True, init=False)
class Shorten:
    """Shortens the largest messages until the request fits. Beginning and end are kept, with a receipt between them.

    System prompts, pinned messages, the last user message and the arguments of tool calls are never changed.

    Args:
        min_size: Smallest size of a shortened message, in characters; at least 100.

    Raises:
        ConfigurationError: ``min_size`` is invalid.
    """

    min_size: int
    """Smallest size of a shortened message, in characters."""
    name: str
    """``shorten``."""
    edits: ClassVar[bool] = True
    """Its results contain changed copies of messages, one for one."""

    def __init__(self, *, min_size: int = 400) -> None:
        whole = whole_number("min_size", min_size, least=100, of="characters")
        object.__setattr__(self, "min_size", whole)
        object.__setattr__(self, "name", "shorten")

    def compact(self, task: CompactionTask) -> list[Message]:
        """Return the list of ``task`` with the largest messages shortened, no more than needed."""
        sizes, form = task.conversation.sizes, task.conversation.format
        goal = task.target if task.target is not None else int(sum(sizes) * 0.5)
        out = list(task.messages)
        stays = [
            protected or (size > self.min_size and summary_message.parse(form.plain_text(message) or "") is not None)
            for message, size, protected in zip(out, sizes, task.protected, strict=True)
        ]
        ceiling = self._ceiling(sizes, stays, goal)
        for index, size in enumerate(sizes):
            if size > ceiling and not stays[index]:
                out[index] = self._shortened(task, out[index], size, ceiling)
        return out

    def _ceiling(self, sizes: Sequence[int], stays: Sequence[bool], goal: int) -> int:
        """Return the largest size of a message with which the total is within ``goal``, by bisection."""
        free = [size for size, whole in zip(sizes, stays, strict=True) if not whole]
        fixed = sum(sizes) - sum(free)
        low, high = self.min_size, max(free, default=self.min_size)
        while low < high:
            middle = (low + high + 1) // 2
            if fixed + sum(min(size, middle) for size in free) <= goal:
                low = middle
            else:
                high = middle - 1
        return low

    @staticmethod
    def _shortened(task: CompactionTask, message: Message, size: int, ceiling: int) -> Message:
        """Return a copy of the message with each text shortened in proportion."""
        form, texts = task.conversation.format, list[int]()

        def measure(kind: str, text: str, name: str) -> str:  # noqa: ARG001 - every edit is called like this
            texts.append(len(text))
            return text

        form.rewrite(message, measure)
        words = sum(texts)
        room = ceiling - (size - words)
        if room <= 0:  # The texts are not what makes it too large.
            return message

        def edit(kind: str, text: str, name: str) -> str:  # noqa: ARG001
            share = max(100, len(text) * room // words)
            short, redact = shorten(text, share), task.options.redaction
            if redact is None or short == text or (clean := redact(text)) == text:
                return short
            # Half of a secret would not be recognised later, in a summary or the memory.
            whole = all(redact(piece) in clean for piece in _CUT.split(short)[::2])
            return short if whole else shorten(clean, share)

        return form.rewrite(message, edit)


# -- one long text -----------------------------------------------------------------------------------------------------

_DATA_URL = re.compile(r"data:[\w.+-]+/[\w.+-]+(?:;[\w=.+-]+)*,[^\s\"'<>()\\]*")
_OPENING = re.compile(r"(?:^|(?<=[\s:=`(>]))[\[{]")
"""A possible beginning of a JSON value inside prose."""
_MOST_ATTEMPTS = 50
_LEFT_OUT = " […{left:,} characters left out…] "
_CUT = re.compile(r" \[…(\d[\d,]{0,14}) characters left out…\] ")
_LEFT_OUT_SIZE = 44
_MORE = re.compile(r"(?:\[…)?(\d{1,12}) more (?:items|entries) left out(?:…\])?")
_JOINER = "\u200d"
_ENCLOSING = ("Mn", "Me", "Mc")
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_FLAGS = range(0x1F1E6, 0x1F200)
_HIGH, _LOW = range(0xD800, 0xDC00), range(0xDC00, 0xE000)
_SHORTEST = 40
_HEAD_SHARE = 0.6
_LEAST_VALUE = 400
"""Smallest JSON value to shorten, in characters; a smaller one is kept or omitted whole."""

Span = tuple[int, int]


def shorten(text: str, size: int) -> str:
    """Return ``text`` in at most ``size`` characters, or slightly more if a JSON structure alone is larger.

    The text is never cut inside a user-perceived character, a data URL or a JSON value. A JSON value that is too large
    stays valid: its long strings are shortened, and its long lists lose their middle.
    """
    if len(text) <= size:
        return text
    whole = _parsed(text)
    if whole is not None:
        short = _json(whole, size)
        if len(short) < len(text):
            return short
    spans = _values(text)
    shorter = _values_shortened(text, spans, size)
    if len(shorter) < len(text):
        if len(shorter) <= size:
            return shorter
        spans = _values(shorter)
    short = _words(shorter, size, spans, _uncut(text))
    return short if len(short) < len(shorter) else shorter


def _uncut(text: str) -> int:
    """Return the size of a text, in characters, with what earlier cuts have left out of it."""
    return len(text) + sum(int(cut[1].replace(",", "")) - len(cut[0]) for cut in _CUT.finditer(text))


def _parsed(text: str) -> dict[str, object] | list[object] | None:
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, (dict, list)) else None


def _values(text: str) -> list[Span]:
    """Return the positions of JSON values in a text: lines of JSON, a value below a heading, or in a code block."""
    decoder, found, start, attempts = json.JSONDecoder(), list[Span](), 0, 0
    while attempts < _MOST_ATTEMPTS and (opening := _OPENING.search(text, start)):
        begin = opening.start()
        try:
            _, end = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            attempts += 1
            end = begin + 1
        else:
            found.append((begin, end))
        start = end
    return found


def _values_shortened(text: str, spans: Sequence[Span], size: int) -> str:
    """Return the text with its large JSON values shortened in proportion to ``size``."""
    large = [span for span in spans if span[1] - span[0] > _LEAST_VALUE]
    if not large:
        return text
    held = sum(end - begin for begin, end in large)
    room = max(size - (len(text) - held), size // 2)
    out, at = list[str](), 0
    for begin, end in large:
        share = max((end - begin) * room // held, _LEAST_VALUE)
        short = text[begin:end] if end - begin <= share else _json(json.loads(text[begin:end]), share)
        out += [text[at:begin], min(short, text[begin:end], key=len)]
        at = end
    return "".join([*out, text[at:]])


def _words(text: str, size: int, whole: Sequence[Span] = (), original_size: int = 0) -> str:
    """Return the beginning and end of the text, and between them how much of the original is missing.

    ``whole`` are the positions of values that are not cut. The ``original_size`` is that of ``text`` by default.
    """
    room = max(size - _LEFT_OUT_SIZE, _SHORTEST)
    head = _boundary(text, int(room * _HEAD_SHARE), -1)
    tail = _boundary(text, len(text) - (room - head), 1)
    for start, end in (*whole, *(match.span() for match in _DATA_URL.finditer(text))):
        if start < head < end:
            head = start
        if start < tail < end:
            tail = end
    before, after = text[:head].rstrip(), text[tail:].lstrip()
    missing = (original_size or _uncut(text)) - _uncut(before) - _uncut(after)
    return before + _LEFT_OUT.format(left=missing) + after


def _json(value: object, size: int) -> str:
    longest, items = size, 400
    short = json.dumps(value, ensure_ascii=False)
    while len(short) > size and items > 1:
        longest, items = max(longest // 2, _SHORTEST), max(items // 2, 1)
        short = json.dumps(_pruned(value, longest, items), ensure_ascii=False)
    return short


def _pruned(value: object, longest: int, items: int) -> object:
    if isinstance(value, str):
        return value if len(value) <= longest + _LEFT_OUT_SIZE else _words(value, longest)
    if isinstance(value, dict):
        kept = list(value.items())
        left = len(kept) - items * 2 + _left_before(value.get("…"))
        pruned = {key: _pruned(inner, longest, items) for key, inner in kept[: items * 2]}
        return {**pruned, "…": f"{left} more entries left out"} if left > 0 else pruned
    if isinstance(value, list) and len(value) > items * 2:
        left = len(value) - items * 2 + sum(map(_left_before, value[items:-items]))
        ends = [_pruned(inner, longest, items) for inner in (*value[:items], *value[-items:])]
        return [*ends[:items], f"[…{left} more items left out…]", *ends[items:]]
    if isinstance(value, list):
        return [_pruned(inner, longest, items) for inner in value]
    return value


def _left_before(item: object) -> int:
    """Return the number of items for which a member of a value stands, beside itself; 0 for any other member."""
    found = _MORE.fullmatch(item) if isinstance(item, str) else None
    return int(found[1]) - 1 if found else 0


def _boundary(text: str, index: int, step: int) -> int:
    """Return the nearest index in the direction of ``step`` where a cut splits no user-perceived character."""
    while 0 < index < len(text) and _joined(text, index):
        index += step
    return index


def _joined(text: str, index: int) -> bool:
    """Return whether the code points on both sides of ``index`` belong to one user-perceived character."""
    before, after = text[index - 1], text[index]
    if after < "\u0300":
        return False
    code = ord(after)
    return (
        unicodedata.category(after) in _ENCLOSING
        or _JOINER in (before, after)
        or code in _SKIN_TONES
        or (code in _LOW and ord(before) in _HIGH)
        or (code in _FLAGS and _flags_before(text, index) % 2 == 1)
    )


def _flags_before(text: str, index: int) -> int:
    count = 0
    while index - count > 0 and ord(text[index - count - 1]) in _FLAGS:
        count += 1
    return count
