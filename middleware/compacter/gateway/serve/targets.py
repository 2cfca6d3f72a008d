"""Upstreams, each with the state that its calls share."""

from __future__ import annotations

from collections.abc import AsyncIterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpx

from compacter.call.ahead import Preparations
from compacter.errors import ConfigurationError
from compacter.gateway import AHEAD
from compacter.gateway.checks import problem_of, read_summarizer
from compacter.gateway.metrics import CountingState
from compacter.gateway.serve.answers import Answer
from compacter.gateway.serve.aws import Signer
from compacter.gateway.serve.board import Board
from compacter.gateway.serve.callers import Callers
from compacter.gateway.serve.config import Settings, read_settings
from compacter.gateway.serve.transport import Transport
from compacter.gateway.serve.upstream import Headers, Upstream, is_loopback
from compacter.memory.address import IN_PROCESS, keys_from, memory_of
from compacter.options import validated

# Timeout for connecting to an upstream, in seconds: that of other proxies. A process with too
# little processor time notices a connection much later. The time for the response is limited by the
# caller alone.
_CONNECT = 60.0
_TIMEOUT = {"timeout": {"connect": _CONNECT}}
# Default of the option `timeout`, in seconds: the limit for the summaries of one call.
_SUMMARIES = 300.0
Content = bytes | AsyncIterable[bytes]
"""The body of a request, whole or as it comes."""


@dataclass(slots=True)
class Target:
    """One upstream server, with the connections to it, and with the options, memory and totals for
    calls to it.
    """

    upstream: Upstream
    state: CountingState
    summarizer: str | None
    """The upstream's model that writes summaries; ``None`` for the model that is called."""
    dry_run: bool = False
    signer: Signer | None = None
    """Signer of requests for AWS; ``None`` if signed requests are passed on."""
    client: httpx.AsyncBaseTransport = field(init=False)

    def __post_init__(self) -> None:
        self.client = make_client(self.upstream)

    async def send(
        self, method: str, url: httpx.URL, headers: Headers, content: Content | None
    ) -> Answer:
        """Send a request, and return the response. Raises ``httpx.HTTPError``."""
        request = httpx.Request(
            method, url, headers=list(headers), content=content, extensions=_TIMEOUT
        )
        return Answer(await self.client.handle_async_request(request))

    async def aclose(self) -> None:
        """Close the connections; the next request opens new ones, perhaps on another loop."""
        client = self.client
        self.client = make_client(self.upstream)
        await client.aclose()


@dataclass(slots=True)
class Setup:
    """The configuration of the running server: its settings and its upstreams."""

    settings: Settings
    targets: list[Target]
    callers: Callers


def make_setup(board: Board, given: Mapping[str, Any]) -> Setup:
    """Return the configuration. Raises ``ConfigurationError`` that names the invalid value.

    Args:
        board: Object that keeps counts and events.
        given: ``upstream``, and the options of ``ServeOptions``.
    """
    settings, options = read_settings(given)
    if "prepare_tokens" in options:
        options["prepare_tokens"] = options["prepare_tokens"] or None  # 0: none ahead.
    _open_memory(board, settings, options)
    model, writer = read_summarizer(options)
    options = {"timeout": _SUMMARIES, "prepare_tokens": AHEAD, **options, "summarizer": writer}
    if settings.dry_run:
        options |= {"before_compaction": board.veto, "adjust_max_tokens": False, "memory": None}
        options["prepare_tokens"] = None
    checked = validated(options)
    signer = None if settings.aws_region is None else Signer(settings.aws_region)
    preparations = Preparations()
    targets = [
        Target(
            upstream,
            CountingState(checked, board.metrics, preparations, on_event=board.record),
            model,
            settings.dry_run,
            signer,
        )
        for upstream in settings.upstream
    ]
    board.totals.extend(target.state.totals for target in targets)
    return Setup(settings, targets, Callers(settings.caller_names, settings.keyless))


def _open_memory(board: Board, settings: Settings, options: dict[str, Any]) -> None:
    """Put the memory itself in place of its address."""
    address = options.get("memory")
    source = settings.memory_encryption
    if source is not None and not isinstance(address, str):
        raise ConfigurationError("memory_encryption needs memory, an address to store at")
    if address is not None and not isinstance(address, str):
        return
    keys = None if source is None else tuple(keys_from(source, "memory_encryption"))
    opened: Any = memory_of(address or IN_PROCESS, encryption=keys)
    problem = problem_of(opened, address or "")
    if problem is not None:
        board.print_line(problem)
    options["memory"] = opened


def make_client(upstream: Upstream) -> httpx.AsyncBaseTransport:
    """Return a client for the upstream. Raises ``ConfigurationError`` for a proxy or a certificate
    of the environment that cannot be used.
    """
    url = httpx.URL(upstream.base_url)
    # Proxy settings of the environment do not apply to this machine.
    is_here = is_loopback(url.host)
    try:
        proxy = None if is_here else _proxy_for(url)
        if proxy is None:
            is_tls = url.scheme == "https"
            context = httpx.create_ssl_context(trust_env=not is_here) if is_tls else None
            return Transport(context, _CONNECT)
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
        return httpx.AsyncHTTPTransport(proxy=proxy, limits=limits)
    except (ValueError, OSError, ImportError, httpx.InvalidURL) as error:
        raise ConfigurationError(
            f"requests to {upstream.base_url} cannot be made with the proxies (HTTPS_PROXY, "
            f"ALL_PROXY) or certificates (SSL_CERT_FILE) of this environment: {error}"
        ) from None


def _proxy_for(url: httpx.URL) -> str | None:
    """Return the URL of the proxy that the environment names for a server, or ``None``."""
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(url.host):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"
