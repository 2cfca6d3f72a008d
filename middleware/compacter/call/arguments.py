"""Where a call keeps what compacter needs: messages, model, output limit, and what is sent beside the messages.

A `Binding` belongs to one wrapped function and reads or changes the arguments of its calls. Vendors' methods that keep
things elsewhere (in ``config``, in ``inferenceConfig``, in a JSON body) have subclasses of it in `compacter.clients`.
The chapter: the names that calls use, the class, `bind`, which makes one for a function, and small readers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from compacter.errors import ConfigurationError
from compacter.messages.fields import characters
from compacter.messages.fields import field as member
from compacter.messages.format import Message, MessageFormat

MESSAGE_PARAMS = ("messages", "input", "contents")
_PARAM_OF = {"responses": "input", "gemini": "contents"}
"""What the messages of a format are called, where it is not ``messages``."""
OUTPUT_PARAMS = (
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "max_new_tokens",
    "num_predict",
    "maxTokens",
)
BESIDE = (
    "tools", "functions", "system", "instructions", "response_format", "system_instruction", "prompt", "text_format",
    "response_schema", "response_json_schema", "toolConfig",
)  # fmt: skip
"""Options whose content the provider reads too."""

CARRIED = frozenset({
    # Which model, with whose key, at which server, for whose account.
    "self", "model", "model_id", "modelId", "deployment_id", "custom_llm_provider", "client", "api_key", "api_base",
    "base_url", "api_version", "api_type", "organization", "project", "region_name", "workspace_id", "user_profile_id",
    "billing_policy", "inference_geo", "access_programs", "litellm_credential_name", "ssl_verify",
    "shared_session", "model_list",
    # How long to wait, and how often to try.
    "timeout", "request_timeout", "max_retries", "num_retries", "retry_strategy",
    # Headers and the like.
    "headers", "extra_headers", "extra_query", "betas",
    # The price and the cache.
    "service_tier", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "cache", "caching",
    # How words are chosen.
    "temperature", "top_p", "top_k", "seed",
    # How litellm treats all of these; an answer that is made up for a test stays one.
    "drop_params", "additional_drop_params", "allowed_openai_params", "mock_response",
})  # fmt: skip
"""Options that a request for a summary takes over from the call, by their names in any vendor's SDK."""
_CARRIED_PREFIXES = ("aws_", "azure_", "vertex_", "watsonx_")
"""litellm's credentials and places, by provider."""

NOT_FOR_NATIVE = frozenset({
    # In which form the model answers, and where it ends.
    "response_format", "text_format", "text", "output_format", "modalities", "audio", "prediction", "n", "logprobs",
    "top_logprobs", "include", "moderation", "max_tool_calls", "stop", "stop_sequences",
    # How the answer is sent.
    "stream", "stream_options", "background",
    # The conversation's state at the server, and records and routes of the call itself.
    "thread", "previous_response_id", "conversation", "compaction", "truncation", "store", "metadata",
    "litellm_metadata", "diagnostics", "fallbacks", "fallback_credit_token", "extra_body",
})  # fmt: skip
"""Options that any request for a summary leaves out."""
LEFT_OUT = NOT_FOR_NATIVE | {
    # What the model may do.
    "tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "mcp_servers", "container",
    "web_search_options", "multi_agent", "include_server_side_tool_invocations",
    # How it thinks and what it says.
    "reasoning_effort", "reasoning", "thinking", "frequency_penalty", "presence_penalty", "logit_bias", "speed",
    "verbosity", "output_config", "enable_json_schema_validation", "parse_as", "image",
    # The conversation's own prompt, and how it is kept.
    "system", "instructions", "prompt", "context_management", "cache_control", "background_options",
    "safety_identifier",
}  # fmt: skip
"""Options that a request for a summary of a transcript leaves out, also where a user's own function has parameters of
these names. One with the same prefix keeps them: they belong to what the provider has in its cache."""
_PLACES = ("base_url", "api_base", "api_version", "custom_llm_provider", "region_name", "aws_region_name")
"""Options of a call that choose another server than the client's."""

