"""Replies of the scripted model: completions and streams in the form of OpenAI's chat
completions.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, Literal, Self, TypeAlias, cast

from compacter.messages.format import Message
from compacter.runtime.io import ASYNC

ReplyType = Literal["dict", "object"]
"""Dicts, or objects with attributes like those of the SDKs."""


Chunk: TypeAlias = Any
"""One chunk of a stream in OpenAI's shape: a dict, or a `Struct`."""


# Members that the SDKs' objects always have, and are None if the reply has none.
_OPTIONAL = frozenset(
    {"content", "tool_calls", "function_call", "refusal", "finish_reason", "logprobs", "usage"}
)


class Struct(SimpleNamespace):
    """A reply, or a part of one, with attributes and ``model_dump()``, as the SDKs'
    objects have.
    """

    def __getattr__(self, name: str) -> None:
        if name not in _OPTIONAL:
            raise AttributeError(f"this reply has no {name!r}", name=name, obj=self)

    def model_dump(self) -> dict[str, Any]:
        """Return the reply as plain dicts and lists."""
        return {key: _plain(value) for key, value in vars(self).items()}


@dataclass(frozen=True, slots=True)
class Interrupted:
    """An answer whose stream breaks after `after` chunks (the first one has no content).

    Streams only: a call without ``stream=True`` gets the whole text.
    """

    text: str
    after: int = 2
    error: BaseException | None = None
    """Exception to raise; None for the provider's token-limit error, too late for a retry."""


Reply: TypeAlias = str | Mapping[str, Any] | BaseException | Interrupted
"""Text; an assistant message (``content``, ``tool_calls``, ``refusal``, ``finish_reason``) or a
whole completion (``choices``) as a dict; an exception to raise; a stream that breaks."""

ReplyFunction: TypeAlias = Callable[[tuple[Message, ...]], Reply | Awaitable[Reply]]
"""Function from the messages of an accepted request to the reply; only ``acompletion`` awaits it.
"""

Replies: TypeAlias = Reply | Iterable[Reply] | ReplyFunction


class ScriptExhaustedError(AssertionError):
    """The model was called more often than its script has replies."""


def script(replies: Replies) -> ReplyFunction:
    """Return a function from messages to the reply: a constant, the next item of an iterable, or
    the function itself.

    Raises `TypeError` for anything else; the function raises `ScriptExhaustedError` after the last
    reply.
    """
    if callable(replies):
        return replies
    if isinstance(replies, (str, Mapping, BaseException, Interrupted)):
        fixed = cast("Reply", replies)
        return lambda _: fixed
    if not isinstance(replies, Iterable):
        raise TypeError(
            f"replies must be a reply, an iterable of them or a callable, got {replies!r}"
        )
    left = enumerate(replies, 1)
    count = 0

    def following(_: tuple[Message, ...]) -> Reply:
        nonlocal count
        for count, reply in left:  # noqa: B007 - reported below
            return reply
        raise ScriptExhaustedError(f"the script has {count} replies, and one more was requested")

    return following


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """The parts of one reply, for a completion or a stream of chunks."""

    content: str | None
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    refusal: str | None = None
    finish_reason: str = ""
    whole: Mapping[str, Any] | None = None
    """A whole completion from the script, returned unchanged."""
    fail_after: int | None = None
    error: BaseException | None = None

    @property
    def message(self) -> dict[str, Any]:
        """The assistant message, ready to be appended to a history."""
        message: dict[str, Any] = {"role": "assistant", "content": self.content}
        if self.tool_calls:
            message["tool_calls"] = [copy.deepcopy(dict(call)) for call in self.tool_calls]
        if self.refusal is not None:
            message["refusal"] = self.refusal
        return message


def read_reply(reply: Reply) -> ParsedReply:
    """Return the parts of a scripted reply. Raises a reply that is an exception, and `TypeError`
    for other values.
    """
    if isinstance(reply, BaseException):
        raise reply
    if isinstance(reply, str):
        return ParsedReply(reply)
    if isinstance(reply, Interrupted):
        return ParsedReply(reply.text, fail_after=reply.after, error=reply.error)
    if not isinstance(reply, Mapping):
        raise TypeError(
            f"a scripted reply is text, a dict, an exception or Interrupted, got {reply!r}"
        )
    if "choices" in reply:
        choice = reply["choices"][0]
        inner = read_reply(choice["message"])
        return replace(
            inner, whole=reply, finish_reason=choice.get("finish_reason") or inner.finish_reason
        )
    return ParsedReply(
        reply.get("content"),
        tuple(reply.get("tool_calls") or ()),
        reply.get("refusal"),
        reply.get("finish_reason") or "",
    )


