"""Bodies that differ from the arguments of a vendor's SDK: Gemini's, Ollama's and Bedrock's.

What reads the SDK's arguments is in `compacter.clients`; here a body becomes such arguments, and
they become a body again. Gemini's options are in a member ``generationConfig`` and not in
``config``, Ollama's are in ``options``, and Bedrock's and Gemini's paths name the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Body = Mapping[str, Any]


def unchanged(body: Body, _: object) -> Body:
    """Return a body as it is, or arguments that are one."""
    return body


def from_gemini(body: Body, model: str) -> Body:
    """Return the arguments of ``generate_content``: https://ai.google.dev/api/generate-content."""
    config: dict[str, Any] = {}
    for name, value in body.items():
        if _camel(name) == "generationConfig":
            config |= value or {}
        elif name != "contents":
            config[name] = value
    return {"model": model, "contents": body["contents"], "config": config}


def to_gemini(arguments: Body, original: Body) -> Body:
    """Return the body of a request; what the original one has beside ``generationConfig`` stays
    there.
    """
    given = {_camel(name): value for name, value in arguments["config"].items()}
    beside = {"systemInstruction", *map(_camel, original)}
    body = {name: given.pop(name) for name in list(given) if name in beside}
    system = body.get("systemInstruction")
    if isinstance(system, (str, list)):
        parts = [{"text": system}] if isinstance(system, str) else system
        body["systemInstruction"] = {"parts": parts}
    return {"contents": arguments["contents"], **body, "generationConfig": given}


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(map(str.capitalize, rest))


def from_ollama(body: Body, _: str) -> Body:
    """Return the members of ``/api/chat`` and of its ``options`` as arguments of one function:
    https://docs.ollama.com/api/chat.
    """
    return {**{name: body[name] for name in body if name != "options"}, **_options(body)}


def to_ollama(arguments: Body, original: Body) -> Body:
    """Return the body of a request, with the window and the life time of the original one: with
    others the model would be loaded anew.
    """
    options = _options(original)
    inner = {*options, "num_predict"}
    kept = {name: original[name] for name in ("keep_alive", "truncate") if name in original}
    body = {**kept, **{name: arguments[name] for name in arguments if name not in inner}}
    options.pop("stop", None)
    options |= {name: arguments[name] for name in arguments if name in inner}
    return {**body, "options": options} if options else body


def plain_ollama(body: Body) -> Body:
    """Return a body that asks for a plain text: without ``stream`` it asks for a stream."""
    return {**{name: body[name] for name in body if name != "format"}, "stream": False}


def _options(body: Body) -> dict[str, Any]:
    return dict(body.get("options") or {})


def completion_of(reply: Body) -> Body:
    """Return Ollama's reply as a chat completion."""
    usage = {
        "prompt_tokens": reply.get("prompt_eval_count", 0),
        "completion_tokens": reply.get("eval_count", 0),
    }
    choice = {"message": reply.get("message"), "finish_reason": reply.get("done_reason")}
    return {"choices": [choice], "usage": usage} if "message" in reply else reply


def from_converse(body: Body, model: str) -> Body:
    """Return the arguments of ``converse``."""
    return {"modelId": model, **body}


def to_converse(arguments: Body, _: Body) -> Body:
    """Return the body of a request."""
    return {name: arguments[name] for name in arguments if name != "modelId"}


def from_invoke(body: Body, model: str) -> Body:
    """Return the arguments of Anthropic's own method, whose body ``invoke`` takes too."""
    return {"model": model, **body}


def to_invoke(arguments: Body, original: Body) -> Body:
    """Return the body of a request, which has a version."""
    names = ("anthropic_version", "anthropic_beta")
    kept = {name: original[name] for name in names if name in original}
    return {**kept, **{name: arguments[name] for name in arguments if name != "model"}}
