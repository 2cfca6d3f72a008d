"""State shared by the calls of one Compacter: memory, calibration, conversations, hooks, totals and
log.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Container, Generator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import count
from math import inf
from typing import TYPE_CHECKING, Any

from cachetools import LRUCache

from compacter.call.ahead import Preparations
from compacter.call.log import Log
from compacter.call.option_names import Form
from compacter.call.request import (
    MOST_CHARACTERS,
    ConversationState,
    Request,
    expected_tokens,
    measure,
)
from compacter.call.warm import load
from compacter.compaction.calibration import Calibration
from compacter.compaction.sizes import FILLING, Sizes
from compacter.events import (
    CompactionEvent,
    CompactionFailed,
    CompactionReused,
    CompactionSkipped,
    Event,
    MaxTokensAdjusted,
    PassagesRecalled,
    RetriesExhausted,
    SealedContentRemoved,
    Totals,
)
from compacter.memory import InProcessMemory
from compacter.memory.match import Matcher
from compacter.memory.protocol import base_memory
from compacter.messages.format import Message
from compacter.messages.refusals import detect_sealed, detect_unsaid
from compacter.messages.replies import is_cached
from compacter.options import Options
from compacter.options.checks import UserDetector
from compacter.overflow import TokenLimit
from compacter.runtime.io import IO, SYNC, in_thread, run
from compacter.runtime.locks import Lock, import_before_fork
from compacter.runtime.models import window
from compacter.runtime.single_flight import SingleFlight

if TYPE_CHECKING:
    from compacter.call.arguments import CallFacts
    from compacter.lines.turns import Recall

# Number of models whose calibration is kept; after this many others, a model is calibrated anew.
_MOST_MODELS = 256
# Number of conversations for which a few numbers are kept; the least recently used are dropped.
_MOST_CONVERSATIONS = 10_000
# Most conversations to compact before their next call. Each call searches this list, also for
# conversations that never call again.
_MOST_LATE = 100
# Share of the size from which a compaction is made ahead. From this share on a conversation is
# followed, as one is made only for a conversation that continues a call before.
_SOON = 0.5
# Most compactions made ahead that are kept if there is no memory.
_MOST_PREPARED = 1_000

import_before_fork(
    *(f"compacter.{room}" for room in ("call", "compaction", "lines", "summary")),
    "compacter.clients.wrapping",
    "compacter.redaction",
    "structlog.stdlib",
)


class GiveUps:
    """Number of this process's calls that were given up after at least one round."""

    count = 0


IN_FORCE: ContextVar[Mapping[str, State] | None] = ContextVar("compacter_in_force", default=None)
"""States of ``Compacter.using`` in this thread or task, by the names of those they replace."""
_GAVE_UP = "_compacter_gave_up"


def mark_given_up(error: Exception) -> None:
    """Mark the exception of a call that is given up, for a Compacter around this one."""
    GiveUps.count += 1
    with suppress(AttributeError, TypeError):  # Some exceptions accept no attributes.
        setattr(error, _GAVE_UP, GiveUps.count)


