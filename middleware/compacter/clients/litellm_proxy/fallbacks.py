"""The lists of fallbacks by which the router makes a call again. https://docs.litellm.ai/docs/proxy/reliability."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
