"""Collect text, status and codes of an exception or a body of any SDK, and the exceptions related
to it.

It does not import an SDK, and does no I/O: it uses only those parts of a response that were already
read.
"""

from __future__ import annotations

# ruff: noqa: SIM905 - this many names are easier to read as words of a line
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum
from functools import partial
from itertools import chain, islice
from typing import Final

from compacter.overflow.text import BREAK, MAX_TEXT, text_of

MAX_MEMBERS: Final = 60
"""Most exceptions read of one chain, and most members of one object."""

# Bounds for reading one body.
_MAX_NODES = 300
_MAX_DEPTH = 12

_STATUS_NAMES: Final = (
    "status_code http_status status code http_code httpStatusCode statusCode".split()
)
_CODE_NAMES: Final = (
    "code error_code errcode err_code type error_type status reason name grpc_status_code"
).split()
_BODY_NAMES: Final = (
    "message msg detail details description user_message error_message errorMessage reason "
    "body error json_body doc response data http_body payload raw response_body "
    "responseBody content"
).split()
# Attributes of an HTTP response with a body that was already read.
_READ: Final = ("_content", "_body", "_text")
_SEVERAL_NAMES: Final = ("errors", "exceptions", "attempts", "failures")
_WRAPPED_NAMES: Final = (
    "original_exception original_error orig inner_exception wrapped exc exception "
    "error last_exception last_error "
    "cause reason underlying"
).split()

# Members of a body, in lower case.
_STATUS_KEYS: Final = frozenset(name.lower() for name in _STATUS_NAMES)
_CODE_KEYS: Final = frozenset((*_CODE_NAMES, *_STATUS_KEYS, "errorcode", "errortype", "__type")) - {
    "name"
}
# These repeat the request: the words of the caller's own messages are not evidence.
_ECHOED: Final = frozenset(
    "messages contents request request_body requestbody headers tools history "
    "kwargs traceback input prompt "
    "system".split()
)

_CLASS_NAME: Final = re.compile(
    r"\b[A-Za-z_][A-Za-z0-9_.]{0,80}?[a-z](?:Error|Exception|"
    r"Fault)(?:Exception)?\b"
)
_STATUS: Final = re.compile(r"[1-5]\d\d", re.ASCII)
_CODE: Final = re.compile(r"[^\s-]\S{0,99}")
NETWORK: Final = re.compile(
    r"Timeout|TimedOut|Connect(?:ion|or|Error|$)|Disconnected|Protocol(?:Error)|"
    r"ReadError|WriteError|Network|SSL|DNS"
    r"|IncompleteRead|ChunkedEncoding|Unavailable"
)
"""Class names of failed connections and time-outs."""
_FAILED: Final = re.compile(
    r"fail|error|retr(?:y|ies)|attempts?\b|exhaust|completion|provider|upstream|"
    r"generat|unexpected|went wrong|could not"
    r"|unable|失败|错误|失敗|エラー|오류|실패|fehler|echec|erreur|fallo|falha|erro|ошибк",
    re.IGNORECASE,
)
_WRAPPING_TYPE: Final = re.compile(
    r"LLM|Model|Provider|Retry|API|Completion|Generat|Agent|Chat|Upstream|Inference|"
    r"Invo|Client|Gateway|Wrap|Engine"
)


# Classes of a fault of the program itself, or of its machine.
_WITH_A_MEANING: Final = (
    ArithmeticError,
    LookupError,
    TypeError,
    AssertionError,
    ValueError,
    AttributeError,
    OSError,
)


@dataclass(frozen=True, slots=True)
class Signals:
    """Evidence from an exception, a body or a text; ``types`` are names of classes."""

    text: str = ""
    status: int | None = None
    codes: frozenset[str] = frozenset()
    types: tuple[str, ...] = ()


def signals_of(error: object, *, status: int | None = None, code: str | None = None) -> Signals:
    """Return the signals of one exception (without its related ones), of a body, or of a text."""
    statuses: list[object] = [status]
    codes: list[object] = [code]
    types: list[str] = []
    bodies = [error]
    if isinstance(error, BaseException):
        value_of = partial(_attribute, error)
        statuses += [*map(value_of, _STATUS_NAMES), _attribute(value_of("response"), "status_code")]
        codes += map(value_of, _CODE_NAMES)
        types += [base.__name__ for base in type(error).__mro__[:-1]]
        # A bound, as a foreign class may carry any number of arguments.
        bodies = [text_of(error), *error.args[:20], *map(value_of, _BODY_NAMES)]
    texts: dict[str, None] = {}  # An ordered set.
    length = 0
    for key, value in chain.from_iterable(map(_leaves, bodies)):
        codes += [value] if key in _CODE_KEYS else []
        statuses += [value] if key in _STATUS_KEYS else []
        is_code = key in _CODE_KEYS and isinstance(value, int | float)
        if not is_code and length < MAX_TEXT:
            text = text_of(value).strip()
            # A bare value ("131072") means something only after its key; a sentence needs none.
            if key and len(text) < 60 and " " not in text:
                text = f"{key}: {text}"
            length += len(text) if text not in texts else 0
            texts[text] = None
    text = f" {BREAK} ".join(filter(None, texts))
    # Wrappers write the class of the first error into their text.
    types += [name.rpartition(".")[2] for name in _CLASS_NAME.findall(text)]
    stated = filter(_STATUS.fullmatch, map(text_of, statuses))
    named = (value.value if isinstance(value, Enum) else value for value in codes)
    words = (text_of(value).lower() for value in named if isinstance(value, str | int))
    return Signals(
        _CLASS_NAME.sub(" ", text),
        next(map(int, stated), None),
        frozenset(filter(_CODE.fullmatch, words)),
        tuple(types),
    )


