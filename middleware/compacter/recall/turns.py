"""What recall keeps from call to call: indexes of the compacted messages and of those in view, and
the quotes of each turn.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import compress
from operator import is_
from typing import TYPE_CHECKING, Protocol

from cachetools import LRUCache

from compacter.locks import ForkAware, Lock
from compacter.messages.format import Message
from compacter.recall.index import MAX_BYTES, Index, Redact
from compacter.recall.passages import Quotes
from compacter.recall.question import question
from compacter.recall.quotes import Quotation, folded, is_genuine, quote
from compacter.recall.weight import tokens

if TYPE_CHECKING:
    from concurrent.futures import Future

    from compacter.effects import Quote

# Turns whose quotes are kept, so that each step of a turn is sent the same ones.
_MOST_TURNS = 1_000
# Size limit of each of the two caches, and so of one index: one that is larger could not be kept,
# and would be made again for each call.
_MOST_BYTES = MAX_BYTES // 2
# Source of an index: the id of a record, and the version of an archive's index.
_Source = tuple[str, object]
_Views = Sequence[tuple[Sequence[Message], str]]


class Embedded(Protocol):
    """Comparison by meaning; `call/embedding.py` has it, as it calls the user's embedder."""

    def near(self, index: Index, questions: Sequence[str]) -> Mapping[str, Mapping[int, float]]:
        """Return how close the passages of an index are to sentences."""
        ...

    def add(self, passages: Sequence[str]) -> Future[None] | None:
        """Begin to embed passages in the background."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """Messages of a view before its last turn, and the index of their texts."""

    messages: tuple[Message, ...]
    index: Index


class Recall(ForkAware):
    """State of recall for one Compacter. Thread-safe; empty in a forked child.

    An index belongs to one record, and so to the compacted messages of one conversation and scope.
    A missing index, after a restart for instance, is built again from the caller's messages. A
    cached index is never changed but copied and extended, as two calls may continue the same record
    in two ways. ``redact`` is applied to all texts; ``embeddings`` compare by meaning.
    """

    def __init__(
        self,
        recall: Quotes | None,
        redact: Redact | None,
        embeddings: Embedded | None = None,
    ) -> None:
        super().__init__()
        self._embeddings = embeddings
        self._recall = recall
        self._redact = redact
        self._lock = Lock()
        self._begin()

    def after_fork_in_child(self) -> None:
        """Begin with empty caches: a child does not use its parent's databases."""
        self._begin()

    def _begin(self) -> None:
        self._indexes: LRUCache[_Source, Index] = LRUCache(
            _MOST_BYTES, getsizeof=lambda index: index.bytes
        )
        self._seen: LRUCache[_Source, _Seen] = LRUCache(
            _MOST_BYTES, getsizeof=lambda seen: seen.index.bytes
        )
        self._turns: LRUCache[Hashable, Quotation | None] = LRUCache(_MOST_TURNS)

    def quotation(self, asked: Quote, views: _Views) -> Quotation | None:
        """Return the quotes for the newest user message, or ``None``; the same at every step of its
        turn, if they fit.

        ``views`` are those that this call has read from memory or made, oldest first, each with the
        id of its record. Each is a further compaction of the one before it. Raises
        ``SearchUnavailableError`` if SQLite has no FTS5, and the exceptions of ``rank`` and
        ``redact``.
        """
        conversation = asked.conversation
        recall = self._recall
        at = conversation.last_user
        if recall is None or at is None:
            return None
        source, earlier = _source(asked, views)
        record = source[0]
        asking = conversation.parts(at)
        original = asked.original
        message = conversation.messages[at]
        position = next(
            (place for place in reversed(range(len(original))) if original[place] is message), None
        )
        text = "\n".join(part.text for part in asking).encode("utf-8", "surrogatepass")
        key = None
        # Without a record it is unknown which messages were compacted, unless these are the
        # caller's own.
        is_own = record or _same(conversation.messages, original)
        if asked.sent and position is not None and is_own:
            # The position of its user message, and a digest of its text, identify a turn.
            key = source, position, blake2b(text, digest_size=16).digest()
        if position is not None and len(original) - position > len(conversation.messages) - at:
            # Steps of this turn were compacted too. They have used what the question asked for, and
            # quotes in a message so far back would change all that a prompt cache holds.
            return None
        with self._lock:
            if key in self._turns:
                granted = self._turns[key]
                if granted is None or _fits(granted.text, asked):
                    return granted
                # The turn has grown. Others would change once more what a prompt cache holds.
                self._turns[key] = None
                return None
            if key is not None:
                self._turns[key] = None
        view = self._in_view(asked, source, at)
        index = self._index_of_compacted(asked, source, earlier)
        wanted = question(asking, view.entries)
        near = None
        if self._embeddings is not None:
            sentences = [one.text for one in wanted.sentences if one.asks and one.text]
            near = self._embeddings.near(index, list(dict.fromkeys(sentences)))
        made = quote(
            index,
            wanted,
            view,
            asked.room,
            near=near,
            rank=recall.rank,
            tokens_of_one=asked.tokens_of_one,
        )
        if key is not None:
            with self._lock:
                self._turns[key] = made
        return made

    def embed_compacted(self, asked: Quote, views: _Views) -> None:
        """Begin to embed the compacted messages of a view in the background, if there is an
        embedder: some of them have vectors when the first question comes.

        Raises the exceptions of ``quotation``.
        """
        if self._embeddings is not None:
            source, earlier = _source(asked, views)
            self._embeddings.add(self._index_of_compacted(asked, source, earlier).passages())

    def _index_of_compacted(self, asked: Quote, source: _Source, earlier: _Views) -> Index:
        """Return the index of all compacted messages; if an earlier view has one, a copy extended
        by the new ones.
        """
        record, version = source
        original = asked.original
        conversation = asked.conversation
        with self._lock:
            if record and source in self._indexes:
                return self._indexes[source]
            known = [
                (self._indexes[at], view)
                for view, name in earlier
                if (at := (name, version)) in self._indexes
            ]
        index, since = (
            known[-1] if known else (asked.archive.index() if asked.archive else None, None)
        )
        parts = folded(
            original, conversation.messages, conversation.format, since, conversation.parts_of_each
        )
        if index is None:
            index = Index(parts, redact=self._redact, max_bytes=_MOST_BYTES)
        elif parts:
            index = index.extend(parts)
        if record:
            with self._lock:
                self._indexes[source] = index
        return index

    def _in_view(self, asked: Quote, source: _Source, turn: int) -> Index:
        """Return the index of the verbatim messages before the turn. Only those since the last turn
        are read.
        """
        conversation = asked.conversation
        messages = conversation.messages[conversation.start : turn]
        with self._lock:
            seen = self._seen.get(source)
        if seen is not None and seen.messages != messages[: len(seen.messages)]:
            seen = None
        new = messages[len(seen.messages) :] if seen else messages
        # Where they stand is of no use here, so their parts are taken as they are.
        genuine = compress(conversation.parts_of_each(new), is_genuine(new, conversation.format))
        parts = [part for read in genuine for part in read.readable]
        if seen and not parts:
            return seen.index
        if seen:
            index = seen.index.extend(parts)
        else:
            index = Index(parts, redact=self._redact, max_bytes=_MOST_BYTES)
        if parts and any(source):
            with self._lock:
                self._seen[source] = _Seen(messages, index)
        return index


def _source(asked: Quote, views: _Views) -> tuple[_Source, _Views]:
    """Return the source of the index for a request, and the views that came before its own."""
    messages = asked.conversation.messages
    at = next((at for at, (view, _) in enumerate(views) if _same(view, messages)), None)
    record, earlier = ("", ()) if at is None else (views[at][1], views[:at])
    return (record, asked.archive.index().version if asked.archive else None), earlier


def _same(some: Sequence[Message], others: Sequence[Message]) -> bool:
    return len(some) == len(others) and all(map(is_, some, others))


def _fits(text: str, asked: Quote) -> bool:
    """Return whether a text is within the room, also if its script is dearer than the request's."""
    return max(len(text), tokens(text) / asked.tokens_of_one) <= asked.room
