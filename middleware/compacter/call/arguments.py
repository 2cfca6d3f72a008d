"""Reads and replaces the arguments of a call: messages, model, output limit, tools.

A `Binding` belongs to one wrapped function. Vendors' methods whose arguments are nested (in
``config``, in ``inferenceConfig``, in a JSON body) have subclasses of it in `compacter.clients`. In
this order: the class, `bind`, which makes a binding for a function, and small readers. The names of
arguments are in ``option_names.py``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from compacter.call.option_names import (
    BESIDE,
    INNER,
    LEFT_OUT,
    MESSAGE_PARAMS,
    NOT_FOR_NATIVE,
    OUTPUT_PARAMS,
    PARAM_OF,
    PLACES,
    THINKING,
    USUAL,
    Form,
    forces_call,
    is_off_switch,
)
from compacter.errors import ConfigurationError
from compacter.messages.fields import dig, first, json_text
from compacter.messages.format import Message, MessageFormat

Args: TypeAlias = tuple[Any, ...]
Named: TypeAlias = dict[str, Any]
Options: TypeAlias = Mapping[str, Any]
Prompt: TypeAlias = Sequence[Mapping[str, str]]
"""OpenAI-style messages that ask for a summary."""
Arguments: TypeAlias = tuple[Args, Named]


@dataclass(frozen=True, slots=True)
class CallFacts:
    """Values that compacter has read from the arguments of one call, such as the messages, the
    model, the server and the output limit.
    """

    named: Options
    """All arguments by parameter name, whether passed by position or by keyword."""
    messages: Any
    """The messages argument as it was passed, or ``None``."""
    model: str | None
    """Name of the model, if it is among the arguments."""
    endpoint: str
    """Kind of client, its base URL, and the call's own options for the server; "" if all are
    unknown.

    Part of the memory's scope, so that a summary made on one server is not sent to another one.
    """
    place: str
    """The parts of ``endpoint`` that can mean another context window: without the callers of one
    server."""
    output_option: str
    """Name of the option for the output limit."""
    output_tokens: int | None
    """Output limit, in tokens."""
    beside: Sequence[Any]
    """Values of the options whose content is part of the prompt."""
    elsewhere: str | None = None
    """Reason why the history is not among the arguments, as a sentence for the user; ``None`` if it
    is."""


@dataclass(frozen=True, slots=True)
class Binding:
    """Reads and replaces the arguments of one function's calls. Subclassed for clients with nested
    arguments.

    The methods take a call's arguments as ``args`` and ``kwargs``, or all by name, and modify
    neither.
    """

    wire_format: str | None = None
    """Wire format of the messages; ``None`` to detect it at each call."""
    messages_param: str = "messages"
    accepts: frozenset[str] | None = None
    """Names of the function's parameters; ``None`` if it takes any keyword."""
    positional: tuple[str, ...] = ()
    """Names of the parameters that may be passed by position, in order."""
    declared: Mapping[str, Any] = field(default_factory=dict)
    """Default of each named parameter; ``None`` for a required one."""
    vendors: bool = False
    """Whether it is a vendor's method, which needs none of the options that are left out of a
    request for a summary."""
    output_param: str = ""
    """Name of the output limit if the call does not set one; empty for the format's own."""
    summary_function: Callable[..., Any] | None = None
    """Function to request summaries with, if the wrapped one is unsuitable (``parse``,
    ``stream``).
    """
    provider_function: Callable[..., Any] | None = None
    """Function that has the provider itself compact messages; ``None`` if the client lacks one."""
    bare: Callable[..., Any] | None = None
    """The function without compacter, if something stands between it and the wrapper."""
    quiet: Callable[[Any], bool] | None = None
    """Returns whether a chunk of a stream has no visible content; ``None`` for the vendors'
    chunks.
    """
    server: Callable[[], str] = str
    """Returns the kind of client and its base URL; "" for a function, which has neither."""
    betas: Callable[[], str] | None = None
    """Returns what alone of ``server`` can mean another context window; ``None`` if all of it
    can."""

    # -- reading a call ----------------------------------------------------------------------------

    def messages(self, args: Args, kwargs: Options) -> Any:
        """Return the messages argument as it was passed, or ``None``."""
        if self.messages_param in self.positional[: len(args)]:
            return args[self.positional.index(self.messages_param)]
        return kwargs.get(self.param_of(kwargs))

    def param_of(self, kwargs: Options) -> str:
        """Return the keyword that has the messages in one call: for ``def ask(**options)``, any of
        the usual ones.
        """
        is_fixed = self.vendors or self.accepts is not None
        names = () if is_fixed or self.messages_param in kwargs else MESSAGE_PARAMS
        return next((name for name in names if name in kwargs), self.messages_param)

    def as_list(self, args: Args, kwargs: Named, *, histories: bool = True) -> Arguments:
        """Return the call's arguments with a list in place of an iterable or a ``History``."""
        given = self.messages(args, kwargs)
        if type(given) is list or not needs_list(given, histories=histories):
            return args, kwargs
        return self.replace(args, kwargs, list(given), {})

    def read(self, args: Args, kwargs: Options) -> CallFacts:
        """Return the values that compacter needs of a call's arguments."""
        named = {**dict(zip(self.positional, args, strict=False)), **kwargs}
        model = named.get("model") or named.get("model_id") or named.get("modelId")
        server = self.server()
        options = self.options(named)
        given = (path for path in PLACES if path.partition(".")[0] in options)
        places = [f"{path}={value}" for path in given if (value := dig(options, path))]
        limits = {name: options[name] for name in OUTPUT_PARAMS if type(options.get(name)) is int}
        output_option = next(iter(limits), self.output_param)
        return CallFacts(
            named=named,
            messages=self.messages(args, kwargs),
            model=model if isinstance(model, str) else None,
            endpoint=" ".join(filter(None, (server, *places))),
            place=" ".join(filter(None, (self.betas() if self.betas else server, *places))),
            output_option=output_option,
            output_tokens=limits.get(output_option),
            beside=[value for name, value in options.items() if name in BESIDE and value],
        )

    def options(self, kwargs: Options) -> Options:
        """Return the options of a call as one dict. The output limit and the tools are among them.
        For some clients this is a nested dict, not the arguments themselves.
        """
        return kwargs

    def names(self, kwargs: Options) -> list[str]:
        """Return the names of a call's options and of their members, without its model and
        messages.
        """
        inner = (value for value in kwargs.values() if isinstance(value, Mapping))
        names = {*kwargs, *(name for value in inner for name in value)}
        return sorted(names - {self.messages_param, "model", "modelId"})

    # -- changing a call ---------------------------------------------------------------------------

    def replace(
        self, args: Args, kwargs: Options, messages: Sequence[Message], options: Options
    ) -> Arguments:
        """Return the call's arguments with other messages and options, by position or keyword as in
        the call.
        """
        changed = {**options, self.param_of(kwargs): messages}
        given = list(args)
        for at, name in enumerate(self.positional[: len(args)]):
            if name in changed and name not in kwargs:
                given[at] = changed.pop(name)
        return tuple(given), {**kwargs, **changed}

    def summary_call(
        self,
        args: Args,
        kwargs: Options,
        wire: MessageFormat,
        prompt: Prompt,
        limit: int,
        prefix: Sequence[Message] | None = None,
        form: Form = USUAL,
    ) -> Arguments:
        """Return the arguments of a request to the same model for a summary of at most ``limit``
        tokens, in the ``form`` that the server takes.

        With a ``prefix``, the request continues the call's own messages: it has the same system
        prompt, tools and messages, then the prompt's instruction, so that the provider's prompt
        cache is used.
        """
        facts = self.read(args, kwargs)
        messages, extra = wire.prompt(prompt)
        if prefix is not None:
            messages = [*prefix, wire.say("user", prompt[0]["content"])]
            extra = {}
            # Thinking counts towards the output limit, and Anthropic refuses a limit below its
            # budget.
            budget = first(facts.named, THINKING)
            limit += max(budget, 0) if isinstance(budget, int) else 0
        usual = facts.output_option or wire.output_option
        extra[usual if form.limit is None else form.limit] = limit
        args, options = self.keep(args, without(kwargs, form.without), native=prefix is not None)
        streams = self.declared.get("stream") and "stream" not in facts.named
        if form.streams:
            extra["stream"] = True
        elif not self.vendors and (streams or "stream" in kwargs):
            options["stream"] = False
        extra = {
            name: value
            for name, value in extra.items()
            if name and (self.accepts is None or name in self.accepts or name in facts.named)
        }
        return self.replace(args, options, messages, extra)

    def provider_call(
        self,
        args: Args,
        kwargs: Options,
        messages: Sequence[Message],
        instructions: str,
        limit: int,
    ) -> Arguments | None:
        """Return the arguments of ``provider_function``; ``None`` if this call cannot have its
        messages compacted there. An answer has at most ``limit`` tokens beside thoughts.
        """
        raise NotImplementedError

    def keep(self, args: Args, kwargs: Options, *, native: bool) -> Arguments:
        """Return the arguments that a request for a summary keeps.

        An argument that is left out gets its default, else ``None``, if it was passed by position
        or to a user's own function.
        """

        def choose(name: str, value: object) -> object:
            if name in INNER and isinstance(value, Mapping):
                members = value.items()
                return {key: one for key, one in members if self.keeps(key, one, native=native)}
            if self.keeps(name, value, native=native):
                return value
            return False if name == "stream" else self.declared.get(name)

        # OpenAI takes metadata only with what it stores.
        kwargs = without(kwargs, ("metadata",) if kwargs.get("store") else ())
        kept = {
            name: choose(name, value)
            for name, value in kwargs.items()
            if self.keeps(name, value, native=native)
            or (name in self.declared and not self.vendors)
        }
        chosen = (*map(choose, self.positional, args), *args[len(self.positional) :])
        return chosen, {name: kept[name] for name in kept if name not in INNER or kept[name]}

    def keeps(self, name: str, value: object, *, native: bool) -> bool:
        """Return whether a request for a summary keeps an option: any but those of ``LEFT_OUT``,
        and of these one that disables something.

        With ``native`` the request continues the call's messages, and keeps every option that is
        part of the prompt.
        """
        if is_off_switch(name, value):
            return True
        if native:
            return name not in NOT_FOR_NATIVE and not forces_call(name, value)
        return name not in LEFT_OUT


