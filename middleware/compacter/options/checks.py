"""Checks of the values that options take, with errors that name the remedy; for pydantic, which
checks the rest by their types.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from numbers import Real
from types import NoneType
from typing import Any, Final

from compacter.compaction.strategies import as_strategies, is_async
from compacter.errors import ConfigurationError, FunctionError, UserFunction, check_size
from compacter.lines.passages import Quotes
from compacter.memory.address import memory_of
from compacter.overflow import TokenLimit, detect_token_limit
from compacter.redaction import Redaction, redact_secrets

_LIMIT = "a TokenLimit with whole numbers or None, True, False or None"
_TEXT = "a text that is not empty"
_BOOLEAN = "True or False"
_CALLS = "a whole number of at least 0"
# Longest time limit in seconds: larger numbers are milliseconds.
_HOUR = 3600
# LangChain's {messages}, Jinja's {{ history }}, and $history of a Template.
_PLACEHOLDER = re.compile(r"(?<!\{)\{[A-Za-z_]\w*\}(?!\})|\{\{ [A-Za-z_]\w* \}\}|\$[a-z_]{3,30}\b")

TAKES: Final[Mapping[str, str]] = {
    "compact_ratio": "a number above 0 and at most 1",
    "max_retries": f"{_CALLS}, or a tenacity stop such as stop_after_delay(30)",
    "summarizer": 'None, a litellm model name, "extractive", "provider", or a function of '
    "(messages, **options) such as lambda messages, **options: "
    'client.chat.completions.create(model="...", messages=messages)',
    "summary_prompt": _TEXT,
    "max_summary_tokens": "a whole number of at least 16",
    "fallback": '"truncate", "extractive", a sequence of these, or None',
    "preserve_recent_turns": _CALLS,
    "pin": "a function of a message, or None",
    "trigger_tokens": "a size, or a function of TriggerFacts, or None",
    "prepare_tokens": "a size, or None",
    "min_calls_between": _CALLS,
    "alternate_roles": f"{_BOOLEAN}, or None",
    "adjust_max_tokens": _BOOLEAN,
    "memory": "InProcessMemory(), SQLiteMemory(path), RedisMemory(url), an address such as "
    '"sqlite:PATH" or "redis://HOST:PORT/DB", an object of your own with methods that are not '
    "async, as async calls run them in a thread, or None to turn it off",
    "strategy": "a strategy such as Summarize() or Truncate(), a function of a plan, or a list of "
    "these, not async",
    "timeout": f"a number of seconds above 0 and up to {_HOUR:,}, or None",
    "detect": f"a function of an exception that returns {_LIMIT}",
    "before_compaction": "a function of a plan, or None",
    "redact": 'a function of a text that returns it redacted, "secrets", or None',
    "recall": "a share of the window between 0 and 1 such as 0.15, a whole number of tokens, "
    "Quotes(...), or None",
    "rules": f'a list of rules, each {_TEXT}, such as ["Answer in French."]',
    "retrieved": 'two marks such as ("<context>", "</context>"), a function of (text, '
    "characters), or None",
    "conversation": f"{_TEXT}, or None",
    "logger": 'a logger, such as logging.getLogger("app") or structlog.get_logger()',
    "token_counter": "a function of a list of messages, or None",
    "focus": f"{_TEXT}, or None",
    "after_compaction": "a function of an event that returns a list of messages, or None",
    "spending": "Spending(...), or None",
    "hook": "the event and nothing else",
    "search": "a function of a question and a list of passages",
}
"""Values that each option accepts, and each function inside one."""


def as_text(result: object) -> str:
    """Check that a user's function has returned a text, and return it."""
    if not isinstance(result, str):
        raise TypeError
    return result


def as_count(result: Any) -> int:  # noqa: ANN401 - of a user's function
    """Check that a user's function has returned a number of at least 0, and return it as an
    ``int``.
    """
    count = int(result)
    if isinstance(result, bool) or not isinstance(result, Real) or count < 0:
        raise ValueError(result)
    return count


def as_answer(result: object) -> bool:
    """Return the value as ``True`` or ``False``."""
    if inspect.isawaitable(result):
        raise TypeError
    return bool(result)


ASKED = ("max_tokens", "model")
"""Options that are passed to a summarizer that has parameters of these names or takes any keyword.
"""


