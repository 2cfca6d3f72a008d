"""What an exception says of itself, whatever SDK it comes from, and which exceptions stand behind it.

Nothing is imported from an SDK and nothing is fetched: of a response only what was read already is looked at.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

from compacter.overflow.text import BREAK, MAX_TEXT, bounded

MAX_EXCEPTIONS: Final = 64
"""Exceptions of one chain that are looked at."""

_MAX_NODES: Final = 300
_MAX_DEPTH: Final = 12
_MAX_MEMBERS: Final = 60


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_STATUS_NAMES: Final = _names("status_code http_status status code http_code httpStatusCode statusCode")
_CODE_NAMES: Final = _names("code error_code errcode err_code type error_type status reason name grpc_status_code")
_TEXT_NAMES: Final = _names("message msg detail details description user_message error_message errorMessage reason")
_BODY_NAMES: Final = _names(
    "body error json_body doc response data http_body payload raw response_body responseBody content"
)
_WRAPPED_NAMES: Final = _names(
    "original_exception original_error orig inner_exception wrapped exc exception error last_exception last_error "
    "cause reason underlying"
)
_GROUP_NAMES: Final = _names("errors exceptions attempts failures")

# Members of a body that repeat the request: what the caller's own messages say proves nothing.
_ECHOED: Final = frozenset(
    _names(
        "messages contents request request_body requestbody headers tools history kwargs traceback input prompt system"
    )
)
_CODE_KEYS: Final = frozenset(
    _names(
        "code type status reason error_code errcode err_code status_code error_type statuscode httpstatuscode "
        "errorcode __type errortype"
    )
)
_STATUS_KEYS: Final = frozenset(_names("status_code statuscode httpstatuscode status code http_status raw_status_code"))

_CLASS_NAME: Final = re.compile(r"\b[A-Za-z_][A-Za-z0-9_.]{0,80}?[a-z](?:Error|Exception|Fault)(?:Exception)?\b")
_RETRIED: Final = re.compile(r"\b(?:attempts?|retr(?:y|ies|ied)|tries|tried)\b", re.IGNORECASE)
_NETWORK: Final = re.compile(
    r"Timeout|TimedOut|Connect(?:ion|or|Error|$)|Disconnected|Protocol(?:Error)|ReadError|WriteError|Network|SSL|DNS"
    r"|IncompleteRead|ChunkedEncoding|Unavailable"
)
_FAILED: Final = re.compile(
    r"fail|error|retr(?:y|ies)|attempts?\b|exhaust|completion|provider|upstream|generat|unexpected|went wrong|could not"
    r"|unable|失败|错误|失敗|エラー|오류|실패|fehler|echec|erreur|fallo|falha|erro|ошибк",
    re.IGNORECASE,
)
_WRAPPING_TYPE: Final = re.compile(
    r"LLM|Model|Provider|Retry|API|Completion|Generat|Agent|Chat|Upstream|Inference|Invo|Client|Gateway|Wrap|Engine"
)


@dataclass(frozen=True, slots=True)
class Signals:
    """What an exception, a reply or a text gives to judge it by."""

    text: str = ""
    status: int | None = None
    codes: frozenset[str] = frozenset()
    types: tuple[str, ...] = ()

    @property
    def network(self) -> bool:
        """Whether its class is one of the network: a connection failed or a time ran out."""
        return bool(self.types) and _NETWORK.search(self.types[0].rpartition(".")[2]) is not None


def signals_of(error: BaseException) -> Signals:
    """What this one exception says, those behind it left aside."""
    pieces = _Pieces()
    pieces.add_text(_text_of(error))
    for name in _TEXT_NAMES:
        value = _attribute(error, name)
        if isinstance(value, str | bytes):
            pieces.add_text(_as_text(value))
    for argument in _arguments(error):
        if not isinstance(argument, BaseException):
            pieces.add_body(argument)
    for name in _BODY_NAMES:
        value = _attribute(error, name)
        if value is not None and not isinstance(value, BaseException) and not callable(value):
            pieces.add_body(_already_read(value))
    for name in _CODE_NAMES:
        pieces.add_code(_attribute(error, name))
    return pieces.signals(_status_of(error), type(error))


def signals_of_body(body: object, *, status: int | None = None, code: str | None = None) -> Signals:
    """What a piece of a reply, or a text, says."""
    pieces = _Pieces()
    pieces.add_code(code)
    pieces.add_body(body)
    return pieces.signals(status, None)


# -- exceptions behind an exception -----------------------------------------------------------------------------------


def reasons(error: BaseException) -> Iterator[BaseException]:
    """What an exception names as its reason: its cause, a retry's last attempt, exceptions that it carries."""
    if error.__cause__ is not None:
        yield error.__cause__
    attempt = _attribute(error, "last_attempt")
    if isinstance(attempt, Future) and attempt.done() and not attempt.cancelled():
        outcome = attempt.exception(timeout=0)
        if outcome is not None:
            yield outcome
    for name in _WRAPPED_NAMES:
        value = _attribute(error, name)
        if isinstance(value, BaseException):
            yield value
    yield from (value for value in _arguments(error) if isinstance(value, BaseException))
    members = _members(error)
    if members and not siblings(error):
        yield members[-1]  # of several tries the last one decides


