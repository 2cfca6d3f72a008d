"""What recall keeps between calls: indexes of what was folded and of what is in view, and what turns were granted."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from operator import is_

from cachetools import LRUCache

from compacter.effects import Quote
from compacter.fork import ForkAware, Lock
from compacter.messages.format import Message
from compacter.options import Options
from compacter.recall.index import MAX_BYTES, Index
from compacter.recall.passages import read
from compacter.recall.quotes import Quotation, folded, question, quote, said

_MOST_TURNS = 1_000
_Source = tuple[str, object]
"""What an index is of: the id of a record, the version of an archive's index."""
_Views = Sequence[tuple[Sequence[Message], str]]

_inherited: list[object] = []
"""What a child has of its parent and neither uses nor frees."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """The messages of a view before its last turn, as they were then, and the index of what they say."""

    messages: tuple[Message, ...]
    index: Index


class Recall(ForkAware):
    """Made once for each Compacter. Thread-safe; a forked child begins with nothing.

    An index belongs to one record, which names what was folded, of which conversation and in which scope. Where it is
    not at hand, after a restart say, it is built again from the caller's messages. No index is changed once it is kept:
    a later one is a copy with more in it, as two calls may go on from the same record in two ways.
    """

    def __init__(self, options: Options) -> None:
        super().__init__()
        self._options = options
        self._lock = Lock()
        self._begin()

    def after_fork_in_child(self) -> None:
        """Begin anew. The parent's connections to SQLite are left alone: closing one is using it."""
        _inherited.append((self._indexes, self._seen))
        self._begin()

    def _begin(self) -> None:
        half = MAX_BYTES // 2
        self._indexes: LRUCache[_Source, Index] = LRUCache(half, getsizeof=lambda index: index.bytes)
        self._seen: LRUCache[_Source, _Seen] = LRUCache(half, getsizeof=lambda seen: seen.index.bytes)
        self._turns: LRUCache[Hashable, Quotation | None] = LRUCache(_MOST_TURNS)

    def quotation(self, asked: Quote, views: _Views) -> Quotation | None:
        """The quotes that the newest user message brings; the same through all the steps of its turn, if they fit.

        ``views`` are those that this call got or made, oldest first, each with the id of its record; each is of the
        same messages and holds less than the one before it. Raises ``SearchUnavailableError`` where SQLite lacks FTS5,
        and what ``rank`` and ``redact`` raise.
        """
        conversation, room, recall = asked.conversation, asked.room, self._options.recall
        at = conversation.last_user
        if recall is None or at is None:
            return None
        known = [place for place, (view, _) in enumerate(views) if _same(view, conversation.messages)]
        record, earlier = (views[known[0]][1], views[: known[0]]) if known else ("", ())
        source = record, asked.archive.index().version if asked.archive else None
        asking = tuple(conversation.format.parts(conversation.messages[at], at))
        original, message = asked.original, conversation.messages[at]
        stands = next((place for place in reversed(range(len(original))) if original[place] is message), None)
        said = "\n".join(part.text for part in asking).encode("utf-8", "surrogatepass")
        key = None
        # Without a record, nothing says which of other messages were folded.
        if stands is not None and (record or _same(conversation.messages, original)):
            # A turn is known by where its user message stands, and what that says.
            key = source, stands, blake2b(said, digest_size=16).digest()
        with self._lock:
            if key in self._turns:
                granted = self._turns[key]
                if granted is None or len(granted.text) <= room:
                    return granted
                room //= 2  # The turn has grown into what it was granted: what it gets now shall last for a while.
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
        """The index of all that was folded; where an earlier view of this call has one, that with what has left it."""
        (record, version), original, conversation = source, asked.original, asked.conversation
        with self._lock:
            if record and source in self._indexes:
                return self._indexes[source]
            known = [(self._indexes[at], view) for view, name in earlier if (at := (name, version)) in self._indexes]
        index, since = known[-1] if known else (asked.archive.index() if asked.archive else None, None)
        parts = folded(original, conversation.messages, conversation.format, since)
        if index is None:
            index = Index(parts, redact=self._options.redaction)
        elif parts:
            index = index.extended(parts)
        if record:
            with self._lock:
                self._indexes[source] = index
        return index

    def _in_view(self, asked: Quote, source: _Source, turn: int) -> Index:
        """The index of what stands verbatim before the turn; only what is new since the turn before it is read."""
        conversation = asked.conversation
        messages = conversation.messages[conversation.start : turn]
        with self._lock:
            seen = self._seen.get(source)
        if seen is None or seen.messages != messages[: len(seen.messages)]:
            seen = _Seen((), Index(redact=self._options.redaction))
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
