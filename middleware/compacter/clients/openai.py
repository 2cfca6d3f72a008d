"""The OpenAI SDK's clients, and other vendors' that are generated the same way (``groq``, ``together``).

`patched` and `method_of` are for every SDK of that make: `compacter.clients.anthropic` uses them with its own methods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar
from urllib.parse import urlsplit

from compacter.call.arguments import Binding, bind
from compacter.call.state import State
from compacter.call.wrap import wrap_function
from compacter.clients.copying import (
    Copies,
    copied_part,
    copy_client,
    is_awaited,
    keep_wrapping,
    set_method,
    unbound,
)
from compacter.clients.raw import looking_into_raw
from compacter.clients.responses_server import ServerSide, compacting
from compacter.messages.format import WireName

T = TypeVar("T")
Function = Callable[..., Any]
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


def wrap_call(state: State, function: Function, binding: Binding) -> Function:
    """A method that returns a reply or a stream, compacting."""
    return wrap_function(state, function, binding, asynchronous=is_awaited(function))


@dataclass(frozen=True, slots=True)
class Method:
    """One method that sends messages."""

    path: tuple[str, ...]
    """Where its resource is, from the client on."""
    name: str
    wire_format: WireName
    output_param: str = "max_tokens"
    asks: str = ""
    """The method that summaries are asked of; empty: this one."""
    binding: type[Binding] = Binding
    wrap: Callable[[State, Function, Binding], Function] = wrap_call


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


def wrap_client(state: State, client: T) -> T | None:
    """A copy of the client whose chat completions and responses compact; ``None`` where it has neither."""
    return patched(state, client, METHODS, output_param=output_param(client))


def wrap_method(state: State, resource: Any, name: str) -> Function | None:
    """A resource's method, compacting; ``None`` where it sends no messages."""
    return method_of(state, resource, name, METHODS, output_param=output_param(vars(resource)["_client"]))


def output_param(client: Any) -> str:
    """What chat completions call the output limit: OpenAI's newer models refuse the name others know."""
    host = urlsplit(str(getattr(client, "base_url", ""))).hostname or ""
    ours = host == "api.openai.com" or host.endswith((".openai.azure.com", ".cognitiveservices.azure.com"))
    return "max_completion_tokens" if ours else "max_tokens"


def patched(state: State, client: T, methods: tuple[Method, ...], *, output_param: str = "max_tokens") -> T | None:
    """A copy of a client with those of the methods wrapped that it has; ``None`` where it has none."""
    copies: Copies = {}
    copy = copy_client(client, copies)
    found = False
    for path in dict.fromkeys(method.path for method in methods):
        resource = copied_part(client, copy, path, copies)
        if resource is not None:
            mine = [one for one in methods if one.path == path]
            found = _patch(state, resource, mine, output_param) or found
    if not found:
        return None

    def again(made: T) -> T | None:
        return patched(state, made, methods, output_param=output_param)

    keep_wrapping(copy, COPIES, again)
    return copy


def method_of(
    state: State, resource: Any, name: str, methods: tuple[Method, ...], *, output_param: str = "max_tokens"
) -> Function | None:
    """One method of a resource, wrapped by itself. The resource is told by the module it is defined in."""
    module = type(resource).__module__.split(".")
    mine = [one for one in methods if one.path[-1] in module and ("beta" in one.path) == ("beta" in module)]
    if not any(one.name == name for one in mine) and name != "stream":
        return None
    copy = copy_client(resource, {})
    if not _patch(state, copy, mine, output_param):
        return None
    found: Function = getattr(copy, name)
    return found


def _patch(state: State, resource: Any, methods: list[Method], output_param: str) -> bool:
    """Wrap methods of a copied resource; whether it has any of them."""
    made = {}
    for method in methods:
        if not hasattr(resource, method.name):
            continue
        function = unbound(getattr(resource, method.name))
        bound = bind(function)
        if bound is None:
            continue
        binding = replace(
            method.binding(**{member.name: getattr(bound, member.name) for member in fields(bound)}),
            wire_format=method.wire_format,
            output_param=output_param if method.wire_format == "openai" else method.output_param,
            asks=unbound(getattr(resource, method.asks)) if method.asks else None,
            vendors=True,
            server=server_of(resource),
        )
        asynchronous = is_awaited(function)
        if method.name != "stream":
            function = looking_into_raw(function, asynchronous=asynchronous)
        if method.binding is Responses and hasattr(resource, "compact"):
            server = ServerSide(unbound(resource.compact), unbound(resource.retrieve))
            function = compacting(state, function, server, asynchronous=asynchronous)
        made[method.name] = method.wrap(state, function, binding)
    for name, wrapped in made.items():
        set_method(resource, name, wrapped)
    return bool(made)


def server_of(resource: Any) -> Callable[[], str]:
    """Gives the kind of a resource's client and its present base URL, which can be set at any time."""

    def server() -> str:
        client = vars(resource).get("_client")
        return f"{type(client).__module__}.{type(client).__qualname__} {getattr(client, 'base_url', '')}"

    return server
