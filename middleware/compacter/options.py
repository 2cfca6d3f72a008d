"""Options of ``Compacter``, validated once by pydantic."""

from __future__ import annotations

import contextlib
import difflib
import inspect
import itertools
import os
import secrets
import sys
import weakref
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from numbers import Real
from types import NoneType
from typing import Annotated, Any, Literal, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
)
from tenacity import RetryCallState
from tenacity.stop import stop_base

from compacter.compaction.summarize import Summarize
from compacter.compaction.task import CompactionPlan, CompactionStrategy, as_strategy, is_async
from compacter.errors import ConfigurationError, result_of
from compacter.locks import Lock
from compacter.memory import InProcessMemory, Memory
from compacter.messages.format import Message
from compacter.models import check_installed
from compacter.overflow import TokenLimit, detect_token_limit
from compacter.recall.passages import Quotes
from compacter.redaction import Redaction, redact_secrets

Summarizer = str | Callable[..., object] | None
PlanHook = Callable[
    [CompactionPlan], CompactionPlan | bool | Awaitable[CompactionPlan | bool | None] | None
]
Hook = Callable[..., object]
Stop = stop_base | Callable[[RetryCallState], bool]
Fallback = Literal["extractive", "truncate"]
Retrieved = tuple[str, str] | Callable[[str, int], str]
_SHARE_BEFORE = "seven eighths"
Detector = Callable[[BaseException], TokenLimit | bool | None]


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A function that was passed as an option. Its faults are a ``FunctionError`` (see
    ``result_of``).
    """

    option: str
    function: Callable[..., object]
    returns: str
    read: Callable[[Any], object]

    def __call__(self, *given: object) -> Any:  # noqa: ANN401 - of the type that ``read`` returns
        """Return the function's result, in the expected type."""
        return result_of(self.option, self.function, *given, read=self.read, returns=self.returns)


def _as_text(result: object) -> str:
    if not isinstance(result, str):
        raise TypeError
    return result


def _as_count(result: object) -> int:
    if isinstance(result, bool) or not isinstance(result, Real):
        raise TypeError
    count = int(cast("float", result))
    if count < 0:
        raise ValueError
    return count


def _as_answer(result: object) -> bool:
    if inspect.isawaitable(result):
        raise TypeError
    return bool(result)


_NOT_MODELS = {
    "truncate": "is a strategy; use strategy=Truncate(), which needs no summarizer",
    "shorten": "is a strategy; use strategy=Shorten(), which needs no summarizer",
    "summarize": (
        "is the default strategy; leave summarizer out to have summaries written by "
        "the wrapped call"
    ),
    "none": "is a text; leave summarizer out to have summaries written by the wrapped call",
}
_AS_SUMMARIZER = (
    'lambda messages, **options: client.chat.completions.create(model="...", messages=messages)'
)


def _summarizer(value: object) -> object:
    if isinstance(value, str) and value.strip():
        name = value.strip().lower()
        if name in _NOT_MODELS:
            raise ValueError(f"{value!r} {_NOT_MODELS[name]}")
        if name != "extractive" and difflib.get_close_matches(name, ["extractive"], 1, 0.8):
            raise ValueError(f"{value!r} is not a model; did you mean 'extractive'?")
        return "extractive" if name == "extractive" else value
    if value is None or (callable(value) and not isinstance(value, type)):
        if value is not None:
            _check_call(
                value,
                "summarizer(messages, **options)",
                (f"Pass a model's name, or {_AS_SUMMARIZER}"),
                ASKED,
            )
        return value
    raise ValueError(
        f'takes None, a litellm model name, "extractive", or a function of (messages, '
        f"**options) such as "
        f"{_AS_SUMMARIZER}"
    )


ASKED = ("max_tokens", "model")
"""Options that are passed to a summarizer that has parameters of these names or takes any keyword.
"""


def taken(function: Callable[..., object], names: Iterable[str]) -> list[str]:
    """Return the names that a function has parameters of; all if it takes any keyword or has no
    known signature.
    """
    try:
        parameters = inspect.signature(function).parameters
    except (ValueError, TypeError):
        return list(names)
    any_name = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    return [name for name in names if any_name or name in parameters]


