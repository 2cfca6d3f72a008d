"""litellm's functions, and its Router.

The module itself is not wrapped, only its functions: ``completion =
compacter.wrap(litellm.completion)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from types import MethodType
from typing import Any

from compacter.call.arguments import bind
from compacter.call.state import State
from compacter.call.wrap import wrap_function
from compacter.clients.copying import (
    Copies,
    copy_client,
    is_awaited,
)
from compacter.messages.format import FormatName
from compacter.runtime.models import without_banner

FUNCTIONS: Mapping[str, tuple[str, FormatName | None]] = {
    "completion": ("messages", None),
    "acompletion": ("messages", None),
    "completion_with_retries": ("messages", None),
    "acompletion_with_retries": ("messages", None),
    "responses": ("input", "responses"),
    "aresponses": ("input", "responses"),
    "responses_with_retries": ("input", "responses"),
    "aresponses_with_retries": ("input", "responses"),
    "anthropic_messages": ("messages", "anthropic"),
    "aanthropic_messages": ("messages", "anthropic"),
}
"""Function -> its messages argument and wire format; ``None``: recognised by the messages."""
_POSITIONAL = {"messages": ("model", "messages"), "input": ("input", "model")}
"""Messages argument -> the first arguments of a method whose signature does not name them."""
_CALLERS = (
    "abatch_completion",
    "abatch_completion_one_model_multiple_requests",
    "abatch_completion_fastest_response",
    "schedule_acompletion",
)
"""Methods of a Router that call its ``acompletion``."""
_OWNER = "_core_owner"
_ORIGINAL = "_compacter_original"
_SEVERAL = (
    "it sends several conversations, or one to several models, and returns errors "
    "among its results: "
)
_EACH = _SEVERAL + "wrap litellm.completion and call that for each of them"
_BY_ROUTER = _SEVERAL + "wrap the Router, whose batches then compact each request"
REFUSED: Mapping[str, str] = {
    "batch_completion": _EACH,
    "batch_completion_models": _EACH,
    "batch_completion_models_all_responses": _EACH,
    "abatch_completion": _BY_ROUTER,
    "abatch_completion_one_model_multiple_requests": _BY_ROUTER,
    "abatch_completion_fastest_response": _BY_ROUTER,
    "text_completion": "it sends one text and no messages",
    "atext_completion": "it sends one text and no messages",
    "run_tool_loop": (
        "it calls litellm.completion by itself, with a history that it keeps: write "
        "the loop yourself"
    ),
    "arun_tool_loop": (
        "it calls litellm.acompletion by itself, with a history that it keeps: "
        "write the loop yourself"
    ),
    "query": (
        "it adds what it finds to the messages: wrap litellm.completion and search by yourself"
    ),
    "aquery": (
        "it adds what it finds to the messages: wrap litellm.acompletion and search by yourself"
    ),
    "generate_content": "wrap a google.genai.Client",
    "agenerate_content": "wrap a google.genai.Client",
    "generate_content_stream": "wrap a google.genai.Client",
    "agenerate_content_stream": "wrap a google.genai.Client",
}
"""Function, or method of a Router -> the reason why it cannot be wrapped."""


def wrap_named(state: State, function: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return the wrapper of a function of litellm or a method of a Router; ``None`` for an unknown
    name.

    Raises ``TypeError`` with the reason if it cannot be wrapped.
    """
    without_banner()
    name = str(getattr(function, "__name__", ""))
    if name in REFUSED:
        raise TypeError(f"compacter cannot wrap litellm's {name}: {REFUSED[name]}")
    if getattr(function, "__module__", "") == "litellm.anthropic_interface.messages":
        return wrap_plain(state, function, "messages", "anthropic")
    return wrap_plain(state, function, *FUNCTIONS[name]) if name in FUNCTIONS else None


def wrap_plain(
    state: State,
    function: Callable[..., Any],
    param: str,
    wire_format: str | None,
    server: Callable[[], str] | None = None,
) -> Callable[..., Any]:
    """Return the wrapper of a function of litellm, by its messages argument and wire format."""
    binding = bind(function, messages_param=param, wire_format=wire_format)
    assert binding is not None  # noqa: S101 - with messages_param there always is one
    positional = binding.positional
    if positional in {(), ("self",)}:
        # A method of a Router of 1.110 takes any arguments: these come first.
        positional += _POSITIONAL[param]
    binding = replace(
        binding,
        vendors=True,
        server=server or (lambda: "litellm"),
        positional=positional,
    )
    return wrap_function(state, function, binding, asynchronous=is_awaited(function))