def siblings(error: BaseException) -> tuple[BaseException, ...]:
    """Exceptions that a group raised at the same time; none for a group of consecutive tries."""
    if not isinstance(error, BaseExceptionGroup) or _RETRIED.search(_text_of(error)):
        return ()
    return _members(error)


def handled(error: BaseException) -> BaseException | None:
    """The exception that was being handled, if this one only wraps it.

    Python sets ``__context__`` on whatever is raised in a handler, also on an error that has nothing to do with the
    old one, such as a time-out of the next request. It counts when nobody suppressed it (``from None``) and the newer
    exception says no more than "it failed": no status of its own, no network, no ``ValueError`` or ``KeyError``.
    """
    old, kind = error.__context__, type(error)
    if error.__suppress_context__ or old is None or _status_of(error) is not None:
        return None
    bases = [base.__name__ for base in kind.__mro__ if base.__module__ != "builtins"]
    if any(_NETWORK.search(name) for name in bases) or isinstance(error, OSError):
        return None
    wraps = _WRAPPING_TYPE.search(kind.__name__) is not None
    if kind not in {Exception, RuntimeError} and not wraps:
        if getattr(builtins, kind.__name__, None) is kind:
            return None
        if isinstance(error, ArithmeticError | LookupError | TypeError | AssertionError | ValueError):
            return None
    text = _text_of(error).strip()
    same = not text or text == _text_of(old).strip()
    return old if same or wraps or _FAILED.search(text) else None


def _members(error: BaseException) -> tuple[BaseException, ...]:
    for name in _GROUP_NAMES:
        value = _attribute(error, name)
        if isinstance(value, list | tuple):
            found = tuple(item for item in value[-MAX_EXCEPTIONS:] if isinstance(item, BaseException))
            if found:
                return found
    return ()


# -- pieces of one exception ------------------------------------------------------------------------------------------


