"""A user's message that is to the letter a text of compacter's is the user's."""

from __future__ import annotations

from typing import Any

import pytest

from compacter import Compacter, History
from compacter.lines.frame import is_quotes
from compacter.messages.format import FILLERS
from compacter.summary.message import compose, parse
from compacter.testing import ScriptedModel

Messages = list[dict[str, Any]]


def talk(turns: int = 14) -> Messages:
    history: Messages = []
    for turn in range(turns):
        told = f"The heron number {turn} nests by weir {turn * 7}, under the willow. " * 3
        history.append({"role": "user", "content": told})
        history.append({"role": "assistant", "content": f"Heron {turn} is noted. " * 3})
    return history


def quotes_of(history: Messages) -> str:
    """The quotes that a call has sent."""
    model = ScriptedModel(window=700)
    asked = {"role": "user", "content": "Where does heron number 3 nest, by which weir?"}
    Compacter(summarizer="extractive", recall=0.3).wrap(model.completion)("m", [*history, asked])
    sent = [str(message["content"]) for message in model.requests[-1].messages]
    return next(text for text in sent if is_quotes(text))


def text_of(kind: str) -> str:
    texts = {"filler": FILLERS["user"], "summary": compose("They watched herons.")}
    return texts.get(kind) or quotes_of(talk())


@pytest.mark.parametrize("kind", ["quotes", "filler", "summary"])
@pytest.mark.parametrize("kept", [list, History])
def test_a_copy_reaches_the_model_as_the_users_last_message(kind: str, kept: Any) -> None:
    copied = {"role": "user", "content": text_of(kind)}
    model = ScriptedModel(window=600)

    Compacter(summarizer="extractive").wrap(model.completion)("m", kept([*talk(), copied]))

    sent = model.requests[-1].messages
    assert sent[-1] == copied
    assert parse(sent[0]["content"]) is not None
    assert len(sent) < len(talk())


@pytest.mark.parametrize("kind", ["quotes", "filler", "summary"])
def test_a_copy_is_the_conversations_for_a_pin(kind: str) -> None:
    copied = {"role": "user", "content": text_of(kind)}
    asked: Messages = []

    def seen(message: dict[str, Any]) -> bool:
        asked.append(message)
        return False

    compacter = Compacter(summarizer="extractive", pin=seen)

    compacter.compact([*talk(), copied], budget=3_000)

    assert copied in asked


def test_a_copy_of_quotes_that_was_answered_stays_in_the_history() -> None:
    copied = {"role": "user", "content": quotes_of(talk())}
    answered = [*talk(2), copied, {"role": "assistant", "content": "So it is."}, talk()[0]]
    model = ScriptedModel()

    Compacter().wrap(model.completion)("m", answered)

    assert list(model.requests[-1].messages) == answered


def test_quotes_of_an_outer_compacter_are_known_to_the_inner_one() -> None:
    model = ScriptedModel(window=700)
    inner = Compacter(summarizer="extractive", recall=None).wrap(model.completion)
    history = [*talk(), {"role": "user", "content": "Where does heron number 3 nest?"}]
    quotes = {"role": "user", "content": quotes_of(talk())}

    inner("m", [*history[:-1], quotes, history[-1]])

    assert quotes not in model.requests[-1].messages
