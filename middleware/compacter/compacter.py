"""``Compacter``: options and wrapping; its base, in ``by_hand.py``, compacts by hand. And the
decorator ``compacted``, which gives a function its own ``Compacter``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from inspect import Parameter, Signature
from typing import Any, Never, Self, TypeVar, Unpack, overload

from compacter.by_hand import ByHand, CompactionResult
from compacter.call.state import State
from compacter.errors import ConfigurationError, check_text, seconds, with_hints
from compacter.events import CompactionEvent, Totals
from compacter.messages.format import get_format
from compacter.options import CompacterOptions, Options, validated
from compacter.options.checks import check_hook
from compacter.options.settings import PRESETS, from_environment
from compacter.runtime import models
from compacter.runtime.io import ASYNC, SYNC, run
from compacter.text.table import as_html

__all__ = ["Compacter", "CompacterOptions", "CompactionResult"]

F = TypeVar("F")
EventHook = TypeVar("EventHook", bound=Callable[..., object])


@with_hints
class Compacter(ByHand):
    """Wraps completion calls: if a provider refuses a request as too long, the history is compacted
    and sent again.

    Thread-safe, for sync and async calls. Use one object for a whole program: it stores the
    compactions, and the calibration of each model.

    Args:
        compact_ratio: Share of the size to compact, oldest messages first.
        max_retries: Compactions per call, so at most ``1 + max_retries`` requests; or a tenacity
            stop.
        summarizer: Writer of summaries: ``None`` (the wrapped call), a model's name, a function,
            ``"extractive"``, or ``"provider"``.
        summary_prompt: Instruction in place of the built-in one; ``{history}`` or ``%s`` marks
            where the transcript goes.
        max_summary_tokens: Largest size of a summary, in tokens.
        strategy: One strategy, or several to try in order.
        fallback: Replacement for a summary that fails: ``"extractive"``, ``"truncate"``, both;
            ``None`` raises.
        preserve_recent_turns: Number of newest turns to keep word for word, or as many as fit.
        pin: Function of a message that returns whether to keep it verbatim.
        trigger_tokens: Size at which to compact before the call: tokens, a share of the window
            such as ``0.8``, or a function of `TriggerFacts`.
        prepare_tokens: Size at which the next compaction is made in the background: tokens, or a
            share of the window.
        min_calls_between: Least number of calls between two compactions by ``trigger_tokens``.
        alternate_roles: Whether user and assistant must alternate; ``None`` for what the format
            needs.
        adjust_max_tokens: Whether to lower the output limit, and not to compact, if the input fits.
        memory: Store of compactions, or its address, such as ``sqlite:PATH`` or
            ``redis://HOST:PORT/DB``; ``None`` for none.
        timeout: Limit for the summaries of one call, in seconds.
        detect: Function of an exception, asked before the built-in detector: is it a token limit?
        on_compaction: Function or functions to call with each ``CompactionEvent``.
        on_event: Function or functions to call with every event.
        before_compaction: Function of each ``CompactionPlan`` that may change or veto it.
        redact: Function from text to text, or ``"secrets"``, applied to all text that leaves the
            conversation.
        recall: Room for quotes of compacted messages: a share of the window, or tokens; ``None``
            for no quotes.
        rules: Standing rules that every summary contains verbatim.
        retrieved: Marks of retrieved text in the last user message that may be shortened, or a
            function.
        conversation: Name of the conversation in events.
        logger: A logger of the standard library or of structlog.
        token_counter: Function that counts the tokens of messages.
        focus: What summaries must not lose, in your words.
        after_compaction: Function of each ``CompactionEvent`` that returns messages to put back
            behind the summary.
        spending: Limits of each conversation's tokens and money, and the share for summaries.

    ``compacter.options.Options`` describes each in full, with units.

    Raises:
        ConfigurationError: An option is unknown or invalid; the message names it. Also a
            ``ValueError``.
    """

    def __init__(self, *given: Never, **options: Unpack[CompacterOptions]) -> None:
        if given:
            raise TypeError(
                "Compacter takes options by name, such as compact_ratio=0.7; what is to be wrapped "
                "is passed to wrap: Compacter().wrap(completion), or is decorated with @compacted"
            )
        self._state = State(validated(dict(options)))
        summarizer = self._state.options.writer
        if isinstance(summarizer, str) and summarizer != "extractive":
            doubt = models.prepare(summarizer)
            if doubt:
                self._state.log.write(
                    "warning", "compacter.unknown_model", doubt, {"model": summarizer}
                )

    def __setattr__(self, name: str, value: object) -> None:
        if name in Options.model_fields:
            raise AttributeError(
                f"{name} cannot be assigned: pass it, Compacter({name}=...), or make a copy, "
                f"compacter.replace({name}=...)"
            )
        super().__setattr__(name, value)

    # -- other constructors ------------------------------------------------------------------------

    @classmethod
    def for_agents(cls, **options: Unpack[CompacterOptions]) -> Self:
        """Return a ``Compacter`` for programs that call tools in a loop; ``options`` override the
        preset.

        If the window is known, a call whose request has reached 95 % of it is compacted before the
        provider refuses it. The summary is prepared in the background once a request has reached 80
        %, so that a step seldom waits for a summary.
        """
        given = dict(options)
        trigger = given.get("trigger_tokens")
        if isinstance(trigger, (int, float)) and trigger and "prepare_tokens" not in given:
            # Keep the preset's distance below the trigger.
            given["prepare_tokens"] = type(trigger)(trigger * 7 / 8)
        return cls._make({**PRESETS["agents"], **given})

    @classmethod
    def for_chat(cls, **options: Unpack[CompacterOptions]) -> Self:
        """Return a ``Compacter`` for conversations with people; ``options`` override the preset.

        Quotes of compacted messages may take 35 % of the window and not 15 %, up to 4,000 tokens as
        always, so that the model finds the answers to more questions.
        """
        return cls._make({**PRESETS["chat"], **options})

    @classmethod
    def frugal(cls, **options: Unpack[CompacterOptions]) -> Self:
        """Return a ``Compacter`` with the lowest costs; ``options`` override the preset.

        Summaries are made without a model. Each compaction replaces 85 % of the history and not 70
        %. Compactions are then rarer, and the provider's prompt cache is used more.
        """
        return cls._make({**PRESETS["frugal"], **options})

    @classmethod
    def from_env(
        cls,
        environment: Mapping[str, str] | None = None,
        *,
        prefix: str = "COMPACTER_",
        **options: Unpack[CompacterOptions],
    ) -> Self:
        """Return a ``Compacter`` whose options come from environment variables such as
        ``COMPACTER_COMPACT_RATIO=0.5``.

        No other function reads these variables. The values ``none``, ``true`` and ``false`` mean
        ``None``, ``True`` and ``False``. An empty variable is ignored. ``COMPACTER_MEMORY`` takes
        ``in-process``, ``sqlite:PATH`` or ``redis://...``; the keys that encrypt it are in
        ``COMPACTER_MEMORY_ENCRYPTION``. ``COMPACTER_STRATEGY`` and ``COMPACTER_FALLBACK`` take
        names separated by commas. ``COMPACTER_RULES`` has one rule on each line. A value may also
        be JSON, such as ``["<context>", "</context>"]`` in ``COMPACTER_RETRIEVED``.

        Args:
            environment: The variables, by their names; ``None`` for the environment of this
                process.
            prefix: Text with which the names of the variables begin.
            **options: Options that override the variables.

        Raises:
            ConfigurationError: A variable is invalid. For an unknown variable with this prefix, a
                ``UserWarning`` is issued.
        """
        read = from_environment(os.environ if environment is None else environment, prefix)
        return cls._make({**read, **options})

    def replace(self, **options: Unpack[CompacterOptions]) -> Self:
        """Return a ``Compacter`` with some options replaced. It shares the memory, and has its own
        totals.

        Args:
            **options: Options to replace. Hooks that were registered later are kept unless they are
                replaced.

        Raises:
            ConfigurationError: An option is unknown or invalid.
        """
        return self._make({**self._arguments_given(), **options})

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Same as ``replace()``: the memory is shared, because a database or cache is not
        copied.
        """
        return self.replace()

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the options, or copy: the memory is shared then. A pickled in-process memory
        starts empty; SQLite and Redis use the file or server of the original.
        """
        return self._make, (self._arguments_given(),)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._state.options.changed})"

    def _repr_html_(self) -> str:
        changed = self._state.options.changed
        return as_html([("Compacter", changed or "default options"), *self.totals._rows()])  # noqa: SLF001

    @classmethod
    def _make(cls, options: Mapping[str, Any]) -> Self:
        return cls(**options)

    def _arguments_given(self) -> dict[str, Any]:
        state = self._state
        return state.options.given | {
            "on_compaction": tuple(state.compaction_hooks),
            "on_event": tuple(state.event_hooks),
        }

    # -- wrapping ----------------------------------------------------------------------------------

    def wrap(
        self, target: F, *, messages_param: str | None = None, wire_format: str | None = None
    ) -> F:
        """Return a wrapper of a function, or a wrapped copy of a client. ``target`` itself is not
        changed.

        Args:
            target: A completion function or method, sync or async, or a client.
            messages_param: Name of the argument for the messages, if it is not ``messages``,
                ``input`` or ``contents``.
            wire_format: ``openai``, ``anthropic``, ``responses``, ``gemini`` or ``bedrock``, if the
                format cannot be detected.

        Raises:
            TypeError: ``target`` cannot be wrapped; the message says what can.
            ConfigurationError: ``wire_format`` is unknown, or there is no argument
                ``messages_param``.
        """
        from compacter.clients.wrapping import wrap

        check_text("messages_param", messages_param, "the name of an argument")
        get_format(wire_format or "openai")
        return wrap(self._state, target, messages_param=messages_param, wire_format=wire_format)

    def __call__(self, function: F) -> F:
        """Same as ``wrap``, as a decorator."""
        return self.wrap(function)

    def using(self, **options: Unpack[CompacterOptions]) -> AbstractContextManager[None]:
        """Return a context manager that replaces options inside a ``with`` block: ``with
        compacter.using(conversation="t-17"): ...``.

        It affects the wrapped calls, and the compactions by hand, that begin inside the block. Use
        it if a framework makes the call, so that your program cannot pass ``compacter_options`` to
        it. The options hold in the thread or task that entered the block, and in tasks that begin
        inside it. Other threads and tasks keep their options. An inner block adds its options to
        those of the outer block.

        Args:
            **options: Options to replace.

        Raises:
            ConfigurationError: An option is unknown or invalid. It is raised when the block is
                entered.
        """
        return self._state.using(options)

    def on_compaction(self, hook: EventHook = None) -> EventHook:  # type: ignore[assignment]
        """Register a hook for each ``CompactionEvent``, called after the compaction and before the
        retry.

        Also a decorator.

        Args:
            hook: Function of the event, sync or async. Its exceptions are logged.

        Raises:
            ConfigurationError: ``hook`` is not a function of one argument.
        """
        check_hook(hook)
        self._state.compaction_hooks.append(hook)
        return hook

    def on_event(self, hook: EventHook = None) -> EventHook:  # type: ignore[assignment]
        """Register a hook for every event. Also a decorator.

        Args:
            hook: Function of the event, sync or async. Its exceptions are logged.

        Raises:
            ConfigurationError: ``hook`` is not a function of one argument.
        """
        check_hook(hook)
        self._state.event_hooks.append(hook)
        return hook

    def remove_hook(self, hook: Callable[..., object]) -> None:
        """Remove a hook, of ``on_compaction`` or ``on_event``.

        Args:
            hook: The function that was registered.

        Raises:
            ConfigurationError: It is not registered.
        """
        state = self._state
        first = state.compaction_hooks
        hooks = first if hook in first else state.event_hooks
        if hook not in hooks:
            raise ConfigurationError(f"{hook!r} is not registered as a hook")
        hooks.remove(hook)

    @property
    def totals(self) -> Totals:
        """Sums over all wrapped calls so far, such as the number of calls and of compactions, and
        the tokens and the cost (in USD) of the summaries.
        """
        return self._state.totals.snapshot()

    # -- compactions made ahead --------------------------------------------------------------------

    def drain(self, timeout: float | None = None) -> bool:
        """Wait until no compaction is being prepared in the background. Return ``True`` if none is
        left, and ``False`` if ``timeout`` has passed before.

        In a coroutine, use ``adrain``: this method would block the event loop that prepares the
        compactions, so there it does not wait for them.

        Args:
            timeout: Longest wait in seconds; ``None`` for no limit.
        """
        _check_wait(timeout)
        return run(self._state.preparations.drain(SYNC, timeout))

    async def adrain(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - as ``drain``
        """Like ``drain``, without blocking the event loop.

        Args:
            timeout: Longest wait in seconds; ``None`` for no limit.
        """
        _check_wait(timeout)
        return await self._state.preparations.drain(ASYNC, timeout)

    # -- used by a History -------------------------------------------------------------------------

    @property
    def options(self) -> Options:
        """The validated options."""
        return self._state.options

    def tell_history_changed(self, event: CompactionEvent | None) -> None:
        """Emit ``CompactionSkipped`` with the reason ``history_changed``: a compaction was made,
        but the ``History`` has changed meanwhile, so its messages were not replaced.

        Args:
            event: The ``CompactionEvent`` of the compaction that was not used.
        """
        self._state.history_changed(event)


def _check_wait(timeout: float | None) -> None:
    if timeout:
        seconds("timeout", timeout)


# Every option with its default, for ``help()`` and notebooks. Functions do not declare it, so type
# checkers refuse an assignment.
setattr(  # noqa: B010
    Compacter.__init__,
    "__signature__",
    Signature(
        [
            Parameter("self", Parameter.POSITIONAL_ONLY),
            *(
                Parameter(
                    name,
                    Parameter.KEYWORD_ONLY,
                    default=option.get_default(call_default_factory=True),
                )
                for name, option in Options.model_fields.items()
            ),
        ]
    ),
)


@overload
def compacted(function: F, /) -> F: ...
@overload
def compacted(
    *,
    messages_param: str | None = None,
    wire_format: str | None = None,
    **options: Unpack[CompacterOptions],
) -> Callable[[F], F]: ...
def compacted(
    function: Any = None,
    /,
    *,
    messages_param: str | None = None,
    wire_format: str | None = None,
    **options: Any,
) -> Any:
    """Decorate a function with its own ``Compacter``: ``@compacted`` or
    ``@compacted(compact_ratio=0.5)``.

    Args:
        function: The function, if the decorator is used without parentheses.
        messages_param: Name of the argument for the messages, as for ``Compacter.wrap``.
        wire_format: Format of the messages, as for ``Compacter.wrap``.
        **options: The options of ``Compacter``, all keyword-only.

    Raises:
        ConfigurationError: An option is unknown or invalid.
    """
    if isinstance(function, (int, float, str, Mapping)):
        raise TypeError(
            "compacted takes options by name, such as @compacted(compact_ratio=0.5), not "
            f"{function!r}"
        )
    decorate = partial(
        Compacter(**options).wrap, messages_param=messages_param, wire_format=wire_format
    )
    return decorate if function is None else decorate(function)
