"""Models of frameworks, whose messages are objects of the framework's own types.

Such a model is wrapped as a client is: a copy of the same type, whose methods compact. Between the two stands a
translation: compacter reads each message as OpenAI would have it (a `Mirror`), and what is kept goes back as the very
object that it was read from; only what compacter has written itself is made anew.

The chapter: mirrors, the binding that translates a call's messages, and `wrap_model`, which the adapters of the
frameworks (`compacter.clients.langchain`, ...) call with their `Adapter`.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, TypeVar

from compacter.call.arguments import Args, Arguments, Binding, CallFacts, Options, Prompt
from compacter.call.io import IO
from compacter.call.state import State
from compacter.call.streams import with_special_methods
from compacter.call.wrap import wrap_function
from compacter.clients.copying import diverted, is_awaited
from compacter.memory import InProcessMemory
from compacter.messages.fields import word
from compacter.messages.format import Message, MessageFormat
from compacter.options import validated

T = TypeVar("T")
Function = Callable[..., Any]


class Mirror(dict[str, Any]):
    """A message as OpenAI has it, and the framework's object it was read from."""

    __slots__ = ("original",)

    def __init__(self, message: Mapping[str, Any], original: Any) -> None:
        super().__init__(message)
        self.original = original


class Mirrors(Sequence[Message]):
    """A list of a framework's messages, read when somebody looks: a call on which nothing happens does not."""

    def __init__(self, own: Sequence[Any], read: Callable[[Sequence[Any]], list[Mirror]]) -> None:
        self._own = own
        self._read = read

    @functools.cached_property
    def _messages(self) -> list[Mirror]:
        return self._read(self._own)

    def __getitem__(self, index: Any) -> Any:
        """The messages, as OpenAI has them."""
        return self._messages[index]

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages)


def each(read: Callable[[Any], Mapping[str, Any]]) -> Callable[[Sequence[Any]], list[Mirror]]:
    """Reads a list whose messages are read one by one."""

    def mirrors(own: Sequence[Any]) -> list[Mirror]:
        return [Mirror(read(message), message) for message in own]

    return mirrors


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A part of a framework's message that holds several of OpenAI's."""

    message: Any
    part: Any
    of: int
    """Parts that the message has."""


def back(
    made: Callable[[Mapping[str, Any]], Any], rebuilt: Callable[[Any, list[Any]], Any] | None = None
) -> Callable[[Iterable[Any]], list[Any]]:
    """Writes a list: what was read is the object it was read from, anything else is made.

    Where a mirror is of a `Piece`, those that stay go back into their message: ``rebuilt`` makes one with these of its
    parts, where not all are there.
    """

    def own(messages: Iterable[Any]) -> list[Any]:
        found: list[Any] = []
        pieces: list[Piece] = []
        for message in (*messages, None):
            piece = message.original if isinstance(message, Mirror) else None
            if pieces and not (isinstance(piece, Piece) and piece.message is pieces[0].message):
                source, parts = pieces[0].message, [one.part for one in pieces]
                found.append(source if rebuilt is None or len(parts) == pieces[0].of else rebuilt(source, parts))
                pieces = []
            if isinstance(piece, Piece):
                pieces.append(piece)
            elif message is not None:
                found.append(made(message) if piece is None else piece)
        return found

    return own


def mixed(content: Any) -> Any:
    """A text, or texts and media in order, as OpenAI has them."""
    if isinstance(content, str):
        return content
    return [
        {"type": "text", "text": part} if isinstance(part, str) else Mirror({"type": "image_url"}, part)
        for part in content
    ]


def unmixed(content: Any) -> Any:
    """The way back: the text, or the texts and the framework's own media."""
    if not isinstance(content, list):
        return content or ""
    found = (part.original if isinstance(part, Mirror) else word(part, "text") for part in content)
    return [part for part in found if part is not None]


def tool_call(identity: str, name: str, arguments: str) -> dict[str, Any]:
    """A call of a tool as OpenAI has it."""
    return {"type": "function", "id": identity, "function": {"name": name, "arguments": arguments}}


def completion(text: str, usage: tuple[int, int] = (0, 0), finish: str = "stop") -> dict[str, Any]:
    """An answer as OpenAI has it; ``usage`` is the tokens that were read and written."""
    read, written = usage
    return {
        "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": finish}],
        "usage": {"prompt_tokens": read, "completion_tokens": written},
    }


_NAMES = ("model_name", "model", "model_id")
_ADDRESSES = ("openai_api_base", "anthropic_api_url", "api_base_url", "api_base", "base_url", "endpoint")


def _model(thing: Any) -> str | None:
    return next((name for key in _NAMES if isinstance(name := getattr(thing, key, None), str)), None)


def _server(thing: Any) -> str:
    return str(next((address for key in _ADDRESSES if (address := getattr(thing, key, None))), ""))


def _itself(thing: Any) -> Any:
    return thing


@dataclass(frozen=True, slots=True)
class Adapter:
    """What there is to know of a framework's model."""

    read: Callable[[Sequence[Any]], list[Mirror]]
    """The framework's messages, as OpenAI has them."""
    write: Callable[[Iterable[Any]], list[Any]]
    """The way back."""
    methods: Mapping[str, str] = field(default_factory=dict)
    """Method that sends messages -> the method that summaries are asked of: itself, or what does not stream."""
    answer: Callable[[Any], Any] = _itself
    """What a method returns, as `completion`, or text."""
    model: Callable[[Any], str | None] = _model
    """The name of an object's model; by itself, in the attributes that frameworks usually have for it."""
    server: Callable[[Any], str] = _server
    """The address that an object sends to, likewise."""
    positional: tuple[str, ...] = ("self", "messages")
    """Names of the arguments that are passed by position, in order."""
    messages_param: str = "messages"
    left_out: frozenset[str] = frozenset()
    """Arguments that a request for a summary leaves out, beside those that every such request leaves out."""
    output_param: str | None = "max_tokens"
    """The argument that limits the answer; ``None`` where there is none."""
    quiet: Callable[[Any], bool] | None = None
    """Whether a chunk of a stream holds nothing that a user would see."""
    bare: Callable[[Any], Any] = _itself
    """The object that summaries are asked of, where the model itself would show them to somebody."""
    saving: Callable[[type[Any], State], Mapping[str, Any]] | None = None
    """Members by which the framework saves an object so that it is wrapped again when it is loaded."""


