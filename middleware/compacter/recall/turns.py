"""Recall: the index of what was compacted, and the quotes for each turn and each step."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import compress
from typing import TYPE_CHECKING, Protocol

from cachetools import LRUCache

from compacter.locks import Lock
from compacter.messages.format import Message
from compacter.messages.parts import Kind, Part
from compacter.recall.frame import STEP_NOTE, Quotation, folded, is_genuine
from compacter.recall.index import MAX_BYTES, Index, Redact
from compacter.recall.passages import Quotes
from compacter.recall.question import question
from compacter.recall.quotes import Quoter
from compacter.recall.weight import tokens

if TYPE_CHECKING:
    from concurrent.futures import Future

    from compacter.effects import Quote

# Turns whose quotes are kept, so that each step of a turn is sent the same ones.
_MOST_TURNS = 1_000
# Size limit of all indexes, and so of one: one that is larger could not be kept, and would be made
# again for each call.
_MOST_BYTES = MAX_BYTES
# Characters of a step's text that are read, and lines of its results: the last ones, where a result
# says what it comes to.
_LONGEST_STEP = 2_000
_LAST_LINES = 3
# Source of an index: the id of a record, and the number of an archive's index.
_Source = tuple[str, int | None]
_Views = Sequence[tuple[Sequence[Message], str]]


class Embedded(Protocol):
    """Comparison by meaning; `call/embedding.py` has it, as it calls the user's embedder."""

    def near(self, index: Index, questions: Sequence[str]) -> Mapping[str, Mapping[int, float]]:
        """Return how close the passages of an index are to sentences."""
        ...

    def add(self, passages: Sequence[str]) -> Future[None] | None:
        """Begin to embed passages in the background."""


