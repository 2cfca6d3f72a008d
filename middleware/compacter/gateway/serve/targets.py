"""Upstreams, each with the state that its calls share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from compacter.call.ahead import Preparations
from compacter.errors import ConfigurationError
from compacter.gateway import AHEAD
from compacter.gateway.checks import problem_of, read_summarizer
from compacter.gateway.metrics import CountingState
from compacter.gateway.serve.aws import Signer
from compacter.gateway.serve.board import Board
from compacter.gateway.serve.callers import Callers
from compacter.gateway.serve.config import Settings, read_settings
from compacter.gateway.serve.upstream import Upstream, is_loopback
from compacter.memory.address import IN_PROCESS, keys_from, memory_of
from compacter.options import validated

# Timeout for connecting to an upstream, in seconds: that of other proxies. A process with too
# little processor time notices a connection much later. The time for the response is limited by the
# caller alone.
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
    dry_run: bool = False
    signer: Signer | None = None
    """Signer of requests for AWS; ``None`` if signed requests are passed on."""
    client: httpx.AsyncClient = field(init=False)

    def __post_init__(self) -> None:
        self.client = make_client(self.upstream)


@dataclass(slots=True)
class Setup:
    """The configuration of the server."""

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
