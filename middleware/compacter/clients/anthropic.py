"""The Anthropic SDK's clients: ``messages`` and ``beta.messages``, on Bedrock, Vertex and Foundry as well."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from compacter.call.arguments import Arguments, Binding
from compacter.call.state import Engine
from compacter.call.wrap import wrap_function
from compacter.clients import openai
from compacter.clients.openai import Method
from compacter.messages.fields import plain
from compacter.messages.format import Message, Wire

T = TypeVar("T")
_MOST_MARKS = 4
"""``cache_control`` marks that one request may have."""


@dataclass(frozen=True, slots=True)
class Messages(Binding):
    """``messages.create`` and its like."""

    def native_call(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        wire: Wire,
        prefix: Sequence[Message],
        instruction: str,
        max_tokens: int,
    ) -> Arguments:
        """The call with another end, and with a cache mark there, where the caller uses such marks.

        A cache is read back from a mark only, up to twenty blocks; the caller's newest mark lies behind the prefix.
        """
        args, changed = Binding.native_call(self, args, kwargs, wire, prefix, instruction, max_tokens)
        sent = changed[self.messages_param]
        beside = [kwargs.get("system"), kwargs.get("tools")]
        if _marks(self.messages(args, kwargs)) and _marks([beside, sent]) < _MOST_MARKS:
            mark = {"type": "text", "text": instruction, "cache_control": {"type": "ephemeral"}}
            changed[self.messages_param] = [*sent[:-1], {"role": "user", "content": [mark]}]
        return args, changed


def _marks(value: object) -> int:
    """How many ``cache_control`` marks there are in messages, blocks or tools."""
    data = plain(value)
    if isinstance(data, dict):
        return bool(data.get("cache_control")) + sum(map(_marks, data.values()))
    return sum(map(_marks, data)) if isinstance(data, list) else 0


METHODS = tuple(
    Method((*path, "messages"), name, "anthropic", asks=asks, binding=Messages)
    for path in ((), ("beta",))
    for name, asks in (("create", ""), ("parse", "create"), ("stream", "create"))
)
_OPEN, _ENTERED = "_compacter_open", "_compacter_entered"


def wrap_client(engine: Engine, client: T) -> T | None:
    """A copy of the client whose messages compact; ``None`` where it has none."""
    return openai.patched(engine, client, METHODS, shapes={"stream": wrap_stream})


def wrap_method(engine: Engine, resource: Any, name: str) -> Callable[..., Any] | None:
    """A resource's method, compacting; ``None`` where it sends no messages."""
    return openai.method_of(engine, resource, name, METHODS, shapes={"stream": wrap_stream})


def wrap_stream(
    engine: Engine,
    function: Callable[..., Any],
    binding: Binding,
    _: bool,  # noqa: FBT001 - a Shape is called by position
) -> Callable[..., Any]:
    """``messages.stream``, which returns a context manager: the request is made when that is entered."""

    def open_(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs).__enter__()

    async def aopen(*args: Any, **kwargs: Any) -> Any:
        return await function(*args, **kwargs).__aenter__()

    opened, aopened = wrap_function(engine, open_, binding), wrap_function(engine, aopen, binding)

    @functools.wraps(function)
    def stream(*args: Any, **kwargs: Any) -> Any:
        manager = function(*args, **kwargs)
        kind = type(manager)
        manager.__class__ = _managing(kind)
        opening = aopened if hasattr(kind, "__aenter__") else opened
        manager.__dict__[_OPEN] = functools.partial(opening, *args, **kwargs)
        return manager

    return stream


def _enter(self: Any) -> Any:
    stream = self.__dict__[_ENTERED] = self.__dict__[_OPEN]()
    return stream


def _exit(self: Any, *_: object) -> None:
    if _ENTERED in self.__dict__:
        self.__dict__[_ENTERED].close()


async def _aenter(self: Any) -> Any:
    for prepared in vars(self).values():
        # The request that the manager came with is not used: each attempt makes its own.
        if inspect.iscoroutine(prepared):
            prepared.close()
    stream = self.__dict__[_ENTERED] = await self.__dict__[_OPEN]()
    return stream


async def _aexit(self: Any, *_: object) -> None:
    if _ENTERED in self.__dict__:
        await self.__dict__[_ENTERED].close()


_MANAGING: dict[type, type] = {}


def _managing(kind: type) -> type:
    """A subclass of an SDK's stream manager that opens its stream with compaction, as often as that takes."""
    if kind in _MANAGING:
        return _MANAGING[kind]
    named = {"__module__": kind.__module__, "__doc__": kind.__doc__, "__qualname__": kind.__qualname__}
    if hasattr(kind, "__aenter__"):
        members: dict[str, Any] = {**named, "__aenter__": _aenter, "__aexit__": _aexit}
    else:
        members = {**named, "__enter__": _enter, "__exit__": _exit}
    _MANAGING[kind] = type(kind.__name__, (kind,), members)
    return _MANAGING[kind]
