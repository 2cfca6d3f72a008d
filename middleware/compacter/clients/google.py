"""The google-genai SDK's clients, sync and ``aio``."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from compacter.call.arguments import Args, Arguments, Binding, Options, Prompt, whole
from compacter.call.option_names import BESIDE
from compacter.call.state import State
from compacter.call.wrap import wrap_function
from compacter.clients.copying import (
    Copies,
    copy_client,
    copy_part,
    is_awaited,
    set_method,
    unbound,
)
from compacter.messages.fields import field
from compacter.messages.format import Message, MessageFormat

T = TypeVar("T")
METHODS = ("generate_content", "generate_content_stream")
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
        return {name: _option(kwargs.get("config"), name) for name in (_LIMIT, *BESIDE)}

    def summary_call(
        self, args: Args, kwargs: Options, wire: MessageFormat, prompt: Prompt, limit: int
    ) -> Arguments:
        """Return a request to the same model with a new config. Thinking stays off if it
        was off.
        """
        given = kwargs.get("config")
        messages, extra = wire.prompt(prompt)
        config = {name: value for name in _KEPT if (value := _option(given, name)) is not None}
        thinking = _option(given, "thinking_config")
        if _option(thinking, "thinking_budget") == 0:
            config["thinking_config"] = thinking
        if _option(given, "store") is False:
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
        given = kwargs.get("config")
        limit += whole(_option(_option(given, "thinking_config"), "thinking_budget"))
        args, changed = Binding.native_call(self, args, kwargs, wire, prefix, instruction, limit)
        dropped = [name for name in _NOT_FOR_NATIVE if _option(given, name) is not None]
        mode = _option(_option(_option(given, "tool_config"), "function_calling_config"), "mode")
        if str(getattr(mode, "value", mode)).upper() == "ANY":
            dropped.append("tool_config")
        return args, {
            **changed,
            "config": _change_config(changed.get("config"), {_LIMIT: limit}, dropped),
        }


def wrap_client(state: State, client: T) -> T:
    """Return a compacting copy of a ``Client`` or its ``aio``. Its chats compact too, as they use
    its models.
    """
    copies: Copies = {}
    copy: Any = copy_client(client, copies)
    for path in (("_models",), ("_aio", "_models")):
        models = copy_part(client, copy, path, copies)
        if models is not None:
            _patch(state, models)
            models.__dict__[_ORIGINAL] = client
    if hasattr(copy, "close"):
        set_method(copy, "close", _closing(unbound(copy.close)))
    wrapped: T = copy
    return wrapped


def _closing(close: Callable[..., None]) -> Callable[..., None]:
    """Return ``close`` for a copy, which shares its connections with the original.

    A client closes itself when it is garbage collected. So the original is kept alive, and a
    garbage-collected copy must not close its connections.
    """

    @functools.wraps(close)
    def closed(self: object) -> None:
        if sys._getframe(1).f_code.co_name != "__del__":  # noqa: SLF001 - the only way to distinguish the two
            close(self)

    return closed


def wrap_method(state: State, models: Any, name: str) -> Callable[..., Any] | None:
    """Return the wrapper of ``generate_content`` or ``generate_content_stream``."""
    if name not in METHODS:
        return None
    copy = copy_client(models, {})
    _patch(state, copy)
    found: Callable[..., Any] = getattr(copy, name)
    return found


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

    inner = "_" if hasattr(models, "_generate_content") else ""
    create = unbound(getattr(models, f"{inner}generate_content"))
    names = [f"{inner}{name}" for name in METHODS if hasattr(models, f"{inner}{name}")]
    for name in names:
        function = unbound(getattr(models, name))
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


def _option(config: Any, name: str) -> Any:
    """Return an option of a config, which may be spelt in camel case in a dict."""
    found = field(config, name)
    return config.get(_camel(name)) if found is None and isinstance(config, Mapping) else found


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(map(str.capitalize, rest))


def _change_config(config: Any, options: Mapping[str, object], without: Sequence[str] = ()) -> Any:
    """Return a copy of a config with some options changed, and some others removed."""
    if config is not None and not isinstance(config, Mapping):
        return config.model_copy(update={**dict.fromkeys(without), **options})
    gone = {spelt for name in (*without, *options) for spelt in (name, _camel(name))}
    return {
        **{name: value for name, value in (config or {}).items() if name not in gone},
        **options,
    }
