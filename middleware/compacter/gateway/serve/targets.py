"""What requests are sent with: for each upstream its client, and the state that its calls share.

A configuration is exchanged as a whole. Requests that have begun keep the targets they began with,
and a client is closed once nobody uses it.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any

import httpx
from pydantic import ValidationError

from compacter.call.ahead import Preparations
from compacter.errors import ConfigurationError
from compacter.gateway import AHEAD
from compacter.gateway.counting import CountingState
from compacter.gateway.memory_check import problem_of
from compacter.gateway.serve.aws import Signer
from compacter.gateway.serve.board import Board
from compacter.gateway.serve.callers import Callers
from compacter.gateway.serve.config import SHORT
from compacter.gateway.serve.limits import Limits
from compacter.gateway.serve.upstream import Upstream, is_loopback, parse_upstreams
from compacter.memory import InProcessMemory, Memory
from compacter.memory.address import keys_from, memory_at
from compacter.options import Options, validated

# Timeout for connecting to an upstream, in seconds: that of other proxies. A process that gets too
# little of its processor sees much later that it was connected. The time for the response is
# limited by the caller alone.
_CONNECT = 60.0
# Default of the option `timeout`, in seconds: the limit for the summaries of one call.
_SUMMARIES = 300.0


@dataclass(slots=True)
class Target:
    """An upstream, and the state that its calls share."""

    upstream: Upstream
    state: CountingState
    summarizer: str | None
    """The upstream's model that writes summaries; ``None`` for the model that is called."""
    client: httpx.AsyncClient
    dry_run: bool = False
    signer: Signer | None = None
    """What signs requests for AWS anew; ``None`` if signed requests are passed on."""


@dataclass(slots=True)
class Setup:
    """One configuration of the server."""

    targets: list[Target]
    limits: Limits
    callers: Callers
    origins: frozenset[str] = frozenset()
    """Origins of other sites whose pages may use the server, in lower case."""
    class_header: str = ""
    """Header that names the class which a caller's figures are counted for."""
    shown: dict[str, object] = dataclass_field(default_factory=dict)
    """Settings that the server's page shows."""
    users: int = 0
    """Number of requests that are being handled with it."""
    replaced: bool = False

    @contextlib.asynccontextmanager
    async def used(self) -> AsyncGenerator[Setup]:
        """Keep the clients open while the context lasts."""
        self.users += 1
        try:
            yield self
        finally:
            self.users -= 1
            if self.replaced and not self.users:
                await self.aclose()

    async def retire(self) -> None:
        """Close the clients once the requests in progress have ended."""
        self.replaced = True
        if not self.users:
            await self.aclose()

    def reopen(self) -> None:
        """Replace clients that were closed, where the application runs again."""
        for target in self.targets:
            if target.client.is_closed:
                target.client = make_client(target.upstream)

    async def aclose(self) -> None:
        """Close the clients."""
        for target in self.targets:
            await target.client.aclose()


