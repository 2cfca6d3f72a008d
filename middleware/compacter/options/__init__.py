"""Options of ``Compacter``, validated once by pydantic."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final, Literal, Never, TypedDict

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictInt,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from tenacity import RetryCallState
from tenacity.stop import stop_base

from compacter.compaction.plan import CompactionPlan
from compacter.compaction.strategies import CompactionStrategy, StrategyLike
from compacter.compaction.summarize import Summarize
from compacter.errors import ConfigurationError, faults_of
from compacter.events import CompactionEvent
from compacter.lines.passages import Quotes
from compacter.memory import InProcessMemory, Memory
from compacter.messages.format import Message
from compacter.options.checks import CHECKS, TAKES
from compacter.options.identity import identify
from compacter.overflow import TokenLimit
from compacter.spending import Spending

Summarizer = str | Callable[..., object] | None
PlanHook = Callable[
    [CompactionPlan], CompactionPlan | bool | Awaitable[CompactionPlan | bool | None] | None
]
RestoreHook = Callable[
    [CompactionEvent], Sequence[Message] | Awaitable[Sequence[Message] | None] | None
]
Hook = Callable[..., object]
CompactionHook = Callable[[CompactionEvent], object]


@dataclass(frozen=True, slots=True)
class TriggerFacts:
    """Facts about a request that a function in the option ``trigger_tokens`` gets, to decide
    whether to compact before the request is sent.
    """

    tokens: int
    """Estimated input tokens of the request, tools included."""
    window: int | None
    """The model's context window in tokens; ``None`` if it is unknown."""
    messages: int
    """Number of messages that would be sent, a summary among them."""
    calls: int
    """Calls of this conversation since its last compaction, this one included; all calls before the
    first."""


Trigger = int | float | Callable[[TriggerFacts], bool]
Stop = stop_base | Callable[[RetryCallState], bool]
Fallback = Literal["extractive", "truncate"]
Count = Annotated[StrictInt, Field(ge=0)]
Mark = Annotated[str, StringConstraints(min_length=1)]
Rule = Annotated[str, StringConstraints(pattern=r"\S")]
Retrieved = tuple[Mark, Mark] | Callable[[str, int], str]
Detector = Callable[[BaseException], TokenLimit | bool | None]
Pin = Callable[[Message], object]
TokenCounter = Callable[[Sequence[Message]], int]


class CompacterOptions(TypedDict, total=False):
    """Options of ``Compacter``, as they may be written; described, with units and defaults, in
    ``Options``.
    """

    compact_ratio: float
    max_retries: int | Stop
    summarizer: Summarizer
    summary_prompt: str | None
    max_summary_tokens: int
    strategy: StrategyLike | Sequence[StrategyLike]
    fallback: Fallback | Sequence[Fallback] | None
    preserve_recent_turns: int
    pin: Pin | None
    trigger_tokens: Trigger | None
    prepare_tokens: int | float | None
    min_calls_between: int
    alternate_roles: bool | None
    adjust_max_tokens: bool
    memory: Memory | str | None
    timeout: float | None
    detect: Detector | None
    on_compaction: CompactionHook | Sequence[CompactionHook]
    on_event: Hook | Sequence[Hook]
    before_compaction: PlanHook | None
    redact: Callable[[str], str] | Literal["secrets"] | None
    recall: float | int | Quotes | None
    rules: Sequence[str]
    retrieved: Retrieved | None
    conversation: str | None
    logger: Any
    token_counter: TokenCounter | None
    focus: str | None
    after_compaction: RestoreHook | None
    spending: Spending | None


BESIDE_SUMMARIES: Final = frozenset(
    {
        "max_retries",
        "trigger_tokens",
        "prepare_tokens",
        "min_calls_between",
        "adjust_max_tokens",
        "memory",
        "timeout",
        "detect",
        "on_compaction",
        "on_event",
        "recall",
        "retrieved",
        "conversation",
        "logger",
        "token_counter",
        "focus",
        "after_compaction",
        "spending",
    }
)
"""Options that do not change summaries. ``Options`` that differ in another option never share a
summary."""


