"""Collect text, status and codes of an exception or a body of any SDK, and the exceptions related
to it.

It does not import an SDK, and does no I/O: of a response it uses only what was already read.
"""

from __future__ import annotations

# ruff: noqa: SIM905 - this many names are easier to read as words of a line
import builtins
import json
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum
from typing import Final

from compacter.overflow.text import BREAK, MAX_TEXT, text_of

MAX_EXCEPTIONS: Final = 64
"""Most exceptions read of one chain."""

# Bounds for reading one body.
_MAX_NODES = 300
_MAX_DEPTH = 12
_MAX_MEMBERS = 60

_STATUS_NAMES: Final = (
    "status_code http_status status code http_code httpStatusCode statusCode".split()
)
_CODE_NAMES: Final = (
    "code error_code errcode err_code type error_type status reason name grpc_status_code"
).split()
_TEXT_NAMES: Final = (
    "message msg detail details description user_message error_message errorMessage reason"
).split()
_BODY_NAMES: Final = (
    "body error json_body doc response data http_body payload raw response_body "
    "responseBody content"
).split()
# Attributes of an HTTP response with a body that was already read.
_READ: Final = ("_content", "_body", "_text")
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
_RETRIED: Final = re.compile(r"\b(?:attempts?|retr(?:y|ies|ied)|tries|tried)\b", re.IGNORECASE)
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
    texts: dict[str, None] = {}  # An ordered set.
    bodies = [error]
    if isinstance(error, BaseException):
        statuses += [_attribute(error, name) for name in _STATUS_NAMES]
        statuses.append(_attribute(_attribute(error, "response"), "status_code"))
        codes += [_attribute(error, name) for name in _CODE_NAMES]
        types += [base.__name__ for base in type(error).__mro__[:-1]]
        said = [_attribute(error, name) for name in _TEXT_NAMES]
        bodies = [
            text_of(error),
            *(text for text in said if isinstance(text, str | bytes)),
            # A bound, as a foreign class may carry any number of them.
            *error.args[:20],
        ]
        bodies += [_attribute(error, name) for name in _BODY_NAMES]
    codes += _codes_in(bodies[0])
    stated: list[object] = []  # Statuses in a body, the last one first, as it counts.
    length = 0
    for key, value in (
        leaf for body in bodies if not isinstance(body, BaseException) for leaf in _leaves(body)
    ):
        if key in _CODE_KEYS:
            codes.append(value)
        if key in _STATUS_KEYS and isinstance(value, int):
            stated.insert(0, value)
        elif length < MAX_TEXT and not (key in _CODE_KEYS and isinstance(value, int | float)):
            text = text_of(value).strip()
            # A bare value ("131072") means something only after its key; a sentence needs none.
            if key and len(text) < 60 and " " not in text:
                text = f"{key}: {text}"
            if text and text not in texts:
                length += len(text)
                texts[text] = None
    text = f" {BREAK} ".join(texts)
    # Wrappers write the class of the first error into their text.
    types += [name.rpartition(".")[2] for name in _CLASS_NAME.findall(text)]
    codes = [each.value if isinstance(each, Enum) else each for each in codes]
    words = [
        text_of(each).lower()
        for each in codes
        if isinstance(each, str | int) and not isinstance(each, bool)
    ]
    return Signals(
        _CLASS_NAME.sub(" ", text),
        next(
            (
                int(text)
                for each in (*statuses, *stated)
                if _STATUS.fullmatch(text := text_of(each))
            ),
            None,
        ),
        frozenset(word for word in words if _CODE.fullmatch(word)),
        tuple(types),
    )


def _codes_in(text: object) -> list[object]:
    """Return the codes of a text that is the JSON of one error.

    Of several errors in one text, such as a gateway's list of attempts, no code is the text's.
    """
    if not isinstance(text, str) or not text.lstrip().startswith("{"):
        return []
    try:
        body = json.loads(text[:MAX_TEXT])
    except (ValueError, RecursionError):
        return []
    leaves = list(_leaves(body))
    if sum(key == "message" for key, _ in leaves) != 1:
        return []
    # A validator's "string_too_long" beside a sentence says less than the sentence.
    return [
        value
        for key, value in leaves
        if key in _CODE_KEYS and isinstance(value, str) and not value.startswith("string_")
    ]