def bind(
    function: Callable[..., Any],
    *,
    messages_param: str | None = None,
    wire_format: str | None = None,
) -> Binding | None:
    """Return the binding of a function; ``None`` if it has no parameter for messages.

    Raises ``ConfigurationError`` if it has no parameter ``messages_param``.
    """
    try:
        parameters = [*inspect.signature(function).parameters.values()]
    except (ValueError, TypeError):
        parameters = []
    kinds = {parameter.kind for parameter in parameters}
    open_ended = not parameters or inspect.Parameter.VAR_KEYWORD in kinds
    declared = {
        parameter.name: None if parameter.default is parameter.empty else parameter.default
        for parameter in parameters
        if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    }
    name = messages_param or next(filter(declared.__contains__, MESSAGE_PARAMS), "")
    if not name and open_ended:
        name = PARAM_OF.get(wire_format or "", "messages")
    if not open_ended and name not in declared:
        if messages_param is None:
            return None
        own = getattr(function, "__qualname__", type(function).__qualname__)
        raise ConfigurationError(
            f"messages_param={messages_param!r} is not a parameter of {own}, which has: "
            f"{', '.join(declared)}"
        )
    return Binding(
        wire_format=wire_format,
        messages_param=name,
        accepts=None if open_ended else frozenset(declared),
        positional=tuple(
            parameter.name for parameter in parameters if parameter.kind < parameter.VAR_POSITIONAL
        ),
        declared=declared,
    )


