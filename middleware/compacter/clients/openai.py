"""The OpenAI SDK's clients, and those of other vendors with similar generated SDKs (``groq``,
``together``).

`patched` and `method_of` work for all such SDKs: `compacter.clients.anthropic` uses them with its
own methods.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

from compacter.call import streams
from compacter.call.arguments import Args, Arguments, Binding, CallFacts, Options, bind, without
from compacter.call.state import State
from compacter.call.wrap import wrap_function
from compacter.clients.copying import (
    Copies,
    copy_client,
    copy_part,
    divert,
    is_awaited,
    keep_wrapping,
    preset,
    set_method,
    take_options,
    unbound,
)
from compacter.clients.raw import looking_into_raw, parsing, without_raw
from compacter.errors import add_note
from compacter.events import CompactionEvent
from compacter.messages.fields import field, listed, word
from compacter.messages.format import FormatName, Message
from compacter.messages.replies import Reply, usage_of
from compacter.runtime.io import IO

T = TypeVar("T")
Function = Callable[..., Any]
_COMPACTS = {"anthropic": "create", "responses": "compact"}
# Method of a resource that has the provider compact messages, by format.
COPIES = ("copy", "with_options", "with_middleware")
"""Methods that return another client."""
HELPERS = ("stream", "tool_runner")
"""Methods of a resource that send messages by its others."""


@dataclass(frozen=True, slots=True)
class Responses(Binding):
    """Arguments of ``responses.create``. The history may be stored by OpenAI, with only new items
    in the call.
    """

    def read(self, args: Args, kwargs: Options) -> CallFacts:
        """Read the arguments. With ``previous_response_id`` or ``conversation`` the server has the
        history.
        """
        facts = Binding.read(self, args, kwargs)
        for name in ("previous_response_id", "conversation"):
            if facts.named.get(name):
                return replace(facts, elsewhere=_tell_kept_by_server(name))
        return facts

    def provider_call(
        self,
        args: Args,
        kwargs: Options,
        messages: Sequence[Message],
        instructions: str,  # noqa: ARG002 - it takes none
        limit: int,  # noqa: ARG002
    ) -> Arguments | None:
        """Return the arguments of a call of ``responses.compact``, which asks OpenAI to compact
        ``messages``. OpenAI takes neither ``instructions`` nor a ``limit``.
        """
        compact: Any = self.provider_function
        return args, {**_shared(self.read(args, kwargs).named, compact), "input": messages}


def _tell_kept_by_server(name: str) -> str:
    """Return the remedy for a call with this argument, as a sentence without a capital."""
    return (
        f"with {name} the history is kept by the server and not in this call. Have the server "
        'compact it in time (context_management=[{"type": "compaction", "compact_threshold": '
        '...}]), let it drop the oldest items (truncation="auto"), or send the whole history as '
        "input"
    )


def wrap_call(state: State, function: Function, binding: Binding) -> Function:
    """Return the wrapper of a method that returns a reply or a stream."""
    return wrap_function(state, function, binding, asynchronous=is_awaited(function))


def wrap_stored(state: State, function: Function, binding: Binding) -> Function:
    """Return the wrapper of a method whose history may be stored by OpenAI: see ``compacting``."""
    return wrap_call(state, compacting(state, function), replace(binding, bare=function))


@dataclass(frozen=True, slots=True)
class Method:
    """One method of a client that sends messages: where it is, and how its arguments are read."""

    path: tuple[str, ...]
    """Path of its resource from the client."""
    name: str
    wire_format: FormatName
    summary_method: str
    """Name of the method for summary requests; empty: this one."""
    binding: type[Binding]
    wrap: Callable[[State, Function, Binding], Function]


_RESOURCES: tuple[tuple[tuple[str, ...], FormatName, type[Binding], Any], ...] = (
    (("chat", "completions"), "openai", Binding, wrap_call),
    (("responses",), "responses", Responses, wrap_stored),
)
METHODS = tuple(
    Method((*path, *resource), name, wire_format, summary_method, binding, wrap)
    for resource, wire_format, binding, wrap in _RESOURCES
    for path in ((), ("beta",))
    for name, summary_method in (("create", ""), ("parse", "create"))
)
"""The wrapped methods. ``stream`` is not one of them, as the SDK implements it with
``self.create``."""


def wrap_client(state: State, client: T) -> T | None:
    """Return a copy of a client, or of one of its resources, with compacting chat completions and
    responses; ``None`` if it has neither.
    """
    return patched(state, client, METHODS, output_param=output_param(client))


def output_param(client: Any) -> str:
    """Return the name of the output limit of chat completions: OpenAI's newer models refuse
    ``max_tokens``.
    """
    client = vars(client).get("_client") or client  # Of a resource.
    host = urlsplit(str(getattr(client, "base_url", ""))).hostname or ""
    ours = host == "api.openai.com" or host.endswith(
        (".openai.azure.com", ".cognitiveservices.azure.com")
    )
    return "max_completion_tokens" if ours else "max_tokens"


def patched(
    state: State, client: T, methods: tuple[Method, ...], *, output_param: str = "max_tokens"
) -> T | None:
    """Return a copy of a client with all methods in the list wrapped; ``None`` if it has none of
    them. A resource, recognised by its module, is copied alone.
    """
    copies: Copies = {}
    copy = copy_client(client, copies)
    module = type(client).__module__.split(".")
    is_resource = "resources" in module
    found = False
    for path in dict.fromkeys(method.path for method in methods):
        if not is_resource:
            resource = copy_part(client, copy, path, copies)
        else:
            fits = path[-1] in module and ("beta" in path) == ("beta" in module)
            resource = copy if fits else None
        mine = [method for method in methods if method.path == path]
        found = (resource is not None and _patch(state, resource, mine, output_param)) or found
    if not found:
        return None

    keep_wrapping(copy, COPIES, partial(patched, state, methods=methods, output_param=output_param))
    return copy


def _patch(state: State, resource: Any, methods: list[Method], output_param: str) -> bool:
    """Wrap methods of a copied resource, and return whether it has any of them."""
    made = {}
    for method in methods:
        if not hasattr(resource, method.name):
            continue
        function = unbound(resource, method.name)
        bound = bind(function)
        if bound is None:
            continue
        own = {member.name: getattr(bound, member.name) for member in fields(bound)}
        binding = replace(
            method.binding(**own),
            wire_format=method.wire_format,
            output_param=output_param if method.wire_format == "openai" else "",
            summary_function=parsing(unbound(resource, method.summary_method or method.name)),
            provider_function=_compacting(resource, method),
            vendors=True,
            server=partial(server_of, resource),
        )
        if method.name != "stream":
            function = looking_into_raw(function)
        made[method.name] = method.wrap(state, function, binding)
    for name, wrapped in made.items():
        set_method(resource, name, wrapped)

    for name in HELPERS:
        if made and name not in made and hasattr(resource, name):
            function = unbound(resource, name)
            if name == "tool_runner" and "thread" in inspect.signature(function).parameters:
                # Anthropic's sends only new messages by default, and they could not be compacted.
                set_method(resource, name, partial(function, thread=False))
            take_options(resource, name, partial(_twin, methods[0].path, tuple(made)))
    return bool(made)


def _compacting(resource: Any, method: Method) -> Function | None:
    """Return the method of a resource that has the provider compact messages, if it has one."""
    name = _COMPACTS.get(method.wire_format, "")
    return parsing(unbound(resource, name)) if hasattr(resource, name) else None


def _twin(path: tuple[str, ...], names: tuple[str, ...], resource: Any, options: object) -> Any:
    """Return a copy of a resource, in a copy of its client, whose methods have these options."""
    copies: Copies = {}
    client = vars(resource)["_client"]
    twin = copy_part(client, copy_client(client, copies), path, copies)
    return preset(twin, resource, names, options)


def server_of(resource: Any) -> str:
    """Return what identifies a resource's server: the type of the client, its base URL, and
    Anthropic's betas in its headers, which can mean another context window. The base URL can change
    at any time.
    """
    client = vars(resource).get("_client")
    kind = type(client)
    headers = getattr(client, "_custom_headers", None) or {}
    betas = [str(headers[name]) for name in headers if name.lower() == "anthropic-beta"]
    parts = (f"{kind.__module__}.{kind.__qualname__}", str(getattr(client, "base_url", "")))
    return " ".join((*parts, *betas))


# -- responses that continue a stored response -----------------------------------------------------
#  A call with ``previous_response_id`` contains only new items. If it is too long, the server is
# asked to compact the stored history
# (https://platform.openai.com/docs/api-reference/responses/compact), and the call is repeated with
# the result before the new items. Function calls without results are inside the compacted history,
# where their results could not refer to them, so they are copied from the last response and sent
# again.

# Arguments of the call that are passed to `responses.compact`, if the installed SDK has them.
_SHARED = (
    "model",
    "instructions",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "service_tier",
    "extra_headers",
    "extra_query",
    "timeout",
    "betas",
)
_NAME = "responses.compact"


def compacting(state: State, function: Function) -> Function:
    """Return ``responses.create`` with recovery of calls with ``previous_response_id`` that are too
    long.

    The history is compacted by the server once, if the SDK has ``responses.compact``. Its result is
    opaque, so the event has sizes but no summary. If anything fails after the first refusal, the
    caller gets the first refusal.
    """
    if state.options.max_retries == 0:
        return function

    async def continued(io: IO, resource: Any, /, *args: Any, **kwargs: Any) -> Any:
        send = partial(function, resource, *args)
        first = await attempt(io, state, send, kwargs)
        if first.token_limit is None:
            return first.raw
        former = kwargs["previous_response_id"]
        had = f"asked the server to compact its history, and {_NAME}"
        try:
            shared = _shared(kwargs, resource.compact)
            compacted = await io.call(resource.compact, **shared, previous_response_id=former)
            await state.emit(io, _event(state, kwargs, compacted))
            had = f"had the server compact its history ({_NAME}), and the request"
            had += " that went on from there"
            made = listed(field(compacted, "output"))
            new = _items(kwargs)
            waiting = _ids([*made, *new], "_output") - _ids([*made, *new], "_call")
            last = await io.call(resource.retrieve, former) if waiting else None
            kept = without(kwargs, ("previous_response_id",))
            kept = {**kept, "input": [*made, *_calls(last, waiting), *new]}
            second = await attempt(io, state, send, kept)
        except Exception as error:  # noqa: BLE001 - the first refusal is raised instead
            return _given_up(first, f"{had} failed: {type(error).__name__}")
        dropped = first if second.token_limit is None else second
        if dropped.raw is not None:
            await streams.close(io, dropped.raw)
        return second.raw if dropped is first else _given_up(first, f"{had} was still too long")

    return divert(function, lambda kwargs: kwargs.get("previous_response_id"), continued)


def _given_up(refused: Reply, note: str) -> Any:
    """Raise the refusal's exception with a note, or return the refusal if it is a reply."""
    if refused.error is None:
        return refused.raw
    add_note(refused.error, f"compacter {note}; {_tell_kept_by_server('previous_response_id')}")
    raise refused.error from None


