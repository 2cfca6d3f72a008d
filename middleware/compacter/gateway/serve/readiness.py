"""Whether the server can do its work: its upstreams and its memory answer, and it is not ending."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import httpx

from compacter.gateway.serve.targets import Target

if TYPE_CHECKING:
    from compacter.gateway.serve.gateway import Gateway

# Seconds for which a finding counts: probes come every few seconds, from more than one place, and
# an upstream shall not be asked for each.
_FRESH = 5.0
# Seconds that an upstream or a memory may take to answer; less than the ten of a usual probe.
_PATIENCE = 3.0
# Key of a record that is never there.
_NO_KEY = "compacter-readiness"


class Readiness:
    """Findings about upstreams and memory, each made at most every few seconds."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._parts: dict[str, str] = {}
        self._until = 0.0
        self._checking = asyncio.Lock()

    async def check(self, ignored: str = "") -> dict[str, object]:
        """Return ``status`` (``ready``, ``not ready`` or ``draining``), and each part's state.

        ``ignored`` names what does not count: ``memory``, ``upstream`` or ``memory,upstream``. A
        probe that counts what all servers share would take a whole fleet away where that fails.
        """
        if self._gateway.draining:
            return {"status": "draining", "open_requests": self._gateway.open}
        async with self._checking:
            if time.monotonic() >= self._until:
                self._parts = await check_parts(self._gateway.setup.targets)
                self._until = time.monotonic() + _FRESH
        works = all(
            state == "ok"
            for part, state in self._parts.items()
            if part.split()[0] not in ignored.split(",")
        )
        return {"status": "ready" if works else "not ready", **self._parts}


async def check_parts(targets: list[Target]) -> dict[str, str]:
    """Return ``ok`` or a reason for each upstream, and for the memory."""
    names = [f"upstream {target.upstream.name}".strip() for target in targets]
    checks = [*map(_upstream, targets), _memory(targets[0])]
    found = await asyncio.gather(*checks)
    return dict(zip([*names, "memory"], found, strict=True))


async def _upstream(target: Target) -> str:
    """Any answer will do, a refusal too: the request bears no key."""
    request = httpx.Request("HEAD", target.upstream.base_url)
    try:
        async with asyncio.timeout(_PATIENCE):
            answer = await target.client.send(request, stream=True)
            await answer.aclose()
    except httpx.RemoteProtocolError:
        return "does not speak HTTP"
    except (httpx.HTTPError, OSError) as error:
        return f"cannot be reached ({type(error).__name__})"
    return "ok"


async def _memory(target: Target) -> str:
    memory = target.state.memory
    if memory is None:
        return "ok"
    try:
        async with asyncio.timeout(_PATIENCE):
            await asyncio.to_thread(memory.find, (_NO_KEY,))
    except Exception as error:  # noqa: BLE001 - a memory may raise anything
        return f"failed ({type(error).__name__})"
    return "ok"
