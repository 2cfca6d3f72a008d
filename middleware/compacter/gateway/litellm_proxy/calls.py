"""A client's request with all its attempts: its arguments, its fallbacks, and refusals inside its
stream.

Fallbacks: https://docs.litellm.ai/docs/proxy/reliability.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from compacter.call.arguments import Args, Binding, CallFacts, Options
from compacter.gateway.litellm_proxy.attempts import SteppedCall
from compacter.messages.bodies import EventWatch
from compacter.messages.refusals import UNSAID
from compacter.overflow import TokenLimit


@dataclass(frozen=True, slots=True)
class ProxyBinding(Binding):
    """Binding of a request to the proxy. Deployments of one group share records; tenants do not."""

    vendors: bool = True
    method: str = ""
    """Router method for such requests."""
    group: str = ""
    place: str = ""

    def read(self, args: Args, kwargs: Options) -> CallFacts:
        """Read the request, with the model group as its model, and the tenant in its endpoint."""
        read = Binding.read(self, args, kwargs)
        return replace(read, model=self.group, endpoint=self.place, place="")


CHAT = ProxyBinding("openai", method="acompletion")
RESPONSES = ProxyBinding(
    "responses", "input", output_param="max_output_tokens", method="aresponses"
)
MESSAGES = ProxyBinding("anthropic", method="aanthropic_messages")
PROTOCOLS: Mapping[str, ProxyBinding] = {
    "completion": CHAT,
    "acompletion": CHAT,
    "responses": RESPONSES,
    "aresponses": RESPONSES,
    "anthropic_messages": MESSAGES,
    "aanthropic_messages": MESSAGES,
}
"""Call type of the proxy -> binding of its requests."""

TOKEN = "compacter_call"  # noqa: S105 - the name of it
"""Key of the plug-in's own call id in a request's metadata. Clients can choose litellm's call id.
"""


@dataclass(slots=True)
class ProxyCall:
    """One request of a client, with all its attempts."""

    protocol: ProxyBinding
    auth: Any
    metadata_name: str
    tenant: str
    team: tuple[str | None, ...]
    key: tuple[str | None, ...]
    given: frozenset[str]
    """Names in the request before it was routed."""
    given_metadata: frozenset[str]
    """Names in its metadata before it was routed."""
    context_fallbacks: list[Any]
    fallbacks: list[Any]
    prepared: set[str] = field(default_factory=set)
    """Groups whose own fallbacks were added to ``fallbacks`` after a refusal, before the router
    read them."""
    by_group: dict[str, SteppedCall] = field(default_factory=dict)
    call_type: object = None
    """Call type of the outermost call to a deployment: litellm translates some protocols by a
    nested call."""
    sent: bool = False
    """Whether an attempt was made for which no failure was reported."""
    refused: tuple[Exception, TokenLimit] | None = None
    said: object = None
    """Router's entry for the failure before this attempt."""
    round: int = 0
    """Highest number of the attempts that are fallbacks of the plug-in."""

    def without_route(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request as the client sent it, without what the router added, to be routed
        again.
        """
        kept = {
            name: value
            for name, value in request.items()
            if name in self.given - {"litellm_logging_obj"}
        }
        metadata = {
            name: value
            for name, value in request[self.metadata_name].items()
            if name in self.given_metadata
        }
        return {**kept, self.metadata_name: metadata}

    def end(self) -> None:
        """Drop the references to the messages of the call, so that their memory is freed."""
        for call in self.by_group.values():
            call.close()
        self.by_group.clear()
        self.auth = None


def group_of(call: ProxyCall, kwargs: Mapping[str, Any]) -> str:
    """Return the model group of an attempt, whose ``model`` names the deployment already."""
    return str((kwargs.get(call.metadata_name) or {}).get("model_group") or kwargs.get("model"))


def metadata_of(data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return key and value of the metadata that the proxy fills in; the client may send other
    metadata.
    """
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
    """Return the router's entry for the last failed attempt, with ``exception_type``,
    ``exception_string`` and more.
    """
    earlier = metadata.get("previous_models")
    return earlier[-1] if isinstance(earlier, (list, tuple)) and earlier else None


def name_of(call_type: Any) -> str:
    """Return the name of a call type, which is an enum member or a string."""
    return str(getattr(call_type, "value", call_type))


def text_of(auth: Any, name: str) -> str | None:
    """Return an attribute of ``UserAPIKeyAuth`` if it is a string, else ``None``."""
    found = getattr(auth, name, None)
    return found if isinstance(found, str) else None


# -- fallbacks, with which the router repeats a call -----------------------------------------------

ROUND = "compacter_round"
"""Argument that marks attempts which are fallbacks of the plug-in; removed before the request is
sent."""


def targets(group: str, rounds: int) -> list[dict[str, Any]]:
    """Return a fallback to the group itself for each round. They are numbered, because the router
    skips a target that it has already tried.
    """
    return [{"model": group, ROUND: number} for number in range(1, rounds + 1)]


def is_plain(fallbacks: list[Any]) -> bool:
    """Return whether the fallbacks are one list for all models, not a list for each model group."""
    return any(
        isinstance(entry, str) or (isinstance(entry, Mapping) and "model" in entry)
        for entry in fallbacks
    )


def of_group(fallbacks: list[Any], group: str) -> list[Any]:
    """Return the targets for a group, by default those of ``*``."""
    for name in (group, "*"):
        for entry in fallbacks:
            if isinstance(entry, Mapping) and name in entry:
                return list(entry[name] or ())
    return []


def with_own(theirs: list[Any], group: str, others: list[Any], rounds: int) -> list[Any]:
    """Return the list of fallbacks for requests that are too long. The fallbacks of the proxy's
    configuration come first, such as a larger model. Fallbacks to the group itself follow: these
    are the rounds in which the gateway compacts.
    """
    groups = [group]
    for target in (*of_group(theirs, group), *of_group(others, group)):
        name = target.get("model") if isinstance(target, Mapping) else target
        if isinstance(name, str) and name not in groups:
            groups.append(name)
    own = [{name: [*of_group(theirs, name), *targets(name, rounds)]} for name in groups]
    return [
        *own,
        *(
            entry
            for entry in theirs
            if not (isinstance(entry, Mapping) and set(entry) & set(groups))
        ),
    ]


def setting(data: Mapping[str, Any], name: str) -> list[Any]:
    """Return the fallbacks that would be in effect without the plug-in: those of the request, or
    else of the key or team, or else of the router. ``name`` is the name of the setting.
    """
    from litellm.proxy import proxy_server

    router: Any = proxy_server.llm_router
    override = data.get("router_settings_override")
    for found in (data.get(name), override.get(name) if isinstance(override, Mapping) else None):
        if isinstance(found, list):
            return list(found)
    settings = router.settings() if callable(getattr(router, "settings", None)) else router
    return list(getattr(settings, name, None) or ())


# -- streams opened with HTTP 200 that begin with a token limit ------------------------------------

_END: Any = object()
# Largest number of chunks without content that are read before a stream is passed on.
_MOST_HELD = 64


async def read_until_content(
    stream: Any, detect: Callable[[BaseException], TokenLimit | None]
) -> tuple[list[Any], Exception | None, TokenLimit | None]:
    """Read a stream up to its first content. Return the chunks read, the exception raised, and the
    token limit found.

    Args:
        stream: Chunks, as objects or as server-sent events in bytes.
        detect: Detector of token limits in exceptions.
    """
    held: list[Any] = []
    watch = EventWatch()
    iterator = aiter(stream)
    while len(held) < _MOST_HELD:
        try:
            chunk = await anext(iterator, _END)
        except Exception as error:  # noqa: BLE001 - returned: the caller raises it, or sends the request again
            return held, error, detect(error)
        if chunk is _END:
            break
        held.append(chunk)
        text = chunk.encode() if isinstance(chunk, str) else chunk
        if watch.read(text) if isinstance(text, bytes) else watch.judge(chunk):
            break
    watch.end()
    found = watch.found
    return held, None, None if found is None or found.source in UNSAID else found