async def attempt(io: IO, state: State, send: Function, kwargs: Options) -> Reply:
    """Return the reply, with its token limit if it is a refusal. A stream is read up to its first
    content.
    """
    try:
        return await streams.opened(io, await io.call(send, **kwargs), state.detect)
    except Exception as error:
        limit = state.detect(error)
        if limit is None:
            raise
        return Reply(token_limit=limit, error=error)


def _shared(kwargs: Options, compact: Function) -> dict[str, Any]:
    """Return the arguments of a call that ``responses.compact`` takes too."""
    known = inspect.signature(compact).parameters
    return {
        name: value
        for name, value in without_raw(kwargs).items()
        if name in _SHARED and name in known
    }


def _items(kwargs: Options) -> Sequence[Any]:
    """Return the new items of a call."""
    new = kwargs.get("input")
    return [{"role": "user", "content": new}] if isinstance(new, str) else listed(new)


def _ids(items: Iterable[Any], ending: str) -> set[Any]:
    """Return the ids of the calls, or of their results, among these items."""
    ids = (field(item, "call_id") for item in items if word(item, "type").endswith(ending))
    return {*filter(None, ids)}


def _calls(response: object, waiting: set[Any]) -> list[Any]:
    """Return the unanswered calls of the last response, with the reasoning that belongs to them.

    Raises ``LookupError`` if a call is missing, because its result could not be sent.
    """
    items = listed(field(response, "output"))
    if not waiting <= _ids(items, "_call"):
        raise LookupError("a call that waits for its result is not in the last response")
    return [
        item
        for item in items
        if waiting and (field(item, "call_id") in waiting or word(item, "type") == "reasoning")
    ]


def _event(state: State, kwargs: Options, compacted: object) -> CompactionEvent:
    """Return the event of a compaction by the server. Its sizes are the server's token counts,
    converted to characters by the calibration.
    """
    before, after = usage_of(compacted)
    model = kwargs.get("model")
    model = model if isinstance(model, str) else None
    ratio = state.calibration(model).chars_per_token
    return CompactionEvent(
        model=model,
        attempt=1,
        conversation=str(kwargs["previous_response_id"]),
        trigger="token_limit",
        strategy=_NAME,
        original_data_size=int(before * ratio),
        compacted_data_size=int(after * ratio),
        original_tokens=before,
        compacted_tokens=after,
        input_tokens=before,
        output_tokens=after,
        summarizer_calls=1,
        ratio=1.0,
        messages_before=0,
        messages_after=len(listed(field(compacted, "output"))),
    )