def _check_call(
    function: Callable[..., object],
    shown: str,
    remedy: str,
    options: Iterable[str] = (),
    *,
    count: int = 1,
) -> None:
    """Raise ``ConfigurationError`` if a function cannot be called with ``count`` arguments and
    these options.
    """
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return
    try:
        signature.bind(*[[]] * count, **dict.fromkeys(taken(function, options)))
    except TypeError as error:
        name = getattr(function, "__qualname__", type(function).__qualname__)
        raise ConfigurationError(f"{name} cannot be called as {shown}: {error}. {remedy}") from None


def _function(
    shown: str,
    takes: str,
    returns: str = "",
    read: Callable[[Any], object] | None = None,
    *,
    count: int = 1,
    awaited: bool = False,
) -> Callable[[object], object]:
    """Return a validator of functions, called as ``shown``; ``awaited`` if they may be async.

    With ``read``, which checks what they return, it makes a ``UserFunction`` of them.
    """

    def check(value: object) -> object:
        if value is None or isinstance(value, UserFunction):
            return value
        if not callable(value):
            raise ValueError(f"takes {takes}, or None")  # noqa: TRY004 - pydantic reads it
        _check_call(value, shown, f"It takes {takes}", count=count)
        if not awaited and is_async(value):
            raise ValueError(
                f"is called as {shown} and not awaited; it takes {takes} that is not async"
            )
        return (
            value if read is None else UserFunction(shown.partition("(")[0], value, returns, read)
        )

    return check


