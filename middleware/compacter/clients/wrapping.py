"""Implementation of ``Compacter.wrap`` for functions, callable objects, and clients with an
adapter.

Adapters are found by the names of a client's classes and modules, so that no SDK is imported.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from types import FunctionType, MethodType, ModuleType
from typing import Any, NoReturn, TypeVar

from compacter.call.arguments import Binding, bind
from compacter.call.state import State
from compacter.call.wrap import WRAPPED_BY, wrap_function
from compacter.errors import SummarizerNeededError
from compacter.manual import page
from compacter.runtime.objects import with_special_methods

T = TypeVar("T")

CLIENTS_PAGE = page("clients")
"""Page of the manual with all that can be wrapped."""


def wrap(state: State, target: T, *, messages_param: str | None, wire_format: str | None) -> T:
    """Return the wrapped target.

    A target that this Compacter has wrapped is returned unchanged, and one that another Compacter
    has wrapped is wrapped again; both with a warning in the log.

    Raises ``TypeError`` with the page of the manual that lists what can be wrapped.
    """
    around = _find_wrapper(target)
    if around is not None:
        same = around == state.name
        what = (
            "is left unchanged"
            if same
            else "will be compacted by two Compacters: wrap the original instead"
        )
        said = f"{_describe_target(target)} is wrapped already, and {what}"
        state.log.write(
            "warning", "compacter.wrapped_twice", said, {"target": _describe_target(target)}
        )
        if same:
            return target
    wrapped: T = _wrap_once(state, target, messages_param=messages_param, wire_format=wire_format)
    if not inspect.isroutine(wrapped):
        with contextlib.suppress(AttributeError, TypeError):
            vars(wrapped)[WRAPPED_BY] = state.name
    return wrapped


def _find_wrapper(target: object) -> object:
    """Return the name of the ``Compacter`` that wrapped this function or client, or ``None``.

    Only the places that ``wrap`` sets are read, as clients may have attributes of any name.
    """
    inner = target.__func__ if isinstance(target, MethodType) else target
    return getattr(inner, "__dict__", {}).get(WRAPPED_BY)


def _wrap_once(
    state: State, target: Any, *, messages_param: str | None, wire_format: str | None
) -> Any:
    if isinstance(target, functools.partial):
        # Its bound arguments reach the wrapped function like any others.
        inner = wrap(state, target.func, messages_param=messages_param, wire_format=wire_format)
        return functools.partial(inner, *target.args, **target.keywords)
    if isinstance(target, (staticmethod, classmethod)):
        inner = wrap(state, target.__func__, messages_param=messages_param, wire_format=wire_format)
        return type(target)(inner)
    if (messages_param is None and wire_format is None) or not callable(target):
        adapted = _adapt(state, target)
        if adapted is not None:
            return adapted
    if any(kind.__module__ == "unittest.mock" for kind in inspect.getmro(type(target))):
        return _wrap_mock(state, target, messages_param or "messages", wire_format)
    if not callable(target) or inspect.isclass(target):
        raise TypeError(
            f"compacter cannot wrap {_describe_target(target)}: {_hint(target)} ({CLIENTS_PAGE})"
        )
    binding = bind(target, messages_param=messages_param, wire_format=wire_format)
    if binding is None:
        names = ", ".join(inspect.signature(target).parameters)
        where = "has no parameter called messages, input or contents"
        if names:
            where += (
                f", only {names}; name the one that takes the messages: "
                'wrap(function, messages_param="...") or @compacted(messages_param="...")'
            )
        raise TypeError(f"{_describe_target(target)} {where} ({CLIENTS_PAGE})")
    own = None if inspect.isroutine(target) else inspect.getattr_static(type(target), "__call__")
    if isinstance(own, FunctionType):
        calls = wrap_function(
            state,
            _call_on(target, own),
            replace(binding, positional=("self", *binding.positional)),
            asynchronous=inspect.iscoroutinefunction(own),
        )
        # An object that cannot be copied, or whose class cannot be changed, is replaced by a
        # function.
        with contextlib.suppress(Exception):
            return with_special_methods(copy.copy(target), {"__call__": calls})
    return wrap_function(
        state, target, replace(binding, summary_function=_find_summary_method(target))
    )


_ANSWERING = ("complete", "chat", "create")
"""Methods of vendors' clients that answer in words."""
_RESPONSE_TYPES = frozenset({"response_model", "response_format"})


def _find_summary_method(method: Any) -> Callable[..., Any] | None:
    """Return the function that makes summaries for a method that only parses or streams; ``None``
    if the method itself can make them.

    It is the client's method that returns a plain reply (Mistral's ``complete`` for ``parse``,
    Cohere's ``chat`` for ``chat_stream``).
    """
    if not isinstance(method, MethodType):
        return None
    name = method.__name__
    parameters = inspect.signature(method).parameters
    parses = "parse" in name or any(
        parameter.default is parameter.empty
        for parameter in map(parameters.get, _RESPONSE_TYPES)
        if parameter is not None
    )
    if not parses and "stream" not in name:
        return None
    ending = "_async" if name.endswith("_async") else ""
    for answering in _ANSWERING:
        other: Callable[..., Any] | None = getattr(method.__self__, answering + ending, None)
        if callable(other) and answering != name:
            return other

    def refuse(*_: object, **__: object) -> NoReturn:
        raise SummarizerNeededError("the wrapped method parses: give a summarizer")

    return refuse if parses else None


