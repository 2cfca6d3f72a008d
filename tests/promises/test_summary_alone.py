"""A summary beside which nothing else may go: it becomes shorter where the request would otherwise
fail.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from tests.conversations import history

from compacter import Compacter, CompactionError, History, InProcessMemory
from compacter.summary import message as summary_message
from compacter.testing import ScriptedModel, ScriptedSummarizer, TokenLimitError

if TYPE_CHECKING:
    from tests.promises.conftest import SummariesIn

LONG = "And now? Read this: " + "the quick brown fox. " * 150
EARLIER = "User: They met in May and went to see the harbour. It was deep, and the boats were old. "


def asked(text: str) -> list[dict[str, Any]]:
    return [*history(30, 160), {"role": "user", "content": text}]


@pytest.mark.parametrize("style", ["openai", "bedrock"])
@pytest.mark.parametrize("memory", [InProcessMemory, lambda: None], ids=["memory", "no memory"])
def test_a_longer_question_is_answered(style: Any, memory: Any, summaries_in: SummariesIn) -> None:
    model = ScriptedModel(window=1_000, style=style)
    compacter = Compacter(compact_ratio=1.0, summarizer="extractive", memory=memory())
    completion = compacter.wrap(model.completion)

    completion("m", asked("And now?"))
    completion("m", asked(LONG))

    (text,) = summaries_in(model.requests[-1].messages)
    # If refusals state no number, there may be room for one line only.
    assert re.search("(Question|Answer) 29" if style == "openai" else "Question|Answer", text)
    assert model.requests[-1].messages[-1]["content"] == LONG


def test_no_model_is_asked_for_it(summaries_in: SummariesIn) -> None:
    summarizer = ScriptedSummarizer("Short.")
    model = ScriptedModel(window=1_000)
    summary = {"role": "user", "content": summary_message.compose(EARLIER * 20)}

    Compacter(summarizer=summarizer, fallback=None).wrap(model.completion)(
        "m", [summary, *asked(LONG)[-1:]]
    )

    assert not summarizer.prompts
    (text,) = summaries_in(model.requests[-1].messages)
    assert "They met in May" in text


def test_one_that_leaves_no_room_for_it_ends_in_the_providers_error() -> None:
    model = ScriptedModel(window=1_000)
    completion = Compacter(compact_ratio=1.0, summarizer="extractive", fallback=None).wrap(
        model.completion
    )
    completion("m", asked("And now?"))
    sent = len(model.requests)

    with pytest.raises(TokenLimitError):
        completion("m", asked(LONG * 2))

    assert len(model.requests) == sent + 1


def test_a_budget_by_hand_counts_for_it_too() -> None:
    messages = [
        {"role": "user", "content": summary_message.compose(EARLIER * 30)},
        {"role": "user", "content": "And now?"},
    ]
    compacter = Compacter(summarizer=ScriptedSummarizer("Short."))

    result = compacter.compact(messages, budget=800)

    assert result.fits
    assert result.discarded == (messages[0],)
    assert "They met in May" in result.messages[0]["content"]
    assert not compacter.compact(messages).changed
    assert not compacter.compact(messages, budget=100).changed


def test_a_history_of_which_only_a_summary_is_left_says_so_without_a_budget() -> None:
    compacter = Compacter(summarizer="extractive", compact_ratio=1.0)
    messages = History(asked("And now?"), compacter=compacter)
    messages.compact()
    before = list(messages)

    with pytest.raises(CompactionError):
        messages.compact()
    assert list(messages) == before
    messages.compact(budget=900)
    assert len(messages) == len(before)
    assert len(messages[0]["content"]) < min(900, len(before[0]["content"]))