@dataclass(frozen=True, slots=True)
class Frame:
    """Common members of all answers to one request. `created` is always 0, so that tests are
    deterministic.
    """

    number: int
    model: str
    usage: Mapping[str, Any] | None = None

    def completion(self, answer: ParsedReply) -> dict[str, Any]:
        """Return the whole answer as one dict."""
        if answer.whole is not None:
            return copy.deepcopy(dict(answer.whole))
        choice = {
            "index": 0,
            "message": answer.message,
            "finish_reason": answer.finish_reason,
            "logprobs": None,
        }
        whole = {**self._head("chat.completion"), "choices": [choice]}
        return whole if self.usage is None else {**whole, "usage": copy.deepcopy(dict(self.usage))}

    def chunks(
        self, answer: ParsedReply, *, size: int, with_usage: bool
    ) -> Iterator[dict[str, Any]]:
        """Yield the role, pieces of `size` characters, the finish, and the usage if wanted."""
        yield self.chunk({"role": "assistant", "content": ""})
        for piece in _pieces(answer.content or "", size):
            yield self.chunk({"content": piece})
        if answer.refusal is not None:
            yield self.chunk({"refusal": answer.refusal})
        for index, call in enumerate(answer.tool_calls):
            function = call.get("function", {})
            opened = {"name": function.get("name"), "arguments": ""}
            kind = call.get("type", "function")
            first = {"index": index, "id": call.get("id"), "type": kind, "function": opened}
            yield self.chunk({"tool_calls": [first]})
            for piece in _pieces(function.get("arguments") or "", size):
                yield self.chunk(
                    {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
                )
        yield self.chunk({}, answer.finish_reason)
        if with_usage and self.usage is not None:
            yield {**self.housekeeping(), "usage": copy.deepcopy(dict(self.usage))}

    def chunk(self, delta: Mapping[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        """Return one chunk."""
        choice = {"index": 0, "delta": dict(delta), "finish_reason": finish_reason}
        return {**self.housekeeping(), "choices": [choice]}

    def housekeeping(self) -> dict[str, Any]:
        """Return a chunk without choices, as some providers send at the beginning."""
        return {**self._head("chat.completion.chunk"), "choices": []}

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-scripted-{self.number}",
            "object": kind,
            "created": 0,
            "model": self.model,
        }


def shaped(reply: dict[str, Any], reply_type: ReplyType) -> Chunk:
    """Return the reply itself, or as objects with attributes."""
    return reply if reply_type == "dict" else _as_objects(reply)


def _pieces(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def _as_objects(value: object) -> Chunk:
    if isinstance(value, Mapping):
        return Struct(**{key: _as_objects(item) for key, item in value.items()})
    return [_as_objects(item) for item in value] if isinstance(value, (list, tuple)) else value


def _plain(value: object) -> object:
    if isinstance(value, Struct):
        return value.model_dump()
    return [_plain(item) for item in value] if isinstance(value, list) else value


class _Source:
    """The chunks of one stream, and its state."""

    def __init__(self, chunks: Iterator[dict[str, Any]], reply_type: ReplyType) -> None:
        self._chunks = chunks
        self._reply_type: ReplyType = reply_type
        self.response = Struct(status_code=200, headers={"content-type": "text/event-stream"})
        """The HTTP response below the stream."""
        self.closed = False
        """True once the connection is released: by ``close()``, at the end, or after an error."""
        self.delivered = 0
        """Number of chunks returned so far."""

    def _step(self) -> Chunk | None:
        """Return the next chunk, or None at the end."""
        if self.closed:
            return None
        try:
            chunk = next(self._chunks, None)
        except BaseException:
            self.closed = True
            raise
        if chunk is None:
            self.closed = True
            return None
        self.delivered += 1
        return shaped(chunk, self._reply_type)


class ScriptedStream(_Source):
    """A synchronous stream of chunks."""

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Chunk:
        chunk = self._step()
        if chunk is None:
            raise StopIteration
        return chunk

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the connection; no chunk follows."""
        self.closed = True


class AsyncScriptedStream(_Source):
    """An asynchronous stream of chunks. Lets other tasks run before each chunk, as a
    network does.
    """

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Chunk:
        await ASYNC.sleep(0)
        chunk = self._step()
        if chunk is None:
            raise StopAsyncIteration
        return chunk

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Release the connection; no chunk follows."""
        self.closed = True

    close = aclose  # OpenAI's SDK calls it that.