def _number(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("takes a number, not a bool")  # noqa: TRY004 - pydantic reads it
    return value


_Number = BeforeValidator(_number)

_stopping = _function(
    "max_retries(retry_state)", "a whole number or a tenacity stop", "True or False", _as_answer
)


def _retries(value: object) -> object:
    if isinstance(value, stop_base):
        return value
    if callable(value) and not isinstance(value, type):
        return _stopping(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(
            "takes a whole number of at least 0, or a tenacity stop such as stop_after_delay(30)"
        )
    return value


def _strategy(value: object) -> object:
    parts = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if not parts:
        raise ValueError(
            "takes a strategy such as Summarize(), a function of a task, or a sequence of them"
        )
    return tuple(map(as_strategy, parts))


def _several(value: object) -> tuple[object, ...]:
    """Return the values of an iterable; a text, a mapping or a function is one value."""
    one = (
        isinstance(value, (str, bytes, Mapping))
        or callable(value)
        or not isinstance(value, Iterable)
    )
    return (value,) if one else tuple(cast("Iterable[object]", value))


def _fallback(value: object) -> object:
    if value is None:
        return ()
    parts = _several(value)
    if not all(part in ("extractive", "truncate") for part in parts):
        raise ValueError('takes "truncate", "extractive", a sequence of these, or None')
    return ("extractive", "truncate") if parts == ("extractive",) else parts


_redacting = _function(
    "redact(text)", 'a function of a text that returns it redacted, "secrets"', "a text", _as_text
)


def _redact(value: object) -> object:
    if value is None:
        return value
    if isinstance(value, Redaction):
        return value
    return Redaction(cast("Any", _redacting(redact_secrets if value == "secrets" else value)))


def _trigger(value: object) -> object:
    if value is None:
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise ValueError("takes a number of tokens (an int) or a share of the window such as 0.8")
    if isinstance(value, float) and value > 1:
        if value.is_integer():
            return int(value)
        raise ValueError(
            "is a share of the window if a float, so between 0 and 1; pass an int "
            "for a number of tokens"
        )
    return value


def _prepare(value: object, info: ValidationInfo) -> object:
    begin: Any = _trigger(value)
    trigger: Any = info.data.get("trigger_tokens")
    # A share cannot be compared with a number of tokens before the window is known.
    if begin is not None and type(begin) is type(trigger) and begin >= trigger:
        raise ValueError(
            f"must be below trigger_tokens, which is {trigger!r}: a compaction that is made ahead "
            f"takes some calls; {_SHARE_BEFORE} of it leaves room for them"
        )
    return begin


_ranking = _function(
    "rank(question, passages)", "a function of a question and a list of passages", count=2
)


_embedding = _function(
    "embed(texts)", "the name of an embedding model or a function of a list of texts", awaited=True
)


def _recall(value: object) -> object:
    if type(value) in (int, float) and value == 0:
        return None
    try:
        quotes = value if value is None or isinstance(value, Quotes) else Quotes(share=value)  # type: ignore[arg-type]
    except ValidationError:
        raise ValueError(
            "takes a share of the window between 0 and 1 such as 0.15, a whole number of "
            "tokens, Quotes(...), or None"
        ) from None
    if quotes is not None:
        _ranking(quotes.rank)
        if isinstance(quotes.embed, str):
            check_installed(f"embed={quotes.embed!r}", "pass a function as embed")
        else:
            _embedding(quotes.embed)
    return quotes


_shortening = _function(
    "retrieved(text, characters)",
    "two marks or a function of a text and a size",
    "a text",
    _as_text,
    count=2,
)


def _retrieved(value: object) -> object:
    if value is None or (callable(value) and not isinstance(value, type)):
        return _shortening(value)
    if (
        isinstance(value, (tuple, list))
        and len(value) == 2
        and all(isinstance(mark, str) and mark for mark in value)
    ):
        return tuple(value)
    raise ValueError(
        'takes two marks such as ("<context>", "</context>"), a function of (text, '
        "characters), or None"
    )


def _rules(value: object) -> object:
    rules = _several(value)
    if not isinstance(value, str) and all(isinstance(rule, str) and rule.strip() for rule in rules):
        return rules
    raise ValueError(
        'takes a list of rules, each a text that is not empty, such as ["Answer in French."]'
    )


def _memory(value: object) -> object:
    if value is not None and (isinstance(value, type) or not isinstance(value, Memory)):
        raise ValueError(
            "takes InProcessMemory(), SQLiteMemory(path), RedisMemory(url), your own "
            "Memory, or None to turn it off"
        )
    if value is not None and any(map(is_async, (value.find, value.save, value.claim))):
        raise ValueError(
            "has async methods; name them afind, asave and aclaim, beside the others "
            "(see BaseMemory)"
        )
    return value


def _logger(value: object) -> object:
    try:
        usable = value is None or all(
            callable(getattr(value, level)) for level in ("debug", "info", "warning")
        )
    except AttributeError:
        usable = False
    except Exception:  # noqa: BLE001 - exceptions of a logger are ignored
        return value
    if usable and not isinstance(value, type):
        return value
    raise ValueError('takes a logger, such as logging.getLogger("app") or structlog.get_logger()')


@dataclass(frozen=True, slots=True)
class UserDetector:
    """``detect_token_limit``, after the user's own function; True from it is a token limit without
    numbers.
    """

    function: Callable[[BaseException], TokenLimit | bool | None]
    on_error: Callable[[BaseException], None] | None = None
    """Called with the ``FunctionError`` if the function fails, which counts as ``None``."""

    def __call__(self, error: BaseException) -> TokenLimit | None:
        """Return the token limit in ``error``; ``None`` if it is another error."""
        try:
            answer = self.function(error)
        except Exception as fault:  # noqa: BLE001 - a broken detector must not hide the provider's error
            answer = None
            if self.on_error is not None:
                self.on_error(fault)
        if isinstance(answer, TokenLimit):
            return answer
        if answer is False:
            return None
        found = detect_token_limit(error)
        return (
            TokenLimit(limit=None, requested=None, kind="input")
            if found is None and answer is True
            else found
        )


def _as_limit(result: object) -> TokenLimit | bool | None:
    if isinstance(result, TokenLimit):
        wholes: tuple[object, ...] = (result.limit, result.requested)
        parts: tuple[object, ...] = (result.input_tokens, result.output_tokens)
        for least, numbers in ((1, wholes), (0, parts)):
            if not all(
                number is None or (isinstance(number, int) and number >= least)
                for number in numbers
            ):
                raise ValueError(result)
    elif not isinstance(result, (bool, NoneType)):
        raise TypeError
    return result


_LIMIT = "a TokenLimit with whole numbers or None, True, False or None"
_detector = _function(
    "detect(error)", f"a function of an exception that returns {_LIMIT}", _LIMIT, _as_limit
)


def _detect(value: object) -> object:
    if value is None or value is detect_token_limit or isinstance(value, UserDetector):
        return value or detect_token_limit
    return UserDetector(cast("Detector", _detector(value)))


def _functions(value: object) -> object:
    if value is None:
        return ()
    several = _several(value)
    for one in several:
        check_hook(one)
    return several


def check_hook(hook: object) -> None:
    """Raise ``ConfigurationError`` if this is not a function of an event."""
    if not callable(hook):
        raise ConfigurationError(f"a hook is a function of the event, not {hook!r}")
    _check_call(hook, "hook(event)", "A hook takes the event and nothing else")


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

    compact_ratio: Annotated[float, _Number] = Field(default=0.7, gt=0, le=1)
    """Share of the size of all messages that may be folded, oldest first: more than 0, at most 1.
    More is folded if the provider stated its numbers and that is needed to fit in one round."""
    max_retries: Annotated[int | Stop, PlainValidator(_retries)] = 3
    """Compactions per call, so at most ``1 + max_retries`` requests; 0 to send events only. Or a
    tenacity stop such as ``stop_after_delay(30)`` (seconds)."""
    summarizer: Annotated[Summarizer, PlainValidator(_summarizer)] = None
    """Writer of summaries: ``None`` for the wrapped call itself, the name of a litellm model, a
    function ``(messages,
    **options)`` that returns text or a completion (sync or async), or ``"extractive"`` for no
    model."""
    summary_prompt: str | None = Field(default=None, min_length=1)
    """Instruction in place of the built-in one; ``{history}`` or ``%s`` is replaced by the
    transcript, which is otherwise appended."""
    max_summary_tokens: int = Field(default=4096, ge=16)
    """Largest size of a summary in tokens, at least 16; capped to a quarter of a known window (half
    of it without a model) and to the size of the messages that it replaces."""
    strategy: Annotated[tuple[CompactionStrategy, ...], PlainValidator(_strategy)] = Field(
        default_factory=lambda: (Summarize(),)
    )
    """One strategy, or several that are tried in order until the request fits."""
    fallback: Annotated[tuple[Fallback, ...], PlainValidator(_fallback)] = (
        "extractive",
        "truncate",
    )
    """Replacement for a summary that fails: ``"extractive"``, ``"truncate"``, or both in order;
    ``None`` to raise ``CompactionError``."""
    preserve_recent_turns: Annotated[int, _Number] = Field(default=0, ge=0)
    """Number of newest turns to keep verbatim as long as the result fits."""
    pin: Annotated[
        Callable[[Message], object] | None,
        PlainValidator(
            _function("pin(message)", "a function of a message", "True or False", _as_answer)
        ),
    ] = None
    """Predicate that returns whether to keep a message verbatim, in its order, with its tool call
    or results."""
    trigger_tokens: Annotated[int | float | None, PlainValidator(_trigger)] = None
    """Size at which to compact before the call: an int for tokens, or a share of the model's window
    such as ``0.8``."""
    prepare_tokens: Annotated[int | float | None, PlainValidator(_prepare)] = None
    """Size at which the next compaction is made ahead, in the background: an int for tokens, or a
    share of the window such as ``0.7``; below ``trigger_tokens``. ``None`` to make none ahead."""
    min_calls_between: Annotated[int, _Number] = Field(default=3, ge=0)
    """Number of calls of a conversation to wait before that trigger compacts, or tries to, again. A
    token limit is handled at once."""
    alternate_roles: bool | None = None
    """Whether user and assistant must alternate strictly; ``None`` for what the message format
    needs."""
    adjust_max_tokens: bool = True
    """Whether to lower a too large output limit, in place of folding, if the input alone fits."""
    memory: Annotated[Memory | None, PlainValidator(_memory)] = Field(
        default_factory=InProcessMemory
    )
    """Store of compactions, for later calls; ``None`` to turn it off."""
    timeout: Annotated[float | None, _Number] = Field(default=None, gt=0)
    """Limit for the summaries of one call, in seconds; after it, ``fallback`` is used. ``None`` for
    no limit."""
    detect: Annotated[Callable[[BaseException], TokenLimit | None], PlainValidator(_detect)] = (
        Field(default=None, validate_default=True)
    )
    """Detector that is called before the built-in one: ``exception -> TokenLimit``, True, False, or
    ``None`` to leave the decision to that one."""
    on_compaction: Annotated[tuple[Hook, ...], PlainValidator(_functions)] = ()
    """Function or functions, sync or async, called with each ``CompactionEvent``."""
    on_event: Annotated[tuple[Hook, ...], PlainValidator(_functions)] = ()
    """Function or functions, sync or async, called with every event."""
    before_compaction: Annotated[
        PlanHook | None,
        PlainValidator(_function("before_compaction(plan)", "a function of a plan", awaited=True)),
    ] = None
    """Called with each ``CompactionPlan``: returns a changed plan, False to veto the compaction, or
    anything else to allow it."""
    redact: Annotated[Callable[[str], str] | None, PlainValidator(_redact)] = None
    """Function from text to text, applied to all text for summarizers, events, memory and quotes;
    ``"secrets"`` for the built-in patterns."""
    recall: Annotated[Quotes | None, PlainValidator(_recall)] = Quotes()
    """Room for quotes of folded messages: a share of a known window (default: 0.15, up to 4,000
    tokens), or an int for tokens; ``Quotes(...)`` for more settings; ``None`` or 0 for no quotes.
    """
    rules: Annotated[tuple[str, ...], PlainValidator(_rules)] = ()
    """Standing rules that every summary contains verbatim; a compaction without room for them is
    refused."""
    retrieved: Annotated[Retrieved | None, PlainValidator(_retrieved)] = None
    """Retrieved text in the last user message that may be shortened if that message is too long:
    the text between two marks such as ``("<context>", "</context>")``, or a function ``(text,
    characters) -> text``. Where that is not enough, results of tools that stand beside the user's
    text. A receipt states how much was left out. ``None`` never to change that message."""
    conversation: str | None = Field(default=None, min_length=1)
    """Name of the conversation in events, for one call or for a copy:
    ``compacter_options={"conversation": "..."}``, ``replace(conversation="...")``. ``None`` for
    that of the ``History``, else a digest of the first three messages."""
    # Of any class: structlog's is configured by the program.
    logger: Annotated[Any, PlainValidator(_logger)] = None
    """Logger of the standard library or of structlog; gets sizes and counts, never a message's
    text. ``None`` for structlog if the program has configured it, else the standard library's
    logger ``compacter``."""
    summary_request: Literal["transcript", "native"] = "transcript"
    """``"transcript"`` to send the messages as a fenced transcript. ``"native"`` to send the
    messages themselves, most of which the provider then reads from its prompt cache; with another
    ``summarizer`` or with ``redact`` it counts as ``"transcript"``."""
    token_counter: Annotated[
        Callable[[Sequence[Message]], int] | None,
        PlainValidator(
            _function(
                "token_counter(messages)",
                "a function of a list of messages",
                "a number of tokens",
                _as_count,
            )
        ),
    ] = None
    """Token count for the trigger and for ``History``: ``messages -> tokens``. ``None`` for the
    usage of replies, and estimates."""

    def __repr__(self) -> str:
        return f"Options({self.changed})"

    @property
    def changed(self) -> str:
        """Options that differ from their defaults, written as arguments of a call."""
        usual = type(self).model_construct()
        shown = []
        for name, value in self:
            if name == "memory" and type(value) is InProcessMemory:
                continue
            if value != (detect_token_limit if name == "detect" else getattr(usual, name)):
                shown.append(f"{name}={_shown(value)}")
        return ", ".join(shown)

    def replaced(self, options: Mapping[str, object]) -> Options:
        """Return a copy with some options replaced. Raises ``ConfigurationError`` as ``validated``
        does.
        """
        return validated({**dict(self), **options})

    @property
    def redaction(self) -> Callable[[str], str] | None:
        """``redact``, which decodes escape sequences by itself."""
        return self.redact

    @property
    def memory_scope(self) -> str:
        """Text that is equal for two ``Options`` only if each may use the summaries of the other.

        It is the same after a restart, except for values without an importable name: a closure, a
        bound method, a partial, a lambda and an object with state are each equal only to
        themselves, in this process. A summarizer object is identified by its class, whichever
        object wrote the summary.
        """
        known = {name: _identity(value) for name, value in self if name not in _BESIDE_SUMMARIES}
        by_class = callable(self.summarizer) and not hasattr(self.summarizer, "__name__")
        if by_class and not isinstance(self.summarizer, partial):
            known["summarizer"] = _identity(type(self.summarizer))
        return repr(known)


_BESIDE_SUMMARIES = frozenset(
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
    }
)
"""Options that do not matter to what a summary says. ``Options`` that differ in any other share no
summary."""
_PLAIN = (type(None), bool, int, float, str, bytes)
_PROCESS = secrets.token_hex(8)
_COUNTER = itertools.count()
_TOKENS: dict[int, tuple[weakref.ref[Any], str]] = {}
_LOCK = Lock()


def _shown(value: object) -> str:
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_shown, value))}]"
    inner: Any = value
    while hasattr(inner, "function"):
        inner = inner.function
    return getattr(inner, "__qualname__", None) or repr(inner)