class State:
    """State shared by the calls of one Compacter. Thread-safe."""

    def __init__(self, options: Options) -> None:
        self.name = secrets.token_hex()
        """Random id; wrappers have it as an attribute, which can be copied and pickled."""
        self.totals = RunningTotals()
        self.count_call = self.totals.count_call
        self.preparations = Preparations()
        self.grants: bool | None = None
        """Whether the memory grants claims; ``None`` until one was requested."""
        self.late: list[ConversationState] = []
        """Conversations whose last stream ended in a token limit after its first content."""
        self.last_reply: tuple[int, int, int, object] | None = None
        """Input tokens of the last quiet call, its number of messages, ``id`` of its last message,
        and its usage, if known.

        Used for calibration at the next token limit. Keeps no message alive.
        """
        self._conversations: LRUCache[str, ConversationState] = LRUCache(_MOST_CONVERSATIONS)
        self._learnt: LRUCache[str, Calibration] = LRUCache(_MOST_MODELS)
        self.forms: dict[str, Form] = {}
        """Forms in which servers take requests for summaries, where they have refused the usual
        one; by model and place."""
        self.tells_no_provider = False
        """Whether an event has said that the wrapped call cannot have the provider compact."""
        # Number of compactions that each conversation is to forget at its next call.
        self._to_forget: LRUCache[str, int] = LRUCache(_MOST_CONVERSATIONS)
        self._lock = Lock()
        self._apply(options, Options.model_fields)

    def replaced(self, options: Mapping[str, object]) -> State:
        """Return a state with other options for one call. It shares everything that these options
        do not change.
        """
        made = copy(self)
        made._apply(self.options.replaced(options), options)  # noqa: SLF001 - of this class
        return made

    def in_force(self, options: Mapping[str, object] | None = None) -> State:
        """Return the state that ``using`` has put in place of this one here, else this one; with
        other options, if there are any.
        """
        state = (IN_FORCE.get() or {}).get(self.name, self)
        return state.replaced(options) if options else state

    @contextmanager
    def using(self, options: Mapping[str, object]) -> Generator[None]:
        """Replace options for the calls that begin in the block, in this thread or task."""
        states = IN_FORCE.get() or {}
        token = IN_FORCE.set({**states, self.name: self.in_force(options)})
        try:
            yield
        finally:
            # A generator may be closed in another context, where nothing was replaced.
            with suppress(ValueError):
                IN_FORCE.reset(token)

    def _apply(self, options: Options, changed: Container[str]) -> None:
        """Apply these options; those named in ``changed`` are new."""
        if "logger" in changed:
            self.log = Log(options)
        detect = options.detect
        if isinstance(detect, UserDetector):
            detect = replace(detect, on_error=partial(self.log.failed, "detect"))
            options = options.model_copy(update={"detect": detect})
        self.options = options
        self.pin = None if options.pin is None else self._is_pinned
        """``pin``; a message for which it fails is pinned."""
        if "memory" in changed:
            self.memory = None if options.memory is None else base_memory(options.memory)
            if self.memory is not None:
                self.memory.write_log = self.log.write
            # Compacters with the same memory also share the compactions in progress.
            self.flights = self.memory.flights if self.memory is not None else SingleFlight()
            self._aside = InProcessMemory(_MOST_PREPARED)
        match = partial(Matcher, alternate=options.alternate_roles)
        self.matcher = None if self.memory is None else match(self.memory)
        self.prepared = self.matcher or match(self._aside)
        """Keeps compactions made ahead; without a memory, a separate one for these alone."""
        self.prepares = options.prepare_tokens is not None
        if self.prepares:
            in_thread(load)
        self.redaction = options.redact
        if "recall" in changed or "redact" in changed:
            # At most one; a list, which copies of this state share.
            self._recalls: list[Recall] = []
        if "on_compaction" in changed:
            self.compaction_hooks: list[Callable[..., object]] = list(options.on_compaction)
        if "on_event" in changed:
            self.event_hooks: list[Callable[..., object]] = list(options.on_event)
        self.proactive = options.trigger_tokens is not None
        self.scope = options.memory_scope
        """Part of each record's key; equal for calls that may share a summary."""

    def idle(self) -> Callable[[], bool]:
        """Return a function that returns true if compacter has nothing to do before a call, so that
        the call can be sent without being read.
        """
        if self.proactive or self.options.spending:
            return lambda: False
        if self.prepares:
            is_empty = self.prepared.memory.empty
            preparations = self.preparations
            return lambda: is_empty() and not preparations
        return (lambda: True) if self.memory is None else self.memory.empty

    def detect(self, error: BaseException) -> TokenLimit | None:
        """Return the token limit in an exception, or the reason for another refusal that compacter
        can remedy; ``None`` for any other.
        """
        return self.options.detect(error) or detect_sealed(error)

    def limit_since(self, before: int, error: BaseException) -> TokenLimit | None:
        """Return the token limit in an exception, or a mere sign of one; ``None`` if a Compacter
        inside the wrapped function has given up with it or one of its causes.

        The outer Compacter then does not retry, because it would send the same requests again.
        ``before`` is ``GiveUps.count`` at the start of the call, as a program may raise one
        exception object several times.
        """
        cause: BaseException | None = error
        for _ in range(10):
            if cause is None or GiveUps.count == before:
                break
            if getattr(cause, _GAVE_UP, 0) > before:
                return None
            cause = cause.__cause__ or cause.__context__
        return self.detect(error) or detect_unsaid(error)

    def _is_pinned(self, message: Message) -> object:
        pin: Any = self.options.pin
        with self.safely("pin"):
            return pin(message)
        return True

    # -- models and conversations ------------------------------------------------------------------

    def calibration(self, model: str | None, place: str = "") -> Calibration:
        """Return the calibration of a model at a place, with its window if known; without a place,
        the one of the model's last call.
        """
        with self._lock:
            learnt = self._learnt.setdefault(f"{model or ''}\0{place}", Calibration())
            self._learnt[f"{model or ''}\0"] = learnt
        summarizer = self.options.writer
        if isinstance(summarizer, str):
            learnt.summarizer_window = learnt.summarizer_window or window(summarizer)
        learnt.assume_window(window(model))
        return learnt

    def is_near(
        self, model: str, facts: CallFacts, tokens: int, earlier: dict[int, tuple[int, int, int]]
    ) -> bool:
        """Return whether a call that was answered must be read: its request is large enough for a
        compaction ahead or soon may be, or may fill the window; the server may have truncated it;
        or its model can be calibrated for the first time.

        Args:
            model: Name of the model.
            facts: The call's arguments.
            tokens: Input tokens that the server has read; 0 if unknown.
            earlier: Sizes of earlier calls, for ``measure``.
        """
        given = facts.messages
        if type(given) is not list or not given:
            return True
        calibration = self.calibration(model, facts.place)
        calibration.take(tokens)
        sizes = Sizes(self.options, calibration, output_tokens=facts.output_tokens or 0)
        bounds = sizes.bounds_ahead() if self.prepares else None
        is_warned = bounds is None and calibration.warned
        if is_warned and self.prepares and 0 < tokens <= calibration.truncated:
            return False  # It truncates prompts, which was reported; no compaction can be due.
        size = measure(given, facts.beside, earlier)
        if tokens and size > tokens * MOST_CHARACTERS:
            return True
        read = tokens or size / calibration.chars_per_token
        if not self.prepares:
            return read >= (calibration.window or inf) * FILLING
        if (tokens and not calibration.learnt) or not (bounds or is_warned):
            return True
        return read >= (bounds[0] * _SOON if bounds else inf)

    def learn_from_last(
        self, request: Request, calibration: Calibration, conversation: ConversationState
    ) -> None:
        """Calibrate by the usage of the last reply, if its request was an earlier state of this
        conversation, and note whether the provider has that in its cache.
        """
        noted = self.last_reply
        self.last_reply = None
        if noted is None:
            return
        tokens, count, last, usage = noted
        calibration.take(tokens)
        if count > len(request.original) or id(request.original[count - 1]) != last:
            return
        calibration.caches = calibration.caches or is_cached(usage)
        conversation.is_cached = bool(calibration.caches)
        read = request.conversation
        if read.start >= count:
            return  # The provider has compacted it since.
        size = sum(read.sizes[:count]) + request.overhead
        # The token count of a truncated prompt does not belong to its characters.
        if expected_tokens(size, tokens, calibration) is None:
            calibration.learn(size, tokens)

    def conversation(self, digest: str) -> ConversationState:
        """Return the state of a conversation, for the trigger."""
        with self._lock:
            return self._conversations.setdefault(digest, ConversationState())

    def note_late(self, conversation: ConversationState, limit: TokenLimit) -> None:
        """Note that a conversation must be compacted before its next call."""
        conversation.late = limit
        self.late.append(conversation)
        del self.late[:-_MOST_LATE]

    def take_late(self, conversation: ConversationState) -> None:
        """Remove the conversation from those that the next call must compact, as this call does."""
        with suppress(ValueError):  # Another call has removed it.
            self.late.remove(conversation)

    def note_forget(self, digest: str) -> None:
        """Note that a conversation's next call is to forget its newest compaction."""
        if self.memory is not None and not self.memory.empty():
            with self._lock:
                self._to_forget[digest] = self._to_forget.get(digest, 0) + 1

    def take_forget(self, digest: str) -> int:
        """Return how many compactions the next call of a conversation has to forget, and set this
        number to 0.
        """
        with self._lock:
            return self._to_forget.pop(digest, 0)

    def recall(self) -> Recall:
        """Return the state of recall between calls."""
        # Imports SQLite, which few calls need.
        from compacter.lines.turns import Recall

        with self._lock:
            if not self._recalls:
                options = self.options
                search_failed = partial(self.log.failed, "search")
                self._recalls.append(Recall(options.recall, options.redact, search_failed))
            return self._recalls[0]

    # -- events ------------------------------------------------------------------------------------

    def record(self, event: Event) -> None:
        """Add an event to totals and log."""
        with self.safely("totals"):
            self.totals.add(event)
        with self.safely("log"):
            self.log.event(event)

    async def emit(self, io: IO, event: Event) -> None:
        """Send an event to totals, log and hooks. A cancellation ends a hook at once."""
        self.record(event)
        first = self.compaction_hooks if isinstance(event, CompactionEvent) else ()
        for hook in (*first, *self.event_hooks):
            with self.safely("hook"):
                # A copy, so that no hook sees another one's changes.
                await io.hook(hook, event.model_copy())

    def history_changed(self, event: CompactionEvent | None) -> None:
        """Send the event that a compaction was not installed because the ``History`` has changed
        meanwhile.
        """
        skipped = CompactionSkipped(
            trigger=event.trigger if event else "token_limit",
            model=event.model if event else None,
            reason="history_changed",
        )
        run(self.emit(SYNC, skipped))

    def count(self, what: str, model: str) -> None:
        """Called for something that is counted but is not an event, such as a refusal (``what``).
        It does nothing here; a subclass that has metrics overrides it.
        """

    @contextmanager
    def safely(self, what: str) -> Generator[None]:
        """Log an exception of the block, which must not break a call, and continue after the
        block.
        """
        try:
            yield
        except Exception as error:  # noqa: BLE001 - a hook's or a memory's
            self.log.failed(what, error)