class Recall:
    """State of recall for one Compacter. Thread-safe.

    An index belongs to one record, and so to the compacted messages of one conversation and scope.
    A missing index, after a restart for instance, is built again from the caller's messages. Two
    calls may continue the same record in two ways: each has an index of its own then. ``redact`` is
    applied to all texts; ``embeddings`` compare by meaning.
    """

    def __init__(
        self,
        recall: Quotes | None,
        redact: Redact | None,
        embeddings: Embedded | None = None,
    ) -> None:
        self._embeddings = embeddings
        self._recall = recall
        self._redact = redact
        self._lock = Lock()
        self._indexes: LRUCache[_Source, Index] = LRUCache(
            _MOST_BYTES, getsizeof=lambda index: index.bytes
        )
        self._turns: LRUCache[Hashable, Quotation | None] = LRUCache(_MOST_TURNS)

    def quotation(self, asked: Quote, views: _Views) -> Quotation | None:
        """Return the quotes for the newest user message, and those for a later step of its turn;
        ``None`` if there are none of either.

        The former are the same at every step of the turn, if they fit. ``views`` are those that
        this call has read from memory or made, oldest first, each with the id of its record. Each
        is a further compaction of the one before it. Raises the exceptions of ``rank`` and
        ``redact``.
        """
        recall = self._recall
        if recall is None:
            return None
        turn = self._for_turn(recall, asked, views)
        left = asked.room - len(turn.text if turn else "")
        step = self._for_step(asked, views, left) if recall.steps else None
        made = [each for each in (turn, step) if each]
        passages = tuple(passage for each in made for passage in each.passages)
        return Quotation("\n".join(each.text for each in made), passages) if made else None

    def _for_step(self, asked: Quote, views: _Views, room: int) -> Quotation | None:
        """Return the lines that have what the newest step names; ``None`` if it is no step of
        calls.
        """
        conversation = asked.conversation
        texts = _texts_of_step(asked)
        if not texts:
            return None
        index = self._index_of_compacted(asked, *_source(asked, views))
        # With what the user says in view: a newer word of his outweighs older ones.
        places = {id(message): place for place, message in enumerate(asked.original)}
        said = [
            replace(part, index=places[id(read.message)])
            for read in conversation.parts_of_each(conversation.messages)
            for part in read.readable
            if part.role == "user" and id(read.message) in places
        ]
        index = index.extend(said, self._redact)
        quoter = Quoter(index, room, asked.tokens_of_one, "\n".join(conversation.texts()))
        quoter.remind(texts)
        return quoter.quotation(STEP_NOTE)

    def _for_turn(self, recall: Quotes, asked: Quote, views: _Views) -> Quotation | None:
        conversation = asked.conversation
        at = conversation.last_user
        if at is None or not (asked.sent or at == len(conversation.messages) - 1):
            return None
        source, earlier = _source(asked, views)
        asking = conversation.parts(at)
        original = asked.original
        message = conversation.messages[at]
        position = len(original) - len(conversation.messages) + at
        is_there = position >= 0 and original[position] is message
        if not is_there and any(each is message for each in original):
            # Steps of this turn were compacted too. They have used what the question asked for, and
            # quotes in a message so far back would change all that a prompt cache holds.
            return None
        said = "\n".join(part.text for part in asking).encode("utf-8", "surrogatepass")
        # The position of its user message, and a digest of its text, identify a turn. Without a
        # record it is unknown which messages were compacted, unless these are the caller's own.
        key = source, position, blake2b(said, digest_size=16).digest()
        is_kept = is_there and asked.sent
        is_kept &= bool(source[0]) or _same(conversation.messages, original)
        with self._lock:
            if is_kept and key in self._turns:
                granted = self._turns[key]
                text = granted.text if granted else ""
                if max(len(text), tokens(text) / asked.tokens_of_one) > asked.room:
                    # The turn has grown. Others would change what a prompt cache holds once more.
                    granted = self._turns[key] = None
                return granted
        view = _said_in(asked, at)
        wanted = question(asking, view)
        near = None
        index = self._index_of_compacted(asked, source, earlier)
        if self._embeddings is not None:
            sentences = [one.text for one in wanted.sentences if one.asks and one.text]
            near = self._embeddings.near(index, list(dict.fromkeys(sentences)))
        quoter = Quoter(index, asked.room, asked.tokens_of_one, "\n".join(conversation.texts()))
        if recall.steps and any(entry.kind != "text" for entry in index.entries):
            # In an agent's history an order names what it is about, and the lines around those that
            # have the names tell little. In a chat a rare noun is nothing to look up.
            quoter.remind([one.text for one in wanted.sentences])
        quoter.answer(wanted, view, rank=recall.rank, near=near)
        made = quoter.quotation()
        if is_kept:
            with self._lock:
                self._turns[key] = made
        return made

    def embed_compacted(self, asked: Quote, views: _Views) -> None:
        """Begin to embed the compacted messages of a view in the background, if there is an
        embedder: some of them have vectors when the first question comes.

        Raises the exceptions of ``quotation``.
        """
        if self._embeddings is not None:
            index = self._index_of_compacted(asked, *_source(asked, views))
            self._embeddings.add(index.passages())

    def _index_of_compacted(self, asked: Quote, source: _Source, earlier: _Views) -> Index:
        """Return the index of all compacted messages; if an earlier view has one, that with the new
        ones.
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
            index = index.extend(parts, self._redact)
        if record:
            with self._lock:
                self._indexes[source] = index
        return index


def _texts_of_step(asked: Quote) -> list[str]:
    """Return what the newest step says: the assistant's text, the arguments of its calls, and the
    last lines of their results. Empty if the last message has no results: then none may follow.
    """
    conversation = asked.conversation
    last = len(conversation.messages) - 1
    if conversation.kinds[last] is not Kind.RESULT:
        return []
    first = conversation.steps[-2]
    if first and conversation.kinds[first - 1] is Kind.ASSISTANT:
        first -= 1  # Some formats have a text and its calls in two messages.
    reads = conversation.parts_of_each(conversation.messages[first:])
    parts = [part for read in reads for part in read.readable]
    texts = [(part.role, part.text[-_LONGEST_STEP:]) for part in parts]
    return [
        "\n".join(text.splitlines()[-_LAST_LINES:]) if role == "tool" else text
        for role, text in texts
    ]


def _said_in(asked: Quote, turn: int) -> list[Part]:
    """Return the verbatim messages before the turn, without summary and quotes."""
    conversation = asked.conversation
    messages = conversation.messages[conversation.start : turn]
    genuine = compress(
        conversation.parts_of_each(messages), is_genuine(messages, conversation.format)
    )
    return [part for read in genuine for part in read.readable]


def _source(asked: Quote, views: _Views) -> tuple[_Source, _Views]:
    """Return the source of the index for a request, and the views that came before its own."""
    messages = asked.conversation.messages
    at = next((at for at, (view, _) in enumerate(views) if _same(view, messages)), None)
    record, earlier = ("", ()) if at is None else (views[at][1], views[:at])
    return (record, asked.archive.index().number if asked.archive else None), earlier


def _same(some: Sequence[Message], others: Sequence[Message]) -> bool:
    return list(map(id, some)) == list(map(id, others))
