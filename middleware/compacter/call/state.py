"""What the calls of one Compacter share: memory, what was learnt of models and conversations, hooks, totals, log."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from cachetools import LRUCache

from compacter.call.log import Log
from compacter.call.request import ConversationState
from compacter.compaction.plan import Calibration
from compacter.effects import Quote
from compacter.events import (
    CompactionEvent,
    CompactionFailed,
    CompactionReused,
    CompactionSkipped,
    Event,
    MaxTokensAdjusted,
    PassagesRecalled,
    RetriesExhausted,
    Totals,
)
from compacter.fork import Lock
from compacter.memory.base import BaseMemory, base_memory
from compacter.memory.match import Matcher
from compacter.memory.single_flight import SingleFlight
from compacter.messages.format import Message
from compacter.models import window
from compacter.options import ASKED, AskedFirst, Options, taken

if TYPE_CHECKING:
    from compacter.call.recall import Recall
    from compacter.recall.quotes import Quotation

T = TypeVar("T")
_MOST_MODELS = 256
_MOST_CONVERSATIONS = 10_000


class State:
    """Made once for each Compacter. Thread-safe."""

    def __init__(self, options: Options) -> None:
        self.name = secrets.token_hex(8)
        """By which a wrapped function or client knows its Compacter: a text, as that may be copied or pickled."""
        self.options = options
        self.log = Log(options)
        self.detect = options.detect
        if isinstance(self.detect, AskedFirst):
            self.detect = replace(self.detect, complain=partial(self.log.failed, "detect"))
        self.summarizer_takes = taken(options.summarizer, ASKED) if callable(options.summarizer) else ()
        """Which of the options that a summarizer is asked with the user's own function takes."""
        self.totals = RunningTotals()
        self.count_call = self.totals.count_call
        memory = options.memory
        self.memory: BaseMemory | None = None if memory is None else base_memory(memory)
        # Several Compacters that share a memory share what is under way too.
        self.flights = SingleFlight() if self.memory is None else self.memory.flights
        self.matcher: Matcher | None = None
        if self.memory is not None:
            self.matcher = Matcher(self.memory, alternate=options.alternate_roles, on_unencodable=self._not_remembered)
        self._recall: Recall | None = None
        self._recall_complained = False
        self.grants: bool | None = None
        """Whether the memory was seen to grant a claim; ``None`` before it was asked for one."""
        self.compaction_hooks: list[Callable[..., object]] = list(options.on_compaction)
        self.event_hooks: list[Callable[..., object]] = list(options.on_event)
        self.proactive = options.trigger_tokens is not None
        self.last_reply: tuple[int, int, int] = (0, 0, 0)
        """Of the last quiet call: input tokens, number of messages, and ``id`` of its last message.

        Calibrates, if the next thing is a token limit. No message is kept alive by it.
        """
        self.scope = options.memory_scope
        """Part of each record's key: what calls have in common that may share a summary."""
        self._conversations: LRUCache[str, ConversationState] = LRUCache(_MOST_CONVERSATIONS)
        self._learnt: LRUCache[str, Calibration] = LRUCache(_MOST_MODELS)
        self._lock = Lock()

    def replaced(self, options: Mapping[str, object]) -> State:
        """The same with other options for one call: memory, totals, hooks and what was learnt are shared."""
        made = State(self.options.replaced(options))
        made.totals, made.count_call = self.totals, self.count_call
        made._lock, made._learnt, made._conversations = self._lock, self._learnt, self._conversations
        if "on_compaction" not in options:
            made.compaction_hooks = self.compaction_hooks
        if "on_event" not in options:
            made.event_hooks = self.event_hooks
        if "logger" not in options:
            made.log = self.log
        if made.options.memory is self.options.memory:
            made.memory, made.flights = self.memory, self.flights
        return made

    # -- what was learnt -----------------------------------------------------------------------------------------------

    def calibration(self, model: str | None) -> Calibration:
        """What was learnt of this model. Looks its window up."""
        with self._lock:
            found = self._learnt.get(model or "")
            if found is None:
                summarizer = self.options.summarizer
                other = window(summarizer) if isinstance(summarizer, str) else None
                found = self._learnt[model or ""] = Calibration(summarizer_window=other)
        if found.window is None:
            found.window = window(model)
        return found

    def conversation(self, digest: str) -> ConversationState:
        """What the trigger knows of this conversation."""
        with self._lock:
            return self._conversations.setdefault(digest, ConversationState())

    # -- recall --------------------------------------------------------------------------------------------------------

    def quotation(self, asked: Quote, views: Sequence[tuple[Sequence[Message], str]]) -> Quotation | None:
        """The quotes that a request brings (see ``Recall``). What fails here is logged once and fails no call."""
        try:
            with self._lock:
                if self._recall is None:
                    from compacter.call.recall import Recall  # SQLite and much else, for what is folded alone.

                    self._recall = Recall(self.options)
            return self._recall.quotation(asked, views)
        except Exception as error:  # noqa: BLE001 - a ranker or a redaction of the user's, or SQLite
            if not self._recall_complained:
                self._recall_complained = True
                self.log.failed("recall", error)
            return None

    # -- telling -------------------------------------------------------------------------------------------------------

    def told(self, event: Event) -> list[Callable[..., object]]:
        """The hooks that are to be told of this event, after totals and log have been."""
        self.safely("totals", lambda: self.totals.add(event))
        self.safely("log", lambda: self.log.event(event))
        if isinstance(event, CompactionEvent):
            return [*self.compaction_hooks, *self.event_hooks]
        return list(self.event_hooks)

    def history_changed(self, event: CompactionEvent | None) -> None:
        """A compaction was not installed, because the ``History`` changed while it was made."""
        skipped = CompactionSkipped(
            trigger=event.trigger if event else "token_limit",
            model=event.model if event else None,
            reason="history_changed",
        )
        for hook in self.told(skipped):
            outcome: Any = self.safely("hook", lambda: hook(skipped))  # noqa: B023 - called at once
            if hasattr(outcome, "close"):  # Nobody can await a coroutine here.
                outcome.close()

    def safely(self, what: str, action: Callable[[], T], otherwise: T | None = None) -> T | None:
        """The result of something that compacter does for itself; where it raises, that is logged and no more."""
        try:
            return action()
        except Exception as error:  # noqa: BLE001 - it must not raise into a call
            self.log.failed(what, error)
            return otherwise

    def _not_remembered(self, reason: str) -> None:
        self.log.write("debug", "compacter.not_remembered", f"not remembered: {reason}", {"reason": reason})


