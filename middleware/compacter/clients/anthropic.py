"""The Anthropic SDK's clients: ``messages`` and ``beta.messages``, on Bedrock, Vertex and Foundry
as well.

``stream`` needs more than `create` and `parse`: it returns a context manager that makes its request
when entered.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from compacter.call.arguments import (
    Args,
    Arguments,
    Binding,
    CallFacts,
    Named,
    Options,
    Prompt,
    without,
)
from compacter.call.option_names import THINKING, USUAL, Form
from compacter.call.state import State
from compacter.call.wrap import OWN_OPTIONS, wrap_function
from compacter.clients import openai
from compacter.clients.openai import Function, Method, wrap_call
from compacter.messages.fields import field, first, listed
from compacter.messages.format import Message, MessageFormat
from compacter.runtime.objects import with_special_methods

T = TypeVar("T")
_BETA = "compact-2026-09-04"
_BETAS = "anthropic-beta"
# Most characters of the instructions for a compaction on demand.
_MOST_INSTRUCTIONS = 16_384
# Largest number of `cache_control` marks in a request.
_MOST_MARKS = 4
# Depth of the innermost mark: messages, message, blocks, tool result, its blocks, one of these.
_DEEPEST_MARK = 6


@dataclass(frozen=True, slots=True)
class Messages(Binding):
    """``messages.create`` and similar methods."""

    def read(self, args: Args, kwargs: Options) -> CallFacts:
        """Read the arguments. A call that continues a message thread contains only new messages."""
        facts = Binding.read(self, args, kwargs)
        if field(facts.named.get("thread"), "type") != "continue":
            return facts
        elsewhere = (
            'with thread={"type": "continue"} the history is kept by the server and not in '
            'this call. Send the whole history with thread={"type": "create"}'
        )
        return replace(facts, elsewhere=elsewhere)

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
        """Return the request. If it continues the call's messages, and these have cache marks, a
        mark is added at its end.

        A cached prefix is found only from a mark within twenty blocks, and the newest mark is not
        in the prefix.
        """
        args, changed = Binding.summary_call(self, args, kwargs, wire, prompt, limit, prefix, form)
        beside = [kwargs.get("system"), kwargs.get("tools")]
        if (
            prefix is not None
            and _marks(self.messages(args, kwargs))
            and _marks([beside, *prefix]) < _MOST_MARKS
        ):
            mark = {
                "type": "text",
                "text": prompt[0]["content"],
                "cache_control": {"type": "ephemeral"},
            }
            changed[self.messages_param] = [*prefix, {"role": "user", "content": [mark]}]
        return args, changed

    def provider_call(
        self,
        args: Args,
        kwargs: Options,
        messages: Sequence[Message],
        instructions: str,
        limit: int,
    ) -> Arguments | None:
        """Return the arguments of a compaction on demand, which keeps system prompt and tools. It
        cannot be combined with ``context_management``.

        https://platform.claude.com/docs/en/build-with-claude/compaction-on-demand
        """
        named = self.read(args, kwargs).named
        if named.get("context_management"):
            return None
        asked = {"instructions": instructions[:_MOST_INSTRUCTIONS]} if instructions else {}
        compaction = {"type": "summarize", **asked}
        budget = first(named, THINKING)
        extra: dict[str, Any] = {"max_tokens": limit + (budget if isinstance(budget, int) else 0)}
        # Not every version of the SDK knows the parameter.
        extra["extra_body"] = {**(named.get("extra_body") or {}), "compaction": compaction}
        args, kept = self.keep(args, without(kwargs, ("format",)), native=True)
        args, kept = Binding.replace(self, args, kept, messages, extra)
        return args, self._with_beta(kept)

    def replace(
        self, args: Args, kwargs: Options, messages: Sequence[Message], options: Options
    ) -> Arguments:
        """Return the call's arguments with other messages and options; with the beta header that
        the block of a compaction on demand needs.
        """
        args, changed = Binding.replace(self, args, kwargs, messages, options)
        blocks = listed(field(messages[0], "content")) if messages else []
        is_there = any(field(block, "type") == "compaction" for block in blocks)
        return args, self._with_beta(changed) if is_there and self.provider_function else changed

    def _with_beta(self, kwargs: Named) -> Named:
        """Return the arguments with the beta of the compaction on demand. An option for the betas
        replaces those that the client has.
        """
        headers = kwargs.get("extra_headers") or {}
        name = next((name for name in headers if name.lower() == _BETAS), _BETAS)
        given = [*(kwargs.get("betas") or ()), *str(headers.get(name) or "").split(",")]
        given = [*filter(None, given)] or self.server().split(" ", 2)[2:]
        betas = [*dict.fromkeys((*given, _BETA))]
        if "betas" in self.declared and name not in headers:
            return {**kwargs, "betas": betas}
        return {**kwargs, "extra_headers": {**headers, name: ",".join(betas)}}


def _marks(value: object, depth: int = _DEEPEST_MARK) -> int:
    """Return the number of ``cache_control`` marks in messages, blocks or tools."""
    data = value if isinstance(value, (Mapping, list, tuple)) else getattr(value, "__dict__", {})
    inner = data.values() if isinstance(data, Mapping) else data
    return bool(field(data, "cache_control")) + (
        sum(_marks(one, depth - 1) for one in inner) if depth else 0
    )


# -- streams ---------------------------------------------------------------------------------------

_OPEN = "_compacter_open"
_ENTERED = "_compacter_entered"


def wrap_stream(state: State, function: Function, binding: Binding) -> Function:
    """Wrap ``messages.stream``, which returns a context manager that makes its request when
    entered.
    """

    def open_(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs).__enter__()

    async def aopen(*args: Any, **kwargs: Any) -> Any:
        return await function(*args, **kwargs).__aenter__()

    opened = wrap_function(state, open_, binding)
    aopened = wrap_function(state, aopen, binding)

    @functools.wraps(function)
    def stream(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = binding.as_list(args, kwargs, histories=False)
        manager = function(
            *args, **{name: value for name, value in kwargs.items() if name != OWN_OPTIONS}
        )
        awaited = hasattr(type(manager), "__aenter__")
        manager.__dict__[_OPEN] = functools.partial(aopened if awaited else opened, *args, **kwargs)
        return with_special_methods(manager, _AMANAGING if awaited else _MANAGING)

    return stream


def _enter(self: Any) -> Any:
    stream = self.__dict__[_ENTERED] = self.__dict__[_OPEN]()
    return stream


def _exit(self: Any, *_: object) -> None:
    if _ENTERED in self.__dict__:
        self.__dict__[_ENTERED].close()


async def _aenter(self: Any) -> Any:
    for prepared in vars(self).values():
        # The manager's own request is not used, as each attempt makes a new one.
        if inspect.iscoroutine(prepared):
            prepared.close()
    stream = self.__dict__[_ENTERED] = await self.__dict__[_OPEN]()
    return stream


async def _aexit(self: Any, *_: object) -> None:
    if _ENTERED in self.__dict__:
        await self.__dict__[_ENTERED].close()


_MANAGING: Mapping[str, Function] = {"__enter__": _enter, "__exit__": _exit}
_AMANAGING: Mapping[str, Function] = {"__aenter__": _aenter, "__aexit__": _aexit}


# -- wrapped methods -------------------------------------------------------------------------------

METHODS = tuple(
    Method((*path, "messages"), name, "anthropic", summary_method, Messages, wrap)
    for path in ((), ("beta",))
    for name, summary_method, wrap in (
        ("create", "", wrap_call),
        ("parse", "create", wrap_call),
        ("stream", "create", wrap_stream),
    )
)


def wrap_client(state: State, client: T) -> T | None:
    """Return a copy of the client, or of a resource, whose methods compact; ``None`` if it has no
    method that sends messages.
    """
    return openai.patched(state, client, METHODS)
