"""litellm's functions, and its Router.

The module itself is not wrapped, only its functions: ``completion =
compacter.wrap(litellm.completion)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MethodType
from typing import Any

from compacter.call.arguments import bind
from compacter.call.state import State
from compacter.call.wrap import wrap_function
from compacter.clients.copying import (
    Copies,
    copy_client,
    copy_part,
    is_awaited,
    set_method,
    unbound,
)
from compacter.messages.format import FormatName
from compacter.models import without_banner

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
    binding = replace(binding, vendors=True, server=server or _litellm)
    return wrap_function(state, function, binding, asynchronous=is_awaited(function))


def _litellm() -> str:
    return "litellm"


def wrap_client(state: State, router: Any) -> Any:
    """Return a compacting copy of a Router, which shares deployments, cool-downs and counters with
    the original.

    Its batch methods and ``schedule_acompletion`` call its ``acompletion``, so they compact each
    request.
    """
    copies: Copies = {}
    copy = copy_client(router, copies)

    def server() -> str:
        return _deployments(copy)

    for name, (param, wire_format) in FUNCTIONS.items():
        method = getattr(copy, name, None)
        if isinstance(method, MethodType):
            set_method(
                copy, name, wrap_plain(state, unbound(copy, name), param, wire_format, server)
            )
        elif callable(method):
            copy.__dict__[name] = wrap_plain(state, method, param, wire_format, server)
    # ``router.chat.completions.create`` refers to a router.
    copy_part(router, copy, ("chat", "completions"), copies)
    return copy


def _deployments(router: Any) -> str:
    """Return the Router's kind, with the models and endpoints of its deployments."""
    lines = set()
    for deployment in getattr(router, "model_list", None) or ():
        params = dict(deployment.get("litellm_params") or {})
        places = map(params.get, ("model", "api_base", "base_url", "api_version"))
        lines.add(" ".join(map(str, (deployment.get("model_name"), *places))))
    return "\n".join(("litellm.Router", *sorted(lines)))
