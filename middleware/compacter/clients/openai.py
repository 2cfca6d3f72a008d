"""The OpenAI SDK's clients, and other vendors' that are generated the same way (``groq``, ``together``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from urllib.parse import urlsplit

from compacter.call.arguments import Binding, bind
from compacter.call.state import Engine
from compacter.call.wrap import wrap_function
from compacter.clients.copying import Moved, graft, is_awaited, keep_wrapping, reach, taking_self, twin
from compacter.clients.responses_server import compacting
from compacter.messages.format import WireName

T = TypeVar("T")
COPIES = ("copy", "with_options", "with_middleware")
"""Methods that make another client out of one."""


@dataclass(frozen=True, slots=True)
class Responses(Binding):
    """``responses.create``: the history may lie with OpenAI, and the call may hold only what is new."""

    def held_elsewhere(self, kwargs: Mapping[str, Any]) -> str | None:
        """With ``previous_response_id`` or ``conversation`` the history is the server's."""
        for name in ("previous_response_id", "conversation"):
            if kwargs.get(name):
                return (
                    f"with {name} the history is kept by the server and not in this call. Have the server "
                    'compact it in time (context_management=[{"type": "compaction", "compact_threshold": '
                    '...}]), let it drop the oldest items (truncation="auto"), or send the whole history as '
                    "input"
                )
        return None


@dataclass(frozen=True, slots=True)
class Method:
    """One method that sends messages."""

    path: tuple[str, ...]
    """Where its resource is, from the client on."""
    name: str
    wire_format: WireName
    output_param: str = "max_tokens"
    asks: str = ""
    """The method that summaries are asked of, where this one is no good for that."""
    binding: type[Binding] = Binding


METHODS = (
    *(
        Method((*path, "chat", "completions"), name, "openai", asks=asks)
        for path in ((), ("beta",))
        for name, asks in (("create", ""), ("parse", "create"))
    ),
    *(
        Method((*path, "responses"), name, "responses", "max_output_tokens", asks, Responses)
        for path in ((), ("beta",))
        for name, asks in (("create", ""), ("parse", "create"))
    ),
)
"""``stream`` is not among them: the SDK builds it on ``self.create``."""

Shape = Callable[[Engine, Callable[..., Any], Binding, bool], Callable[..., Any]]
"""Makes the wrapped function of ``(engine, function, binding, asynchronous)``."""


def wrap_call(
    engine: Engine,
    function: Callable[..., Any],
    binding: Binding,
    asynchronous: bool,  # noqa: FBT001 - a Shape is called by position
) -> Callable[..., Any]:
    """The usual shape: a call for a call."""
    return wrap_function(engine, function, binding, asynchronous=asynchronous)


def wrap_client(engine: Engine, client: T) -> T | None:
    """A copy of the client whose chat completions and responses compact; ``None`` where it has neither."""
    return patched(engine, client, METHODS, output_param=output_param(client))


def wrap_method(engine: Engine, resource: Any, name: str) -> Callable[..., Any] | None:
    """A resource's method, compacting; ``None`` where it sends no messages."""
    return method_of(engine, resource, name, METHODS, output_param=output_param(vars(resource)["_client"]))


def output_param(client: Any) -> str:
    """What chat completions call the output limit: OpenAI's newer models refuse the name others know."""
    host = urlsplit(str(getattr(client, "base_url", ""))).hostname or ""
    ours = host == "api.openai.com" or host.endswith((".openai.azure.com", ".cognitiveservices.azure.com"))
    return "max_completion_tokens" if ours else "max_tokens"


def patched(
    engine: Engine,
    client: T,
    methods: tuple[Method, ...],
    *,
    output_param: str = "max_tokens",
    shapes: Mapping[str, Shape] = {},
) -> T | None:
    """A copy of a client with those of the methods wrapped that it has; ``None`` where it has none."""
    moved: Moved = {}
    copy = twin(client, moved)
    found = False
    for path in dict.fromkeys(method.path for method in methods):
        resource = reach(client, copy, path, moved)
        if resource is not None:
            mine = [one for one in methods if one.path == path]
            found = _patch(engine, resource, mine, output_param, shapes) or found
    if not found:
        return None

    def again(made: T) -> T | None:
        return patched(engine, made, methods, output_param=output_param, shapes=shapes)

    keep_wrapping(copy, COPIES, again)
    return copy


def method_of(
    engine: Engine,
    resource: Any,
    name: str,
    methods: tuple[Method, ...],
    *,
    output_param: str = "max_tokens",
    shapes: Mapping[str, Shape] = {},
) -> Callable[..., Any] | None:
    """One method of a resource, wrapped by itself. The resource is told by the module it is defined in."""
    module = type(resource).__module__.split(".")
    mine = [one for one in methods if one.path[-1] in module and "beta" not in one.path]
    if not any(one.name == name for one in mine) and name != "stream":
        return None
    copy = twin(resource, {})
    _patch(engine, copy, mine, output_param, shapes)
    found: Callable[..., Any] = getattr(copy, name)
    return found


def _patch(
    engine: Engine, resource: Any, methods: list[Method], output_param: str, shapes: Mapping[str, Shape]
) -> bool:
    made = {}
    for method in methods:
        if not hasattr(resource, method.name):
            continue
        function = taking_self(getattr(resource, method.name))
        bound = bind(function)
        if bound is None:
            continue
        binding = replace(
            method.binding(**{name: getattr(bound, name) for name in Binding.__dataclass_fields__}),
            wire_format=method.wire_format,
            output_param=output_param if method.wire_format == "openai" else method.output_param,
            asks=taking_self(getattr(resource, method.asks)) if method.asks else None,
        )
        asynchronous = is_awaited(function)
        if method.binding is Responses:
            compact = taking_self(resource.compact) if hasattr(resource, "compact") else None
            function = compacting(engine, function, compact, asynchronous=asynchronous)
        shape = shapes.get(method.name, wrap_call)
        made[method.name] = shape(engine, function, binding, asynchronous)
    for name, wrapped in made.items():
        graft(resource, name, wrapped)
    return bool(made)
