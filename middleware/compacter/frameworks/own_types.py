"""Models of frameworks, whose messages are objects of the framework's own types.

Such a model is wrapped like a client: a copy of the same type with compacting methods. Messages are
translated: each is read in OpenAI's form (a `Mirror`), and kept messages are sent as the very
objects they were read from. Only messages written by compacter are created.

The order is: mirrors, the binding that translates a call's messages, and `wrap_model`, which the
adapters of the frameworks (`compacter.frameworks.langchain`, ...) call with their `Adapter`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, TypeVar

from compacter.call.arguments import Args, Arguments, Binding, CallFacts, Options
from compacter.call.state import State
from compacter.call.wrap import wrap_function
from compacter.clients.copying import divert, is_awaited
from compacter.messages.fields import field as member
from compacter.messages.format import Message
from compacter.runtime.io import IO
from compacter.runtime.objects import with_special_methods

T = TypeVar("T")
Function = Callable[..., Any]


class Mirror(dict[str, Any]):
    """A message in OpenAI's form, with the framework's object that it was read from."""

    __slots__ = ("original",)

    def __init__(self, message: Mapping[str, Any], original: Any) -> None:
        super().__init__(message)
        self.original = original


class Mirrors(Sequence[Message]):
    """A list of a framework's messages, read lazily: quiet calls do not read it."""

    def __init__(self, own: Sequence[Any], read: Callable[[Sequence[Any]], list[Mirror]]) -> None:
        self._own = own
        self._read = read
        self._mirrors: list[Mirror] | None = None

    @property
    def _messages(self) -> list[Mirror]:
        if self._mirrors is None:
            self._mirrors = self._read(self._own)
        return self._mirrors

    def __getitem__(self, index: Any) -> Any:
        """Return the messages in OpenAI's form."""
        return self._messages[index]

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages)


def each(read: Callable[[Any], Mapping[str, Any]]) -> Callable[[Sequence[Any]], list[Mirror]]:
    """Return a function that reads a list message by message."""

    def mirrors(own: Sequence[Any]) -> list[Mirror]:
        return [Mirror(read(message), message) for message in own]

    return mirrors


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """One of several messages of OpenAI's that a single message of a framework becomes."""

    message: Any
    part: Any
    of: int
    """Number of parts of the message."""


def back(
    made: Callable[[Mapping[str, Any]], Any], rebuilt: Callable[[Any, list[Any]], Any] | None = None
) -> Callable[[Iterable[Any]], list[Any]]:
    """Return the framework's messages: the original objects of mirrors, and new ones for all
    others.

    Kept mirrors of a `Piece` are put back into their message; ``rebuilt`` makes a copy with fewer
    parts if some are missing.
    """

    def own(messages: Iterable[Any]) -> list[Any]:
        found: list[Any] = []
        pieces: list[Piece] = []
        for message in (*messages, None):
            piece = message.original if isinstance(message, Mirror) else None
            if pieces and not (isinstance(piece, Piece) and piece.message is pieces[0].message):
                source = pieces[0].message
                parts = [one.part for one in pieces]
                found.append(
                    source
                    if rebuilt is None or len(parts) == pieces[0].of
                    else rebuilt(source, parts)
                )
                pieces = []
            if isinstance(piece, Piece):
                pieces.append(piece)
            elif message is not None:
                found.append(made(message) if piece is None else piece)
        return found

    return own


@dataclass(slots=True)
class Medium:
    """Data of a framework's medium, which is part of its message's digest."""

    data: Any


def _itself(thing: Any) -> Any:
    return thing


def mixed(content: Any, data: Callable[[Any], Any] = _itself) -> Any:
    """Return a text, or a list of texts and media, in OpenAI's form; a single text unchanged.

    ``data`` returns a value that identifies a medium, by default the framework's object; a message
    with an object that cannot be read completely has no digest, and is not remembered.
    """
    if isinstance(content, str):
        return content
    if len(content) == 1 and isinstance(content[0], str):
        return content[0]
    return [
        {"type": "text", "text": part}
        if isinstance(part, str)
        else Mirror({"type": "image_url", "medium": Medium(data(part))}, part)
        for part in content
    ]


def separate_media(content: Any) -> Any:
    """Convert back: return the text, or the texts and the framework's own media."""
    if not isinstance(content, list):
        return content or ""
    found = (
        part.original if isinstance(part, Mirror) else member(part, "text") for part in content
    )
    return [part for part in found if part is not None]


def tool_call(identity: str, name: str, arguments: str) -> dict[str, Any]:
    """Return a tool call in OpenAI's form."""
    return {"type": "function", "id": identity, "function": {"name": name, "arguments": arguments}}


def completion(text: str, usage: tuple[int, int] = (0, 0), finish: str = "stop") -> dict[str, Any]:
    """Return a reply in OpenAI's form; ``usage`` is the number of input and output tokens."""
    read, written = usage
    return {
        "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": finish}],
        "usage": {"prompt_tokens": read, "completion_tokens": written},
    }


