"""The google-genai SDK's clients, sync and ``aio``."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compacter.call.arguments import Args, Arguments, Binding, Options, Prompt, whole
from compacter.call.option_names import BESIDE
from compacter.call.state import State
from compacter.call.wrap import wrap_function
from compacter.clients.copying import (
    Copies,
    copy_client,
    copy_part,
    is_awaited,
    preset,
    set_method,
    take_options,
    unbound,
)
from compacter.messages.fields import field
from compacter.messages.format import Message, MessageFormat
from compacter.messages.gemini import snake, snake_key
from compacter.objects import with_special_methods

METHODS = ("generate_content", "generate_content_stream")
_INNER = tuple(f"_{name}" for name in METHODS)
"""The single requests that they make."""
_LIMIT = "max_output_tokens"
# Options of the call's config that a summary request keeps: no tools, schema or cached content.
_KEPT = (
    "http_options",
    "temperature",
    "top_p",
    "top_k",
    "seed",
    "safety_settings",
    "service_tier",
    "model_armor_config",
)
# Options that a summary request with the same prefix leaves out, as it asks for plain text.
_NOT_FOR_NATIVE = (
    "response_schema",
    "response_json_schema",
    "response_mime_type",
    "response_modalities",
    "stop_sequences",
    "candidate_count",
    "response_logprobs",
    "logprobs",
    "store",
    "continuation_token",
    "automatic_continuation",
    "should_return_http_response",
    "speech_config",
    "image_config",
    "labels",
)
_ORIGINAL = "_compacter_original"


@dataclass(frozen=True, slots=True)
class Contents(Binding):
    """Arguments of ``generate_content``: all but model and contents are in ``config``, a dict or an
    SDK object.
    """

    def messages(self, args: Args, kwargs: Options) -> Any:
        """Return a list of contents, else ``None``: strings and parts without a role are a single
        user message.
        """
        found = Binding.messages(self, args, kwargs)
        if isinstance(found, (list, tuple)) and not any(
            field(item, "parts") is not None or field(item, "role") for item in found
        ):
            return None
        return found

    def replace(
        self, args: Args, kwargs: Options, messages: Sequence[Message], options: Options
    ) -> Arguments:
        """Return the call with other contents, and other options in ``config``."""
        args, changed = Binding.replace(self, args, kwargs, messages, {})
        if options:
            changed["config"] = _change_config(kwargs.get("config"), options)
        return args, changed

    def options(self, kwargs: Options) -> Options:
        """Return the options in ``config`` that are read."""
        given = _config(kwargs)
        return {name: field(given, name) for name in (_LIMIT, *BESIDE)}

    def summary_call(
        self, args: Args, kwargs: Options, wire: MessageFormat, prompt: Prompt, limit: int
    ) -> Arguments:
        """Return a request to the same model with a new config. Thinking stays off if it
        was off.
        """
        given = _config(kwargs)
        messages, extra = wire.prompt(prompt)
        config = {name: value for name in _KEPT if (value := field(given, name)) is not None}
        thinking = field(given, "thinking_config")
        if field(thinking, "thinking_budget") == 0:
            config["thinking_config"] = thinking
        if field(given, "store") is False:
            config["store"] = False
        options = {key: value for key, value in kwargs.items() if key == "model"}
        args, changed = Binding.replace(self, args, options, messages, {})
        return args, {**changed, "config": {**config, **extra, _LIMIT: limit}}

    def native_call(
        self,
        args: Args,
        kwargs: Options,
        wire: MessageFormat,
        prefix: Sequence[Message],
        instruction: str,
        limit: int,
    ) -> Arguments:
        """Return the call with another end, plain text output, and no forced function call."""
        given = _config(kwargs)
        limit += whole(field(field(given, "thinking_config"), "thinking_budget"))
        args, changed = Binding.native_call(self, args, kwargs, wire, prefix, instruction, limit)
        dropped = [name for name in _NOT_FOR_NATIVE if field(given, name) is not None]
        mode = field(field(field(given, "tool_config"), "function_calling_config"), "mode")
        if str(getattr(mode, "value", mode)).upper() == "ANY":
            dropped.append("tool_config")
        return args, {
            **changed,
            "config": _change_config(changed.get("config"), {_LIMIT: limit}, dropped),
        }


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

    @functools.wraps(create)
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
    """Return a chat with the same history, which sends by a twin of the models."""
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

    def server() -> str:
        client = field(models, "_api_client")
        places = ("vertexai", "project", "location")
        options = field(client, "_http_options")
        return " ".join(
            (
                "google.genai",
                str(field(options, "base_url")),
                *(str(field(client, place)) for place in places),
            )
        )

    create = unbound(models, _INNER[0])
    for name in _INNER:
        function = unbound(models, name)
        binding = Contents(
            wire_format="gemini",
            messages_param="contents",
            output_param=_LIMIT,
            summary_function=create,
            vendors=True,
            accepts=frozenset({"self", "model", "contents", "config"}),
            server=server,
        )
        set_method(
            models, name, wrap_function(state, function, binding, asynchronous=is_awaited(function))
        )
    for name in METHODS:
        take_options(models, name, _twin)


def _config(kwargs: Options) -> Any:
    """Return the config of a call to be read, with names in snake case."""
    return snake(kwargs.get("config"))


def _change_config(config: Any, options: Mapping[str, object], without: Sequence[str] = ()) -> Any:
    """Return a copy of a config with some options changed, and some others removed."""
    if config is not None and not isinstance(config, Mapping):
        return config.model_copy(update={**dict.fromkeys(without), **options})
    gone = {*without, *options}
    kept = {name: value for name, value in (config or {}).items() if snake_key(name) not in gone}
    return {**kept, **options}