def _wrap_mock(state: State, mock: T, messages_param: str, wire_format: str | None) -> T:
    """Return a mock of ``unittest.mock`` itself, whose calls compact.

    It stays the object that a test configures and inspects, and each mock has its own class.
    """
    kind: Any = type(mock)
    binding = Binding(wire_format, messages_param, positional=("self",))
    kind.__call__ = wrap_function(state, kind.__call__, binding)
    return mock


def _adapt(state: State, target: Any) -> Any:
    """Return the target wrapped by the adapter of its vendor; ``None`` if there is no adapter."""
    if isinstance(target, ModuleType) and target.__name__ == "litellm":
        raise TypeError(
            "compacter wraps litellm's functions and not the module: "
            "completion = compacter.wrap(litellm.completion), and so on"
        )
    if inspect.isfunction(target) and str(target.__module__).partition(".")[0] == "litellm":
        return _adapter("clients.litellm").wrap_named(state, target)
    if isinstance(target, MethodType):
        return _adapt_method(state, target)
    module = target.__module__ if inspect.isfunction(target) else type(target).__module__
    if str(module).partition(".")[0] in _BY_ADDRESS:  # Code that was executed has no module.
        raise TypeError(
            f"compacter cannot wrap {_describe_target(target)}: its package takes an address, so "
            f"give it that of `compacter serve`, as {page('frameworks/index', 'others')} shows"
        )
    name = next(filter(None, map(_client_of, type(target).__mro__)), None)
    if name is None:
        return None
    if name == "instructor":
        return _wrap_instructor(state, target)
    if name == "gRPC":
        raise TypeError(f"compacter cannot wrap {_describe_target(target)}: {_GRPC}")
    if name == "its client":
        raise TypeError(
            f"compacter cannot wrap {_describe_target(target)}: wrap the client that it calls, as "
            f"the page of its framework shows ({page('frameworks/index')})"
        )
    adapter = _adapter(name)
    if hasattr(adapter, "wrap_client"):
        return adapter.wrap_client(state, target)
    from compacter.frameworks.own_types import wrap_model

    return wrap_model(state, target, name.removeprefix("frameworks."))


def _adapt_method(state: State, target: MethodType) -> Any:
    """Like ``_adapt``, for a method of a client or one of its resources."""
    owner = target.__self__
    name = next(filter(None, map(_client_of, type(owner).__mro__)), "")
    if name == "gRPC":
        raise TypeError(f"compacter cannot wrap {_describe_target(target)}: {_GRPC}")
    if not name.startswith("clients."):
        return None
    adapter = _adapter(name)
    method = target.__name__
    reason = getattr(adapter, "REFUSED", {}).get(method)
    if reason is not None:
        raise TypeError(f"compacter cannot wrap a Router's {method}: {reason}")
    if hasattr(adapter, "wrap_method"):
        alone = adapter.wrap_method(state, target)
        if alone is not None:
            return alone
    wrapped = getattr(adapter.wrap_client(state, owner), method, target)
    by_client = method == "tool_runner"
    is_unchanged = getattr(wrapped, "__func__", None) is target.__func__
    if by_client or (is_unchanged and method != "schedule_acompletion"):
        hint = "; it calls messages.create of its client, so wrap the client" if by_client else ""
        described = _describe_target(target)
        raise TypeError(
            f"{described} sends no messages that compacter knows{hint} ({CLIENTS_PAGE})"
        )
    return wrapped


def _adapter(name: str) -> Any:
    """Import the adapter module of that name on demand, as a program uses only one or two
    of them.
    """
    return import_module(f"compacter.{name}")


