"""boto3's ``bedrock-runtime`` client: ``converse`` and ``converse_stream``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

from compacter.call.arguments import Arguments, Binding, characters_sent
from compacter.call.state import Engine
from compacter.call.wrap import wrap_function
from compacter.clients.copying import graft, taking_self, twin
from compacter.messages.fields import field
from compacter.messages.format import Message, Wire

T = TypeVar("T")
_LIMIT = "maxTokens"
_KEPT = ("modelId", "guardrailConfig", "performanceConfig", "requestMetadata", "serviceTier")
"""What a request for a summary takes over from the call: no tools, thinking or output schema."""
_EVENTS = "_compacter_events"


@dataclass(frozen=True, slots=True)
class Converse(Binding):
    """``converse``: the output limit is in ``inferenceConfig``."""

    def replace(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        messages: Sequence[Message],
        options: Mapping[str, object],
    ) -> Arguments:
        """The same call with other messages, and with some of ``inferenceConfig`` changed."""
        changed = {**kwargs, "messages": list(messages)}
        if options:
            changed["inferenceConfig"] = {**(kwargs.get("inferenceConfig") or {}), **options}
        return args, changed

    def output_limit(self, kwargs: Mapping[str, Any]) -> tuple[str, int | None]:
        """``maxTokens`` of ``inferenceConfig``."""
        value = (kwargs.get("inferenceConfig") or {}).get(_LIMIT)
        return _LIMIT, value if isinstance(value, int) else None

    def overhead(self, kwargs: Mapping[str, Any]) -> int:
        """System prompt and tools."""
        return sum(characters_sent(kwargs.get(name)) for name in ("system", "toolConfig"))

    def summary_call(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        wire: Wire,
        prompt: Sequence[Mapping[str, str]],
        max_tokens: int,
    ) -> Arguments:
        """A request to the same model, with its temperature and without what only the conversation needs."""
        messages, extra = wire.prompt(prompt)
        given = kwargs.get("inferenceConfig") or {}
        inference = {name: given[name] for name in ("temperature", "topP") if name in given}
        kept = {name: kwargs[name] for name in _KEPT if name in kwargs}
        inference[_LIMIT] = max_tokens
        return args, {**kept, **extra, "messages": messages, "inferenceConfig": inference}

    def native_call(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        wire: Wire,
        prefix: Sequence[Message],
        instruction: str,
        max_tokens: int,
    ) -> Arguments:
        """The call with another end, an answer in plain words, and no tool that must be called."""
        thinking = (kwargs.get("additionalModelRequestFields") or {}).get("thinking")
        budget = field(thinking, "budget_tokens")
        max_tokens += budget if isinstance(budget, int) else 0
        args, changed = Binding.native_call(self, args, kwargs, wire, prefix, instruction, max_tokens)
        changed.pop("outputConfig", None)
        changed["inferenceConfig"].pop("stopSequences", None)
        choice = (kwargs.get("toolConfig") or {}).get("toolChoice") or {}
        if choice and "auto" not in choice:
            tools: Mapping[str, Any] = kwargs["toolConfig"]
            changed["toolConfig"] = {name: value for name, value in tools.items() if name != "toolChoice"}
        return args, changed


def wrap_client(engine: Engine, client: T) -> T:
    """A copy of the client. Raises ``TypeError`` for a client of another service."""
    service = client.meta.service_model.service_name  # type: ignore[attr-defined]
    if service != "bedrock-runtime":
        raise TypeError(f"compacter wraps boto3 clients of 'bedrock-runtime', not of {service!r}")
    copy = twin(client, {})
    _patch(engine, copy)
    return copy


def wrap_method(engine: Engine, client: Any, name: str) -> Callable[..., Any] | None:
    """``converse`` or ``converse_stream`` by itself."""
    if name not in ("converse", "converse_stream"):
        return None
    found: Callable[..., Any] = getattr(wrap_client(engine, client), name)
    return found


def _patch(engine: Engine, client: Any) -> None:
    create, stream = taking_self(client.converse), taking_self(client.converse_stream)
    binding = Converse(wire_format="bedrock", messages_param="messages", output_param=_LIMIT, asks=create)
    graft(client, "converse", wrap_function(engine, create, binding))
    graft(client, "converse_stream", _wrap_stream(engine, stream, binding))


class Events:
    """The events of a ``converse_stream`` reply as an iterator that can be looked into."""

    def __init__(self, reply: dict[str, Any]) -> None:
        self.reply = reply
        self._stream = reply["stream"]
        self._events: Iterator[Any] = iter(self._stream)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._events)

    def close(self) -> None:
        """Give the connection back."""
        self._stream.close()


def _wrap_stream(engine: Engine, function: Callable[..., Any], binding: Binding) -> Callable[..., Any]:
    def opened(*args: Any, **kwargs: Any) -> Any:
        reply = function(*args, **kwargs)
        return Events(reply) if streams_events(reply) else reply

    wrapped = wrap_function(engine, opened, binding)

    @wraps(function)
    def converse_stream(*args: Any, **kwargs: Any) -> Any:
        events = wrapped(*args, **kwargs)
        if not isinstance(events, Events):
            return events
        # The caller's reply, with botocore's own event stream in it, which gives what was held back first.
        stream = events.reply["stream"]
        stream.__dict__[_EVENTS] = events
        stream.__class__ = _replaying(type(stream))
        return events.reply

    return converse_stream


def streams_events(reply: object) -> bool:
    """Whether a reply carries an event stream that can be read here."""
    return isinstance(reply, dict) and hasattr(type(reply.get("stream")), "__iter__") and hasattr(
        reply["stream"], "close"
    )  # fmt: skip


_REPLAYING: dict[type, type] = {}


def _replaying(kind: type) -> type:
    """A subclass of botocore's event stream that gives the events that were looked at first."""
    if kind in _REPLAYING:
        return _REPLAYING[kind]

    def iter_(self: Any) -> Iterator[Any]:
        return iter(self.__dict__[_EVENTS])

    members: dict[str, Any] = {
        "__module__": kind.__module__, "__doc__": kind.__doc__, "__qualname__": kind.__qualname__,
        "__iter__": iter_,
    }  # fmt: skip
    _REPLAYING[kind] = type(kind.__name__, (kind,), members)
    return _REPLAYING[kind]