# -- small readers ---------------------------------------------------------------------------------


def needs_list(messages: object, *, histories: bool = True) -> bool:
    """Return whether messages must become a list before they are sent: a ``History``, if
    ``histories`` is set, or an iterable that is not a sequence (a generator, a ``map``, a dict's
    values).

    A single message, which is a mapping or a pydantic model, is left alone.
    """
    if hasattr(messages, "pinned_ids"):
        return histories
    is_one = isinstance(messages, (Sequence, Mapping, bytes, bytearray))
    return (
        not is_one
        and isinstance(messages, Iterable)
        and not hasattr(type(messages), "model_fields")
    )


def without(kwargs: Options, names: Collection[str]) -> Options:
    """Return a copy of a call's keyword arguments ``kwargs`` without those called by one of
    ``names``. If an argument is a dict, such as ``config`` or ``extra_body``, the members with
    these names are left out of it too. Deeper levels are not searched.
    """
    if not names:
        return kwargs
    return {
        name: {each: of for each, of in value.items() if each not in names}
        if isinstance(value, Mapping)
        else value
        for name, value in kwargs.items()
        if name not in names
    }


def characters_sent(value: object) -> int:
    """Return the size of an option's value, in characters; for a class, the size of its JSON
    schema.
    """
    if isinstance(value, type):
        value = getattr(value, "model_json_schema", dict)()
    return len(json_text(value or None))
