"""The calls that can be compacted: their paths, and where in a body the messages are."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from urllib.parse import quote, unquote

import httpx

from compacter.call.arguments import Binding
from compacter.clients.anthropic import Messages
from compacter.clients.bedrock import Converse
from compacter.clients.google import Contents
from compacter.clients.openai import Responses
from compacter.gateway.serve.answers import (
    Watches,
    watch_bedrock,
    watch_events,
    watch_gemini,
    watch_ollama,
)
from compacter.messages.fields import camel
from compacter.messages.format import FormatName

Body = Mapping[str, Any]

# -- bodies that differ from the arguments of a vendor's SDK ---------------------------------------
#
# `compacter.clients` reads the SDK's arguments: here a body becomes such arguments, and they become
# a body again. Gemini's options are in a member ``generationConfig`` and not in ``config``,
# Ollama's are in ``options``, and Bedrock's and Gemini's paths name the model.


def unchanged(body: Body, _: object) -> Body:
    """Return ``body``. The default of ``Protocol.arguments`` and ``Protocol.body``: in most
    protocols the JSON body of a request has the same members as the arguments of the SDK's method,
    so neither needs a conversion into the other.
    """
    return body


def from_gemini(body: Body, model: str) -> Body:
    """Return the body of a request to Gemini as the arguments of the SDK's ``generate_content``:
    the members of ``generationConfig``, and all members except ``contents``, are put into
    ``config``. See https://ai.google.dev/api/generate-content.
    """
    config: dict[str, Any] = {}
    for name, value in body.items():
        if camel(name) == "generationConfig":
            config |= value or {}
        elif name != "contents":
            config[name] = value
    return {"model": model, "contents": body["contents"], "config": config}


def to_gemini(arguments: Body, original: Body) -> Body:
    """Convert arguments of ``generate_content`` back, and return the body of a request to Gemini.
    An option goes into ``generationConfig``, unless the ``original`` body has it beside that
    member.
    """
    given = {camel(name): value for name, value in arguments["config"].items()}
    beside = {"systemInstruction", *map(camel, original)}
    body = {name: given.pop(name) for name in list(given) if name in beside}
    system = body.get("systemInstruction")
    if isinstance(system, (str, list)):
        parts = [{"text": system}] if isinstance(system, str) else system
        body["systemInstruction"] = {"parts": parts}
    return {"contents": arguments["contents"], **body, "generationConfig": given}


def from_ollama(body: Body, _: str) -> Body:
    """Return the body of a request to Ollama's ``/api/chat`` as one flat dict of arguments: the
    members of its object ``options`` stand beside the other members. See
    https://docs.ollama.com/api/chat.
    """
    return {**{name: body[name] for name in body if name != "options"}, **_options(body)}


def to_ollama(arguments: Body, original: Body) -> Body:
    """Convert arguments in the form of ``from_ollama`` back, and return the body for ``/api/chat``.
    The options of the ``original`` body, such as the window (``num_ctx``), and its ``keep_alive``
    are kept: with other values Ollama would load the model anew.
    """
    options = _options(original)
    inner = {*options, "num_predict"}
    kept = {name: original[name] for name in ("keep_alive", "truncate") if name in original}
    body = {**kept, **{name: arguments[name] for name in arguments if name not in inner}}
    options.pop("stop", None)
    options |= {name: arguments[name] for name in arguments if name in inner}
    return {**body, "options": options} if options else body


def plain_ollama(body: Body) -> Body:
    """Return a copy of a body for Ollama that asks for one reply of plain text: without ``format``,
    and with ``stream`` set to false, as Ollama streams by default.
    """
    return {**{name: body[name] for name in body if name != "format"}, "stream": False}


def _options(body: Body) -> dict[str, Any]:
    return dict(body.get("options") or {})


def completion_of(reply: Body) -> Body:
    """Convert a reply of Ollama's ``/api/chat`` into the form of OpenAI's chat completions, and
    return it. A body without a ``message``, such as an error, is returned unchanged.
    """
    usage = {
        "prompt_tokens": reply.get("prompt_eval_count", 0),
        "completion_tokens": reply.get("eval_count", 0),
    }
    choice = {"message": reply.get("message"), "finish_reason": reply.get("done_reason")}
    return {"choices": [choice], "usage": usage} if "message" in reply else reply


def with_model(member: str, body: Body, model: str) -> Body:
    """Return the arguments of an SDK's method: the members of ``body``, and the model that the path
    names as the argument ``member``.
    """
    return {member: model, **body}


def without_model(member: str, arguments: Body, original: Body) -> Body:
    """Return the body for such arguments: without the argument ``member``, as the path names the
    model, and with Anthropic's version and beta features from the ``original`` body, if it has them
    (InvokeModel).
    """
    names = ("anthropic_version", "anthropic_beta")
    kept = {name: original[name] for name in names if name in original}
    return {**kept, **{name: arguments[name] for name in arguments if name != member}}


# -- the protocols ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Protocol:
    """A kind of call that can be compacted."""

    path: re.Pattern[str]
    """End of its path; the group ``model`` is the model's name, if the path has it, and ``verb``
    the part that differs for a stream."""
    param: str
    """Member of its body that contains the messages."""
    wire_format: FormatName
    binding: type[Binding] = Binding
    output_param: str = ""
    """Member that limits the output; empty if it depends on the server."""
    watches: Watches = watch_events
    """Readers of its streams."""
    plain_verb: str = ""
    """Verb of the path without streaming, for summaries."""
    arguments: Callable[[Body, str], Body] = unchanged
    """Returns the arguments that ``binding`` reads, for a body and the model that the path
    names."""
    body: Callable[[Body, Body], Body] = unchanged
    """Returns the body for such arguments, and for the original one."""
    plain: Callable[[Body], Body] = lambda body: body
    """Returns a body that asks for a plain text."""
    reply: Callable[[Body], Body] = lambda reply: reply
    """Returns a reply in a form from which a summary can be read."""
    needs: str = ""
    """Member that its bodies have beside the messages."""
    aws: bool = False
    """Whether its requests may be signed."""
    beat: bytes = b": the answer is awaited\n\n"
    """Bytes before a stream that clients of the protocol skip; empty if it has none. By default a
    comment in server-sent events."""
    failure: bytes = b"event: error\ndata: %s\n\n"
    """Event with the JSON of an error, in a stream that has begun."""

    def model_of(self, tail: str) -> str | None:
        """Return the model that a path names, or ``None``."""
        found = self.path.search(tail)
        named = found.groupdict().get("model") if found else None
        return None if named is None else unquote(named)

    def summary_url(self, url: httpx.URL, model: str | None) -> httpx.URL:
        """Return the URL for a summary: without streaming, and of another model if one is given."""
        if not self.plain_verb:
            return url
        path, _, query = url.raw_path.decode("ascii").partition("?")
        found = self.path.search(path)
        if found is None:
            return url
        name = found["model"] if model is None else quote(model, safe="")
        between = path[found.end("model") : found.start("verb")]
        kept = "&".join(part for part in query.split("&") if part and part != "alt=sse")
        path = f"{path[: found.start('model')]}{name}{between}{self.plain_verb}"
        return url.copy_with(raw_path=(f"{path}?{kept}" if kept else path).encode("ascii"))

    def fits(self, body: Body) -> bool:
        """Return whether a body has messages in the place where this protocol has them."""
        return isinstance(body.get(self.param), (list, str)) and (self.needs or self.param) in body


def _ends_with(suffix: str) -> re.Pattern[str]:
    return re.compile(rf"{re.escape(suffix)}\Z")


_MODEL = r"(?P<model>[^/]+)"
_GEMINI = Protocol(
    re.compile(r"/models/(?P<model>[^/:]+):(?P<verb>generateContent)\Z"),
    "contents",
    "gemini",
    Contents,
    "max_output_tokens",
    arguments=from_gemini,
    body=to_gemini,
    plain_verb="generateContent",
    # Google's SDK for Python reads other lines, also comments, as parts of the JSON.
    beat=b"\n",
    failure=b"data: %s\n\n",
)
PROTOCOLS = (
    Protocol(_ends_with("/chat/completions"), "messages", "openai"),
    Protocol(_ends_with("/responses"), "input", "responses", Responses, "max_output_tokens"),
    Protocol(
        _ends_with("/messages"),
        "messages",
        "anthropic",
        Messages,
        "max_tokens",
        beat=b'event: ping\ndata: {"type": "ping"}\n\n',
    ),
    _GEMINI,
    replace(
        _GEMINI,
        path=re.compile(r"/models/(?P<model>[^/:]+):(?P<verb>streamGenerateContent)\Z"),
        watches=watch_gemini,
    ),
    Protocol(
        _ends_with("/api/chat"),
        "messages",
        "openai",
        output_param="num_predict",
        watches=watch_ollama,
        arguments=from_ollama,
        body=to_ollama,
        plain=plain_ollama,
        reply=completion_of,
        beat=b" ",
        failure=b"%s\n",
    ),
    Protocol(
        re.compile(rf"/model/{_MODEL}/(?P<verb>converse(?:-stream)?)\Z"),
        "messages",
        "bedrock",
        Converse,
        "maxTokens",
        watch_bedrock,
        plain_verb="converse",
        arguments=partial(with_model, "modelId"),
        body=partial(without_model, "modelId"),
        aws=True,
        beat=b"",
    ),
    Protocol(
        re.compile(rf"/model/{_MODEL}/(?P<verb>invoke(?:-with-response-stream)?)\Z"),
        "messages",
        "anthropic",
        Messages,
        "max_tokens",
        watch_bedrock,
        plain_verb="invoke",
        arguments=partial(with_model, "model"),
        body=partial(without_model, "model"),
        needs="anthropic_version",
        aws=True,
        beat=b"",
    ),
)


def protocol_of(method: str, tail: str) -> Protocol | None:
    """Return the protocol of a request by its method and path, or ``None``. Its body is checked
    later.
    """
    if method != "POST":
        return None
    return next((one for one in PROTOCOLS if one.path.search(tail)), None)
