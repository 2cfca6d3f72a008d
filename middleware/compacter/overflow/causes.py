"""The exceptions behind an exception, in the order in which they may speak for it."""

from __future__ import annotations

import builtins
import re
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final

from compacter.overflow.evidence import attribute, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_EXCEPTIONS: Final = 64
"""Exceptions of one chain that are looked at."""

_WRAPPED = (
    "original_exception",
    "original_error",
    "orig",
    "inner_exception",
    "wrapped",
    "exc",
    "exception",
    "error",
    "last_exception",
    "last_error",
    "lastError",
    "cause",
    "reason",
    "underlying",
)
_TRIES = ("errors", "exceptions", "attempts", "failures")
_RETRIED = re.compile(r"\b(?:attempts?|retr(?:y|ies|ied)|tries|tried)\b", re.IGNORECASE)
_SAYS_IT_FAILED = re.compile(
    r"fail|error|retr|attempt|exhaust|llm|model|completion|provider|\bapi\b|upstream|\bchat\b|agent|generat|invo|"
    r"unexpected|wrong|could not|unable|went|失败|错误|失敗|エラー|"
    r"오류|실패|fehler|echec|erreur|fallo|falha|erro|ошибк",
    re.IGNORECASE,
)
_WRAPPING_TYPE = re.compile(
    r"LLM|Model|Provider|Retry|API|Completion|Generat|Agent|Chat|Upstream|Inference|Invo|Client|Gateway|Wrap|Engine|Response"
)
_GENERIC: Final = (Exception, RuntimeError)


def wrapped(error: BaseException) -> Iterator[BaseException]:
    """What an exception names as its reason: a cause, a retry's last try, exceptions that it carries."""
    cause = error.__cause__
    if cause is not None:
        yield cause
    attempt = attribute(error, "last_attempt")
    if isinstance(attempt, Future) and attempt.done() and not attempt.cancelled():
        outcome = attempt.exception(timeout=0)
        if outcome is not None:
            yield outcome
    for name in _WRAPPED:
        value = attribute(error, name)
        if isinstance(value, BaseException):
            yield value
    arguments = attribute(error, "args")
    if isinstance(arguments, tuple):
        yield from (value for value in arguments[:20] if isinstance(value, BaseException))


def tries(error: BaseException) -> tuple[BaseException, ...]:
    """Exceptions of consecutive tries, the last one first: it decides."""
    if isinstance(error, BaseExceptionGroup) and not _RETRIED.search(text_of(error)):
        return ()
    return tuple(reversed(_members(error)))


def siblings(error: BaseException) -> tuple[BaseException, ...]:
    """Exceptions that a group raised at the same time: any of them may speak."""
    return _members(error) if isinstance(error, BaseExceptionGroup) and not tries(error) else ()


def context(error: BaseException) -> BaseException | None:
    """The exception that was being handled, if this one only wraps it.

    Python sets ``__context__`` on whatever is raised in a handler, also on an error that has nothing to do
    with the old one. It counts when nobody suppressed it (``from None``) and the outer exception has no
    meaning of its own: a generic type or a library's, whose words are no more than "it failed". A
    ``ValueError`` or ``KeyError`` means itself.
    """
    if error.__suppress_context__ or error.__context__ is None:
        return None
    kind = type(error)
    means_itself = kind not in _GENERIC and getattr(builtins, kind.__name__, None) is kind
    if means_itself or (
        isinstance(
            error,
            ArithmeticError | LookupError | TypeError | OSError | AssertionError | SyntaxError | ValueError,
        )
        and not _WRAPPING_TYPE.search(kind.__name__)
    ):
        return None
    text = text_of(error).strip()
    if (
        not text
        or text == text_of(error.__context__).strip()
        or _SAYS_IT_FAILED.search(text)
        or _WRAPPING_TYPE.search(kind.__name__)
    ):
        return error.__context__
    return None


def _members(error: BaseException) -> tuple[BaseException, ...]:
    for name in _TRIES:
        value = attribute(error, name)
        if isinstance(value, list | tuple):
            found = tuple(item for item in value[-MAX_EXCEPTIONS:] if isinstance(item, BaseException))
            if found:
                return found
    return ()
