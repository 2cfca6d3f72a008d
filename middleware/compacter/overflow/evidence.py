"""What one exception says of itself: type names, status, codes and text, whatever SDK it comes from.

Nothing is imported from an SDK, nothing is fetched: of a response only what was read already is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from compacter.overflow.text import BREAK, MAX_TEXT, bounded

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_NODES: Final = 300
_MAX_DEPTH: Final = 12
_STATUS_NAMES = ("status_code", "http_status", "status", "code", "http_code", "httpStatusCode", "statusCode")
_CODE_NAMES = (
    "code",
    "error_code",
    "errcode",
    "err_code",
    "type",
    "error_type",
    "status",
    "reason",
    "name",
    "grpc_status_code",
)
_TEXT_NAMES = (
    "message",
    "msg",
    "detail",
    "details",
    "description",
    "user_message",
    "error_message",
    "errorMessage",
    "reason",
)
_BODY_NAMES = (
    "body",
    "error",
    "json_body",
    "doc",
    "response",
    "data",
    "http_body",
    "payload",
    "raw",
    "response_body",
    "responseBody",
    "content",
)
_ECHOED = frozenset(
    (
        "messages",
        "contents",
        "request",
        "request_body",
        "requestbody",
        "headers",
        "tools",
        "history",
        "kwargs",
        "traceback",
        "input",
        "prompt",
        "system",
    )
)
_CODE_KEYS = frozenset(
    (
        "code",
        "type",
        "status",
        "reason",
        "error_code",
        "errcode",
        "err_code",
        "status_code",
        "error_type",
        "statuscode",
        "httpstatuscode",
        "errorcode",
        "__type",
        "errortype",
    )
)
_STATUS_KEYS = frozenset(
    ("status_code", "statuscode", "httpstatuscode", "status", "code", "http_status", "raw_status_code")
)
_CLASS_NAME = re.compile(r"\b[A-Za-z_][A-Za-z0-9_.]{0,80}?[a-z](?:Error|Exception|Fault|Err)(?:Exception)?\b")


@dataclass(frozen=True, slots=True)
class Evidence:
    """What an exception, a reply or a text gives to judge it by."""

    text: str = ""
    status: int | None = None
    codes: frozenset[str] = frozenset()
    types: tuple[str, ...] = ()


def attribute(thing: object, name: str) -> object:
    """An attribute, or None; whatever a property may raise."""
    try:
        return getattr(thing, name, None)
    except Exception:  # noqa: BLE001 - a property of a stranger's class may raise anything; it is then no evidence
        return None


def text_of(thing: object) -> str:
    """``str(thing)``, or nothing when it cannot say."""
    try:
        return bounded(str(thing))
    except Exception:  # noqa: BLE001 - see above
        return ""


def gather(error: BaseException) -> Evidence:
    """What this one exception says, its causes left aside."""
    pieces = _Pieces()
    said = text_of(error)
    pieces.add_text(said)
    for name in _TEXT_NAMES:
        value = attribute(error, name)
        if isinstance(value, str | bytes):
            pieces.add_text(_decoded(value))
    for argument in _arguments(error):
        if not isinstance(argument, BaseException):
            pieces.add_body(argument)
    for name in _BODY_NAMES:
        value = attribute(error, name)
        if value is not None and not isinstance(value, BaseException) and not callable(value):
            pieces.add_body(_already_read(value))
    for name in _CODE_NAMES:
        pieces.add_code(attribute(error, name))
    status = next(
        (number for name in _STATUS_NAMES if (number := _as_status(attribute(error, name))) is not None), None
    )
    if status is None:
        status = _as_status(attribute(attribute(error, "response"), "status_code"))
    return pieces.evidence(status, type(error))


def gather_body(body: object, *, status: int | None = None, code: str | None = None) -> Evidence:
    """What a piece of a reply says."""
    pieces = _Pieces()
    pieces.add_code(code)
    pieces.add_body(body)
    return pieces.evidence(status, None)


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
        if not text or self._left <= 0 or text in self._texts:
            return
        self._left -= len(text)
        self._texts[text] = None

    def add_code(self, value: object) -> None:
        value = attribute(value, "value") if not isinstance(value, str | int | None) else value
        if isinstance(value, str) and 0 < len(value) <= 100 and " " not in value:
            self._codes.add(value.lower())
        elif isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**12:
            self._codes.add(str(value))

    def add_body(self, body: object) -> None:
        for text in self._walk(body, "", _MAX_DEPTH):
            self.add_text(text)

    def evidence(self, status: int | None, kind: type | None) -> Evidence:
        if status is None and self._statuses:
            status = self._statuses[-1]
        types: list[str] = []
        texts = [_CLASS_NAME.sub(lambda match: _collected(match, types), text) for text in self._texts]
        if kind is not None:
            types.extend(f"{base.__module__}.{base.__qualname__}" for base in kind.__mro__[:-1])
        return Evidence(f" {BREAK} ".join(texts), status, frozenset(self._codes), tuple(types))

    def _walk(self, body: object, key: str, depth: int) -> Iterator[str]:
        self._nodes -= 1
        if self._nodes < 0 or depth < 0 or body is None or isinstance(body, bool):
            return
        if isinstance(body, str | bytes | bytearray | int | float):
            yield from self._leaf(body, key)
        elif isinstance(body, Mapping):
            yield from self._mapping(body, depth)
        elif isinstance(body, list | tuple | set | frozenset):
            for value in list(body)[:60]:
                yield from self._walk(value, key, depth - 1)
        elif not callable(body):
            for mapping in (attribute(body, "__dict__"), attribute(body, "__pydantic_extra__")):
                if isinstance(mapping, dict) and mapping:
                    public = {name: value for name, value in mapping.items() if not str(name).startswith("_")}
                    yield from self._walk(public, key, depth - 1)

    def _leaf(self, body: str | bytes | bytearray | float, key: str) -> Iterator[str]:
        if key in _CODE_KEYS:
            self.add_code(body if isinstance(body, int | float) else _decoded(body))
        if isinstance(body, int | float):
            if key in _STATUS_KEYS and (status := _as_status(body)) is not None:
                self._statuses.append(status)
            elif key not in _CODE_KEYS:
                yield f"{key}: {body}"
            return
        text = _decoded(body)
        yield f"{key}: {text}" if key and len(text) < 60 and " " not in text else text

    def _mapping(self, body: Mapping[object, object], depth: int) -> Iterator[str]:
        """The members of one object; its numbers stay together: n_prompt_tokens beside n_ctx."""
        small: list[str] = []
        for name, value in list(body.items())[:60]:
            lowered = text_of(name).lower()
            if lowered in _ECHOED and not (isinstance(value, str) and len(value) <= 1_000):
                continue
            if isinstance(value, int | float) and lowered not in _CODE_KEYS and not isinstance(value, bool):
                small.append(f"{lowered}: {value}")
            else:
                yield from self._walk(value, lowered, depth - 1)
        if small:
            yield ", ".join(small)


def _collected(match: re.Match[str], types: list[str]) -> str:
    types.append(match.group())
    return " "


def _arguments(error: BaseException) -> tuple[object, ...]:
    arguments = attribute(error, "args")
    return arguments if isinstance(arguments, tuple) else ()


def _already_read(response: object) -> object:
    """The body of an HTTP response if it is in memory; asking for the rest would be I/O."""
    if isinstance(response, str | bytes | Mapping | list | tuple):
        return response
    fields = attribute(response, "__dict__")
    if isinstance(fields, dict):
        for name in ("_content", "_body", "_text"):
            if isinstance(fields.get(name), str | bytes):
                return fields[name]
        if "headers" in fields or "_headers" in fields or "_request" in fields or "request" in fields:
            return None
    return response


def _decoded(value: str | bytes | bytearray) -> str:
    return value if isinstance(value, str) else bytes(value[: 4 * MAX_TEXT]).decode("utf-8", "replace")


def _as_status(value: object) -> int | None:
    if isinstance(value, str) and len(value) == 3 and value.isascii() and value.isdigit():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599:
        return int(value)
    return None
