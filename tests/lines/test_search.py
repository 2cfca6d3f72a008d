"""``Quotes(search=...)``: a function of the user's finds passages in other words than a question's,
beside the built-in ranking.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence
from concurrent.futures import CancelledError
from typing import Any

import pytest

from compacter import Compacter, Quotes
from compacter.lines.frame import TAG
from compacter.lines.passages import Passage
from compacter.testing import token_limit_error

WINDOW = 1_000
FACT = "The key of the boathouse hangs behind the copper kettle."
SAME = "Where is the key of the boathouse?"
OTHER = "How can one unlock the marina shed?"


def unlock(question: str, passages: Sequence[Passage]) -> list[float]:
    return [float("boathouse" in passage.text) for passage in passages]


async def unlock_later(question: str, passages: Sequence[Passage]) -> list[float]:
    await asyncio.sleep(0)
    return unlock(question, passages)


def quotes_for(question: str, recall: Quotes, *, awaited: bool = False) -> str:
    """The quotes that a question gets after a diary of which most was compacted."""
    sent: list[Any] = []

    def completion(messages: list[Any]) -> Any:
        size = len(json.dumps(messages)) // 4
        if size > WINDOW:
            raise token_limit_error(limit=WINDOW, input_tokens=size)
        sent[:] = messages
        return {"choices": [{"message": {"role": "assistant", "content": "Noted."}}]}

    async def acompletion(messages: list[Any]) -> Any:
        return completion(messages)

    history = [
        {"role": "user", "content": "Let us keep a diary."},
        {"role": "assistant", "content": "Gladly."},
        {"role": "user", "content": FACT},
    ]
    for day in range(120):
        history.append({"role": "assistant", "content": "Noted."})
        history.append({"role": "user", "content": f"Day {day}: we sold {day * 7 % 90} tickets."})
    history[-1] = {"role": "user", "content": question}
    compacter = Compacter(summarizer=lambda messages, **_: "They sold tickets.", recall=recall)
    if awaited:
        asyncio.run(compacter.wrap(acompletion)(messages=history))
    else:
        compacter.wrap(completion)(messages=history)
    texts = [str(message["content"]) for message in sent]
    return next((text for text in texts if text.startswith(TAG)), "")


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("search", [unlock, unlock_later])
def test_passages_that_it_finds_are_quoted(search: Any, *, awaited: bool) -> None:
    """A sync or async function serves sync and async programs."""
    assert FACT not in quotes_for(OTHER, Quotes(), awaited=awaited)
    assert FACT in quotes_for(OTHER, Quotes(search=search), awaited=awaited)


def test_passages_with_the_questions_words_are_quoted_beside_them() -> None:
    """It adds to the built-in ranking, and replaces nothing."""
    tickets = quotes_for(
        SAME,
        Quotes(share=0.4, search=lambda _, given: [float("sold 70 " in p.text) for p in given]),
    )
    assert FACT in tickets
    assert "we sold 70 tickets" in tickets


def test_a_message_that_asks_nothing_is_not_searched_for() -> None:
    """It costs nothing where nothing is asked."""
    asked: list[str] = []

    def search(question: str, passages: Sequence[Passage]) -> list[float]:
        asked.append(question)
        return [1.0] * len(passages)

    assert quotes_for("Great, thank you!", Quotes(search=search)) == ""
    assert asked == []


def raising(error: BaseException) -> Any:
    def search(question: str, passages: Sequence[Passage]) -> list[float]:
        raise error

    return search


async def cancelled(question: str, passages: Sequence[Passage]) -> list[float]:
    raise asyncio.CancelledError


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize(
    "search",
    [
        raising(ValueError("secret")),
        raising(asyncio.CancelledError()),
        raising(CancelledError()),
        cancelled,
        lambda _, passages: [],
        lambda _, passages: [math.nan] * len(passages),
        lambda _, passages: ["x"] * len(passages),
        lambda _, passages: None,
    ],
)
def test_one_that_fails_is_logged_and_the_questions_words_serve(
    search: Any, caplog: pytest.LogCaptureFixture, *, awaited: bool
) -> None:
    """Its own cancellation is a failure too."""
    assert FACT in quotes_for(SAME, Quotes(search=search), awaited=awaited)
    (logged,) = [record for record in caplog.records if "search" in record.message]
    assert "secret" not in logged.message


@pytest.mark.parametrize("search", [3, lambda question: [], list])
def test_what_is_no_such_function_is_refused(search: Any) -> None:
    """The error names the option."""
    with pytest.raises(ValueError, match="search"):
        Compacter(recall=Quotes(search=search))
