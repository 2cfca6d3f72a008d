"""Each message format in turn."""

from __future__ import annotations

import pytest
from tests.dialects import DIALECTS, Dialect

MIXING = {name: dialect for name, dialect in DIALECTS.items() if dialect.mixed}


@pytest.fixture(scope="session", params=DIALECTS.values(), ids=list(DIALECTS))
def dialect(request: pytest.FixtureRequest) -> Dialect:
    """Each message format in turn."""
    found: Dialect = request.param
    return found


@pytest.fixture(scope="session", params=MIXING.values(), ids=list(MIXING))
def mixing(request: pytest.FixtureRequest) -> Dialect:
    """Each message format in which one user message can hold results and text."""
    found: Dialect = request.param
    return found
