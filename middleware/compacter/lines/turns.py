"""Recall: the index of what was compacted, and the quotes for each turn and each step."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from cachetools import LRUCache

from compacter.errors import FunctionError, UserFunction
from compacter.lines.asks import is_asking, is_question, question, task
from compacter.lines.frame import STEP_NOTE, Quotation, folded, line_of, newest_call
from compacter.lines.passages import Quotes
from compacter.lines.quotes import MOST_FOR_STEP, Quoter, passage_of, search
from compacter.lines.said import Redact
from compacter.lines.talk import MAX_BYTES, Talk
from compacter.messages.format import Message
from compacter.messages.parts import Kind, Part
from compacter.runtime.io import resolve
from compacter.runtime.locks import Lock

if TYPE_CHECKING:
    from compacter.effects import Quote

# Number of turns whose quotes are kept, so that every step of a turn gets equal quotes.
_MOST_TURNS = 1_000
# Number of conversations whose messages in view are kept in an index.
_MOST_IN_VIEW = 100
# Size limit of all indexes, and so of one: one that is larger could not be kept, and would be made
# again for each call.
_MOST_BYTES = MAX_BYTES
_NOTHING = Quotation("", ())
_Views = Sequence[tuple[Sequence[Message], str]]


class Recall:
    """The compacted messages of one Compacter's conversations, and the quotes from them.
    Thread-safe.

    An index belongs to one record, and so to the compacted messages of one conversation and scope.
    A missing index, after a restart for instance, is built again from the caller's messages. If two
    calls continue one record in different ways, each gets its own index.

    ``views`` are those that a call has read from memory or made, oldest first, each with the id of
    its record. Each is a further compaction of the one before it.

    Args:
        recall: Settings; ``None`` for no quotes.
        redact: Function that is applied to all texts.
        report_failure: Called with the exception if the user's ``search`` fails.
    """

    def __init__(
        self,
        recall: Quotes | None,
        redact: Redact | None,
        report_failure: Callable[[Exception], object],
    ) -> None:
        self._recall = recall
        self._redact = redact
        self._report_failure = report_failure
        self._lock = Lock()
        self._indexes: LRUCache[Hashable, Talk] = LRUCache(
            _MOST_BYTES, getsizeof=lambda index: index.bytes
        )
        self._in_view: LRUCache[int, tuple[Talk, list[Part]]] = LRUCache(_MOST_IN_VIEW)
        self._turns: LRUCache[Hashable, Quotation] = LRUCache(_MOST_TURNS)

    def _add(self, asked: Quote, views: _Views) -> Talk:
        """Add the messages that a request does not have verbatim to the index of its conversation,
        if an earlier view has one; return the index.

        Raises the exceptions of ``redact``.
        """
        talk = asked.conversation
        archive = asked.archive.talk if asked.archive else None
        shown = list(map(id, talk.messages))
        own = [list(map(id, view)) == shown for view, _ in views]
        index = archive or Talk(max_bytes=_MOST_BYTES)
        since: Sequence[Message] | None = None
        name: tuple[str, object] | None = None
        latest: Talk | None = None
        for view, record in views[: own.index(True) + 1] if True in own else ():
            name = record, archive and archive.number
            with self._lock:
                latest = self._indexes.get(name)
            if latest:
                since = view
                index = latest
        if not latest:
            parts = folded(asked.original, talk.messages, talk.format, since, talk.parts_of_each)
            index = index.extend(parts, self._redact) if parts else index
            if name:
                with self._lock:
                    self._indexes[name] = index
        return index

    def quotes(self, asked: Quote, views: _Views) -> Quotation | None:
        """Return the quotes for the newest user message, and those for a later step of its turn;
        for a query, the passages that match it. ``None`` without any.

        Quotes for the message are equal at every step of the turn, if they fit. Raises the
        exceptions of ``redact``.
        """
        recall = self._recall
        if recall is None:
            return None
        index = self._add(asked, views)
        if asked.query:
            passages = tuple(search(index, asked.query))
            text = "".join(map(line_of, passages)).strip()
            return Quotation(text, passages) if passages else None
        turn = self._for_turn(recall, asked, index)
        room = asked.room - (0 if turn.text in asked.standing else len(turn.text))
        step = self._for_step(asked, index, room, turn.text) if recall.steps else _NOTHING
        text = "\n".join(filter(None, (turn.text, step.text)))
        return Quotation(text, turn.passages + step.passages) if text else None

    def _for_step(self, asked: Quote, index: Talk, room: int, quoted: str) -> Quotation:
        """Return the lines with names of the task that the newest step states, if it states one.

        Nothing if the last message has no results: then no quotes may follow.
        """
        conversation = asked.conversation
        if conversation.kinds[-1] is not Kind.RESULT:
            return _NOTHING
        first = newest_call(conversation, thinking=False)
        reads = conversation.parts_of_each(conversation.messages[first:])
        stated = task([part for read in reads for part in read.readable])
        if not stated:
            return _NOTHING
        quoter = self._quoter(asked, index, first, min(room, MOST_FOR_STEP), quoted)
        asks = list(filter(is_question, stated))
        quoter.answer(asks)
        quoter.remind(asks)
        quoter.remind(each for each in stated if each not in asks)
        return quoter.quotation(STEP_NOTE) or _NOTHING

    def _for_turn(self, recall: Quotes, asked: Quote, index: Talk) -> Quotation:
        conversation = asked.conversation
        at = conversation.last_user
        if at is None:
            return _NOTHING
        position = len(asked.original) - len(conversation.messages) + at
        if position < 0 or asked.original[position] is not conversation.messages[at]:
            # Steps of this turn were compacted too. They have used the answer to the question, and
            # quotes in a message so far back would invalidate the whole prompt cache.
            return _NOTHING
        asking = conversation.parts(at)
        said = "\n".join(part.text for part in asking)
        # The index, the position of its user message and its text identify a turn.
        key = index.number, position, said
        with self._lock:
            granted = self._turns.get(key)
            stands = granted is not None and granted.text in asked.standing
            fits = asked.sent and (granted is None or stands or len(granted.text) <= asked.room)
            if not (fits or stands):
                # The turn has grown. Without its quotes the provider reads all of it anew, so the
                # next compaction is made now; until then quotes would only come and go.
                self._turns[key] = _NOTHING
        if granted:
            # What stands already needs no room.
            return granted if fits or not (asked.sent or stands) else _NOTHING
        wanted = question(asking)
        if not (wanted and (asked.sent or at == len(conversation.messages) - 1)):
            return _NOTHING
        made = self._answer(recall, asked, index, at, said, wanted)
        if asked.sent:
            with self._lock:
                self._turns[key] = made
        return made

    def _answer(
        self, recall: Quotes, asked: Quote, index: Talk, at: int, said: str, wanted: Sequence[str]
    ) -> Quotation:
        """Return the quotes for the sentences ``wanted`` of the message ``said`` at an index."""
        asks = list(filter(is_asking, wanted))
        scores = self._scores_of(recall, index, said) if recall.search and asks else None
        if recall.steps and any(entry.kind != "text" for entry in index.parts):
            # In an agent's history an order names its objects, and the lines around those with the
            # names add little. In a chat a rare noun is nothing to look up.
            quoter = self._quoter(asked, index, at, min(asked.room, MOST_FOR_STEP))
            quoter.answer(asks, scores)
            quoter.remind(asks)
            quoter.remind(each for each in wanted if each not in asks)
        else:
            quoter = self._quoter(asked, index, at, asked.room)
            quoter.answer(wanted, scores)
        return quoter.quotation() or _NOTHING

    def _scores_of(self, recall: Quotes, index: Talk, text: str) -> Mapping[int, float]:
        """Return the scores of the compacted runs for a message by the user's function, as shares
        of the best one's, where they are above 0; nothing if it fails.
        """
        passages = [
            passage_of(index, number, range(len(said.lines)), 0.0)
            for number, said in enumerate(index.said)
        ]
        search: Any = UserFunction(
            "search",
            partial(_uncancelled, recall.search),
            partial(_shares, count=len(passages)),
        )
        try:
            scores: Mapping[int, float] = search(text, passages)
        except FunctionError as error:
            self._report_failure(error)
            return {}
        return scores

    def _quoter(self, asked: Quote, index: Talk, stop: int, room: int, quoted: str = "") -> Quoter:
        """Return a quoter for the compacted messages, and for what stands verbatim in view before
        the message at ``stop``.
        """
        talk = asked.conversation
        compacted = len(index.said)
        shown = talk.messages[talk.start : stop]
        view = folded(asked.original, (), talk.format, shown, talk.parts_of_each)
        with self._lock:
            whole, held = self._in_view.get(index.number, (index, []))
        if view[: len(held)] != held:
            whole = index
            held = []
        whole = whole.extend(view[len(held) :], self._redact)
        with self._lock:
            self._in_view[index.number] = whole, view
        return Quoter(
            whole,
            room,
            asked.tokens_of_one,
            request="\n".join((*talk.texts(), asked.standing, quoted)),
            compacted=compacted,
        )


def _uncancelled(search: Callable[..., object] | None, *given: object) -> object:
    """Return the result of a sync or async function. If it is cancelled itself, that is its
    failure, not the call's.
    """
    from asyncio import CancelledError

    try:
        return resolve(search, *given) if search else None
    except CancelledError as error:
        raise RuntimeError("cancelled") from error


def _shares(result: Iterable[float], count: int) -> Mapping[int, float]:
    scores = list(map(float, result))
    if len(scores) != count or not all(map(math.isfinite, scores)):
        raise ValueError
    best = max(scores, default=0.0)
    return {run: score / best for run, score in enumerate(scores) if score > 0}
