"""boto3's ``bedrock-runtime`` client: ``converse``, ``invoke_model`` and their streams.

``converse`` has one shape of messages for every model. ``invoke_model`` takes the body that the model's vendor defines,
as JSON: Anthropic's is compacted, any other is left alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

from compacter.call.arguments import Args, Arguments, Binding, Options, Prompt, whole
from compacter.call.state import State
from compacter.call.streams import with_special_methods
from compacter.call.wrap import wrap_function
from compacter.clients.copying import copy_client, set_method, unbound
from compacter.messages.fields import field, plain
from compacter.messages.format import Message, MessageFormat

T = TypeVar("T")
_LIMIT = "maxTokens"
_KEPT = ("modelId", "guardrailConfig", "performanceConfig", "serviceTier")
"""What a request for a summary takes over from the call: no tools, thinking or output schema."""
_KEPT_BESIDE_BODY = (
    "modelId", "contentType", "accept", "guardrailIdentifier", "guardrailVersion", "performanceConfigLatency",
    "serviceTier",
)  # fmt: skip
_KEPT_IN_BODY = frozenset({"anthropic_version", "anthropic_beta", "temperature", "top_p", "top_k"})
METHODS = ("converse", "converse_stream", "invoke_model", "invoke_model_with_response_stream")


@dataclass(frozen=True, slots=True)
class Converse(Binding):
    """``converse``: the output limit is in ``inferenceConfig``."""

    def replace(self, args: Args, kwargs: Options, messages: Sequence[Message], options: Options) -> Arguments:
        """The same call with other messages, and with some of ``inferenceConfig`` changed."""
        changed = {**kwargs, "messages": list(messages)}
        if options:
            changed["inferenceConfig"] = {**(kwargs.get("inferenceConfig") or {}), **options}
        return args, changed

    def options(self, kwargs: Options) -> Options:
        """The arguments, and what is in ``inferenceConfig``."""
        return {**kwargs, **(kwargs.get("inferenceConfig") or {})}

    def summary_call(self, args: Args, kwargs: Options, wire: MessageFormat, prompt: Prompt, limit: int) -> Arguments:
        """A request to the same model, with its temperature and without what only the conversation needs."""
        messages, extra = wire.prompt(prompt)
        given = kwargs.get("inferenceConfig") or {}
        inference = {name: given[name] for name in ("temperature", "topP") if name in given}
        kept = {name: kwargs[name] for name in _KEPT if name in kwargs}
        inference[_LIMIT] = limit
        return args, {**kept, **extra, "messages": messages, "inferenceConfig": inference}

    def native_call(
        self, args: Args, kwargs: Options, wire: MessageFormat, prefix: Sequence[Message], instruction: str, limit: int
    ) -> Arguments:
        """The call with another end, an answer in plain words, and no tool that must be called."""
        thinking = (kwargs.get("additionalModelRequestFields") or {}).get("thinking")
        limit += whole(field(thinking, "budget_tokens"))
        args, changed = Binding.native_call(self, args, kwargs, wire, prefix, instruction, limit)
        for name in ("outputConfig", "requestMetadata"):
            changed.pop(name, None)
        changed["inferenceConfig"].pop("stopSequences", None)
        choice = (kwargs.get("toolConfig") or {}).get("toolChoice") or {}
        if choice and "auto" not in choice:
            tools: Mapping[str, Any] = kwargs["toolConfig"]
            changed["toolConfig"] = {name: value for name, value in tools.items() if name != "toolChoice"}
        return args, changed


@dataclass(frozen=True, slots=True)
class Invoke(Binding):
    """``invoke_model`` with Anthropic's body: messages and options are members of a JSON text."""

    def messages(self, args: Args, kwargs: Options) -> Any:  # noqa: ARG002 - keywords only
        """The body's ``messages``; ``None`` where the body is not Anthropic's."""
        body = _body(kwargs)
        found = body.get("messages") if "anthropic_version" in body else None
        return found if isinstance(found, list) else None

    def needs_list(self, args: Args, kwargs: Options) -> bool:  # noqa: ARG002
        """Never: what comes out of JSON is a list, and a quiet call must not pay for reading it."""
        return False

    def replace(self, args: Args, kwargs: Options, messages: Sequence[Message], options: Options) -> Arguments:
        """The same call with other messages and some other members in its body."""
        body = {**_body(kwargs), **options, "messages": plain(list(messages))}
        return args, {**kwargs, "body": json.dumps(body).encode()}

    def options(self, kwargs: Options) -> Options:
        """The members of the body."""
        return _body(kwargs)

    def summary_call(self, args: Args, kwargs: Options, wire: MessageFormat, prompt: Prompt, limit: int) -> Arguments:
        """A request to the same model with a body of its own."""
        messages, extra = wire.prompt(prompt)
        name = self.read(args, kwargs).output_option
        body = {key: value for key, value in _body(kwargs).items() if key in _KEPT_IN_BODY}
        body |= {**extra, name: limit, "messages": messages}
        kept = {key: kwargs[key] for key in _KEPT_BESIDE_BODY if key in kwargs}
        return args, {**kept, "body": json.dumps(body).encode()}

    def native_call(
        self, args: Args, kwargs: Options, wire: MessageFormat, prefix: Sequence[Message], instruction: str, limit: int
    ) -> Arguments:
        """The body with another end, as for any call."""
        _, body = _MEMBERS.native_call((), _body(kwargs), wire, prefix, instruction, limit)
        kept = {key: kwargs[key] for key in _KEPT_BESIDE_BODY if key in kwargs}
        return args, {**kept, "body": json.dumps(plain(body)).encode()}


