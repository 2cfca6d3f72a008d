"""What recall keeps between calls: the indexes of what was folded, and what each turn was granted."""

from __future__ import annotations

from collections.abc import Hashable
from hashlib import blake2b
from operator import is_

from cachetools import LRUCache

from compacter.effects import Quote
from compacter.fork import ForkAware, Lock
from compacter.options import Options
from compacter.recall.index import MAX_BYTES, Index, SearchUnavailableError
from compacter.recall.passages import read
from compacter.recall.quotes import Quotation, folded, question, quote, said

_MOST_TURNS = 1_000
_Source = tuple[str, object]
"""What an index is of: the id of a record, the version of an archive's index."""


_inherited: list[object] = []
"""What a child has of its parent and neither uses nor frees."""


class Recall(ForkAware):
    """Made once for each Compacter. Thread-safe; a forked child begins with nothing.

    An index belongs to one record, which names what was folded, of which conversation and in which scope. Where it is
    not at hand, after a restart say, it is built again from the caller's messages.
    """

    def __init__(self, options: Options) -> None:
        super().__init__()
        self._options = options
        self._lock = Lock()
        self._available = True
        self._begin()

    def after_fork_in_child(self) -> None:
        """Begin anew. The parent's connections to SQLite are left alone: closing one is using it."""
        _inherited.append(self._indexes)
        self._begin()

    def _begin(self) -> None:
        self._indexes: LRUCache[Hashable, tuple[Index, int]] = LRUCache(MAX_BYTES, getsizeof=lambda held: held[1])
        self._turns: LRUCache[Hashable, Quotation | None] = LRUCache(_MOST_TURNS)

    def quotation(self, asked: Quote, record: str) -> Quotation | None:
        """The quotes that the newest user message brings; the same through all the steps of its turn, if they fit.

        ``record`` is the id of the record that what is sent follows from; empty where there is none. Raises
        ``SearchUnavailableError`` once where SQLite lacks FTS5, and what ``rank`` and ``redact`` raise.
        """
        if not self._available:
            return None
        try:
            return self._remembered(asked, record)
        except SearchUnavailableError:
            self._available = False
            raise

    def _remembered(self, asked: Quote, record: str) -> Quotation | None:
        source = record, asked.archive.index().version if asked.archive else None
        turn, messages, room = _turn(asked), asked.conversation.messages, asked.room
        untouched = len(messages) == len(asked.original) and all(map(is_, messages, asked.original))
        if turn is None or not (record or untouched):  # Nothing says which messages were folded.
            return self._made(asked, source, room)
        key = source, turn
        with self._lock:
            if key in self._turns:
                granted = self._turns[key]
                if granted is None or len(granted.text) <= room:
                    return granted
                room //= 2  # The turn has grown into what it was granted: what it gets now shall last for a while.
            self._turns[key] = None
        made = self._made(asked, source, room)
        with self._lock:
            self._turns[key] = made
        return made

    def _made(self, asked: Quote, source: _Source, room: int) -> Quotation | None:
        conversation, recall = asked.conversation, self._options.recall
        turn = conversation.last_user
        if recall is None or turn is None:
            return None
        index = self._index(asked, source)
        indexes = range(conversation.start, turn + 1)
        verbatim = [at for at in indexes if said(conversation.messages[at], conversation.format)]
        parts = read(conversation.messages, conversation.format, verbatim)
        before = [part for part in parts if part.index < turn]
        return quote(index, question(parts, turn), before, room, rank=recall.rank)

    def _index(self, asked: Quote, source: _Source) -> Index:
        """The index of all that was folded."""
        archive, record = asked.archive, source[0]
        with self._lock:
            if record and source in self._indexes:
                return self._indexes[source][0]
        parts = folded(asked.original, asked.conversation.messages, asked.conversation.format)
        if archive and not parts:
            return archive.index()
        index = Index.restored(archive.index().entries if archive else (), self._options.redaction)
        index.add(parts)
        size = index.bytes
        with self._lock:
            if record and size <= MAX_BYTES:
                self._indexes[source] = index, size
        return index


def _turn(asked: Quote) -> tuple[int, bytes] | None:
    """What names a turn among those of its conversation: where its user message stands, and what it says."""
    conversation, at = asked.conversation, asked.conversation.last_user
    if at is None:
        return None
    message, original = conversation.messages[at], asked.original
    place = next((place for place in range(len(original) - 1, -1, -1) if original[place] is message), None)
    text = "\n".join(part.text for part in conversation.format.parts(conversation.messages[at], at)).encode(
        "utf-8", "surrogatepass"
    )
    return None if place is None else (place, blake2b(text, digest_size=16).digest())
