"""A real model on a loopback address."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compacter import Compacter, CompactionEvent
from embedded_model import EmbeddedModel, embedded_model, why_unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator


WINDOW = 512
"""Tokens: a quarter of what the model takes, because the prompts that it has to read take the time.
"""


@pytest.fixture(scope="session")
def model() -> Iterator[EmbeddedModel]:
    if reason := why_unavailable():
        pytest.skip(reason)
    with embedded_model(WINDOW) as running:
        yield running


@pytest.fixture
def events() -> list[CompactionEvent]:
    return []


@pytest.fixture
def compacter(events: list[CompactionEvent]) -> Compacter:
    """The summary without a model, and little kept: the prompts that a model has to read take the
    time.
    """
    return Compacter(compact_ratio=0.95, summarizer="extractive", on_compaction=events.append)


@pytest.fixture
def summarizing(summary_prompt: str, events: list[CompactionEvent]) -> Compacter:
    """The model writes the summary. Short, because each token costs time here."""
    return Compacter(
        max_summary_tokens=60, summary_prompt=summary_prompt, on_compaction=events.append
    )


@pytest.fixture(scope="session")
def summary_prompt() -> str:
    """One that this model answers in a few tokens: writing one takes as long as reading four."""
    return "{history}\n\nGive the transcript above a title of five words."
