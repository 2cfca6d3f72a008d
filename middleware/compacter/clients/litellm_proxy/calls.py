"""A client's request over all its attempts: how it is read, what makes the router try again, what a stream says of it.

Of fallbacks: https://docs.litellm.ai/docs/proxy/reliability.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from compacter.call.arguments import Args, Binding, CallFacts, Options
from compacter.clients.litellm_proxy.attempts import SteppedCall
from compacter.clients.raw import EventWatch
from compacter.overflow import TokenLimit


@dataclass(frozen=True, slots=True)
class ProxyBinding(Binding):
    """How to read a request to the proxy. Deployments of one group share what was folded; tenants do not."""

    vendors: bool = True
    method: str = ""
    """The router's method for such requests."""
    group: str = ""
    place: str = ""

    def read(self, args: Args, kwargs: Options) -> CallFacts:
        """What the request says, with the model group, and whose records these are."""
        return replace(Binding.read(self, args, kwargs), model=self.group, endpoint=self.place)


CHAT = ProxyBinding("openai", method="acompletion")
RESPONSES = ProxyBinding("responses", "input", output_param="max_output_tokens", method="aresponses")
MESSAGES = ProxyBinding("anthropic", method="aanthropic_messages")
PROTOCOLS: Mapping[str, ProxyBinding] = {
    "completion": CHAT,
    "acompletion": CHAT,
    "responses": RESPONSES,
    "aresponses": RESPONSES,
    "anthropic_messages": MESSAGES,
    "aanthropic_messages": MESSAGES,
}
"""Call type -> how requests of the API that the proxy serves by it are read."""

TOKEN = "compacter_call"  # noqa: S105 - the name of it
"""Where a request's metadata says which of the plug-in's calls it is. Not the call id: clients may choose that."""