class _Pieces:
    """Texts, codes and a status, picked up within fixed bounds."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}
        self._codes: set[str] = set()
        self._statuses: list[int] = []
        self._left = MAX_TEXT
        self._nodes = _MAX_NODES

    def add_text(self, text: str) -> None:
        text = bounded(text).strip()
        if text and self._left > 0 and text not in self._texts:
            self._left -= len(text)
            self._texts[text] = None

    def add_code(self, value: object) -> None:
        if not isinstance(value, str | int | None):
            value = _attribute(value, "value")  # an enum's
        if isinstance(value, str) and 0 < len(value) <= 100 and " " not in value:
            self._codes.add(value.lower())
        elif isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**12:
            self._codes.add(str(value))

    def add_body(self, body: object) -> None:
        for text in self._walk(body, "", _MAX_DEPTH):
            self.add_text(text)

    def signals(self, status: int | None, kind: type | None) -> Signals:
        if status is None and self._statuses:
            status = self._statuses[-1]
        types = [f"{base.__module__}.{base.__qualname__}" for base in kind.__mro__[:-1]] if kind is not None else []
        texts = []
        for text in self._texts:
            types.extend(_CLASS_NAME.findall(text))
            texts.append(_CLASS_NAME.sub(" ", text))
        return Signals(f" {BREAK} ".join(texts), status, frozenset(self._codes), tuple(types))

    def _walk(self, body: object, key: str, depth: int) -> Iterator[str]:
        self._nodes -= 1
        if self._nodes < 0 or depth < 0 or body is None or isinstance(body, bool):
            return
        if isinstance(body, str | bytes | bytearray | int | float):
            yield from self._leaf(body, key)
        elif isinstance(body, Mapping):
            yield from self._mapping(body, depth)
        elif isinstance(body, list | tuple | set | frozenset):
            for value in list(body)[:_MAX_MEMBERS]:
                yield from self._walk(value, key, depth - 1)
        elif not callable(body):
            for mapping in (_attribute(body, "__dict__"), _attribute(body, "__pydantic_extra__")):
                if isinstance(mapping, dict) and mapping:
                    public = {name: value for name, value in mapping.items() if not str(name).startswith("_")}
                    yield from self._walk(public, key, depth - 1)

    def _leaf(self, body: str | bytes | bytearray | float, key: str) -> Iterator[str]:
        if key in _CODE_KEYS:
            self.add_code(body if isinstance(body, int | float) else _as_text(body))
        if isinstance(body, int | float):
            if key in _STATUS_KEYS and (status := _as_status(body)) is not None:
                self._statuses.append(status)
            elif key not in _CODE_KEYS:
                yield f"{key}: {body}"
            return
        text = _as_text(body)
        yield f"{key}: {text}" if key and len(text) < 60 and " " not in text else text

    def _mapping(self, body: Mapping[object, object], depth: int) -> Iterator[str]:
        """The members of one object; its numbers stay together: n_prompt_tokens beside n_ctx."""
        numbers: list[str] = []
        for name, value in list(body.items())[:_MAX_MEMBERS]:
            key = _text_of(name).lower()
            if key in _ECHOED and not (isinstance(value, str) and len(value) <= 1_000):
                continue
            if isinstance(value, int | float) and key not in _CODE_KEYS and not isinstance(value, bool):
                numbers.append(f"{key}: {value}")
            else:
                yield from self._walk(value, key, depth - 1)
        if numbers:
            yield ", ".join(numbers)


def _attribute(thing: object, name: str) -> object:
    """An attribute, or None; whatever a property may raise."""
    try:
        return getattr(thing, name, None)
    except Exception:  # noqa: BLE001 - a property of any class may raise anything; it is then no evidence
        return None


def _text_of(thing: object) -> str:
    """``str(thing)``, or nothing when it raises."""
    try:
        return bounded(str(thing))
    except Exception:  # noqa: BLE001 - as above
        return ""


def _arguments(error: BaseException) -> tuple[object, ...]:
    arguments = _attribute(error, "args")
    return arguments[:20] if isinstance(arguments, tuple) else ()


def _already_read(response: object) -> object:
    """The body of an HTTP response if it is in memory; asking for the rest would be I/O."""
    if isinstance(response, str | bytes | Mapping | list | tuple):
        return response
    fields = _attribute(response, "__dict__")
    if isinstance(fields, dict):
        for name in ("_content", "_body", "_text"):
            if isinstance(fields.get(name), str | bytes):
                return fields[name]
        if "headers" in fields or "_headers" in fields or "_request" in fields or "request" in fields:
            return None
    return response


def _as_text(value: str | bytes | bytearray) -> str:
    return value if isinstance(value, str) else bytes(value[: 4 * MAX_TEXT]).decode("utf-8", "replace")


def _status_of(error: BaseException) -> int | None:
    values = [_attribute(error, name) for name in _STATUS_NAMES]
    values.append(_attribute(_attribute(error, "response"), "status_code"))
    return next((status for value in values if (status := _as_status(value)) is not None), None)


def _as_status(value: object) -> int | None:
    if isinstance(value, str) and len(value) == 3 and value.isascii() and value.isdigit():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599:
        return int(value)
    return None