def make_setup(board: Board, memories: dict[object, Memory], settings: Mapping[str, Any]) -> Setup:
    """Return one configuration. Raises ``ConfigurationError`` that names what is invalid.

    Args:
        board: What keeps counts and events.
        memories: Memories of earlier configurations, by address.
        settings: ``upstream``, and what ``ServeOptions`` has.
    """
    given = dict(settings)
    upstreams = parse_upstreams(given.pop("upstream"))
    limits = _limits({name: given.pop(name) for name in Limits.model_fields if name in given})
    callers = Callers(
        frozenset(name.lower() for name in given.pop("caller_names", ())),
        given.pop("keyless", "connection"),
    )
    if callers.keyless not in ("connection", "shared"):
        raise ConfigurationError(f"keyless takes connection or shared, not {callers.keyless!r}")
    origins = frozenset(origin.lower().rstrip("/") for origin in given.pop("origins", ()))
    class_header = str(given.pop("class_header", ""))
    region = given.pop("aws_region", None)
    dry_run = bool(given.pop("dry_run", False))
    for short, name in SHORT.items():
        if short in given and name in given:
            raise ConfigurationError(f"{short} and {name} are the same option: give one of them")
        if short in given:
            given[name] = given.pop(short)
    if "prepare_tokens" in given:
        given["prepare_tokens"] = given["prepare_tokens"] or None  # 0: none ahead.
    _open_memory(board, memories, given)
    shown: dict[str, object] = {
        name: value for name, value in given.items() if isinstance(value, (str, int, float))
    }
    model, checked = _validated(board, given, dry_run=dry_run)
    signer = None if region is None else Signer(region)
    preparations = Preparations()
    targets = [
        Target(
            one,
            CountingState(checked, board.metrics, preparations, hear=board.hear),
            model,
            make_client(one),
            dry_run,
            signer,
        )
        for one in upstreams
    ]
    memory = targets[0].state.memory
    shown |= {
        "upstream": ", ".join(target.upstream.base_url for target in targets),
        "memory": "none" if memory is None else type(memory).__name__,
        "dry_run": dry_run,
        "keyless": callers.keyless,
        "aws_region": region,
        **limits.model_dump(exclude_none=True),
    }
    return Setup(targets, limits, callers, origins, class_header, shown)


def _limits(given: dict[str, Any]) -> Limits:
    try:
        return Limits(**given)
    except ValidationError as error:
        problem = error.errors()[0]
        name = ".".join(map(str, problem["loc"]))
        raise ConfigurationError(f"{name}: {problem['msg']} (got {problem['input']!r})") from None


def _open_memory(board: Board, memories: dict[object, Memory], given: dict[str, Any]) -> None:
    """Put the memory itself in place of its address: the same one again, so that one of this
    process keeps its records.
    """
    address = given.get("memory")
    source = given.pop("memory_encryption", None)
    quotes = given.pop("memory_quotes", True)
    keys = None if source is None else tuple(keys_from(source, "memory_encryption"))
    if keys is not None and not isinstance(address, str):
        raise ConfigurationError("memory_encryption needs memory, an address to store at")
    if address is not None and not isinstance(address, str):
        return
    place = address, keys, quotes
    if place not in memories:
        opened = (
            memory_at(address, encryption=keys, quotes=quotes) if address else InProcessMemory()
        )
        problem = problem_of(opened, address or "")
        if problem is not None:
            board.say(problem)
        memories[place] = opened
    given["memory"] = memories[place]


def _validated(board: Board, given: dict[str, Any], *, dry_run: bool) -> tuple[str | None, Options]:
    """Return the upstream's model that writes summaries, and the validated options."""
    given = {"timeout": _SUMMARIES, "prepare_tokens": AHEAD, **given}
    writer = validated({"summarizer": given.get("summarizer")}).summarizer
    model = None
    if isinstance(writer, str) and writer != "extractive":
        model = writer.strip()
        writer = None
    given["summarizer"] = writer
    if dry_run:
        given |= {"before_compaction": board.veto, "adjust_max_tokens": False, "memory": None}
        given["prepare_tokens"] = None
    return model, validated(given)


def make_client(upstream: Upstream) -> httpx.AsyncClient:
    """Return a client for the upstream. Raises ``ConfigurationError`` for a proxy or a certificate
    of the environment that cannot be used.
    """
    try:
        return httpx.AsyncClient(
            timeout=httpx.Timeout(None, connect=_CONNECT),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
            # Proxy settings of the environment do not apply to this machine.
            trust_env=not is_loopback(httpx.URL(upstream.base_url).host),
        )
    except (ValueError, OSError, ImportError, httpx.InvalidURL) as error:
        raise ConfigurationError(
            f"requests to {upstream.base_url} cannot be made with the proxies (HTTPS_PROXY, "
            f"ALL_PROXY) or certificates (SSL_CERT_FILE) of this environment: {error}"
        ) from None
