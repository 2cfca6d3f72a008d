"""README.md and the manual are tests too: each Python block runs, a page's blocks in one
namespace.
"""

from __future__ import annotations

import os
from typing import Any
from unittest import mock

import pytest
from sybil import Sybil
from sybil.integration.pytest import SybilItem
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser
from sybil.sybil import SybilCollection

# Set before anything imports litellm: it would fetch a price list otherwise.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

# No test speaks TLS. A client that reads no certificates is made in a hundredth of the time, and
# there are hundreds.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = os.devnull

PARSERS = [PythonCodeBlockParser(), SkipParser()]


def start_provider(namespace: dict[str, Any]) -> None:
    """Give the vendors' clients of a page a provider on this machine, with a small window."""
    from tests.kit import Server

    namespace["provider"] = provider = Server(window=1_000, replies="Three ships with timber.")
    namespace["environment"] = mock.patch.dict(
        os.environ,
        OPENAI_BASE_URL=f"{provider.url}/v1",
        ANTHROPIC_BASE_URL=provider.url,
        OPENAI_API_KEY="scripted",
        ANTHROPIC_API_KEY="scripted",
    )
    namespace["environment"].start()


def end_provider(namespace: dict[str, Any]) -> None:
    """End what the page began with."""
    namespace["environment"].stop()
    namespace["provider"].close()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the blocks of a page one after the other, in its order, as its reader does."""
    blocks = [item for item in items if isinstance(item, SybilItem)]
    positions = [place for place, item in enumerate(items) if isinstance(item, SybilItem)]
    pages = list(dict.fromkeys(block.path for block in blocks))
    blocks.sort(key=lambda block: (pages.index(block.path), block.example.line))
    for place, block in zip(positions, blocks, strict=True):
        items[place] = block


pytest_collect_file = SybilCollection(
    (
        Sybil(parsers=PARSERS, patterns=["README.md", "docs/*.md"]),
        Sybil(
            parsers=PARSERS,
            patterns=["docs/clients/*.md"],
            setup=start_provider,
            teardown=end_provider,
        ),
    )
).pytest()
