"""The google-genai SDK's clients, sync and ``aio``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any

from compacter.call.arguments import Args, Arguments, Binding, Options
from compacter.call.state import State
from compacter.clients.copying import (
    Copies,
    copy_client,
    copy_part,
    preset,
    replace_method,
    set_method,
    take_options,
    unbound,
)
from compacter.clients.nested import Nested
from compacter.messages.fields import dig, field
from compacter.messages.format import Message
from compacter.runtime.objects import with_special_methods

METHODS = ("generate_content", "generate_content_stream")
_INNER = tuple(f"_{name}" for name in METHODS)
"""The single requests that they make."""
_ORIGINAL = "_compacter_original"
_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")


@dataclass(frozen=True, slots=True)
class Contents(Nested):
    """Arguments of ``generate_content``: all but model and contents are in ``config``, a dict or an
    SDK object.
    """

    output_param: str = "max_output_tokens"
    place: str = "config"

    def messages(self, args: Args, kwargs: Options) -> Any:
        """Return a list of contents, else ``None``: strings and parts without a role are read as
        one user message.
        """
        found = Binding.messages(self, args, kwargs)
        if isinstance(found, (list, tuple)) and not any(
            field(item, "parts") is not None or field(item, "role") for item in found
        ):
            return None
        return found

    def members(self, kwargs: Options) -> dict[str, Any]:
        """Return the options in ``config``, with their names in snake case."""
        config = kwargs.get("config") or {}
        members = config.items() if isinstance(config, Mapping) else config
        return {
            _HUMP.sub(r"_\1", name).lower(): value for name, value in members if value is not None
        }

    def replace(
        self, args: Args, kwargs: Options, messages: Sequence[Message], options: Options
    ) -> Arguments:
        """Return the call with other contents, and other options in ``config``."""
        args, changed = Binding.replace(self, args, kwargs, messages, {})
        if options:
            changed["config"] = {**self.members(kwargs), **options}
        return args, changed

    def keeps(self, name: str, value: object, *, native: bool) -> bool:
        """Return whether a request for a summary keeps an option. A forced function call is not
        kept.
        """
        mode = dig(value, "function_calling_config.mode") if name == "tool_config" else None
        return str(mode).upper() != "ANY" and Binding.keeps(self, name, value, native=native)


def wrap_client(state: State, client: Any) -> Any:
    """Return a compacting copy of a ``Client``, its ``aio``, or their ``models``. Its chats compact
    too, as they use its models.
    """
    copies: Copies = {}
    copy = copy_client(client, copies)
    if hasattr(copy, _INNER[0]):
        _patch(state, copy)
    for path in ((), ("_aio",)):
        models = copy_part(client, copy, (*path, "_models"), copies)
        if models is not None:
            _patch(state, models)
            models.__dict__[_ORIGINAL] = client
            owner = copy_part(client, copy, path, copies)
            with_special_methods(owner, _OWN)
    return copy


# -- chats -----------------------------------------------------------------------------------------


def _chats(client: Any) -> Any:
    """Return the client's chats, whose methods take ``compacter_options``."""
    kind: Any = type(client)
    chats = super(kind, client).chats
    create = unbound(chats, "create")

    @wraps(create)
    def create_chat(*args: Any, **kwargs: Any) -> Any:
        chat = create(*args, **kwargs)
        for name in ("send_message", "send_message_stream"):
            take_options(chat, name, _twin_chat)
        return chat

    set_method(chats, "create", create_chat)
    return chats


def _stay_open(_: object) -> None:
    """Do nothing: a copy shares its connections with the original, which closes them when it is
    garbage collected, and is kept alive until then.
    """


_OWN: Mapping[str, Any] = {"chats": property(_chats), "__del__": _stay_open}


def _twin_chat(chat: Any, options: object) -> Any:
    """Return a copy of a chat that shares its history, and sends with other models."""
    twin = copy_client(chat, {})
    models = vars(twin)["_modules"]
    vars(twin)["_modules"] = _twin(models, options)
    return twin


def _twin(models: Any, options: object) -> Any:
    twin = copy_client(models, {})
    return preset(twin, models, _INNER, options)


# -- models ----------------------------------------------------------------------------------------


def _patch(state: State, models: Any) -> None:
    """Wrap the single request instead of the public method.

    The public method may call the user's functions (automatic function calling), which a retry
    would call twice.
    """
    binding = Contents(
        wire_format="gemini",
        messages_param="contents",
        summary_function=unbound(models, _INNER[0]),
        server=partial(_server, models),
    )
    for name in _INNER:
        replace_method(state, models, name, binding)
    for name in METHODS:
        take_options(models, name, _twin)


def _server(models: Any) -> str:
    client = field(models, "_api_client")
    base_url = field(field(client, "_http_options"), "base_url")
    places = (field(client, name) for name in ("vertexai", "project", "location"))
    return " ".join(map(str, ("google.genai", base_url, *places)))
