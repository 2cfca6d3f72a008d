"""What the calls of one Compacter share: policy, memory, what was learnt, hooks, totals."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tenacity import Retrying, stop_after_attempt

from compacter.call.policy import Policy, detector, never_sleep
from compacter.call.trigger import Pulse
from compacter.compaction.calibration import Calibration
from compacter.compaction.task import Settings
from compacter.events import CompactionEvent, CompactionSkipped, Event, Ledger
from compacter.fork import Lock
from compacter.memory.base import BaseMemory, base_memory
from compacter.memory.digest import flight_key
from compacter.memory.match import Matcher
from compacter.memory.single_flight import SingleFlight
from compacter.messages.fields import json_text
from compacter.messages.format import Message, Wire
from compacter.models import window
from compacter.options import Options, default_logger
from compacter.summaries import tag

_MOST_MODELS = 256
_MOST_CONVERSATIONS = 10_000


class Engine:
    """Made once for each Compacter. Thread-safe."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.policy = policy_of(options)
        self.detect = self.policy.detect
        self.ledger = Ledger()
        self.count_call = self.ledger.count_call
        self.memory: BaseMemory | None = base_memory(options.memory) if options.memory is not None else None
        # Several Compacters that share a memory share what is under way too.
        self.flights = self.memory.flights if self.memory is not None else SingleFlight()
        self.recall = (
            Matcher(self.memory, alternate=options.alternate_roles, on_unencodable=self._unencodable)
            if self.memory is not None
            else None
        )
        self.blocking = self.memory is not None and self.memory.blocking
        self.compaction_hooks: list[Callable[..., object]] = list(options.on_compaction)
        self.event_hooks: list[Callable[..., object]] = list(options.on_event)
        self.logger = options.logger
        self.proactive = options.trigger_tokens is not None
        self.last_reply: tuple[tuple[object, ...], dict[str, object], object] | None = None
        """The last quiet call; its usage calibrates, if the next thing is a token limit."""
        self._settings = options.settings()
        self._pulses: OrderedDict[str, Pulse] = OrderedDict()
        self._learnt: OrderedDict[str, Calibration] = OrderedDict()
        self._lock = Lock()

    def idle(self) -> bool:
        """Whether a call has nothing to do before the wrapped function: no record to look up and no trigger."""
        return not self.proactive and (self.recall is None or self.recall.nothing_known())

    def calibration(self, model: str | None) -> Calibration:
        """What was learnt of this model, the least recently used ones forgotten."""
        name = model or ""
        with self._lock:
            found = self._learnt.get(name)
            if found is None:
                found = self._learnt[name] = Calibration()
                if len(self._learnt) > _MOST_MODELS:
                    self._learnt.popitem(last=False)
            else:
                self._learnt.move_to_end(name)
            return found

    def pulse(self, conversation: str) -> Pulse:
        """What the trigger knows of this conversation; a new one for every call where there is no trigger."""
        if not self.proactive:
            return Pulse()
        with self._lock:
            found = self._pulses.setdefault(conversation, Pulse())
            self._pulses.move_to_end(conversation)
            if len(self._pulses) > _MOST_CONVERSATIONS:
                self._pulses.popitem(last=False)
            return found

    def scope(self, model: str | None, wire: Wire) -> str:
        """Calls that may share a summary have the same scope."""
        return f"{model}\0{wire.name}\0{self._settings}"

    def view(self, model: str | None, wire: Wire, messages: Sequence[Message]) -> list[Message] | None:
        """The remembered view of these messages. A memory that fails is logged and skipped."""
        if self.recall is None:
            return None
        try:
            return self.recall.view(self.scope(model, wire), wire, messages)
        except Exception as error:  # noqa: BLE001 - a failing memory must not fail the call
            self.complain("memory_failed", error, step="find")
            return None

    def remember(self, model: str | None, wire: Wire, before: Sequence[Message], after: Sequence[Message]) -> None:
        """Keep a view. A memory that fails is logged and skipped."""
        if self.recall is None or self._holds_secrets(wire, before, after):
            return
        try:
            self.recall.remember(self.scope(model, wire), wire, before, after)
        except Exception as error:  # noqa: BLE001 - a failing memory must not fail the call
            self.complain("memory_failed", error, step="save")

    def _holds_secrets(self, wire: Wire, before: Sequence[Message], after: Sequence[Message]) -> bool:
        """Whether a message that was edited, and so would be stored itself, holds what ``redact`` takes out.

        Summaries are redacted already; messages that stay as they are are stored by their position alone.
        """
        redact = self.options.redact
        if redact is None:
            return False
        verbatim = set(map(id, before))
        for message in after:
            if id(message) in verbatim or tag.parse(wire.plain_text(message) or "") is not None:
                continue
            text = json_text(wire.content(message))
            try:
                if redact(text) != text:
                    return True
            except Exception:  # noqa: BLE001 - the user's own; what cannot be redacted is not kept
                return True
        return False

    def flight_key(self, model: str | None, wire: Wire, head: Sequence[Message]) -> str:
        """Names the compaction of this head among those under way."""
        return flight_key(self.scope(model, wire), wire, head)

    def _unencodable(self, reason: str) -> None:
        self._write("debug", "compacter.not_remembered", {"reason": reason})

    def hooks_for(self, event: Event) -> list[Callable[..., object]]:
        """The hooks that are to be told, after totals and log have been."""
        self.ledger.add(event)
        self.log(event)
        if isinstance(event, CompactionEvent):
            return [*self.compaction_hooks, *self.event_hooks]
        return list(self.event_hooks)

    def aborted(self, event: CompactionEvent | None) -> None:
        """A compaction was not installed, because the History changed while it was made."""
        skipped = CompactionSkipped(
            trigger=event.trigger if event else "token_limit",
            model=event.model if event else None,
            reason="history_changed",
        )
        for hook in self.hooks_for(skipped):
            try:
                outcome: Any = hook(skipped)
                if hasattr(outcome, "close"):
                    outcome.close()
            except Exception as error:  # noqa: BLE001 - a hook that raises must not break the call
                self.complain("hook_failed", error)

    def log(self, event: Event) -> None:
        """Sizes and counts of an event; never text of messages."""
        members = event.model_dump(mode="json", exclude={"summary", "ledger", "repaired", "reason"}, exclude_none=True)
        reason = getattr(event, "reason", None)
        if reason:
            members["reason"] = reason
        level = "info" if isinstance(event, CompactionEvent) else "debug"
        self._write(level, f"compacter.{_snake(type(event).__name__)}", members)

    def complain(self, what: str, error: BaseException, **facts: object) -> None:
        """Log something of the user's or a backend's that failed, by its type only."""
        self._write("warning", f"compacter.{what}", {"error": type(error).__name__, **facts})

    def _write(self, level: str, name: str, members: Mapping[str, object]) -> None:
        try:
            logger = self.logger if self.logger is not None else default_logger()
            getattr(logger, level)(name, **members)
        except Exception:  # noqa: BLE001, S110 - a logger that fails has nowhere to be reported to
            pass


