"""A real model on a loopback address; one worker holds it, so that it is started once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from embedded_model import EmbeddedModel, embedded_model, why_unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # xdist reads the marks in its own hook of this name.
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("embedded model"))


@pytest.fixture(scope="session")
def model() -> Iterator[EmbeddedModel]:
    if reason := why_unavailable():
        pytest.skip(reason)
    with embedded_model() as running:
        yield running