_NAMES = ("model_name", "model", "model_id")
_ADDRESSES = (
    "openai_api_base",
    "anthropic_api_url",
    "api_base_url",
    "api_base",
    "base_url",
    "endpoint",
)


def _model(thing: Any) -> str | None:
    return next(
        (name for key in _NAMES if isinstance(name := getattr(thing, key, None), str)), None
    )


def _server(thing: Any) -> str:
    return str(next((address for key in _ADDRESSES if (address := getattr(thing, key, None))), ""))


@dataclass(frozen=True, slots=True)
class Adapter:
    """Description of a framework's model."""

    read: Callable[[Sequence[Any]], list[Mirror]]
    """Converts the framework's messages to OpenAI's form."""
    write: Callable[[Iterable[Any]], list[Any]]
    """Converts messages back."""
    methods: Mapping[str, str] = field(default_factory=dict)
    """Method that sends messages -> method for summary requests: itself, or one that does not
    stream."""
    answer: Callable[[Any], Any] = _itself
    """Converts the result of a method to a `completion` or a text."""
    server: Callable[[Any], str] = _server
    """Returns the base URL of an object; the default reads the usual attributes."""
    positional: tuple[str, ...] = ("self", "messages")
    """Names of positional arguments, in order."""
    left_out: frozenset[str] = frozenset()
    """Additional arguments that a summary request leaves out."""
    output_param: str | None = "max_tokens"
    """Argument that limits the output, or ``None``."""
    quiet: Callable[[Any], bool] | None = None
    """Returns whether a chunk of a stream has no visible content."""
    bare: Callable[[Any], Any] = _itself
    """Returns the object for summary requests, if the model itself would show them to users."""


@dataclass(frozen=True, slots=True)
class OwnTypes(Binding):
    """Binding that reads and changes the messages of a call through their mirrors."""

    adapter: Adapter = field(kw_only=True)

    def messages(self, args: Args, kwargs: Options) -> Any:
        """Return the messages, which are read in OpenAI's form."""
        own = Binding.messages(self, args, kwargs)
        return (
            Mirrors(own, self.adapter.read)
            if isinstance(own, Sequence) and not isinstance(own, str)
            else own
        )

    def read(self, args: Args, kwargs: Options) -> CallFacts:
        """Read the arguments; the model's name and address come from its object."""
        facts = Binding.read(self, args, kwargs)
        model = args[0]
        kind = type(model)
        server = f"{kind.__module__}.{kind.__qualname__} {self.adapter.server(model)}"
        return replace(
            facts,
            model=facts.model or _model(model),
            endpoint=f"{server} {facts.endpoint}",
            place=f"{server} {facts.place}",
        )

    def replace(
        self, args: Args, kwargs: Options, messages: Sequence[Message], options: Options
    ) -> Arguments:
        """Return the call with other messages, converted to the framework's own."""
        return Binding.replace(self, args, kwargs, self.adapter.write(messages), options)

    def keeps(self, name: str, value: object, *, native: bool) -> bool:
        """Return whether a request for a summary keeps an option. Callbacks and the like are not
        kept.
        """
        return name not in self.adapter.left_out and Binding.keeps(self, name, value, native=native)


def wrap_model(state: State, model: T, framework: str) -> T:
    """Return a copy of a framework's model object whose methods compact a conversation that its
    provider refuses as too long. The copy, and further copies of it, have the class of ``model``.

    Args:
        state: Options, memory and totals of the ``Compacter``.
        model: The model object, such as LangChain's ``ChatOpenAI``. It is not changed.
        framework: Name of the module in ``compacter.frameworks`` for this framework, such as
            ``langchain``. The module has an ``ADAPTER``, or a function ``adapter_of`` that takes
            the class of the model and returns its adapter.
    """
    kind = type(model)
    module = import_module(f"compacter.frameworks.{framework}")
    adapter: Adapter = module.adapter_of(kind) if hasattr(module, "adapter_of") else module.ADAPTER
    limit = adapter.output_param
    methods: dict[str, Function] = {}
    for name, summary_method in adapter.methods.items():
        function = getattr(kind, name, None)
        if function is None or getattr(function, "__isabstractmethod__", False):
            continue
        binding = OwnTypes(
            wire_format="openai",
            positional=adapter.positional,
            accepts=frozenset({limit} if limit else ()),
            output_param=limit or "max_tokens",
            quiet=adapter.quiet if name != summary_method else None,
            summary_function=_answering(getattr(kind, summary_method), adapter),
            adapter=adapter,
        )
        methods[name] = wrap_function(state, function, binding, asynchronous=is_awaited(function))
    return with_special_methods(copy.copy(model), methods)


def _answering(function: Function, adapter: Adapter) -> Function:
    """Return a function that calls the method and returns its reply in OpenAI's form."""

    async def ask(io: IO, model: Any, *args: Any, **kwargs: Any) -> Any:
        return adapter.answer(await io.call(function, adapter.bare(model), *args, **kwargs))

    return divert(function, lambda _: True, ask)
