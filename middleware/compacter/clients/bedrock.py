"""boto3's ``bedrock-runtime`` client: ``converse``, ``invoke_model`` and their streams.

``converse`` has one message format for all models. ``invoke_model`` takes a JSON body defined by
the model's vendor: Anthropic's is compacted, any other is passed on unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any, TypeVar

from compacter.call.arguments import Args, Arguments, Binding, CallFacts, Options
from compacter.call.state import State
from compacter.call.wrap import wrap_function
from compacter.clients.copying import copy_client, replace_method, set_method, unbound
from compacter.clients.nested import Nested
from compacter.messages.fields import dig, field
from compacter.messages.format import Message
from compacter.runtime.objects import with_special_methods

T = TypeVar("T")
_LIMIT = "maxTokens"


@dataclass(frozen=True, slots=True)
class Converse(Nested):
    """Arguments of ``converse``, with the output limit in ``inferenceConfig``."""

    output_param: str = _LIMIT
    place: str = "inferenceConfig"

    def replace(
        self, args: Args, kwargs: Options, messages: Sequence[Message], options: Options
    ) -> Arguments:
        """Return the call with other messages, and another limit in ``inferenceConfig``."""
        changed = {**kwargs, **options, "messages": messages}
        if _LIMIT in changed:
            changed[self.place] = {**self.members(kwargs), _LIMIT: changed.pop(_LIMIT)}
        return args, changed

    def keep(self, args: Args, kwargs: Options, *, native: bool) -> Arguments:
        """Return the arguments that a request for a summary keeps, without a forced tool call."""
        args, kept = Nested.keep(self, args, kwargs, native=native)
        choice = dig(kept, "toolConfig.toolChoice")
        if choice and "auto" not in choice:
            kept["toolConfig"] = {"tools": kept["toolConfig"]["tools"]}
        return args, kept


@dataclass(frozen=True, slots=True)
class Invoke(Nested):
    """Arguments of ``invoke_model`` with Anthropic's body, a JSON text with messages and
    options.
    """

    place: str = "body"

    def messages(self, args: Args, kwargs: Options) -> Any:  # noqa: ARG002 - keywords only
        """Return the body's ``messages``; ``None`` if the body is not Anthropic's."""
        body = self.members(kwargs)
        found = body.get("messages") if "anthropic_version" in body else None
        return found if isinstance(found, list) else None

    def read(self, args: Args, kwargs: Options) -> CallFacts:
        """Read the arguments. The messages of another vendor's body are not compacted."""
        facts = Nested.read(self, args, kwargs)
        if facts.messages or "messages" not in self.members(kwargs):
            return facts
        elsewhere = (
            "the body of invoke_model is not Anthropic's, and no other body is compacted: use "
            "converse, which compacts for every model"
        )
        return replace(facts, elsewhere=elsewhere)

    def members(self, kwargs: Options) -> dict[str, Any]:
        """Return the members of the body; an empty dict if it is not a JSON object."""
        body = kwargs.get("body")
        if isinstance(body, (str, bytes, bytearray)):
            with suppress(ValueError, RecursionError):
                body = json.loads(body)
        return body if isinstance(body, dict) else {}

    def replace(
        self, args: Args, kwargs: Options, messages: Sequence[Message], options: Options
    ) -> Arguments:
        """Return the call with other messages and some changed members in its body."""
        body = {**self.members(kwargs), **options, "messages": messages}
        return args, {**kwargs, "body": json.dumps(body).encode()}


# -- clients ---------------------------------------------------------------------------------------


def wrap_client(state: State, client: T) -> T:
    """Return a compacting copy of the client. Raises ``TypeError`` for other services, and for
    aiobotocore.
    """
    service = client.meta.service_model.service_name  # type: ignore[attr-defined]
    if service != "bedrock-runtime":
        raise TypeError(f"compacter wraps boto3 clients of 'bedrock-runtime', not of {service!r}")
    if any(kind.__module__.startswith("aiobotocore.") for kind in type(client).__mro__):
        raise TypeError(
            "compacter cannot wrap aiobotocore's clients: their replies are read by "
            "awaiting parts of a dict. Wrap a "
            "coroutine function that calls yours: async def converse(messages, **options): "
            "return await "
            "client.converse(messages=messages, **options), with wrap(converse, "
            'wire_format="bedrock")'
        )
    copy = copy_client(client, {})
    _patch(state, copy)
    return copy


def _patch(state: State, client: Any) -> None:
    create, invoke = (unbound(client, name) for name in ("converse", "invoke_model"))
    server = partial(_server, client)
    converse = Converse(wire_format="bedrock", summary_function=create, server=server)
    body = Invoke(
        wire_format="anthropic",
        messages_param="body",
        summary_function=_answering(invoke),
        server=server,
    )
    replace_method(state, client, "converse", converse)
    _wrap_stream(state, client, "converse_stream", converse, "stream")
    replace_method(state, client, "invoke_model", body)
    _wrap_stream(state, client, "invoke_model_with_response_stream", body, "body")


def _server(client: Any) -> str:
    return f"bedrock-runtime {client.meta.endpoint_url}"


def _answering(invoke: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``invoke_model`` for summaries, with the body of its reply read and parsed."""

    @wraps(invoke)
    def answer(*args: Any, **kwargs: Any) -> Any:
        return json.loads(invoke(*args, **kwargs)["body"].read())

    return answer


# -- streams ---------------------------------------------------------------------------------------

_EVENTS = "_compacter_events"


class Events:
    """Iterator over the events of a streamed reply. compacter can read some events before the
    caller does, and return them to the caller later.
    """

    def __init__(self, reply: dict[str, Any], member: str) -> None:
        self.reply = reply
        self.stream = reply[member]
        self._events: Iterator[Any] = iter(self.stream)

    def __next__(self) -> Any:
        return next(self._events)

    def close(self) -> None:
        """Close the stream and release its connection."""
        self.stream.close()


def _wrap_stream(state: State, client: Any, name: str, binding: Binding, member: str) -> None:
    """Replace a method whose reply has an event stream as one of its members."""
    function = unbound(client, name)

    def opened(*args: Any, **kwargs: Any) -> Any:
        reply = function(*args, **kwargs)
        return Events(reply, member) if hasattr(field(reply, member), "close") else reply

    wrapped = wrap_function(state, opened, binding)

    @wraps(function)
    def stream_method(*args: Any, **kwargs: Any) -> Any:
        events = wrapped(*args, **kwargs)
        if not isinstance(events, Events):
            return events
        # The reply contains botocore's own event stream, which yields the events that were read
        # ahead first.
        events.stream.__dict__[_EVENTS] = events
        with_special_methods(events.stream, {"__iter__": _iterate})
        return events.reply

    set_method(client, name, stream_method)


def _iterate(self: Any) -> Any:
    return self.__dict__[_EVENTS]
