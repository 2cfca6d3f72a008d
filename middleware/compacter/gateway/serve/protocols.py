"""The calls that can be compacted: their paths, and where in a body the messages are."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote

import httpx

from compacter.call.arguments import Binding
from compacter.clients.anthropic import Messages
from compacter.clients.bedrock import Converse
from compacter.clients.google import Contents
from compacter.clients.openai import Responses
from compacter.gateway.serve import wires
from compacter.gateway.serve.answers import Watches, watch_events
from compacter.gateway.serve.streams import watch_bedrock, watch_gemini, watch_ollama
from compacter.gateway.serve.wires import Body
from compacter.messages.format import FormatName


@dataclass(frozen=True, slots=True)
class Protocol:
    """A kind of call that can be compacted."""

    path: re.Pattern[str]
    """End of its path; the group ``model`` is the model's name, if the path has it, and ``verb``
    what differs for a stream."""
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
    arguments: Callable[[Body, str], Body] = wires.unchanged
    """Returns what ``binding`` reads, for a body and the model that the path names."""
    body: Callable[[Body, Body], Body] = wires.unchanged
    """Returns the body for such arguments, and for the original one."""
    plain: Callable[[Body], Body] = lambda body: body
    """Returns a body that asks for a plain text."""
    reply: Callable[[Body], Body] = lambda reply: reply
    """Returns a reply in a form that a summary is read from."""
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
        before = path[: found.start("model")]
        between = path[found.end("model") : found.start("verb")]
        kept = "&".join(part for part in query.split("&") if part and part != "alt=sse")
        again = f"{before}{name}{between}{self.plain_verb}{'?' * bool(kept)}{kept}"
        return url.copy_with(raw_path=again.encode("ascii"))

    def fits(self, body: Body) -> bool:
        """Return whether a body has messages where this protocol has them."""
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
    arguments=wires.from_gemini,
    body=wires.to_gemini,
    plain_verb="generateContent",
    # Google's SDK for Python takes other lines, comments too, for parts of the JSON.
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
        arguments=wires.from_ollama,
        body=wires.to_ollama,
        plain=wires.plain_ollama,
        reply=wires.completion_of,
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
        arguments=wires.from_converse,
        body=wires.to_converse,
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
        arguments=wires.from_invoke,
        body=wires.to_invoke,
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