@dataclass(frozen=True, slots=True)
class OwnTypes(Binding):
    """Reads and changes the messages of a call by way of their mirrors."""

    adapter: Adapter = field(kw_only=True)

    def messages(self, args: Args, kwargs: Options) -> Any:
        """The messages, to be read as OpenAI has them."""
        own = Binding.messages(self, args, kwargs)
        return Mirrors(own, self.adapter.read) if isinstance(own, Sequence) and not isinstance(own, str) else own

    def read(self, args: Args, kwargs: Options) -> CallFacts:
        """What the arguments say; the model's name may be its object's."""
        facts = Binding.read(self, args, kwargs)
        return replace(facts, model=facts.model or self.adapter.model(args[0]))

    def replace(self, args: Args, kwargs: Options, messages: Sequence[Message], options: Options) -> Arguments:
        """The same call with other messages, which are the framework's again."""
        return Binding.replace(self, args, kwargs, self.adapter.write(messages), options)

    def summary_call(self, args: Args, kwargs: Options, wire: MessageFormat, prompt: Prompt, limit: int) -> Arguments:
        """A request without callbacks and the like."""
        kept = {name: value for name, value in kwargs.items() if name not in self.adapter.left_out}
        return Binding.summary_call(self, args, kept, wire, prompt, limit)


def wrap_model(state: State, model: T, framework: str) -> T:
    """A copy of a framework's model whose methods compact; of the same type, also after copying and pickling.

    ``framework`` names the module of `compacter.clients` with its ``ADAPTER``, or with a function ``adapter_of`` where
    there is one for each type.
    """
    return _patched(_Shared(state, framework), copy.copy(model))


def _patched(shared: _Shared, model: T) -> T:
    """The model itself, with methods that compact."""
    state, kind = shared.state, type(model)
    module = import_module(f"compacter.clients.{shared.framework}")
    adapter: Adapter = module.adapter_of(kind) if hasattr(module, "adapter_of") else module.ADAPTER
    methods: dict[str, Function] = {}
    for name, asks in adapter.methods.items():
        function = getattr(kind, name, None)
        if function is None or getattr(function, "__isabstractmethod__", False):
            continue
        limit = adapter.output_param
        binding = OwnTypes(
            wire_format="openai",
            positional=adapter.positional,
            messages_param=adapter.messages_param,
            accepts=frozenset({limit} if limit else ()),
            output_param=limit or "max_tokens",
            quiet=adapter.quiet if name != asks else None,
            asks=_answering(getattr(kind, asks), adapter),
            server=functools.partial(_place, adapter, model),
            adapter=adapter,
        )
        methods[name] = wrap_function(state, function, binding, asynchronous=is_awaited(function))

    def reduced(self: Any, protocol: Any) -> Any:
        how: Any = kind.__reduce_ex__(self, protocol)
        made, (_, *rest), *more = how
        return (_again, (shared, made, (kind, *rest)), *more)

    saving = adapter.saving(kind, state) if adapter.saving is not None else {}
    return with_special_methods(model, {**methods, **saving, "__reduce_ex__": reduced})


def _place(adapter: Adapter, model: Any) -> str:
    return f"{type(model).__module__}.{type(model).__qualname__} {adapter.server(model)}"


def _answering(function: Function, adapter: Adapter) -> Function:
    """The method, returning an answer that compacter can read."""

    async def ask(io: IO, model: Any, *args: Any, **kwargs: Any) -> Any:
        return adapter.answer(await io.call(function, adapter.bare(model), *args, **kwargs))

    return diverted(function, lambda _: True, ask)


def unwrapped(model: Any, kind: type[Any]) -> Any:
    """A copy of a wrapped model that is of its first class, and does not compact."""
    plain = object.__new__(kind)
    plain.__dict__.update(vars(model))
    return plain


def saved_options(state: State) -> dict[str, Any]:
    """The options that were given, as JSON has them.

    Raises ``TypeError`` that names those which cannot be written down.
    """
    given = _given(state)
    kept = {name: value for name, value in given.items() if isinstance(value, (str, int, float, bool, list, tuple))}
    odd = sorted(name for name in given if name not in kept and given[name] is not None)
    if odd:
        raise TypeError(f"compacter cannot save these options, which are objects: {', '.join(odd)}")
    return {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}


def _given(state: State) -> dict[str, Any]:
    options = state.options
    given = {name: getattr(options, name) for name in options.model_fields_set}
    if isinstance(options.memory, InProcessMemory):
        given.pop("memory", None)
    return given


# -- copies ------------------------------------------------------------------------------------------------------------


class _Shared:
    """What the copies of a wrapped model share. A pickle has the options alone: in-process memory begins anew."""

    def __init__(self, state: State, framework: str) -> None:
        self.state = state
        self.framework = framework

    def __deepcopy__(self, memo: object) -> _Shared:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (_given(self.state), self.framework)


def _unpickled(options: dict[str, Any], framework: str) -> _Shared:
    return _Shared(State(validated(options)), framework)


def _again(shared: _Shared, made: Function, args: tuple[Any, ...]) -> Any:
    return _patched(shared, made(*args))
