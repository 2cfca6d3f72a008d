"""litellm as a client: the module itself, and its Router."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MethodType, ModuleType
from typing import Any, TypeVar

from compacter.call.arguments import bind
from compacter.call.state import Engine
from compacter.call.wrap import wrap_function
from compacter.clients.copying import Moved, graft, is_awaited, reach, taking_self, twin
from compacter.messages.format import WireName

T = TypeVar("T")
_FUNCTIONS: Mapping[str, tuple[str, WireName | None]] = {
    "completion": ("messages", None),
    "acompletion": ("messages", None),
    "responses": ("input", "responses"),
    "aresponses": ("input", "responses"),
    "anthropic_messages": ("messages", "anthropic"),
    "aanthropic_messages": ("messages", "anthropic"),
}
"""Function -> its messages argument and its wire format; ``None`` where the messages tell."""


class WrappedModule(ModuleType):
    """A module with some functions replaced. All else is read from the module, and set on it, then."""

    def __init__(self, module: ModuleType, replaced: Mapping[str, object]) -> None:
        super().__init__(module.__name__, module.__doc__)
        for name in ("__file__", "__loader__", "__package__", "__path__", "__spec__"):
            if hasattr(module, name):
                self.__dict__[name] = getattr(module, name)
        self.__dict__.update(replaced)
        self.__dict__["_compacter_module"] = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_compacter_module"], name)

    def __setattr__(self, name: str, value: object) -> None:
        """Settings are read by litellm's own functions, so they are made where those look."""
        setattr(self.__dict__["_compacter_module"], name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.__dict__["_compacter_module"], name)

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["_compacter_module"])


def wrap_module(engine: Engine, module: ModuleType) -> ModuleType:
    """``litellm`` with compacting completions, responses and Anthropic messages."""
    replaced: dict[str, object] = {
        name: wrap_plain(engine, getattr(module, name), param, wire_format)
        for name, (param, wire_format) in _FUNCTIONS.items()
        if callable(getattr(module, name, None))
    }
    interface = getattr(module, "anthropic", None)
    messages = getattr(interface, "messages", None)
    if isinstance(interface, ModuleType) and isinstance(messages, ModuleType):
        functions = {
            name: wrap_plain(engine, getattr(messages, name), "messages", "anthropic")
            for name in ("create", "acreate")
            if hasattr(messages, name)
        }
        replaced["anthropic"] = WrappedModule(interface, {"messages": WrappedModule(messages, functions)})
    return WrappedModule(module, replaced)


def wrap_plain(engine: Engine, function: Callable[..., Any], param: str, wire_format: str | None) -> Callable[..., Any]:
    """A function of litellm's whose messages argument and wire format are known."""
    binding = bind(function, messages_param=param, wire_format=wire_format)
    assert binding is not None  # noqa: S101 - with messages_param there always is one
    if wire_format == "responses":
        binding = replace(binding, output_param="max_output_tokens")
    return wrap_function(engine, function, binding, asynchronous=is_awaited(function))


def wrap_router(engine: Engine, router: T) -> T:
    """A copy of a Router; deployments, cool-downs and counters stay shared with the original."""
    moved: Moved = {}
    copy: Any = twin(router, moved)
    for name, (param, wire_format) in _FUNCTIONS.items():
        method = getattr(copy, name, None)
        if isinstance(method, MethodType):
            graft(copy, name, wrap_plain(engine, taking_self(method), param, wire_format))
        elif callable(method):
            copy.__dict__[name] = wrap_plain(engine, method, param, wire_format)
    # ``router.chat.completions.create`` calls the router it knows.
    reach(router, copy, ("chat", "completions"), moved)
    wrapped: T = copy
    return wrapped