def _leaves(body: object) -> Iterator[tuple[str, object]]:
    """Yield names and values of texts and numbers of a body, in order, within fixed bounds."""
    left: list[tuple[str, object, int]] = [("", body, 0)]
    for _ in range(_MAX_NODES):
        if not left:
            return
        key, value, depth = left.pop()
        inner: list[tuple[str, object]] = []
        if isinstance(value, str | bytes | bytearray | int | float):
            if not isinstance(value, bool):
                yield key, value
        elif isinstance(value, list | tuple | set | frozenset):
            inner = [(key, member) for member in islice(value, MAX_MEMBERS)]
        elif not (value is None or callable(value) or isinstance(value, BaseException)):
            inner = _entries(value)
        if depth < _MAX_DEPTH:
            # Reversed, so that the first member is popped first and the text keeps its order.
            left += [(name, member, depth + 1) for name, member in reversed(inner)]


def _entries(value: object) -> list[tuple[str, object]]:
    """Return names and values of a mapping, or of what an object shows, without what repeats the
    request.
    """
    members: dict[object, object] = {}
    if isinstance(value, Mapping):
        members.update(islice(value.items(), MAX_MEMBERS))
    else:
        for name in ("__dict__", "__pydantic_extra__"):
            own = _attribute(value, name)
            members |= own if isinstance(own, dict) else {}
        for name in _READ:
            if isinstance(members.get(name), str | bytes):
                return [("", members[name])]
        if members.keys() & {"headers", "_headers", "_request", "request"}:
            return []  # An HTTP response that was not read: reading its text would be I/O.
        shown = (item for item in members.items() if not str(item[0]).startswith("_"))
        members = dict(islice(shown, MAX_MEMBERS))
    named = ((text_of(name).lower(), member) for name, member in members.items())
    return [(key, member) for key, member in named if key not in _ECHOED]


def _attribute(thing: object, name: str) -> object:
    """Return an attribute, or None, also if reading it raises."""
    try:
        return getattr(thing, name, None)
    except Exception:  # noqa: BLE001 - a property of a foreign class may raise anything
        return None


# -- related exceptions ----------------------------------------------------------------------------


def reasons(error: BaseException) -> list[BaseException]:
    """Return the reasons of an exception: its cause, a retry's last attempt, exceptions in
    attributes and arguments, the last of several attempts, or the members of a group, the last one
    first.
    """
    value_of = partial(_attribute, error)
    related: list[object] = [error.__cause__]
    attempt = value_of("last_attempt")
    if isinstance(attempt, Future) and attempt.done() and not attempt.cancelled():
        related.append(attempt.exception(timeout=0))
    related += [*map(value_of, _WRAPPED_NAMES), *error.args[:20]]
    several = (value for value in map(value_of, _SEVERAL_NAMES) if isinstance(value, list | tuple))
    members = next(filter(None, several), ())[-MAX_MEMBERS:]
    is_group = isinstance(error, BaseExceptionGroup)
    related += members[::-1] if is_group else members[-1:]
    return [value for value in related if isinstance(value, BaseException)]


def find_handled(error: BaseException) -> BaseException | None:
    """Return the exception that was being handled, if this one only wraps it.

    Python sets ``__context__`` on every exception raised in a handler, also on one that is
    unrelated to the old one, such as a time-out of the next request. It counts if it is not
    suppressed (``from None``) and the newer exception only means "it failed": it has no status of
    its own, and is not a network error, ``ValueError`` or ``KeyError``.
    """
    old = error.__context__
    kind = type(error)
    if error.__suppress_context__ or old is None or signals_of(error).status is not None:
        return None
    # A class of the user's own may derive from a client's: each of its names is looked at.
    if any(NETWORK.search(base.__name__) for base in kind.__mro__):
        return None
    if issubclass(kind, _WITH_A_MEANING) and not _WRAPPING_TYPE.search(kind.__name__):
        return None
    text = text_of(error).strip()
    is_same = text in {"", text_of(old).strip()}
    return old if is_same or _WRAPPING_TYPE.search(kind.__name__) or _FAILED.search(text) else None