_COUNTED: Mapping[type, str] = {
    CompactionEvent: "rounds",
    CompactionFailed: "failures",
    CompactionReused: "reused",
    PassagesRecalled: "recalled",
    MaxTokensAdjusted: "adjusted",
    RetriesExhausted: "given_up",
}
"""What an event adds one to."""


class RunningTotals:
    """Adds events up. Thread-safe; counting a call costs one atomic step."""

    def __init__(self) -> None:
        self.count_call = count().__next__
        self._looks = 0
        self._totals = Totals()
        self._lock = Lock()

    def add(self, event: Event | None = None, **more: float | None) -> None:
        """Take an event in, or add to the fields of these names; what is not known makes the sum unknown."""
        if type(event) in _COUNTED:
            more = {_COUNTED[type(event)]: 1}
        if isinstance(event, CompactionEvent):
            more["characters_saved"] = event.original_data_size - event.compacted_data_size
        with self._lock:
            sums: dict[str, Any] = {}
            for name, n in more.items():
                known = getattr(self._totals, name)
                sums[name] = None if n is None or known is None else known + n
            self._totals = replace(self._totals, **sums)

    def snapshot(self) -> Totals:
        """The totals now."""
        with self._lock:
            # Looking at the counter is a step of its own.
            calls = self.count_call() - self._looks
            self._looks += 1
            return replace(self._totals, calls=calls)