def taken(function: Callable[..., object], names: Iterable[str]) -> list[str]:
    """Return which of these names the function accepts as keywords; all if it takes any keyword, or
    if its signature is unknown.
    """
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:
        return list(names)
    any_name = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    return [name for name in names if any_name or name in parameters]


def function(
    shown: str,
    read: Callable[[Any], object] | None = None,
    *,
    wrap: Callable[[UserFunction], object] | None = None,
) -> Callable[[object], object]:
    """Return a check that a function can be called as ``shown``. A summarizer also gets the
    arguments of ``ASKED`` that it accepts. Values that are not callable are left to pydantic.

    ``read`` checks what the function returns. The function is then put into a ``UserFunction``,
    which ``wrap`` gets, and must not be async.
    """
    name = shown.partition("(")[0]
    positional = shown.partition(", **")[0]
    count = positional.count(",") + 1
    options = ASKED if shown != positional else ()

    def check(value: object) -> object:
        if not callable(value) or isinstance(value, _CHECKED):
            return value
        try:
            with suppress(ValueError):  # Unknown, as that of many built-in functions.
                given = dict.fromkeys(taken(value, options))
                inspect.signature(value).bind(*[[]] * count, **given)
        except TypeError as error:
            own = getattr(value, "__qualname__", type(value).__qualname__)
            raise ConfigurationError(
                f"{own} cannot be called as {shown}: {error}. It takes {TAKES[name]}"
            ) from None
        if read is None:
            return value
        if is_async(value):
            raise ValueError(f"is called as {shown} and not awaited")
        checked = UserFunction(name, value, read)
        return wrap(checked) if wrap else checked

    return check


def no_class(value: object) -> object:
    """Refuse a class where the option takes an object of this class."""
    if isinstance(value, type):
        raise ValueError  # noqa: TRY004 - pydantic reads it
    return value


class TokenCounter(UserFunction):
    """A user's function that counts the tokens of a list of messages."""

    __slots__ = ()

    def __call__(self, *given: Any) -> int:
        """Return the number; raise ``FunctionError`` if there are more messages than tokens."""
        count: int = super().__call__(*given)
        if count < len(given[0]):
            raise FunctionError(
                f"{self.option} returned {count:,} for a list of {len(given[0]):,} messages; it is "
                "a function of that list, not of a text"
            )
        return count


_NOT_MODELS = ("truncate", "shorten", "summarize", "none")
_OWN_NAMES = ("extractive", "provider")
_summarizing = function("summarizer(messages, **options)")
_deciding = function("trigger_tokens(facts)", as_answer)
_redacting = function("redact(text)", as_text, wrap=Redaction)
_searching = function("search(question, passages)")
_hearing = function("hook(event)")
_rewriting = function("retrieved(text, characters)", as_text)
_stopping = function("max_retries(retry_state)", as_answer)
_compacting = function("strategy(plan)")
_counting = function(
    "token_counter(messages)",
    as_count,
    wrap=lambda checked: TokenCounter(checked.option, checked.function, checked.read),
)


def summarizer(value: object) -> object:
    """Check a model's name, a function, or one of compacter's own names."""
    if not isinstance(value, str):
        return _summarizing(no_class(value))
    name = value.strip().lower()
    if name in _NOT_MODELS:
        raise ValueError(
            f"{value!r} is not a model: leave summarizer out to have summaries written by the "
            "wrapped call; strategy=Truncate() and strategy=Shorten() need none"
        )
    if name in _OWN_NAMES:
        return name
    if similar := difflib.get_close_matches(name, _OWN_NAMES, 1, 0.8):
        raise ValueError(f"{value!r} is not a model; did you mean {similar[0]!r}?")
    return value


def share(value: object) -> object:
    """Refuse a share above 1 that was meant in per cent, such as 70 for 0.7."""
    if isinstance(value, int) and 10 <= value <= 100:
        raise ValueError(f"takes a number above 0 and at most 1; did you mean {value / 100}?")
    return value


def summary_prompt(value: object) -> object:
    """Refuse a text with another mark for the transcript than ``{history}`` or ``%s``."""
    mark = _PLACEHOLDER.search(value) if isinstance(value, str) else None
    if mark and "{history}" not in str(value) and "%s" not in str(value):
        raise ValueError(
            f"{mark[0]} would be sent as it is; the transcript replaces {{history}} or %s, and is "
            "appended to a text without such a mark"
        )
    return value