_GRPC = (
    "xAI's SDK sends over gRPC, and not in this call: wrap "
    'OpenAI(base_url="https://api.x.ai/v1"), or litellm.completion with model="xai/..." '
    f"({CLIENTS_PAGE})"
)
"""Reason why xAI's own SDK is refused, and what works in its place."""
# Class of a client or of a part of one, or base class of a framework's models -> its adapter, or
# "its client" if a wrapped client of a vendor's SDK is all that it needs.
_CLIENTS = {
    ("langchain_core.language_models.chat_models", "BaseChatModel"): "frameworks.langchain",
    ("llama_index.core.llms.llm", "LLM"): "frameworks.llama_index",
    ("dspy.clients.base_lm", "BaseLM"): "frameworks.dspy",
    ("autogen_core.models._model_client", "ChatCompletionClient"): "its client",
    ("crewai.llms.base_llm", "BaseLLM"): "frameworks.crewai",
    ("botocore.client", "BaseClient"): "clients.bedrock",
    ("google.genai.client", "Client"): "clients.google",
    ("google.genai.client", "AsyncClient"): "clients.google",
    ("google.genai.models", "Models"): "clients.google",
    ("google.genai.models", "AsyncModels"): "clients.google",
    ("smolagents.models", "Model"): "its client",
    ("agent_framework._clients", "BaseChatClient"): "its client",
    ("xai_sdk.client", "BaseClient"): "gRPC",
    ("xai_sdk.chat", "BaseClient"): "gRPC",
    ("xai_sdk.chat", "BaseChat"): "gRPC",
    ("litellm.router", "Router"): "clients.litellm",
    # A Router of litellm 1.109 and later returns methods of these as its own.
    ("litellm.router_python_core", "PythonCore"): "clients.litellm",
    ("litellm.router_rust.core", "RustCore"): "clients.litellm",
    ("litellm.router_rust.invoke.endpoints", "RustEndpoints"): "clients.litellm",
}


def _client_of(kind: type) -> str | None:
    """Return the adapter for clients, or parts of clients, of this class; ``None`` if there is no
    adapter.
    """
    module = kind.__module__
    name = kind.__name__
    package = kind.__module__.partition(".")[0]
    if ".resources." in module or (name == "BaseClient" and module.endswith("._base_client")):
        return f"clients.{'anthropic' if package == 'anthropic' else 'openai'}"
    if name == "Instructor" and package == "instructor":
        return "instructor"
    if package in {"haystack", "haystack_integrations"} and name.endswith("Generator"):
        return "frameworks.haystack"
    return _CLIENTS.get((module, name))


def _wrap_instructor(state: State, instructor: Any) -> Any:
    """Return a copy of an ``Instructor`` with its client wrapped; it keeps its hooks.

    Raises ``TypeError`` if it was made from a function, which should be wrapped instead.
    """
    package = import_module("instructor")
    make = getattr(package, f"from_{instructor.provider.value}", None)
    if instructor.client is None or make is None:
        raise TypeError(
            "compacter cannot wrap an Instructor that was made from a function: wrap the function, "
            "instructor.from_litellm(compacter.wrap(litellm.completion))"
        )
    client = wrap(state, instructor.client, messages_param=None, wire_format=None)
    made = make(client, mode=instructor.mode, **instructor.kwargs)
    made.hooks = instructor.hooks
    return made


def _call_on(target: object, method: FunctionType) -> Any:
    """Return a function that calls the method on the original object, where it may change
    attributes such as a counter.
    """

    @functools.wraps(method)
    def call(_: object, *args: Any, **kwargs: Any) -> Any:
        return method(target, *args, **kwargs)

    return call


_METHODS = (
    "chat.complete",
    "chat.completions.create",
    "chat_completion",
    "chat",
    "complete",
    "completion",
)
"""Paths of the method that answers, in clients of other vendors."""
_TAKES_CLIENT = ("client", "async_client")
"""Arguments with which a framework's model takes a vendor's client."""
_INNER = ("model", "service")
"""Attributes of an agent that have its model."""
_BY_ADDRESS = frozenset({"claude_agent_sdk", "mirascope"})
"""Packages that make their clients themselves, or call a program: they take an address."""


def _hint(target: object) -> str:
    """Return what to wrap in place of a target that cannot be wrapped."""
    name = target.__name__ if isinstance(target, ModuleType) else "client"
    for path in _METHODS:
        with contextlib.suppress(Exception):
            method = functools.reduce(getattr, path.split("."), target)
            if callable(method) and bind(method) is not None:
                return f"wrap its method, compacter.wrap({name}.{path})"
    if inspect.isclass(target):
        return "it is a class, so wrap an object of it"
    if inspect.isawaitable(target):
        return "it is the result of a call, so wrap the function"
    for part in (target, *(getattr(target, inner, None) for inner in _INNER)):
        with contextlib.suppress(TypeError, ValueError):  # Some built-in classes have no signature.
            kind = type(part)
            parameters = inspect.signature(kind).parameters
            given = ", ".join(
                f"{each}=compacter.wrap(...)" for each in _TAKES_CLIENT if each in parameters
            )
            if given:
                return f"give it a wrapped client, {kind.__name__}({given}, ...)"
    what = (
        "pass a client of openai, anthropic, google.genai, bedrock-runtime or litellm, or a "
        "function that takes messages"
    )
    return f"{what}; a model's name is passed to it" if isinstance(target, str) else what


def _describe_target(target: object) -> str:
    if target is None:
        return "None"
    if isinstance(target, ModuleType):
        return f"the module {target.__name__}"
    kind = type(target)
    place = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    name = f"{place}{kind.__qualname__}"
    article = "an" if name[0] in "aeiou" else "a"
    return getattr(target, "__qualname__", None) or f"{article} {name}"
