"""Checks of the values that options take, with errors that name the remedy; for pydantic."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from types import NoneType
from typing import Any, Final, cast

from pydantic import ValidationError, ValidationInfo
from tenacity.stop import stop_base

from compacter.compaction.task import as_strategies, is_async
from compacter.errors import ConfigurationError, check_tokens, result_of
from compacter.memory import Memory
from compacter.memory.address import memory_of
from compacter.models import check_installed
from compacter.overflow import TokenLimit, detect_token_limit
from compacter.recall.passages import Quotes
from compacter.redaction import Redaction, redact_secrets

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


def as_count(result: object) -> int:
    """Return a whole number of at least 0."""
    if isinstance(result, bool) or not isinstance(result, Real):
        raise TypeError
    count = int(cast("float", result))
    if count < 0:
        raise ValueError
    return count


def as_answer(result: object) -> bool:
    """Return a truth value."""
    if inspect.isawaitable(result):
        raise TypeError
    return bool(result)


_LEAVE_OUT = "leave summarizer out to have summaries written by the wrapped call"
_NOT_MODELS = {
    "truncate": "is a strategy; use strategy=Truncate(), which needs no summarizer",
    "shorten": "is a strategy; use strategy=Shorten(), which needs no summarizer",
    "summarize": f"is the default strategy; {_LEAVE_OUT}",
    "none": f"is a text; {_LEAVE_OUT}",
}
_AS_SUMMARIZER = (
    'lambda messages, **options: client.chat.completions.create(model="...", messages=messages)'
)


def summarizer(value: object) -> object:
    """Check a model's name, a function, or ``"extractive"``."""
    if isinstance(value, str) and value.strip():
        name = value.strip().lower()
        if name in _NOT_MODELS:
            raise ValueError(f"{value!r} {_NOT_MODELS[name]}")
        if name != "extractive" and difflib.get_close_matches(name, ["extractive"], 1, 0.8):
            raise ValueError(f"{value!r} is not a model; did you mean 'extractive'?")
        return "extractive" if name == "extractive" else value
    if value is None:
        return value
    if callable(value) and not isinstance(value, type):
        remedy = f"Pass a model's name, or {_AS_SUMMARIZER}"
        _check_call(value, "summarizer(messages, **options)", remedy, ASKED)
        return value
    raise ValueError(
        f'takes None, a litellm model name, "extractive", or a function of (messages, **options) '
        f"such as {_AS_SUMMARIZER}"
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
) -> None:
    """Raise ``ConfigurationError`` if a function cannot be called as ``shown``, and with these
    options.
    """
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return
    try:
        count = len(shown.partition(", **")[0].split(","))
        signature.bind(*[[]] * count, **dict.fromkeys(taken(function, options)))
    except TypeError as error:
        name = getattr(function, "__qualname__", type(function).__qualname__)
        raise ConfigurationError(f"{name} cannot be called as {shown}: {error}. {remedy}") from None


def function(
    shown: str,
    takes: str,
    returns: str = "",
    read: Callable[[Any], object] | None = None,
    *,
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
        _check_call(value, shown, f"It takes {takes}")
        if not awaited and is_async(value):
            raise ValueError(
                f"is called as {shown} and not awaited; it takes {takes} that is not async"
            )
        return (
            value if read is None else UserFunction(shown.partition("(")[0], value, returns, read)
        )

    return check


def share(value: object) -> object:
    """Refuse a share that was given in per cent."""
    if isinstance(value, int) and 10 <= value <= 100:
        raise ValueError(f"takes a share, more than 0 and at most 1; did you mean {value / 100}?")
    return value


def retries(value: object) -> object:
    """Check a whole number or a tenacity stop."""
    if isinstance(value, stop_base):
        return value
    if callable(value) and not isinstance(value, type):
        takes = "a whole number or a tenacity stop"
        return function("max_retries(retry_state)", takes, "True or False", as_answer)(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(
            "takes a whole number of at least 0, or a tenacity stop such as stop_after_delay(30)"
        )
    return value


def strategy(value: object) -> object:
    """Return a tuple of strategies."""
    return as_strategies([value])


def _several(value: object) -> tuple[object, ...]:
    """Return the values of an iterable; a text, a mapping or a function is one value."""
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping)):
        return (value,) if callable(value) else tuple(value)
    return (value,)


def fallback(value: object) -> object:
    """Return a tuple of fallbacks; of ``"extractive"``, with the one after it."""
    parts = () if value is None else _several(value)
    if not all(part in ("extractive", "truncate") for part in parts):
        raise ValueError('takes "truncate", "extractive", a sequence of these, or None')
    return ("extractive", "truncate") if parts == ("extractive",) else parts


def redact(value: object) -> object:
    """Return the function of redaction."""
    if value is None or isinstance(value, Redaction):
        return value
    takes = 'a function of a text that returns it redacted, "secrets"'
    check = function("redact(text)", takes, "a text", _as_text)
    return Redaction(cast("Any", check(redact_secrets if value == "secrets" else value)))


_PER_CENT = 100  # A trigger of fewer tokens was meant as a share.
_deciding = function(
    "trigger_tokens(facts)", "a size, or a function of TriggerFacts", "True or False", as_answer
)
_ranking = function("rank(question, passages)", "a function of a question and a list of passages")
_embedding = function(
    "embed(texts)", "the name of an embedding model or a function of a list of texts", awaited=True
)


def trigger(value: object) -> object:
    """Check a number of tokens, a share of the window, or a function."""
    return _deciding(value) if callable(value) else _size(value)


