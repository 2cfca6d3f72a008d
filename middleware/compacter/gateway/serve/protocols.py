"""The calls that can be compacted: their paths, and where in a body the messages are."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

import httpx

from compacter.call.arguments import Binding
from compacter.clients.anthropic import Messages
from compacter.clients.openai import Responses
from compacter.gateway.serve.answers import Watches, watch_events
from compacter.gateway.serve.streams import watch_bedrock, watch_gemini, watch_ollama
from compacter.gateway.serve.wires import (
    BedrockConverse,
    BedrockInvoke,
    Gemini,
    Ollama,
    completion_of,
)
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
    reply: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda reply: reply
    """Returns a reply in a form that a summary is read from."""
    aws: bool = False
    """Whether its requests may be signed."""

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

    def fits(self, body: Mapping[str, Any]) -> bool:
        """Return whether a body has messages where this protocol has them."""
        if self.binding is BedrockInvoke and "anthropic_version" not in body:
            return False
        return isinstance(body.get(self.param), (list, str))


def _ends_with(suffix: str) -> re.Pattern[str]:
    return re.compile(rf"{re.escape(suffix)}\Z")


_GEMINI = re.compile(r"/models/(?P<model>[^/:]+):(?P<verb>generateContent)\Z")
_GEMINI_STREAM = re.compile(r"/models/(?P<model>[^/:]+):(?P<verb>streamGenerateContent)\Z")
_CONVERSE = re.compile(r"/model/(?P<model>[^/]+)/(?P<verb>converse(?:-stream)?)\Z")
_INVOKE = re.compile(r"/model/(?P<model>[^/]+)/(?P<verb>invoke(?:-with-response-stream)?)\Z")

PROTOCOLS = (
    Protocol(_ends_with("/chat/completions"), "messages", "openai"),
    Protocol(_ends_with("/responses"), "input", "responses", Responses, "max_output_tokens"),
    Protocol(_ends_with("/messages"), "messages", "anthropic", Messages, "max_tokens"),
    Protocol(
        _GEMINI,
        "contents",
        "gemini",
        Gemini,
        "max_output_tokens",
        plain_verb="generateContent",
    ),
    Protocol(
        _GEMINI_STREAM,
        "contents",
        "gemini",
        Gemini,
        "max_output_tokens",
        watch_gemini,
        plain_verb="generateContent",
    ),
    Protocol(
        _ends_with("/api/chat"),
        "messages",
        "openai",
        Ollama,
        "num_predict",
        watch_ollama,
        reply=completion_of,
    ),
    Protocol(
        _CONVERSE,
        "messages",
        "bedrock",
        BedrockConverse,
        "maxTokens",
        watch_bedrock,
        plain_verb="converse",
        aws=True,
    ),
    Protocol(
        _INVOKE,
        "messages",
        "anthropic",
        BedrockInvoke,
        "max_tokens",
        watch_bedrock,
        plain_verb="invoke",
        aws=True,
    ),
)


def protocol_of(method: str, tail: str) -> Protocol | None:
    """Return the protocol of a request by its method and path, or ``None``. Its body is checked
    later.
    """
    if method != "POST":
        return None
    return next((one for one in PROTOCOLS if one.path.search(tail)), None)