@dataclass(slots=True)
class ProxyCall:
    """One request of a client, over all its attempts."""

    protocol: ProxyBinding
    auth: Any
    metadata_name: str
    tenant: str
    team: tuple[str | None, ...]
    key: tuple[str | None, ...]
    given: frozenset[str]
    """The names in the request before it was routed."""
    given_metadata: frozenset[str]
    """The names in its metadata then."""
    context_fallbacks: list[Any]
    fallbacks: list[Any]
    prepared: set[str] = field(default_factory=set)
    """Groups whose folding stands in ``fallbacks``, where it is put at a refusal, before the router looks."""
    by_group: dict[str, SteppedCall] = field(default_factory=dict)
    call_type: object = None
    """Of the outermost call to a deployment: litellm translates some protocols by a call inside a call."""
    sent: bool = False
    """Whether an attempt is out whose failure was not told."""
    refused: tuple[Exception, TokenLimit] | None = None
    said: object = None
    """The router's record of the failure before this attempt."""
    round: int = 0
    """Of the attempts that the plug-in has asked for, the last."""
    rounds: int = 0
    tokens_saved: int = 0
    stream: object = None
    """The router's stream, of which the proxy makes the response's headers once its first chunk is there."""

    def headers(self) -> dict[str, str] | None:
        """What the response says of compacter; ``None`` where nothing was folded."""
        if not (self.rounds or self.tokens_saved):
            return None
        return {"x-compacter-rounds": str(self.rounds), "x-compacter-tokens-saved": str(self.tokens_saved)}

    def tell_in_headers(self) -> None:
        """Add the headers to a stream that was recovered after the proxy had asked for them.

        They go the way of the provider's own: https://docs.litellm.ai/docs/observability/raw_request_response.
        """
        stream, self.stream = self.stream, None
        hidden, headers = getattr(stream, "_hidden_params", None), self.headers()
        if headers and isinstance(hidden, dict):
            hidden["additional_headers"] = {**(hidden.get("additional_headers") or {}), **headers}

    def afresh(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The request as it came from the client, to be routed once more: without what its first way has left in it."""
        kept = {name: value for name, value in request.items() if name in self.given - {"litellm_logging_obj"}}
        metadata = {name: value for name, value in request[self.metadata_name].items() if name in self.given_metadata}
        return {**kept, self.metadata_name: metadata}

    def end(self) -> None:
        """Let go of the messages; the numbers stay for the response's headers."""
        for call in self.by_group.values():
            call.close()
        self.by_group.clear()
        self.auth = self.stream = None


def group_of(call: ProxyCall, kwargs: Mapping[str, Any]) -> str:
    """The model group of an attempt; ``model`` is the deployment's own by then."""
    return str((kwargs.get(call.metadata_name) or {}).get("model_group") or kwargs.get("model"))


def metadata_of(data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The metadata that the proxy fills in, which is not always what the client calls metadata."""
    for name in ("litellm_metadata", "metadata"):
        found = data.get(name)
        if isinstance(found, dict) and any(str(key).startswith("user_api_key") for key in found):
            return name, found
    name = "litellm_metadata" if isinstance(data.get("litellm_metadata"), dict) else "metadata"
    found = data.get(name)
    if not isinstance(found, dict):
        found = data[name] = {}
    return name, found


def last_failure(metadata: Mapping[str, Any]) -> object:
    """What the router notes of the last attempt that failed: ``exception_type``, ``exception_string`` and more."""
    earlier = metadata.get("previous_models")
    return earlier[-1] if isinstance(earlier, (list, tuple)) and earlier else None


def name_of(call_type: Any) -> str:
    """The name of a call type, which is an enum or a text."""
    return str(getattr(call_type, "value", call_type))


def text_of(auth: Any, name: str) -> str | None:
    """A member of ``UserAPIKeyAuth``, where it is a text."""
    found = getattr(auth, name, None)
    return found if isinstance(found, str) else None


# -- fallbacks, by which the router makes a call again -----------------------------------------------------------------

ROUND = "compacter_round"
"""Argument that tells an attempt of ours from the router's other ones; taken out before anything is sent."""


def targets(group: str, rounds: int) -> list[dict[str, Any]]:
    """Fallbacks to the group itself; the router takes each once, and passes by a bare name that it has tried."""
    return [{"model": group, ROUND: number} for number in range(1, rounds + 1)]


def is_plain(fallbacks: list[Any]) -> bool:
    """Whether a client has named targets for whatever model it calls, and not lists of them by model group."""
    return any(isinstance(entry, str) or (isinstance(entry, Mapping) and "model" in entry) for entry in fallbacks)


def of_group(fallbacks: list[Any], group: str) -> list[Any]:
    """The targets for a group: its own ones, else those that stand for every group."""
    for name in (group, "*"):
        for entry in fallbacks:
            if isinstance(entry, Mapping) and name in entry:
                return list(entry[name] or ())
    return []


def with_own(theirs: list[Any], group: str, others: list[Any], rounds: int) -> list[Any]:
    """Fallbacks for "too long": those that the config names, a larger model perhaps; then folding."""
    groups = [group]
    for target in (*of_group(theirs, group), *of_group(others, group)):
        name = target.get("model") if isinstance(target, Mapping) else target
        if isinstance(name, str) and name not in groups:
            groups.append(name)
    own = [{name: [*of_group(theirs, name), *targets(name, rounds)]} for name in groups]
    return [*own, *(entry for entry in theirs if not (isinstance(entry, Mapping) and set(entry) & set(groups)))]


def setting(data: Mapping[str, Any], name: str) -> list[Any]:
    """A list of fallbacks as it would be without the plug-in: of the request, of the key or team, of the router."""
    from litellm.proxy import proxy_server

    router: Any = proxy_server.llm_router
    override = data.get("router_settings_override")
    for found in (data.get(name), override.get(name) if isinstance(override, Mapping) else None):
        if isinstance(found, list):
            return list(found)
    settings = router.settings() if callable(getattr(router, "settings", None)) else router
    return list(getattr(settings, name, None) or ())


# -- streams that were opened with HTTP 200, and then say "too long" before anything else ------------------------------

_END: Any = object()
_MOST_HELD = 64
"""Chunks without content after which a stream is passed on unread."""


async def refused_before_content(
    stream: Any, detect: Callable[[BaseException], TokenLimit | None]
) -> tuple[list[Any], Exception | None, TokenLimit | None]:
    """Read a stream up to its first content: what was read, what it raised, and the token limit in it.

    Args:
        stream: Chunks, as objects or as server-sent events in bytes.
        detect: The detector for what the stream raises.
    """
    held: list[Any] = []
    watch, iterator = EventWatch(), aiter(stream)
    while len(held) < _MOST_HELD:
        try:
            chunk = await anext(iterator, _END)
        except Exception as error:  # noqa: BLE001 - handed back: the reader raises it, or calls again
            return held, error, detect(error)
        if chunk is _END:
            break
        held.append(chunk)
        text = chunk.encode() if isinstance(chunk, str) else chunk
        if watch.read(text) if isinstance(text, bytes) else watch.judge(chunk):
            break
    watch.end()
    return held, None, watch.found