def _leaves(body: object) -> Iterator[tuple[str, object]]:
    """Yield names and values of texts and numbers of a body, in order, within fixed bounds.

    The numbers of one object are joined to one text, as in n_prompt_tokens beside n_ctx.
    """
    left: list[tuple[str, object, int]] = [("", body, 0)]
    for _ in range(_MAX_NODES):
        if not left:
            return
        key, value, depth = left.pop()
        inner: list[tuple[str, object]] = []
        if isinstance(value, str | bytes | bytearray | int | float):
            if not isinstance(value, bool):
                yield key, value
            continue
        if isinstance(value, list | tuple | set | frozenset):
            inner = [(key, member) for member in list(value)[:_MAX_MEMBERS]]
        elif value is not None and not callable(value):
            members = value
            if not isinstance(members, Mapping):
                own = _attribute(value, "__dict__")
                extra = _attribute(value, "__pydantic_extra__")
                members = {
                    **(own if isinstance(own, dict) else {}),
                    **(extra if isinstance(extra, dict) else {}),
                }
                if read := [
                    text for name in _READ if isinstance(text := members.get(name), str | bytes)
                ]:
                    members = {"": read[0]}
                elif members.keys() & {"headers", "_headers", "_request", "request"}:
                    # An HTTP response that was not read: reading its text would be I/O.
                    members = {}
                members = {
                    name: member
                    for name, member in members.items()
                    if not str(name).startswith("_")
                }
            numbers = []
            for name, member in list(members.items())[:_MAX_MEMBERS]:
                key = text_of(name).lower()
                if key in _ECHOED and not (isinstance(member, str) and len(member) <= 1_000):
                    continue
                if (
                    isinstance(member, int | float)
                    and key not in _CODE_KEYS
                    and not isinstance(member, bool)
                ):
                    numbers.append(f"{key}: {member}")
                else:
                    inner.append((key, member))
            inner += [("", ", ".join(numbers))] if numbers else []
        if depth < _MAX_DEPTH:
            # Reversed, so that the first member is popped first and the text keeps its order.
            left += [(name, member, depth + 1) for name, member in reversed(inner)]


def _attribute(thing: object, name: str) -> object:
    """Return an attribute, or None, also if reading it raises."""
    try:
        return getattr(thing, name, None)
    except Exception:  # noqa: BLE001 - a property of a foreign class may raise anything
        return None


# -- related exceptions ----------------------------------------------------------------------------


def reasons(error: BaseException) -> Iterator[BaseException]:
    """Yield the reasons of an exception: its cause, a retry's last attempt, exceptions in
    attributes and arguments.
    """
    if error.__cause__ is not None:
        yield error.__cause__
    attempt = _attribute(error, "last_attempt")
    carried: list[object] = [_attribute(error, name) for name in _WRAPPED_NAMES]
    # The time-out of 0: a future that is done has its exception at once, and none may be waited
    # for.
    if isinstance(attempt, Future) and attempt.done() and not attempt.cancelled():
        carried.insert(0, attempt.exception(timeout=0))
    carried += error.args[:20]
    yield from (value for value in carried if isinstance(value, BaseException))
    if not siblings(error):
        yield from _members(error)[-1:]  # Of several attempts the last one decides.


def siblings(error: BaseException) -> tuple[BaseException, ...]:
    """Return the exceptions that a group raised at the same time; empty for a group of consecutive
    attempts.
    """
    if not isinstance(error, BaseExceptionGroup) or _RETRIED.search(text_of(error)):
        return ()
    return _members(error)


def _members(error: BaseException) -> tuple[BaseException, ...]:
    for name in ("errors", "exceptions", "attempts", "failures"):
        value = _attribute(error, name)
        members = value[-MAX_EXCEPTIONS:] if isinstance(value, list | tuple) else ()
        if found := tuple(item for item in members if isinstance(item, BaseException)):
            return found
    return ()


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
    bases = [base.__name__ for base in kind.__mro__ if base.__module__ != "builtins"]
    if any(NETWORK.search(name) for name in bases) or isinstance(error, OSError):
        return None
    wraps = _WRAPPING_TYPE.search(kind.__name__) is not None
    has_meaning = isinstance(
        error, ArithmeticError | LookupError | TypeError | AssertionError | ValueError
    )
    if (
        kind not in {Exception, RuntimeError}
        and not wraps
        and (has_meaning or hasattr(builtins, kind.__name__))
    ):
        return None
    text = text_of(error).strip()
    same = not text or text == text_of(old).strip()
    return old if same or wraps or _FAILED.search(text) else None