# Field of the totals that counts the events of each kind.
_COUNTED: Mapping[type, str] = {
    CompactionEvent: "rounds",
    CompactionFailed: "failures",
    PassagesRecalled: "recalled",
    MaxTokensAdjusted: "adjusted",
    SealedContentRemoved: "unsealed",
    RetriesExhausted: "given_up",
}


class RunningTotals:
    """Sums of events. Thread-safe; counting a call takes one atomic step."""

    def __init__(self) -> None:
        self.count_call = count().__next__
        self._looks = 0
        self._sums: dict[str, Any] = {}
        self._lock = Lock()

    def add(self, event: Event | None = None, **more: float | None) -> None:
        """Add an event, or numbers to the fields of these names; ``None`` makes the sum
        ``None``.
        """
        if type(event) in _COUNTED:
            more = {_COUNTED[type(event)]: 1}
        if isinstance(event, CompactionReused):
            counted = "prepared_used" if event.prepared else "reused"
            saved = {"tokens_saved": event.tokens_saved, "cost_saved": event.cost_saved or 0.0}
            more = {counted: 1, **saved}
        if isinstance(event, CompactionEvent):
            more["prepared"] = event.trigger == "prepared"
            more["characters_saved"] = event.original_data_size - event.compacted_data_size
        with self._lock:
            for name, n in more.items():
                total = self._sums.get(name, 0)
                # Rounded: sums of prices such as 0.0000025 end in noise.
                self._sums[name] = None if n is None or total is None else round(total + n, 12)

    def snapshot(self) -> Totals:
        """Return the sums at this moment."""
        with self._lock:
            # Reading the counter advances it.
            calls = self.count_call() - self._looks
            self._looks += 1
            return Totals(calls=calls, **self._sums)