def timeout(value: object) -> object:
    """Refuse a number that is so large that it was meant in milliseconds: the option is in
    seconds.
    """
    if isinstance(value, (int, float)) and value > _HOUR:
        guess = f"; did you mean {value / 1000:g}?" if value <= _HOUR * 1000 else ""
        raise ValueError(f"takes {TAKES['timeout']}{guess}")
    return value


def strategy(value: object) -> object:
    """Return a tuple of strategies."""
    several = as_strategies(value)
    for each in several:
        _compacting(getattr(each, "function", each.compact))
    return several


def _several(value: object) -> tuple[object, ...]:
    """Return the values of an iterable; a text, a mapping or a function is one value."""
    is_one = callable(value) or isinstance(value, (str, bytes, Mapping))
    if isinstance(value, Iterable) and not is_one:
        return tuple(value)
    return () if value is None else (value,)


def fallback(value: object) -> object:
    """Return a tuple of fallbacks. ``"extractive"`` alone is followed by ``"truncate"``."""
    parts = _several(value)
    return ("extractive", "truncate") if parts == ("extractive",) else parts


def redact(value: object) -> object:
    """Return the function of redaction."""
    return _redacting(redact_secrets if value == "secrets" else value)


def recall(value: object) -> object:
    """Return the settings of recall."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return Quotes(share=value) if value else None
        except ConfigurationError as error:
            raise ValueError(str(error).removeprefix("share: ")) from None
    if isinstance(value, Quotes):
        _searching(value.search)
    return value


def memory(value: object) -> object:
    """Check a memory, or open the one at an address."""
    if isinstance(value, str):
        return memory_of(value)
    methods = [getattr(value, name, None) for name in ("find", "save", "claim")]
    if any(map(is_async, methods)):
        raise ValueError
    return no_class(value)


def logger(value: object) -> object:
    """Check a logger. One that raises is accepted, as its exceptions are ignored."""
    try:
        is_usable = value is None or hasattr(value, "warning")
    except Exception:  # noqa: BLE001 - of the logger
        return value
    if not is_usable:
        raise ValueError
    return no_class(value)


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
        return detect_token_limit(error) or (TokenLimit() if answer else None)


def _as_limit(result: object) -> TokenLimit | bool | None:
    if isinstance(result, TokenLimit):
        if not all(each is None or as_count(each) for each in (result.limit, result.requested)):
            raise ValueError(result)
    elif not isinstance(result, (bool, NoneType)):
        raise TypeError
    return result


_detecting = function("detect(error)", _as_limit, wrap=UserDetector)


def detect(value: object) -> object:
    """Return the detector."""
    if value in (None, detect_token_limit):
        return detect_token_limit
    return _detecting(no_class(value))


def hooks(value: object) -> object:
    """Return a tuple of hooks."""
    several = _several(value)
    for hook in several:
        check_hook(hook)
    return several


def check_hook(hook: object) -> None:
    """Raise ``ConfigurationError`` if this is not a function of an event."""
    if not callable(hook):
        forms = (
            "as decorators, @compacter.on_compaction and @compacter.on_event have no parentheses; "
        )
        raise ConfigurationError(
            f"{forms if hook is None else ''}a hook is a function of the event, not {hook!r}"
        )
    _hearing(hook)


_CHECKED: Final = (UserFunction, UserDetector, Redaction)

CHECKS: Final[Mapping[str, Callable[[Any], object]]] = {
    "compact_ratio": share,
    "max_retries": lambda value: _stopping(no_class(value)),
    "summarizer": summarizer,
    "summary_prompt": summary_prompt,
    "strategy": strategy,
    "fallback": fallback,
    "pin": function("pin(message)", as_answer),
    "trigger_tokens": lambda value: _deciding(check_size(value)),
    "prepare_tokens": check_size,
    "memory": memory,
    "timeout": timeout,
    "detect": detect,
    "on_compaction": hooks,
    "on_event": hooks,
    "before_compaction": function("before_compaction(plan)"),
    "after_compaction": function("after_compaction(event)"),
    "redact": redact,
    "recall": recall,
    "retrieved": lambda value: _rewriting(no_class(value)),
    "logger": logger,
    "token_counter": _counting,
}
"""The check of each option before pydantic's own, by its type: it returns the value to use, or
raises ``ValueError``, without a text if the value is not what the option ``TAKES``."""