# -- the Router ------------------------------------------------------------------------------------


def wrap_client(state: State, router: Any) -> Any:
    """Return a compacting copy of a Router, which shares deployments, cool-downs and counters with
    the original.

    Its batch methods and ``schedule_acompletion`` call its ``acompletion``, so they compact each
    request. From 1.109 on a Router only refers to a *core*, which has the methods: the copy shares
    the core, except the methods that call ``acompletion``, which are copied to call the wrapped
    one.
    """
    router = _public(router)
    core = vars(router).get("_core")
    copies: Copies = {}
    copy = copy_client(router, copies)

    def server() -> str:
        return _deployments(router)

    for name, (param, wire_format) in FUNCTIONS.items():
        method = getattr(router, name, None)
        if method is not None:
            late = _call_late(router, name, method)
            own = wrap_plain(state, late, param, wire_format, server)
            copy.__dict__[name] = MethodType(own, copy) if isinstance(method, MethodType) else own
    if core is not None:
        # The core works only while its Router exists.
        copy.__dict__[_ORIGINAL] = router
        _copy_callers(router, copy, copies)
    # ``router.chat.completions.create`` refers to a router, or to its core.
    copy.__dict__["chat"] = chat = copy_client(router.chat, copies)
    chat.completions = copy_client(chat.completions, copies)
    return copy


def wrap_method(state: State, method: MethodType) -> Callable[..., Any] | None:
    """Return the wrapper of a method whose Router was garbage collected; ``None`` if the Router
    exists.

    The method belongs to the Router's core, which works without it.
    """
    core = method.__self__
    name = method.__name__
    if _public(core) is not None:
        return None
    if name not in FUNCTIONS:
        raise TypeError(
            f"compacter cannot wrap the {name} of a Router that nothing refers to: keep the Router "
            "in a variable, and wrap that"
        )
    return wrap_plain(state, method, *FUNCTIONS[name], lambda: _deployments(core))


def _public(owner: Any) -> Any:
    """Return the Router that a core, or a core's endpoints, belong to; ``None`` if it was garbage
    collected.
    """
    core = owner if _OWNER in vars(owner) else _core_of(owner)
    return owner if core is None else vars(core)[_OWNER]()


def _core_of(endpoints: Any) -> Any:
    """Return the core to which these endpoints refer by an adapter; ``None`` for anything else."""
    return getattr(getattr(endpoints, "_core", None), "_core", None)


def _call_late(router: Any, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that looks up the Router's method at each call; if it is a method, the
    function takes ``self`` first.
    """
    before = isinstance(method, MethodType)

    @wraps(getattr(method, "__func__", method))
    def call(*args: Any, **kwargs: Any) -> Any:
        return getattr(router, name)(*args[before:], **kwargs)

    return call


def _copy_callers(router: Any, copy: Any, copies: Copies) -> None:
    """Give the copy its own methods that call ``acompletion``.

    They belong to the core (1.109), or to its endpoints, which refer to it by an adapter (1.110).

    Raises:
        TypeError: litellm has changed this, so the copy would compact only some of its calls.
    """
    core = vars(router)["_core"]
    copies[id(core)] = copy
    for name in _CALLERS:
        method = getattr(router, name, None)
        if method is None:
            continue
        owner = getattr(method, "__self__", None)
        if owner is not core and _core_of(owner) is not core:
            raise TypeError(
                f"compacter cannot wrap this litellm's Router, as its {name} does not call its "
                "acompletion: install litellm 1.110, or wrap litellm.completion"
            )
        if id(owner) not in copies:
            copy_client(vars(owner)["_core"], copies)
            copy_client(owner, copies)
        copy.__dict__[name] = MethodType(method.__func__, copies[id(owner)])


def _deployments(router: Any) -> str:
    """Return the Router's kind, with the models and endpoints of its deployments."""
    lines = set()
    # Where there is a registry, the attribute ``model_list`` is deprecated.
    known = router.registry().all() if hasattr(router, "registry") else router.model_list
    for deployment in known or ():
        params = dict(deployment.get("litellm_params") or {})
        places = map(params.get, ("model", "api_base", "base_url", "api_version"))
        lines.add(" ".join(map(str, (deployment.get("model_name"), *places))))
    return "\n".join(("litellm.Router", *sorted(lines)))