class Options(BaseModel):
    """All options of ``Compacter``. Sizes in characters, limits in tokens, times in seconds.

    Values are normalised: sequences to tuples, a single hook to a tuple of one.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        arbitrary_types_allowed=True,
        validate_default=True,
    )

    def __setattr__(self, name: str, value: object) -> Never:
        raise AttributeError(
            f"options are read-only: Compacter({name}=...), or compacter.replace({name}=...)"
        )

    compact_ratio: float = Field(default=0.7, strict=True, gt=0, le=1)
    """Share of the history to compact, the oldest messages first: more than 0, at most 1. It is a
    share of the size of all messages that may be compacted. If the provider has stated its numbers,
    more is compacted if the request would not fit otherwise."""
    max_retries: Count | Stop = 3
    """Compactions per call, so at most ``1 + max_retries`` requests; 0 to send events only. Or a
    tenacity stop such as ``stop_after_delay(30)`` (seconds)."""
    summarizer: Rule | Callable[..., object] | None = None
    """Writer of summaries: ``None`` for the wrapped call itself, the name of a litellm model, a
    function ``(messages, **options)`` that returns text or a completion (sync or async), or
    ``"extractive"`` for no model."""
    summary_prompt: Mark | None = None
    """Instruction in place of the built-in one; ``{history}`` or ``%s`` is replaced by the
    transcript, which is otherwise appended."""
    max_summary_tokens: int = Field(default=4096, ge=16)
    """Largest size of a model's summary in tokens. If the window is known, a summary has at most an
    eighth of it. No summary is larger than the messages that it replaces."""
    strategy: tuple[CompactionStrategy, ...] = (Summarize(),)
    """One strategy, or several that are tried in order until the request fits."""
    fallback: tuple[Fallback, ...] = ("extractive", "truncate")
    """Replacement for a summary that fails: ``"extractive"``, ``"truncate"``, or both in order;
    ``None`` to raise ``CompactionError``."""
    preserve_recent_turns: Count = 0
    """Number of the newest turns to keep word for word. A turn is a user's message and all messages
    up to the next one. If not all of these turns fit, fewer are kept.
    """
    pin: Pin | None = None
    """Predicate that returns whether to keep a message verbatim, in its order, with its tool call
    or results."""
    trigger_tokens: Trigger | None = None
    """Size of a request from which compacter compacts before it sends the request: an int for
    tokens, or a share of the model's window such as ``0.8``; or a function of ``TriggerFacts`` that
    returns whether to compact."""
    prepare_tokens: int | float | None = None
    """Size of a request from which the next compaction is made in advance, in the background: an
    int for tokens, or a share of the window such as ``0.7``. Set it below ``trigger_tokens``. With
    ``None``, no compaction is made in advance."""
    min_calls_between: Count = 3
    """Least number of calls of a conversation between two compactions, or tries to compact, by
    ``trigger_tokens``. After a refusal, compacter compacts at once, whatever this number is."""
    alternate_roles: bool | None = None
    """Whether messages of the user and of the assistant must alternate strictly. With ``None``, the
    message format decides."""
    adjust_max_tokens: bool = True
    """Whether to lower the output limit of a call, and not to compact, if the input alone fits into
    the window."""
    memory: Memory | None = Field(default_factory=InProcessMemory)
    """Store of compactions, for later calls, or its address; ``None`` to turn it off."""
    timeout: float | None = Field(default=None, strict=True, gt=0)
    """Longest time, in seconds, that one call waits for its summaries, at most 3,600. After this
    time, ``fallback`` replaces the summary. ``None`` for no limit."""
    detect: Callable[[BaseException], TokenLimit | None] = None  # type: ignore[assignment]
    """Function of an exception that is called before the built-in detector. It returns a
    ``TokenLimit``, True, False, or ``None`` to let the built-in detector decide."""
    on_compaction: tuple[Hook, ...] = ()
    """Function or functions, sync or async, called with each ``CompactionEvent``."""
    on_event: tuple[Hook, ...] = ()
    """Function or functions, sync or async, called with every event."""
    before_compaction: PlanHook | None = None
    """Called with each ``CompactionPlan``: returns a changed plan, False to veto the compaction, or
    anything else to allow it."""
    redact: Callable[[str], str] | None = None
    """Function from text to text, applied to all text for summarizers, events, memory and quotes;
    ``"secrets"`` for the built-in patterns."""
    recall: Quotes | None = Quotes()
    """Room for quotes of compacted messages: a share of a known window (default: 0.15, up to 4,000
    tokens), or an int for tokens; ``Quotes(...)`` for more settings; ``None`` or 0 for no quotes.
    """
    rules: tuple[Rule, ...] = ()
    """Standing rules that every summary contains verbatim; a compaction without room for them is
    refused."""
    retrieved: Retrieved | None = None
    """Retrieved text in the last user message that may be shortened if that message is too long:
    the text between two marks such as ``("<context>", "</context>")``, or a function ``(text,
    characters) -> text``. Where that is not enough, results of tools that stand beside the user's
    text. A receipt states how much was left out. ``None`` never to change that message."""
    conversation: Mark | None = None
    """Name of the conversation in events, for one call or for a copy:
    ``compacter_options={"conversation": "..."}``, ``replace(conversation="...")``. ``None`` for
    that of the ``History``, else a digest of the first three messages."""
    # Of any class: structlog's is configured by the program.
    logger: Any = None
    """Logger of the standard library or of structlog; gets sizes and counts, never a message's
    text. ``None`` for structlog if the program has configured it, else the standard library's
    logger ``compacter``."""
    token_counter: TokenCounter | None = None
    """Function that takes a list of messages and returns the number of their tokens, for
    ``trigger_tokens`` and ``History``. With ``None``, compacter uses the usage in replies, and
    estimates."""
    focus: Mark | None = None
    """Topics that summaries must not lose, in your own words. They become one more line in each
    request for a summary to a model. They change nothing else, and no summary that exists already.
    """
    after_compaction: RestoreHook | None = None
    """Function, sync or async, that is called with the ``CompactionEvent`` of each compaction that
    writes a summary. It returns messages in the format of the conversation. They stand right behind
    the summary until the next compaction replaces them. If not all of them fit, the first ones are
    used."""
    spending: Spending | None = None
    """Limits of each conversation's tokens and money, and the share for summaries:
    ``Spending(tokens=..., dollars=..., summaries=0.1)``; ``None`` for no limit."""

    # One for each: pydantic 2.12.0 does not tell a validator of several fields which one it gets.
    vars().update(
        {
            f"_check_{name}": field_validator(name, mode="before")(staticmethod(check))
            for name, check in CHECKS.items()
        }
    )

    @field_validator("prepare_tokens")
    @classmethod
    def _check_order(cls, begin: float | None, info: ValidationInfo) -> float | None:
        limit: Any = info.data.get("trigger_tokens")
        # A share cannot be compared with a number of tokens before the window is known.
        if begin is not None and type(begin) is type(limit) and begin >= limit:
            raise ValueError(
                f"must be below trigger_tokens, which is {limit!r}: a compaction that is made "
                "ahead takes some calls; seven eighths of it leaves room for them"
            )
        return begin

    @property
    def writer(self) -> Summarizer:
        """The option ``summarizer``, but ``None`` in place of ``"provider"``. If the provider
        cannot compact, its wrapped call writes the summary, and ``None`` stands for the wrapped
        call.
        """
        return None if self.summarizer == "provider" else self.summarizer

    @property
    def changed(self) -> str:
        """A text with the options that differ from their defaults, written as the arguments of a
        call: ``compact_ratio=0.5, max_retries=2``.
        """
        usual = Options()
        shown = [
            f"{name}={value!r}"
            for name, value in self
            if value != getattr(usual, name) and type(value) is not InProcessMemory
        ]
        return ", ".join(shown)

    def replaced(self, options: Mapping[str, object]) -> Options:
        """Return a copy with some options replaced. Raises ``ConfigurationError`` as ``validated``
        does.
        """
        return validated({**self.given, **options})

    @property
    def given(self) -> dict[str, object]:
        """The options that were set, and the memory, which copies share."""
        return {
            name: value for name, value in self if name in self.model_fields_set or name == "memory"
        }

    @property
    def summarizes(self) -> bool:
        """Whether one of the strategies in the option ``strategy`` writes a summary."""
        return any(isinstance(strategy, Summarize) for strategy in self.strategy)

    def with_declared(self, rules: Iterable[str]) -> tuple[str, ...]:
        """Return the option ``rules`` and those of a ``History``, as they stand in summaries and
        events. If ``redact`` fails on a rule, the rule is left out.
        """
        clean = []
        redact = self.redact or str
        for rule in (*self.rules, *rules):
            with suppress(Exception):  # Of the user's function.
                clean.append(redact(rule))
        return tuple(clean)

    @property
    def memory_scope(self) -> str:
        """Text that is equal for two ``Options`` only if each may use the summaries of the other.

        It does not change after a restart, except for values without an importable name: a closure,
        a bound method, a partial, a lambda and an object with state are each equal only to
        themselves, within this process. A summarizer object is identified by its class, whichever
        object wrote the summary.
        """
        known = {name: identify(value) for name, value in self if name not in BESIDE_SUMMARIES}
        by_class = callable(self.summarizer) and not hasattr(self.summarizer, "__name__")
        if by_class and not isinstance(self.summarizer, partial):
            known["summarizer"] = identify(type(self.summarizer))
        return repr(known)


_CALLED_ELSEWHERE = {
    "trigger_tokens": "context_length context_size context_window max_context max_context_tokens "
    "max_input_tokens max_tokens max_tokens_before_summary n_ctx target_tokens threshold "
    "token_limit trigger window",
    "preserve_recent_turns": "keep keep_last keep_last_messages keep_recent messages_to_keep "
    "preserve_recent",
    "summarizer": "llm model summarization_model summary_model summarize_fn",
    "max_summary_tokens": "max_summary_length",
    "summary_prompt": "prompt summarization_prompt",
    "compact_ratio": "ratio",
    "rules": "system_prompt",
}
"""Options, and the names of other libraries' options that do the most similar thing."""


def unknown(name: str) -> str:
    """Return a hint for an option that does not exist."""
    meant = [option for option, names in _CALLED_ELSEWHERE.items() if name in names.split()]
    meant += difflib.get_close_matches(name.lower(), Options.model_fields, 1, 0.7)
    helps = (
        f"did you mean {meant[0]}?"
        if meant
        else f"the options are: {', '.join(sorted(Options.model_fields))}"
    )
    return f"unknown option {name!r}; {helps}"


def validated(options: dict[str, object]) -> Options:
    """Return options from keyword arguments. Raises ``ConfigurationError`` that names each invalid
    option, and its fault or the values that it takes.
    """
    try:
        return Options.model_validate(options)
    except ValidationError as error:
        raise ConfigurationError(faults_of(error, options, TAKES, unknown)) from None
