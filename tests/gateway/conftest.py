"""A real LiteLLM proxy with the plug-in, before a pretend provider with a true window.

The proxy runs on an interpreter of its own (``make gateway`` makes ``.venv-proxy``), or on the one that
``COMPACTER_PROXY_PYTHON`` names. Where there is none, these tests are skipped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fleet.provider import Provider
from fleet.proxies import Proxy, running

ROOT = Path(__file__).parents[2]
PYTHON = Path(os.environ.get("COMPACTER_PROXY_PYTHON", ROOT / ".venv-proxy" / "bin" / "python"))


@pytest.fixture(scope="session")
def python() -> Path:
    """The interpreter that has ``litellm[proxy]``."""
    if not PYTHON.exists():
        pytest.skip("no interpreter with litellm[proxy]: make gateway")
    return PYTHON


@pytest.fixture(scope="session")
def provider() -> Iterator[Provider]:
    with Provider() as server:
        yield server


Start = Callable[..., Proxy]


@pytest.fixture(scope="module")
def start(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Starts proxies that end with the module."""
    started: list[Any] = []

    def begin(config: dict[str, Any], **options: Any) -> Proxy:
        manager = running(python, config, tmp_path_factory.mktemp("proxy"), **options)
        proxy = manager.__enter__()
        started.append(manager)
        return proxy

    yield begin
    for manager in started:
        manager.__exit__(None, None, None)
