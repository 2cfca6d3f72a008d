"""The front door: options, wrapping, and compaction by hand."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import Parameter, Signature
from typing import Any, Literal, Protocol, Self, TypedDict, TypeVar, Unpack, overload

from compacter import models
from compacter.call.io import ASYNC, IO, SYNC, run
from compacter.call.request import is_large, pinned
from compacter.call.state import State
from compacter.compaction.conversation import Conversation
from compacter.compaction.plan import Job, plan
from compacter.compaction.summarize import Summarize
from compacter.compaction.task import CompactionPlan, StrategyLike, links_of
from compacter.errors import ConfigurationError, InvalidHistoryError
from compacter.events import CompactionEvent, Totals
from compacter.memory import Memory
from compacter.memory.record import conversation_digest
from compacter.messages.format import FORMATS, Message, get_format, recognise
from compacter.options import Detector, Fallback, Options, PlanHook, Retrieved, Stop, Summarizer, validated
from compacter.recall.passages import Passage, Quotes
from compacter.settings import PRESETS, from_environment

F = TypeVar("F")
EventHook = TypeVar("EventHook", bound=Callable[..., object])


class CompacterOptions(TypedDict, total=False):
    """The options of ``Compacter``; ``compacter.options.Options`` says what each one means, with units and defaults."""

    compact_ratio: float
    max_retries: int | Stop
    summarizer: Summarizer
    summary_prompt: str | None
    max_summary_tokens: int
    strategy: StrategyLike | Sequence[StrategyLike]
    fallback: Fallback | Sequence[Fallback] | None
    preserve_recent_turns: int
    pin: Callable[[Message], object] | None
    trigger_tokens: int | float | None
    min_calls_between: int
    alternate_roles: bool | None
    adjust_max_tokens: bool
    memory: Memory | None
    timeout: float | None
    detect: Detector | None
    on_compaction: Callable[[CompactionEvent], object] | Sequence[Callable[[CompactionEvent], object]]
    on_event: Callable[[Any], object] | Sequence[Callable[[Any], object]]
    before_compaction: PlanHook | None
    redact: Callable[[str], str] | Literal["secrets"] | None
    recall: float | int | Quotes | None
    rules: Sequence[str]
    retrieved: Retrieved | None
    conversation: str | None
    logger: Any
    summary_request: Literal["transcript", "native"]
    token_counter: Callable[[Sequence[Message]], int] | None


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """The compacted list, and what left it."""

    messages: list[Message] = field(repr=False)
    """A new list; kept messages are the identical objects."""
    discarded: tuple[Message, ...] = field(default=(), repr=False)
    """The original messages that are no longer in it, in order."""
    event: CompactionEvent | None = None
    """``None`` when nothing was changed."""
    fits: bool = True
    """Whether the messages are within ``budget``; True where none was given."""

    @property
    def changed(self) -> bool:
        """Whether anything was compacted."""
        return self.event is not None


class Compacter:
    """Wraps completion calls so that a token limit is answered by compacting the history and calling again.

    Thread-safe, and shared between sync and async calls. One object for a whole program is best: it remembers what it
    has compacted, and what it has learnt of each model.

    Args:
        compact_ratio: Share of the size that is folded, oldest first.
        max_retries: Compactions per call, so at most ``1 + max_retries`` requests; or a tenacity stop.
        summarizer: Who writes summaries: ``None`` (the wrapped call), a model's name, a function, ``"extractive"``.
        summary_prompt: Instruction in place of the built-in one.
        max_summary_tokens: Tokens that a summary may have.
        strategy: What becomes of the old part: one strategy, or several tried in order.
        fallback: What is done when no summary can be had: ``"extractive"``, ``"truncate"``, both; ``None`` raises.
        preserve_recent_turns: Newest turns that stay verbatim as long as the result still fits.
        pin: Function of a message: where it is true, the message survives verbatim.
        trigger_tokens: Size at which a call compacts first: tokens, or a share of the window such as ``0.8``.
        min_calls_between: Calls for which that trigger rests after it fired.
        alternate_roles: Whether user and assistant must alternate; ``None``: what the format needs.
        adjust_max_tokens: Whether a too large output limit is lowered where the input alone fits.
        memory: Where compactions are remembered; ``None``: nowhere.
        timeout: Seconds for the summaries of one call.
        detect: Function of an exception that is asked first whether it is a token limit.
        on_compaction: Function or functions of each ``CompactionEvent``.
        on_event: The same for every event.
        before_compaction: Function of each ``CompactionPlan``; may change or forbid it.
        redact: Function from text to text, or ``"secrets"``, applied to all that leaves the conversation.
        recall: Share of a known window, or tokens, that quotes of what was folded may take; ``None``: no quotes.
        rules: Standing rules that every summary carries word for word.
        retrieved: Where the last user message holds retrieved text that may be shortened.
        conversation: What names the conversation in events.
        logger: A logger of the standard library or of structlog.
        summary_request: ``"transcript"``, or ``"native"`` to ask for the summary by the messages themselves.
        token_counter: Function that counts the tokens of messages.

    ``compacter.options.Options`` says more of each, with units.

    Raises:
        ConfigurationError: An option is unknown or unusable; each is named. Also a ``ValueError``.
    """

    def __init__(self, **options: Unpack[CompacterOptions]) -> None:
        self._state = State(validated(dict(options)))
        summarizer = self._state.options.summarizer
        if isinstance(summarizer, str) and summarizer != "extractive":
            doubt = models.prepare(summarizer)
            if doubt:
                self._state.log.write("warning", "compacter.unknown_model", doubt, {"model": summarizer})

    # -- other ways to make one ------------------------------------------------------------------------------

    @classmethod
    def for_agents(cls, **options: Unpack[CompacterOptions]) -> Self:
        """For programs that call tools in a loop; ``options`` go before what is chosen here.

        A call is compacted at 80 % of a known window, before the provider refuses it, and more is folded at once: a
        prompt cache then holds more of what is sent.
        """
        return cls._made({**PRESETS["agents"], **options})

    @classmethod
    def for_chat(cls, **options: Unpack[CompacterOptions]) -> Self:
        """For conversations with people; ``options`` go before what is chosen here.

        More of the window may hold quotes of what was folded, so that more questions find their answer.
        """
        return cls._made({**PRESETS["chat"], **options})

    @classmethod
    def frugal(cls, **options: Unpack[CompacterOptions]) -> Self:
        """For the least money; ``options`` go before what is chosen here.

        No model writes summaries, and more is folded at once: a prompt cache then holds more of what is sent.
        """
        return cls._made({**PRESETS["frugal"], **options})

    @classmethod
    def from_env(
        cls,
        environment: Mapping[str, str] | None = None,
        *,
        prefix: str = "COMPACTER_",
        **options: Unpack[CompacterOptions],
    ) -> Self:
        """One with the options that variables such as ``COMPACTER_COMPACT_RATIO=0.5`` set. Nothing else reads them.

        ``none``, ``true`` and ``false`` are values, and an empty variable is as none at all. ``COMPACTER_MEMORY`` takes
        ``in-process``, ``sqlite:PATH`` or ``redis://...``, ``COMPACTER_STRATEGY`` and ``COMPACTER_FALLBACK`` names with
        commas between them, ``COMPACTER_RULES`` one rule a line or a JSON list.

        Args:
            environment: The variables; ``None``: those of the process.
            prefix: What their names begin with.
            **options: Options that go before them.

        Raises:
            ConfigurationError: A variable is unusable, or looks like an option that is misspelt. Of another one with
                this prefix that is no option, a ``UserWarning`` tells.
        """
        names = frozenset(Options.model_fields)
        read = from_environment(os.environ if environment is None else environment, names, prefix)
        return cls._made({**read, **options})

    def replace(self, **options: Unpack[CompacterOptions]) -> Self:
        """A ``Compacter`` with other options in place of some. It shares the memory and has totals of its own.

        Args:
            **options: The options that differ; hooks that were registered later stay, unless these replace them.

        Raises:
            ConfigurationError: An option is unknown or unusable.
        """
        return self._made({**self._given(), **options})

    def __copy__(self) -> Self:
        """The same as ``replace()``: the memory is shared."""
        return self.replace()

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """The same as ``replace()``: the memory is shared, as a database or a cache is not copied."""
        return memo.setdefault(id(self), self.replace())  # type: ignore[return-value]

    def __reduce__(self) -> tuple[object, ...]:
        """Pickled are the options. An in-process memory begins empty; SQLite and Redis use the same file or server."""
        usual = validated({})
        changed = {
            name: value for name, value in self._given().items() if name == "memory" or value != getattr(usual, name)
        }
        return self._made, (changed,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._state.options.changed})"

    @classmethod
    def _made(cls, options: Mapping[str, Any]) -> Self:
        return cls(**options)

    def _given(self) -> dict[str, Any]:
        state = self._state
        hooks = {"on_compaction": tuple(state.compaction_hooks), "on_event": tuple(state.event_hooks)}
        return {**dict(state.options), **hooks}

    # -- wrapping --------------------------------------------------------------------------------------------

    @overload
    def wrap(self, target: F) -> F: ...
    @overload
    def wrap(self, target: F, *, messages_param: str | None = ..., wire_format: str | None = ...) -> F: ...
    def wrap(self, target: F, *, messages_param: str | None = None, wire_format: str | None = None) -> F:
        """The same function or client, compacting. What is passed in is not changed; a client is copied.

        Args:
            target: A completion function or method, sync or async, or a client.
            messages_param: Name of the argument that holds the messages, where it is not ``messages``, ``input`` or
                ``contents``.
            wire_format: ``openai``, ``anthropic``, ``responses``, ``gemini`` or ``bedrock``, where the format cannot be
                recognised.

        Raises:
            TypeError: ``target`` cannot be wrapped; the message says what can.
            ConfigurationError: ``wire_format`` is unknown.
        """
        from compacter.clients.wrapping import wrap

        _check_wire_format(wire_format)
        return wrap(self._state, target, messages_param=messages_param, wire_format=wire_format)

    def __call__(self, function: F) -> F:
        """``wrap``, as a decorator."""
        return self.wrap(function)

    def on_compaction(self, hook: EventHook) -> EventHook:
        """Decorator: call ``hook`` with each ``CompactionEvent``, after the compaction and before the retry.

        Args:
            hook: Function of the event, sync or async. What it raises is logged.

        Raises:
            ConfigurationError: ``hook`` cannot be called.
        """
        _check_hook(hook)
        self._state.compaction_hooks.append(hook)
        return hook

    def on_event(self, hook: EventHook) -> EventHook:
        """Decorator: call ``hook`` with every event.

        Args:
            hook: Function of the event, sync or async. What it raises is logged.

        Raises:
            ConfigurationError: ``hook`` cannot be called.
        """
        _check_hook(hook)
        self._state.event_hooks.append(hook)
        return hook

    def remove_hook(self, hook: Callable[..., object]) -> None:
        """Call ``hook`` no more, wherever it was registered.

        Args:
            hook: The function, as it was registered.

        Raises:
            ConfigurationError: It is not registered.
        """
        lists = [hooks for hooks in (self._state.compaction_hooks, self._state.event_hooks) if hook in hooks]
        if not lists:
            raise ConfigurationError(f"{hook!r} is not registered as a hook")
        for hooks in lists:
            hooks.remove(hook)

    @property
    def totals(self) -> Totals:
        """Everything added up so far: calls, rounds, summarizer tokens, cost."""
        return self._state.totals.snapshot()

    # -- what a History asks ---------------------------------------------------------------------------------

    @property
    def options(self) -> Options:
        """The options, validated."""
        return self._state.options

    def window(self, model: str | None) -> int | None:
        """The context window of a model in tokens: learnt from an error, else from litellm's table; or ``None``.

        Args:
            model: Its name as calls pass it; ``None`` stands for calls without a name.
        """
        return self._state.calibration(model).window

    def estimate_tokens(
        self, messages: Sequence[Message], *, model: str | None = None, wire_format: str | None = None
    ) -> int:
        """Size of messages in tokens: what ``token_counter`` says, else an estimate calibrated by replies.

        Args:
            messages: The messages.
            model: The model whose characters per token are used.
            wire_format: Their format, where it cannot be recognised.
        """
        counter = self._state.options.token_counter
        if counter is not None:
            return counter(list(messages))
        size = get_format(wire_format or recognise(messages)).size
        return self._state.calibration(model).tokens(sum(map(size, messages)))

    def tell_history_changed(self, event: CompactionEvent | None) -> None:
        """Report to the hooks that a compaction was not installed, because its ``History`` had changed meanwhile.

        Args:
            event: The event of that compaction.
        """
        self._state.history_changed(event)

    # -- by hand ---------------------------------------------------------------------------------------------

    def plan(
        self,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        wire_format: str | None = None,
        budget: int | None = None,
    ) -> CompactionPlan:
        """What ``compact`` would fold: no model is asked, nothing is changed. A cut of 0: nothing can be folded.

        Args:
            messages: The messages, in any of the five formats.
            model: The model whose window is used.
            wire_format: Their format, where it cannot be recognised.
            budget: Characters that the result may have, the summary included.

        Raises:
            ConfigurationError: An argument is unusable, or the messages are in no known format.
        """
        return plan(self._state.options, self._job(messages, model, wire_format, budget))

    def compact(
        self,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        wire_format: str | None = None,
        budget: int | None = None,
        summary: str | None = None,
        strict: bool = False,
    ) -> CompactionResult:
        """Compact now. The list that is passed is not changed.

        Args:
            messages: The messages, in any of the five formats.
            model: The litellm model that writes the summary where the option ``summarizer`` is not set.
            wire_format: Their format, where it cannot be recognised.
            budget: Characters that the result may have, the summary included; ``fits`` of the result says whether that
                sufficed. ``None``: the option ``compact_ratio`` decides.
            summary: A summary of your own, in place of a model's.
            strict: Whether half a tool pair is an error. Otherwise it is passed through, never made worse.

        Raises:
            CompactionError: No summary can be had, and ``fallback`` is ``None``.
            InvalidHistoryError: ``strict`` is set, and a call or a result lacks its partner.
            ConfigurationError: An argument is unusable, the format is unknown, or nobody can write a summary.
        """
        return run(self._compact(SYNC, messages, model, wire_format, budget, summary=summary, strict=strict))

    async def acompact(
        self,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        wire_format: str | None = None,
        budget: int | None = None,
        summary: str | None = None,
        strict: bool = False,
    ) -> CompactionResult:
        """As ``compact``, without blocking the event loop.

        ``messages``, ``model``, ``wire_format``, ``budget``, ``summary``, ``strict`` and what is raised are the same.
        """
        return await self._compact(ASYNC, messages, model, wire_format, budget, summary=summary, strict=strict)

    def search(
        self, messages: Sequence[Message], query: str, limit: int = 5, *, wire_format: str | None = None
    ) -> list[Passage]:
        """The passages of messages, and of what a ``History`` has folded, that bear most on a query; best first.

        The option ``redact`` is applied to them.

        Args:
            messages: The messages, in any of the five formats.
            query: Words, as a user would ask.
            limit: Number of passages, at most.
            wire_format: Their format, where it cannot be recognised.

        Raises:
            SearchUnavailableError: Python's SQLite lacks FTS5. A ``CompacterError``.
            ConfigurationError: An argument is unusable.
        """
        from compacter.recall.index import Index
        from compacter.recall.quotes import folded, search

        held = _check_messages(messages)
        _check_wire_format(wire_format)
        archive = getattr(messages, "archive", None)
        held_back = archive.index().entries if archive else ()
        index = Index.restored(held_back, self._state.options.redaction, max_bytes=sys.maxsize)
        if held:
            index.add(folded(held, (), get_format(wire_format or recognise(held))))
        return search(index, query, limit)

    async def _compact(
        self,
        io: IO,
        messages: Sequence[Message],
        model: str | None,
        wire_format: str | None,
        budget: int | None,
        *,
        summary: object,
        strict: bool,
    ) -> CompactionResult:
        from compacter.call.perform import Performer
        from compacter.compaction.run import Compaction, compact

        large = io.asynchronous and is_large(messages)
        read = partial(self._job, messages, model, wire_format, budget)
        job = await io.thread(read) if large else read()
        if strict:
            check_pairs(job)
        if summary is not None:
            if not isinstance(summary, str) or not summary.strip():
                raise ConfigurationError(
                    "summary takes the text of a summary; it is empty. Leave it out to have one made"
                )
            job = replace(job, summary=summary)
        elif self._state.options.summarizer is None and self._needs_model(job):
            if model is None:
                raise ConfigurationError(
                    'nobody can summarise: pass model="..." (a litellm model), summary="...", or set '
                    'Compacter(summarizer=...); summarizer="extractive" needs no model'
                )
            models.check_installed(f"model={model!r}")
        performer = Performer(state=self._state, io=io, model=model, large=large)
        made: Compaction | None = await performer.run(compact(self._state.options, job))
        if made is not None:
            return CompactionResult(made.messages, made.discarded, made.event, made.fits)
        fits = budget is None or job.conversation.size <= budget
        return CompactionResult(list(messages), fits=fits)

    def _needs_model(self, job: Job) -> bool:
        options = self._state.options
        summarizes = any(isinstance(strategy, Summarize) for strategy in links_of(options.strategy))
        return summarizes and plan(options, job).cut > 0

    def _job(self, messages: Sequence[Message], model: str | None, wire_format: str | None, budget: int | None) -> Job:
        from compacter.recall.quotes import strip

        held = _check_messages(messages)
        _check_budget(budget)
        _check_wire_format(wire_format)
        form = get_format(wire_format or recognise(held))
        held = tuple(strip(held, form)) or held
        calibration = self._state.calibration(model)
        by_history, rules = _pinned_by(messages), (*self._state.options.rules, *getattr(messages, "rules", ()))
        return Job(
            conversation=Conversation.of(
                held, form, pinned=pinned(self._state.options.pin, held, by_history), rules=rules
            ),
            trigger="manual",
            calibration=calibration,
            model=model,
            digest=self._state.options.conversation
            or getattr(messages, "conversation", "")
            or conversation_digest(form, held),
            target=budget,
            must=budget is not None,
        )


def check_pairs(job: Job) -> None:
    """Raises ``InvalidHistoryError`` for the first half of a tool pair; calls of an open last step are no fault."""
    for half in job.conversation.broken:
        raise InvalidHistoryError(
            f"{half.what} {half.call_id!r} at message {half.index}: its partner is missing",
            call_id=half.call_id,
            index=half.index,
        )


def _pinned_by(messages: object) -> frozenset[int]:
    """Ids of the messages that a History has pinned; a plain list pins none."""
    ids: Callable[[], frozenset[int]] = getattr(messages, "pinned_ids", frozenset)
    return ids()


def _check_messages(messages: object) -> tuple[Message, ...]:
    if isinstance(messages, (str, bytes, bytearray)) or not isinstance(messages, Sequence):
        raise ConfigurationError(f"messages takes a list of messages, not {type(messages).__name__}")
    held = tuple(messages)
    for kind in set(map(type, held)):
        if issubclass(kind, (type(None), int, float, bytes)):
            index = next(index for index, message in enumerate(held) if type(message) is kind)
            raise ConfigurationError(f"messages[{index}] is not a message: {held[index]!r}")
    return held


def _check_budget(budget: object) -> None:
    if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int) or budget < 1):
        raise ConfigurationError(f"budget takes a number of characters from 1 on, not {budget!r}")


def _check_hook(hook: object) -> None:
    if not callable(hook):
        raise ConfigurationError(f"a hook is a function of the event, not {hook!r}")


def _check_wire_format(name: str | None) -> None:
    if name is not None and name not in FORMATS:
        raise ConfigurationError(f"wire_format={name!r} is unknown; use one of {', '.join(map(repr, FORMATS))}")


def _signature() -> Signature:
    """The signature of ``Compacter`` with every option and its default, for ``help()`` and notebooks."""
    parameters = [Parameter("self", Parameter.POSITIONAL_ONLY)]
    for name, option in Options.model_fields.items():
        default = option.get_default(call_default_factory=True)
        parameters.append(Parameter(name, Parameter.KEYWORD_ONLY, default=default))
    return Signature(parameters)


setattr(Compacter.__init__, "__signature__", _signature())  # noqa: B010 - no attribute that functions declare


class _Decorator(Protocol):
    def __call__(self, function: F, /) -> F: ...


@overload
def compacted(function: F, /) -> F: ...
@overload
def compacted(
    *, messages_param: str | None = None, wire_format: str | None = None, **options: Unpack[CompacterOptions]
) -> _Decorator: ...
def compacted(
    function: Any = None, /, *, messages_param: str | None = None, wire_format: str | None = None, **options: Any
) -> Any:
    """Decorator with a ``Compacter`` of its own: ``@compacted`` or ``@compacted(compact_ratio=0.5)``.

    Args:
        function: The function, where the decorator stands without parentheses.
        messages_param: As for ``Compacter.wrap``: the parameter that takes the messages.
        wire_format: As for ``Compacter.wrap``: their format, where it cannot be recognised.
        **options: The options of ``Compacter``, all keyword-only.

    Raises:
        ConfigurationError: An option is unknown or unusable.
    """
    decorate = partial(Compacter(**options).wrap, messages_param=messages_param, wire_format=wire_format)
    return decorate if function is None else decorate(function)