def policy_of(options: Options) -> Policy:
    """The flow's view of the options."""
    retries = options.max_retries
    stop = stop_after_attempt(1 + retries) if isinstance(retries, int) else retries
    detect = detector(options.detect)
    return Policy(
        ratio=options.compact_ratio,
        retrying=Retrying(stop=stop, reraise=True, sleep=never_sleep),
        strategies=options.strategy,
        settings=Settings(
            max_summary_tokens=options.max_summary_tokens,
            summary_prompt=options.summary_prompt,
            fallback=options.fallback,
            ledger_share=options.ledger_share,
            extractors=options.extractors,
            redact=options.redact,
            detect=detect,
            summarizer_window=window(options.summarizer) if isinstance(options.summarizer, str) else None,
            extractive=options.summarizer == "extractive",
            native=options.summary_request == "native" and options.redact is None and options.summarizer is None,
        ),
        keep_turns=options.preserve_recent_turns,
        pin=options.pin,
        alternate=options.alternate_roles,
        adjust_max_tokens=options.adjust_max_tokens,
        asks_plan=options.before_compaction is not None,
        remembers=options.memory is not None,
        detect=detect,
        trigger=options.trigger_tokens,
        min_calls_between=options.min_calls_between,
        token_counter=options.token_counter,
    )


def _snake(name: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name).lstrip("_")
