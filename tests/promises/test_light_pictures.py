"""Pictures that the provider counts for far less than their estimate: a summary is still text."""

from __future__ import annotations

from typing import Any

import pytest

from compacter import Compacter
from compacter.testing import CharacterCount, ScriptedModel, ScriptedSummarizer

Chat = dict[str, Any]
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
WINDOW = 3_000
QUESTION: Chat = {
    "role": "user",
    "content": ("What did Ann 17 ask about crane 17, which has number 2329?"),
}


def album(turns: int = 60) -> list[Chat]:
    """Pictures with a few words each."""
    messages: list[Chat] = []
    for number in range(turns):
        words = (
            f"Here is crane {number} of the blue harbour, number {number * 137}, as Ann "
            f"{number} asked. "
        ) * 4
        messages += [
            {"role": "user", "content": [{"type": "text", "text": words}, PICTURE]},
            {
                "role": "assistant",
                "content": (f"Crane {number} has the colour {number * 31} and a rusty hook. ") * 5,
            },
        ]
    return [*messages, QUESTION]


def text_of(message: Chat) -> str:
    return message["content"] if isinstance(message["content"], str) else ""


@pytest.mark.parametrize("media_tokens", [13, 100])
@pytest.mark.parametrize(
    ("summarizer", "share"), [("extractive", 2), (None, 4)], ids=["extractive", "model"]
)
def test_a_summary_has_its_share_of_tokens(media_tokens: int, summarizer: Any, share: int) -> None:
    said = (
        ScriptedSummarizer("Facts: they looked at cranes.\n" * 20)
        if summarizer is None
        else summarizer
    )
    count = CharacterCount(media_tokens=media_tokens)
    model = ScriptedModel(window=WINDOW, count=count)

    Compacter(summarizer=said, recall=None).wrap(model.completion)("m", album())

    assert model.rejected == 1
    (summary,) = (
        message
        for message in model.requests[-1].messages
        if text_of(message).startswith("[compacter")
    )
    assert count([summary], {}) <= WINDOW // share + 100


@pytest.mark.parametrize("media_tokens", [13, 100])
def test_quotes_take_their_share_of_the_window_in_tokens(media_tokens: int) -> None:
    count = CharacterCount(media_tokens=media_tokens)
    model = ScriptedModel(window=WINDOW, count=count)
    told: list[Any] = []
    compacter = Compacter(
        summarizer=ScriptedSummarizer("They looked at cranes."), recall=0.15, on_event=told.append
    )

    compacter.wrap(model.completion)("m", album())

    quotes = [event for event in told if type(event).__name__ == "PassagesRecalled"]
    assert quotes
    assert max(event.characters for event in quotes) <= WINDOW * 0.15 * 5
    assert model.rejected == 1
