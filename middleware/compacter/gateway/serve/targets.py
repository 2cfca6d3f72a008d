"""What requests are sent with: for each upstream its client, and the state that its calls share.

A configuration is exchanged as a whole. Requests that have begun keep the targets they began with,
and a client is closed once nobody uses it.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any

import httpx

from compacter.call.preparations import Preparations
from compacter.errors import ConfigurationError
from compacter.gateway import AHEAD
from compacter.gateway.counting import CountingState
from compacter.gateway.serve.aws import Signer
from compacter.gateway.serve.board import Board
from compacter.gateway.serve.callers import Callers
from compacter.gateway.serve.limits import Limits
from compacter.gateway.serve.upstream import Upstream, parse_upstreams
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
    class_header: bytes = b""
    """Header that names the class which a caller's figures are counted for, in lower case."""
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


def make_targets(
    upstream: str | Iterable[str],
    board: Board,
    summarizer: object,
    options: dict[str, Any],
    *,
    dry_run: bool,
    aws_region: str | None = None,
) -> list[Target]:
    """Return the targets for these upstreams and options of ``Compacter``. Raises
    ``ConfigurationError``.
    """
    checked, model = _options(summarizer, board, options, dry_run=dry_run)
    signer = None if aws_region is None else Signer(aws_region)
    preparations = Preparations()
    return [
        Target(
            one,
            CountingState(checked, board.metrics, preparations, hear=board.hear),
            model,
            make_client(one),
            dry_run,
            signer,
        )
        for one in parse_upstreams(upstream)
    ]


def _options(
    summarizer: object, board: Board, options: dict[str, Any], *, dry_run: bool
) -> tuple[Options, str | None]:
    """Return the validated options, and the upstream's model that writes summaries."""
    given: dict[str, object] = {"timeout": _SUMMARIES, "prepare_tokens": AHEAD, **options}
    model = None
    known = validated({"summarizer": summarizer}).summarizer
    if isinstance(known, str) and known != "extractive":
        model = known.strip()
    else:
        given["summarizer"] = known
    if dry_run:
        given |= {"before_compaction": board.veto, "adjust_max_tokens": False, "memory": None}
        given["prepare_tokens"] = None
    return validated(given), model


def make_client(upstream: Upstream) -> httpx.AsyncClient:
    """Return a client for the upstream. Raises ``ConfigurationError`` for a proxy or a certificate
    of the environment that cannot be used.
    """
    try:
        return httpx.AsyncClient(
            timeout=httpx.Timeout(None, connect=_CONNECT),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
            # Proxy settings of the environment do not apply to this machine.
            trust_env=not upstream.is_loopback,
        )
    except (ValueError, OSError, ImportError, httpx.InvalidURL) as error:
        raise ConfigurationError(
            f"requests to {upstream.base_url} cannot be made with the proxies (HTTPS_PROXY, "
            f"ALL_PROXY) or certificates (SSL_CERT_FILE) of this environment: {error}"
        ) from None
