"""State of recall between calls: indexes of folded messages and of those in view, and the quotes of each turn."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from operator import is_

from cachetools import LRUCache

from compacter.effects import Quote
from compacter.locks import ForkAware, Lock
from compacter.messages.format import Message
from compacter.recall.index import MAX_BYTES, Index, Redact
from compacter.recall.passages import Quotes, read
from compacter.recall.quotes import Quotation, folded, question, quote, said

_MOST_TURNS = 1_000
_Source = tuple[str, object]
"""Source of an index: the id of a record, and the version of an archive's index."""
_Views = Sequence[tuple[Sequence[Message], str]]

_inherited: list[object] = []
"""Indexes of the parent process, which a forked child neither uses nor frees."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """Messages of a view before its last turn, and the index of their texts."""

    messages: tuple[Message, ...]
    index: Index


class Recall(ForkAware):
    """State of recall for one Compacter. Thread-safe; empty in a forked child.

    An index belongs to one record, and so to the folded messages of one conversation and scope. A missing index, after
    a restart for instance, is built again from the caller's messages. A cached index is never changed but copied and
    extended, as two calls may continue the same record in two ways. ``redact`` is applied to all texts.
    """

    def __init__(self, recall: Quotes | None, redact: Redact | None) -> None:
        super().__init__()
        self._recall, self._redact = recall, redact
        self._lock = Lock()
        self._begin()

    def after_fork_in_child(self) -> None:
        """Begin with empty caches. The parent's connections to SQLite are kept, as a child must not close them."""
        _inherited.append((self._indexes, self._seen))
        self._begin()

    def _begin(self) -> None:
        half = MAX_BYTES // 2
        self._indexes: LRUCache[_Source, Index] = LRUCache(half, getsizeof=lambda index: index.bytes)
        self._seen: LRUCache[_Source, _Seen] = LRUCache(half, getsizeof=lambda seen: seen.index.bytes)
        self._turns: LRUCache[Hashable, Quotation | None] = LRUCache(_MOST_TURNS)

    def quotation(self, asked: Quote, views: _Views) -> Quotation | None:
        """Return the quotes for the newest user message, or ``None``; the same at every step of its turn, if they fit.

        ``views`` are those that this call has read from memory or made, oldest first, each with the id of its record.
        Each is a further compaction of the one before it. Raises ``SearchUnavailableError`` if SQLite has no FTS5, and
        the exceptions of ``rank`` and ``redact``.
        """
        conversation, room, recall = asked.conversation, asked.room, self._recall
        at = conversation.last_user
        if recall is None or at is None:
            return None
        known = [place for place, (view, _) in enumerate(views) if _same(view, conversation.messages)]
        record, earlier = (views[known[0]][1], views[: known[0]]) if known else ("", ())
        source = record, asked.archive.index().version if asked.archive else None
        asking = tuple(conversation.format.parts(conversation.messages[at], at))
        original, message = asked.original, conversation.messages[at]
        position = next((place for place in reversed(range(len(original))) if original[place] is message), None)
        text = "\n".join(part.text for part in asking).encode("utf-8", "surrogatepass")
        key = None
        # Without a record it is unknown which messages were folded, unless these are the caller's own.
        if position is not None and (record or _same(conversation.messages, original)):
            # The position of its user message, and a digest of its text, identify a turn.
            key = source, position, blake2b(text, digest_size=16).digest()
        with self._lock:
            if key in self._turns:
                granted = self._turns[key]
                if granted is None or len(granted.text) <= room:
                    return granted
                room //= 2  # The turn has grown: smaller quotes, which will fit for some more steps.
            if key is not None:
                self._turns[key] = None
        view = self._in_view(asked, source, at)
        index = self._folded(asked, source, earlier)
        made = quote(index, question(asking, view.entries), view, room, rank=recall.rank)
        if key is not None:
            with self._lock:
                self._turns[key] = made
        return made

    def _folded(self, asked: Quote, source: _Source, earlier: _Views) -> Index:
        """Return the index of all folded messages; if an earlier view has one, a copy extended by the new ones."""
        (record, version), original, conversation = source, asked.original, asked.conversation
        with self._lock:
            if record and source in self._indexes:
                return self._indexes[source]
            known = [(self._indexes[at], view) for view, name in earlier if (at := (name, version)) in self._indexes]
        index, since = known[-1] if known else (asked.archive.index() if asked.archive else None, None)
        parts = folded(original, conversation.messages, conversation.format, since)
        if index is None:
            index = Index(parts, redact=self._redact)
        elif parts:
            index = index.extended(parts)
        if record:
            with self._lock:
                self._indexes[source] = index
        return index

    def _in_view(self, asked: Quote, source: _Source, turn: int) -> Index:
        """Return the index of the verbatim messages before the turn. Only those since the last turn are read."""
        conversation = asked.conversation
        messages = conversation.messages[conversation.start : turn]
        with self._lock:
            seen = self._seen.get(source)
        if seen is None or seen.messages != messages[: len(seen.messages)]:
            seen = _Seen((), Index(redact=self._redact))
        new = messages[len(seen.messages) :]
        parts = read([message for message in new if said(message, conversation.format)], conversation.format)
        if parts:
            seen = _Seen(messages, seen.index.extended(parts))
            if any(source):
                with self._lock:
                    self._seen[source] = seen
        return seen.index


def _same(some: Sequence[Message], others: Sequence[Message]) -> bool:
    return len(some) == len(others) and all(map(is_, some, others))