RAW_RESPONSE_HEADER = "x-stainless-raw-response"

Args: TypeAlias = tuple[Any, ...]
Options: TypeAlias = Mapping[str, Any]
Prompt: TypeAlias = Sequence[Mapping[str, str]]
"""OpenAI-style messages that ask for a summary."""
Arguments: TypeAlias = tuple[Args, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class CallFacts:
    """What the arguments of one call say."""

    named: Options
    """All arguments by their parameters' names, however they were passed."""
    messages: Any
    """The messages argument as it was passed, or ``None``."""
    model: str | None
    """The model's name, where the call says it."""
    endpoint: str
    """The kind of client and its base URL, with what the call itself says of the place; "" where neither is known.

    Part of the memory's scope: a summary that was made for one server is not sent to another one.
    """
    output_option: str
    """The option that limits the output."""
    output_tokens: int | None
    """Its value."""
    beside: Sequence[Any]
    """The options whose content the provider reads too."""
    elsewhere: str | None = None
    """Why the history is not in this call, in words for the user; ``None`` where it is."""


@dataclass(frozen=True, slots=True)
class Binding:
    """How to read and change the arguments of one function. Subclassed for clients that keep things elsewhere.

    Every method takes a call's arguments, as ``args`` and ``kwargs`` or all by name, and changes neither.
    """

    wire_format: str | None = None
    """``None``: recognised call by call, from the messages."""
    messages_param: str = "messages"
    accepts: frozenset[str] | None = None
    """Names of the function's parameters; ``None`` where it takes any keyword."""
    positional: tuple[str, ...] = ()
    """Names of the parameters that may be passed by position, in order."""
    declared: Mapping[str, Any] = field(default_factory=dict)
    """Default of each named parameter; ``None`` for one that must be given."""
    vendors: bool = False
    """A vendor's own method: nothing but what is listed as carried goes into a request for a summary."""
    output_param: str = "max_tokens"
    """The output limit's name where the call does not set one."""
    asks: Callable[..., Any] | None = None
    """What a summary is asked of, where the function itself is no good for that (``parse``, ``stream``)."""
    quiet: Callable[[Any], bool] | None = None
    """Whether a chunk of its streams holds nothing that a user would see; ``None``: as vendors have it."""
    server: Callable[[], str] | None = None
    """Gives the kind of client and its base URL; ``None`` for a function, which has neither."""

    # -- reading a call ------------------------------------------------------------------------------------------------

    def messages(self, args: Args, kwargs: Options) -> Any:
        """The messages argument as it was passed, or ``None``."""
        if self.messages_param in self.positional[: len(args)]:
            return args[self.positional.index(self.messages_param)]
        return kwargs.get(self.messages_param)

    def of_call(self, args: Args, kwargs: Options) -> Binding:
        """The binding of one call: who takes any keyword, as ``def ask(**options)``, has messages where they are."""
        if self.vendors or self.accepts is not None or self.messages(args, kwargs) is not None:
            return self
        found = next((name for name in MESSAGE_PARAMS if kwargs.get(name) is not None), self.messages_param)
        return replace(self, messages_param=found)

    def needs_list(self, args: Args, kwargs: Options) -> bool:
        """Whether the messages are no plain list: a ``History``, or an iterable that may be readable only once."""
        found = self.of_call(args, kwargs).messages(args, kwargs)
        return type(found) is not list and (hasattr(found, "pinned_ids") or is_mere_iterable(found))

    def as_list(self, args: Args, kwargs: dict[str, Any], *, histories: bool = True) -> Arguments:
        """The same call with a plain list in place of an iterable that can end, and of a ``History``."""
        own = self.of_call(args, kwargs)
        found = own.messages(args, kwargs)
        if is_mere_iterable(found) or (histories and hasattr(found, "pinned_ids")):
            return own.replace(args, kwargs, list(found), {})
        return args, kwargs

    def read(self, args: Args, kwargs: Options) -> CallFacts:
        """What a call says of itself."""
        named = {**dict(zip(self.positional, args, strict=False)), **kwargs}
        model = next(filter(None, map(named.get, ("model", "model_id", "modelId"))), None)
        places = [f"{name}={named[name]}" for name in _PLACES if named.get(name)]
        options = self.options(named)
        limits = {name: options[name] for name in OUTPUT_PARAMS if type(options.get(name)) is int}
        output_option = next(iter(limits), self.output_param)
        return CallFacts(
            named=named,
            messages=self.messages(args, kwargs),
            model=model if isinstance(model, str) else None,
            endpoint=" ".join([self.server(), *places] if self.server is not None else places),
            output_option=output_option,
            output_tokens=limits.get(output_option),
            beside=[value for name, value in options.items() if name in BESIDE and value],
        )

    def options(self, kwargs: Options) -> Options:
        """Where the call keeps its output limit, and what is sent beside the messages."""
        return kwargs

    # -- changing a call -----------------------------------------------------------------------------------------------

    def replace(self, args: Args, kwargs: Options, messages: Sequence[Message], options: Options) -> Arguments:
        """The same call with other messages and some other options, each passed as the caller passed it."""
        changed, given = {**options, self.messages_param: messages}, list(args)
        for at, name in enumerate(self.positional[: len(args)]):
            if name in changed and name not in kwargs:
                given[at] = changed.pop(name)
        return tuple(given), {**kwargs, **changed}

    def summary_call(self, args: Args, kwargs: Options, wire: MessageFormat, prompt: Prompt, limit: int) -> Arguments:
        """The arguments of a request for a summary to the same model, of at most ``limit`` tokens.

        It is built from what it needs (``CARRIED``). A function of the user's own also keeps arguments whose names no
        vendor has; a parameter that is left out gets its default, or ``None`` where it has none.
        """
        messages, extra = wire.prompt(prompt)
        name = self.read(args, kwargs).output_option
        kept = self._without(args, lambda param, value: not self._carries(param, value))
        options = {param: value for param, value in parsed(kwargs).items() if self._carries(param, value)}
        if not self.vendors:
            passed = {*self.positional[: len(args)], *options}
            absent = (param for param in kwargs if param in self.declared or param == "stream")
            options |= {param: self._absent(param) for param in absent if param in LEFT_OUT and param not in passed}
            if self.declared.get("stream") and "stream" not in passed:
                options["stream"] = False
        extra = {key: value for key, value in {**extra, name: limit}.items() if self._accepts(key)}
        return self.replace(kept, options, messages, extra)

    def _accepts(self, name: str) -> bool:
        return self.accepts is None or name in self.accepts

    def _carries(self, name: str, value: object) -> bool:
        """Whether a request for a summary takes an option over."""
        if name in CARRIED or name.startswith(_CARRIED_PREFIXES):
            return True
        if name in LEFT_OUT:
            return is_off_switch(name, value)
        return not self.vendors and name not in OUTPUT_PARAMS and name != self.messages_param

    def _absent(self, name: str) -> object:
        return False if name == "stream" else self.declared.get(name)

    def _without(self, args: Args, left_out: Callable[[str, object], bool]) -> Args:
        """Arguments passed by position, with the defaults of those that are left out."""
        names = (*self.positional, *("" for _ in args))
        return tuple(
            self._absent(name) if name not in {"", self.messages_param} and left_out(name, value) else value
            for name, value in zip(names, args, strict=False)
        )

    def native_call(
        self, args: Args, kwargs: Options, wire: MessageFormat, prefix: Sequence[Message], instruction: str, limit: int
    ) -> Arguments:
        """The call itself with another end: the same system prompt, tools and messages, then the instruction.

        Only what does not belong to the prompt is changed, so that the provider's cache of it still counts.
        """
        messages = list(prefix)
        if wire.alternates and messages and wire.speaker(messages[-1]) == "user":
            messages.append(wire.filler("assistant"))
        messages.append(wire.say("user", instruction))
        facts = self.read(args, kwargs)

        def left_out(name: str, value: object) -> bool:
            return name in NOT_FOR_NATIVE and not is_off_switch(name, value)

        options = {name: value for name, value in parsed(kwargs).items() if not left_out(name, value)}
        if forces_call(options.get("tool_choice")):
            del options["tool_choice"]
        if "stream" in kwargs:
            options["stream"] = False
        # Thinking comes out of the output limit, and Anthropic refuses a limit that its budget does not fit into.
        limit += whole(member(facts.named.get("thinking"), "budget_tokens"))
        name = facts.output_option
        changed = {name: limit} if self._accepts(name) or name in facts.named else {}
        return self.replace(self._without(args, left_out), options, messages, changed)


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
    if messages_param is None:
        name = next((known for known in MESSAGE_PARAMS if known in parameters), "")
        if not name and not open_ended:
            return None
        name = name or _PARAM_OF.get(wire_format or "", "messages")
    elif messages_param in parameters or open_ended:
        name = messages_param
    else:
        known = ", ".join(parameters)
        own = getattr(function, "__qualname__", type(function).__qualname__)
        raise ConfigurationError(f"messages_param={messages_param!r} is no parameter of {own}; it has: {known}")
    return Binding(
        wire_format=wire_format,
        messages_param=name,
        accepts=None if open_ended else frozenset(parameters),
        positional=tuple(
            name
            for name, parameter in parameters.items()
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ),
        declared={
            name: None if parameter.default is parameter.empty else parameter.default
            for name, parameter in parameters.items()
            if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        },
    )


# -- small readers ---------------------------------------------------------------------------------------------------


def is_mere_iterable(value: object) -> bool:
    """Whether messages were passed as an iterable that is no sequence: a generator, a ``map``, a dict's values.

    False for a ``History`` and for a single message: mappings and models can be iterated, too.
    """
    if value is None or isinstance(value, (Sequence, Mapping, bytes, bytearray)) or hasattr(value, "pinned_ids"):
        return False
    return isinstance(value, Iterable) and not hasattr(type(value), "model_fields")


def is_off_switch(name: str, value: object) -> bool:
    """Whether an option turns something off that must stay off in a request for a summary as well."""
    if name == "store":
        return value is False
    if name == "thinking":
        return bool(member(value, "type") == "disabled")
    effort = member(value, "effort") if name == "reasoning" else value if name == "reasoning_effort" else None
    return effort in ("none", "minimal")


def forces_call(choice: object) -> bool:
    """Whether a ``tool_choice`` leaves the model no way to answer in words."""
    kind = member(choice, "type") if isinstance(choice, Mapping) else choice
    return kind not in (None, "auto", "none")


def characters_sent(value: object) -> int:
    """Size of an option that the provider reads; a class stands for its JSON schema."""
    if isinstance(value, type):
        schema = getattr(value, "model_json_schema", None)
        return characters(schema()) if callable(schema) else 0
    return characters(value)


def parsed(options: Options) -> Options:
    """Options without the header by which ``with_raw_response`` tells the SDK to hand out the reply unread."""
    headers = options.get("extra_headers")
    if not isinstance(headers, Mapping):
        return options
    kept = {name: value for name, value in headers.items() if str(name).lower() != RAW_RESPONSE_HEADER}
    return {**options, "extra_headers": kept}


def whole(value: object) -> int:
    """A number of tokens; 0 for anything else, and for what is below 0."""
    return max(value, 0) if isinstance(value, int) else 0
