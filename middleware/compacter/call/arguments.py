"""Where a call keeps what compacter needs: messages, model, output limit, and what is sent beside the messages."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compacter.errors import ConfigurationError
from compacter.messages.fields import characters, plain
from compacter.messages.fields import field as member
from compacter.messages.format import FILLERS, Message, Wire

MESSAGE_PARAMS = ("messages", "input", "contents")
OUTPUT_PARAMS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens", "num_predict")
BESIDE = (
    "tools",
    "functions",
    "system",
    "instructions",
    "response_format",
    "system_instruction",
    "prompt",
    "text_format",
)
"""Options whose content the provider reads too."""
NOT_FOR_SUMMARIES = frozenset({
    "tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "stream", "stream_options",
    "response_format", "text_format", "text", "n", "logprobs", "top_logprobs", "logit_bias", "stop", "modalities",
    "audio", "prediction", "web_search_options", "reasoning_effort", "reasoning", "thinking", "previous_response_id",
    "include", "max_tool_calls",
    "system", "instructions", "context_management", "prompt", "truncation", "conversation", "background",
    "output_format", "output_config", "mcp_servers", "container", "moderation", "verbosity",
})  # fmt: skip
"""Options of the main call that have no place in a request for a summary."""

NOT_FOR_NATIVE = frozenset({
    "stream", "stream_options", "response_format", "text_format", "text", "output_format", "n", "stop",
    "stop_sequences", "logprobs", "top_logprobs", "background",
})  # fmt: skip
"""Options of the main call that a request for a summary with the same prefix leaves out."""

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Binding:
    """How to read and change the arguments of one function. Subclassed for clients that keep things elsewhere."""

    wire_format: str | None = None
    """``None``: recognised call by call, from the messages."""
    messages_param: str = "messages"
    messages_position: int | None = None
    model_position: int | None = None
    accepts: frozenset[str] | None = None
    """Names of the function's parameters; ``None`` where it takes any keyword."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """What a ``functools.partial`` has bound already."""
    output_param: str = "max_tokens"
    """The output limit's name where the call does not set one."""
    asks: Callable[..., Any] | None = None
    """What a summary is asked of, where the function itself is no good for that (``parse``, ``stream``)."""

    def messages(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The messages argument as it was passed, or ``None``."""
        found = kwargs.get(self.messages_param)
        if found is None and self.messages_position is not None and self.messages_position < len(args):
            found = args[self.messages_position]
        return self.defaults.get(self.messages_param) if found is None else found

    def held_elsewhere(self, kwargs: Mapping[str, Any]) -> str | None:  # noqa: ARG002 - some bindings can tell
        """Why the history is not in this call, in words for the user; ``None`` where it is."""
        return None

    def has_history(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Whether a ``History`` was passed, which is kept up to date by the call."""
        return hasattr(self.messages(args, kwargs), "pinned_ids")

    def as_list(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        """The same call with a plain list in place of a ``History``."""
        return (
            self.replace(args, kwargs, list(self.messages(args, kwargs)), {})
            if self.has_history(args, kwargs)
            else (args, kwargs)
        )

    def replace(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        messages: Sequence[Message],
        options: Mapping[str, object],
    ) -> Arguments:
        """The same call with other messages and some other options."""
        changed = {**kwargs, **options}
        if (
            self.messages_param not in kwargs
            and self.messages_position is not None
            and self.messages_position < len(args)
        ):
            at = self.messages_position
            return (*args[:at], messages, *args[at + 1 :]), changed
        changed[self.messages_param] = messages
        return args, changed

    def model(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
        """The model's name, where the call says it."""
        found = kwargs.get("model", kwargs.get("model_id", kwargs.get("modelId")))
        if found is None and self.model_position is not None and self.model_position < len(args):
            found = args[self.model_position]
        found = self.defaults.get("model") if found is None else found
        return found if isinstance(found, str) else None

    def output_limit(self, kwargs: Mapping[str, Any]) -> tuple[str, int | None]:
        """Name of the option that limits the output, and its value in tokens."""
        for name in OUTPUT_PARAMS:
            value = kwargs.get(name, self.defaults.get(name))
            if isinstance(value, int) and not isinstance(value, bool):
                return name, value
        return self.output_param, None

    def overhead(self, kwargs: Mapping[str, Any]) -> int:
        """Size of what is sent beside the messages, in characters."""
        beside = (kwargs.get(name, self.defaults.get(name)) for name in BESIDE)
        return sum(map(characters_sent, beside))

    def summary_call(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        wire: Wire,
        prompt: Sequence[Mapping[str, str]],
        max_tokens: int,
    ) -> Arguments:
        """The arguments of a request for a summary to the same model: no tools, no stream, no response format."""
        messages, extra = wire.prompt(prompt)
        name, _ = self.output_limit(kwargs)
        options = {
            key: value for key, value in kwargs.items() if key not in NOT_FOR_SUMMARIES and key not in OUTPUT_PARAMS
        }
        if isinstance(options.get("extra_headers"), Mapping):
            options["extra_headers"] = parsed_reply(options["extra_headers"])
        extra = {
            key: value
            for key, value in {**extra, name: max_tokens}.items()
            if self.accepts is None or key in self.accepts
        }
        stream = {"stream": False} if "stream" in kwargs or "stream" in self.defaults else {}
        undone = {key: None for key in self.defaults if key in NOT_FOR_SUMMARIES and key != "stream"}
        return self.replace(args, {**undone, **options, **stream}, messages, extra)

    def native_call(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        wire: Wire,
        prefix: Sequence[Message],
        instruction: str,
        max_tokens: int,
    ) -> Arguments:
        """The call itself with another end: the same system prompt, tools and messages, then the instruction.

        Only what does not belong to the prompt is changed, so that the provider's cache of it still counts.
        """
        messages = list(prefix)
        if wire.alternates and messages and wire.speaker(messages[-1]) == "user":
            messages.append(wire.say("assistant", FILLERS["assistant"]))
        messages.append(wire.say("user", instruction))
        options = {key: value for key, value in kwargs.items() if key not in NOT_FOR_NATIVE}
        if forces_call(options.get("tool_choice")):
            del options["tool_choice"]
        if isinstance(options.get("extra_headers"), Mapping):
            options["extra_headers"] = parsed_reply(options["extra_headers"])
        stream = {"stream": False} if "stream" in kwargs or "stream" in self.defaults else {}
        name, _ = self.output_limit(kwargs)
        # Thinking comes out of the output limit, and Anthropic refuses a limit that its budget does not fit into.
        budget = member(options.get("thinking"), "budget_tokens")
        max_tokens += budget if isinstance(budget, int) else 0
        takes = self.accepts is None or name in self.accepts or name in kwargs
        return self.replace(args, {**options, **stream}, messages, {name: max_tokens} if takes else {})


def bind(
    function: Callable[..., Any], *, messages_param: str | None = None, wire_format: str | None = None
) -> Binding | None:
    """How to call ``function``; ``None`` when it has no parameter that could hold messages.

    Raises ``ConfigurationError`` when ``messages_param`` names no parameter of it.
    """
    try:
        parameters = dict(inspect.signature(function).parameters)
    except (ValueError, TypeError):
        parameters = {}
    open_ended = not parameters or any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    positional = [
        name
        for name, parameter in parameters.items()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    defaults = _bound(function)
    if messages_param is not None:
        if messages_param not in parameters and not open_ended:
            raise ConfigurationError(
                f"messages_param={messages_param!r} is no parameter of {_name(function)}; "
                f"it has: {', '.join(parameters)}"
            )
        name = messages_param
    else:
        name = next((known for known in MESSAGE_PARAMS if known in parameters), "messages" if open_ended else "")
        if not name:
            return None
    return Binding(
        wire_format=wire_format,
        messages_param=name,
        messages_position=positional.index(name) if name in positional else None,
        model_position=positional.index("model") if "model" in positional else None,
        accepts=None if open_ended else frozenset(parameters),
        defaults=defaults,
    )


def forces_call(choice: object) -> bool:
    """Whether a ``tool_choice`` leaves the model no way to answer in words."""
    kind = member(choice, "type") if isinstance(choice, Mapping) else choice
    return kind not in (None, "auto", "none")


def characters_sent(value: object) -> int:
    """Size of an option that the provider reads; a class stands for its JSON schema."""
    if not value:
        return 0
    if isinstance(value, type):
        schema = getattr(value, "model_json_schema", None)
        return characters(schema()) if callable(schema) else 0
    return characters(value if isinstance(value, str) else plain(value))


def parsed_reply(headers: Mapping[str, Any]) -> dict[str, Any]:
    """Headers without the one by which ``with_raw_response`` tells the SDK to hand out the reply unread."""
    return {name: value for name, value in headers.items() if name.lower() != "x-stainless-raw-response"}


def _bound(function: Callable[..., Any]) -> dict[str, Any]:
    """Keyword arguments that partial objects around ``function`` have bound."""
    found: dict[str, Any] = {}
    inner: Any = function  # Not only functools.partial: others have the same two members.
    while hasattr(inner, "func") and isinstance(getattr(inner, "keywords", None), dict):
        found = {**inner.keywords, **found}
        inner = inner.func
    return found


def _name(function: object) -> str:
    return getattr(function, "__qualname__", None) or type(function).__qualname__