def _identity(value: object) -> str:
    """Return a text that identifies a setting: the content of a plain value, the name of a
    function.
    """
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, (UserFunction, Redaction)):
        return _identity(value.function)
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(_identity, value))})"
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(_identity, value)))}}}"
    parameters = getattr(type(value), "__dataclass_params__", None)
    if is_dataclass(value) and not isinstance(value, type) and parameters and parameters.frozen:
        members = (_identity(getattr(value, member.name)) for member in fields(value))
        return f"{_identity(type(value))}({', '.join(members)})"
    module = getattr(value, "__module__", None)
    name = getattr(value, "__qualname__", None)
    found: object = (
        sys.modules.get(module) if isinstance(module, str) and isinstance(name, str) else None
    )
    for part in name.split(".") if found is not None and isinstance(name, str) else ():
        found = getattr(found, part, None)
    return f"{module}.{name}" if found is value else _token(value)


def _token(value: object) -> str:
    """Return a text that identifies this object in this process; it is never used for another
    object.
    """
    with _LOCK:
        known = _TOKENS.get(id(value))
        if known is not None and known[0]() is value:
            return known[1]
        # With the process id, because a forked child continues its parent's counter.
        token = f"object {_PROCESS}-{os.getpid()}-{next(_COUNTER)}"
        with contextlib.suppress(TypeError):  # Without a weak reference, another text each time.
            _TOKENS[id(value)] = weakref.ref(value, partial(_forget, id(value))), token
        return token


def _forget(key: int, _: object) -> None:
    _TOKENS.pop(key, None)


def validated(options: dict[str, object]) -> Options:
    """Return options from keyword arguments. Raises ``ConfigurationError`` that names each invalid
    one.
    """
    try:
        return Options.model_validate(options)
    except ValidationError as error:
        lines = []
        for problem in error.errors():
            name = ".".join(map(str, problem["loc"][:1]))
            if problem["type"] == "extra_forbidden":
                similar = difflib.get_close_matches(name, Options.model_fields, 1, 0.7)
                known = (
                    f"did you mean {similar[0]}?"
                    if similar
                    else f"the options are: {', '.join(sorted(Options.model_fields))}"
                )
                lines.append(f"unknown option {name!r}; {known}")
            else:
                lines.append(
                    f"{name}: {problem['msg'].removeprefix('Value error, ')} (got "
                    f"{problem['input']!r})"
                )
        raise ConfigurationError("; ".join(lines)) from None