def _size(value: object) -> object:
    if value is None:
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise ValueError("takes a number of tokens (an int) or a share of the window such as 0.8")
    if isinstance(value, int):
        check_tokens(value, _PER_CENT)
    if isinstance(value, float) and value > 1:
        if value.is_integer():
            return check_tokens(int(value))
        raise ValueError("is a share of the window if a float; pass an int for tokens")
    return value


def prepare(value: object, info: ValidationInfo) -> object:
    """Check the same, which must be below the trigger."""
    begin: Any = _size(value)
    limit: Any = info.data.get("trigger_tokens")
    # A share cannot be compared with a number of tokens before the window is known.
    if begin is not None and type(begin) is type(limit) and begin >= limit:
        raise ValueError(
            f"must be below trigger_tokens, which is {limit!r}: a compaction that is made ahead "
            "takes some calls; seven eighths of it leaves room for them"
        )
    return begin


def recall(value: object) -> object:
    """Return the settings of recall."""
    if type(value) in (int, float) and value == 0:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        check_tokens(value)
    quotes: Any = value
    try:
        if value is not None and not isinstance(value, Quotes):
            quotes = Quotes(share=quotes)
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


def retrieved(value: object) -> object:
    """Check two marks, or a function."""
    if value is None or (callable(value) and not isinstance(value, type)):
        takes = "two marks or a function of a text and a size"
        return function("retrieved(text, characters)", takes, "a text", _as_text)(value)
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


def rules(value: object) -> object:
    """Return a tuple of rules."""
    rules = _several(value)
    if not isinstance(value, str) and all(isinstance(rule, str) and rule.strip() for rule in rules):
        return rules
    raise ValueError(
        'takes a list of rules, each a text that is not empty, such as ["Answer in French."]'
    )


def memory(value: object) -> object:
    """Check a memory, or open the one at an address."""
    if isinstance(value, str):
        return memory_of(value)
    if value is not None and (isinstance(value, type) or not isinstance(value, Memory)):
        raise ValueError(
            "takes InProcessMemory(), SQLiteMemory(path), RedisMemory(url), an address such as "
            '"sqlite:PATH" or "redis://HOST:PORT/DB", your own Memory, or None to turn it off'
        )
    if value is not None and any(map(is_async, (value.find, value.save, value.claim))):
        raise ValueError(
            "has async methods; a memory's methods are plain functions, which async calls run in "
            "a thread"
        )
    return value


def logger(value: object) -> object:
    """Check a logger."""
    levels = () if value is None else ("debug", "info", "warning")
    try:
        usable = all(callable(getattr(value, level, None)) for level in levels)
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
    on_error: Callable[[BaseException], None] | None = field(default=None, compare=False)
    """Called with the ``FunctionError`` if the function fails, which counts as ``None``."""

    def __call__(self, error: BaseException) -> TokenLimit | None:
        """Return the token limit in ``error``; ``None`` if it is another error."""
        try:
            answer = self.function(error)
        except Exception as fault:  # noqa: BLE001 - the provider's error counts
            answer = None
            if self.on_error is not None:
                self.on_error(fault)
        if isinstance(answer, TokenLimit):
            return answer
        if answer is False:
            return None
        found = detect_token_limit(error)
        if found is None and answer:
            return TokenLimit(limit=None, requested=None, kind="input")
        return found


def _as_limit(result: object) -> TokenLimit | bool | None:
    if isinstance(result, TokenLimit):
        totals = (result.limit, result.requested)
        numbers = (*totals, result.input_tokens, result.output_tokens)
        # The parts may be 0.
        if 0 in totals or any(each is not None and as_count(each) != each for each in numbers):
            raise ValueError(result)
    elif not isinstance(result, (bool, NoneType)):
        raise TypeError
    return result


_LIMIT = "a TokenLimit with whole numbers or None, True, False or None"


def detect(value: object) -> object:
    """Return the detector."""
    if value is None or value is detect_token_limit or isinstance(value, UserDetector):
        return value or detect_token_limit
    takes = f"a function of an exception that returns {_LIMIT}"
    check = function("detect(error)", takes, _LIMIT, _as_limit)
    return UserDetector(cast("Detector", check(value)))


def functions(value: object) -> object:
    """Return a tuple of hooks."""
    hooks = () if value is None else _several(value)
    for hook in hooks:
        check_hook(hook)
    return hooks


def check_hook(hook: object) -> None:
    """Raise ``ConfigurationError`` if this is not a function of an event."""
    if hook is None:
        raise ConfigurationError(
            "a hook is a function of the event; as decorators, @compacter.on_compaction and "
            "@compacter.on_event have no parentheses"
        )
    if not callable(hook):
        raise ConfigurationError(f"a hook is a function of the event, not {hook!r}")
    _check_call(hook, "hook(event)", "A hook takes the event and nothing else")


CHECKS: Final[Mapping[str, Callable[[Any], object]]] = {
    "max_retries": retries,
    "summarizer": summarizer,
    "strategy": strategy,
    "fallback": fallback,
    "pin": function("pin(message)", "a function of a message", "True or False", as_answer),
    "trigger_tokens": trigger,
    "memory": memory,
    "detect": detect,
    "on_compaction": functions,
    "on_event": functions,
    "before_compaction": function("before_compaction(plan)", "a function of a plan", awaited=True),
    "redact": redact,
    "recall": recall,
    "rules": rules,
    "retrieved": retrieved,
    "logger": logger,
    "token_counter": function(
        "token_counter(messages)",
        "a function of a list of messages",
        "a number of tokens",
        as_count,
    ),
}
"""The check of each option whose type pydantic cannot say: it returns the value to use, or raises
``ValueError``."""