_MEMBERS = Binding(wire_format="anthropic")
"""Reads the members of a body as it does the arguments of a call."""


def _body(kwargs: Options) -> dict[str, Any]:
    """The members of a call's body; none where it is no JSON object."""
    body = kwargs.get("body")
    if not isinstance(body, (str, bytes, bytearray)):
        return {}
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


# -- clients -----------------------------------------------------------------------------------------------------------


def wrap_client(state: State, client: T) -> T:
    """A copy of the client. Raises ``TypeError`` for a client of another service, and for aiobotocore's."""
    service = client.meta.service_model.service_name  # type: ignore[attr-defined]
    if service != "bedrock-runtime":
        raise TypeError(f"compacter wraps boto3 clients of 'bedrock-runtime', not of {service!r}")
    if any(kind.__module__.startswith("aiobotocore.") for kind in type(client).__mro__):
        raise TypeError(
            "compacter cannot wrap aiobotocore's clients: their replies are read by awaiting parts of a dict. Wrap a "
            "coroutine function that calls yours: async def converse(messages, **options): return await "
            'client.converse(messages=messages, **options), with wrap(converse, wire_format="bedrock")'
        )
    copy = copy_client(client, {})
    _patch(state, copy)
    return copy


def wrap_method(state: State, client: Any, name: str) -> Callable[..., Any] | None:
    """One of ``METHODS`` by itself."""
    if name not in METHODS:
        return None
    found: Callable[..., Any] = getattr(wrap_client(state, client), name)
    return found


def _patch(state: State, client: Any) -> None:
    def server() -> str:
        return f"bedrock-runtime {client.meta.endpoint_url}"

    create, stream = unbound(client.converse), unbound(client.converse_stream)
    binding = Converse(wire_format="bedrock", output_param=_LIMIT, asks=create, server=server)
    set_method(client, "converse", wrap_function(state, create, binding))
    set_method(client, "converse_stream", _wrap_stream(state, stream, binding, "stream"))
    invoke = unbound(client.invoke_model)
    bodied = Invoke(wire_format="anthropic", messages_param="body", asks=_answering(invoke), server=server)
    set_method(client, "invoke_model", wrap_function(state, invoke, bodied))
    stream = unbound(client.invoke_model_with_response_stream)
    set_method(client, "invoke_model_with_response_stream", _wrap_stream(state, stream, bodied, "body"))


def _answering(invoke: Callable[..., Any]) -> Callable[..., Any]:
    """``invoke_model`` for a summary: the reply's body, read."""

    @wraps(invoke)
    def answer(*args: Any, **kwargs: Any) -> Any:
        return json.loads(invoke(*args, **kwargs)["body"].read())

    return answer


# -- streams -----------------------------------------------------------------------------------------------------------

_EVENTS = "_compacter_events"


class Events:
    """The events of a reply as an iterator that can be looked into."""

    def __init__(self, reply: dict[str, Any], member: str) -> None:
        self.reply = reply
        self.stream = reply[member]
        self._events: Iterator[Any] = iter(self.stream)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._events)

    def close(self) -> None:
        """Give the connection back."""
        self.stream.close()


def _wrap_stream(state: State, function: Callable[..., Any], binding: Binding, member: str) -> Callable[..., Any]:
    """A method whose reply has an event stream as one of its members."""

    def opened(*args: Any, **kwargs: Any) -> Any:
        reply = function(*args, **kwargs)
        return Events(reply, member) if _streams_events(reply, member) else reply

    wrapped = wrap_function(state, opened, binding)

    @wraps(function)
    def stream_method(*args: Any, **kwargs: Any) -> Any:
        events = wrapped(*args, **kwargs)
        if not isinstance(events, Events):
            return events
        # The caller's reply, with botocore's own event stream in it, which gives what was held back first.
        events.stream.__dict__[_EVENTS] = events
        with_special_methods(events.stream, {"__iter__": _iterate})
        return events.reply

    return stream_method


def _iterate(self: Any) -> Iterator[Any]:
    events: Events = self.__dict__[_EVENTS]
    return iter(events)


def _streams_events(reply: object, member: str) -> bool:
    """Whether a reply carries an event stream that can be read here."""
    stream = reply.get(member) if isinstance(reply, dict) else None
    return hasattr(type(stream), "__iter__") and hasattr(stream, "close")
