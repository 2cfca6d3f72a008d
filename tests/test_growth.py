"""Conversations that go on and on: the request stays bounded, and there is one summary."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.effort import every, times

from compacter import Compacter, History
from compacter.summary import message as summary_message
from compacter.testing import ScriptedModel, ScriptedSummarizer

Chat = dict[str, Any]
ANSWER: Chat = {"role": "assistant", "content": "Yes. " * 30}


def summaries(messages: Any) -> int:
    return sum(
        summary_message.parse(message.get("content") or "") is not None for message in messages
    )


def turn(number: int) -> list[Chat]:
    """A question; every third one with a tool call and its result."""
    messages: list[Chat] = [{"role": "user", "content": f"Question {number}. ".ljust(160, "q")}]
    if number % 3 == 0:
        function = {"name": "look", "arguments": json.dumps({"at": number})}
        call = {"id": f"call_{number % 5}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        result = "seen ".ljust(400, "s")
        messages.append({"role": "tool", "tool_call_id": f"call_{number % 5}", "content": result})
    return messages


OPTIONS: list[dict[str, Any]] = [{}, {"trigger_tokens": 1_200}, {"strategy": None}]


@pytest.mark.parametrize(
    ("kept", "options"),
    [
        *(("list", options) for options in every(2, OPTIONS)),
        *(("history", options) for options in every(3, OPTIONS[::-1])),
    ],
    ids=str,
)
def test_two_hundred_turns_keep_one_summary_and_a_bounded_request(
    kept: str, options: dict[str, Any]
) -> None:
    if "strategy" in options:
        from compacter import ClearToolResults, Summarize

        options = {"strategy": [ClearToolResults(), Summarize()]}
    model = ScriptedModel(window=2_000, replies=lambda _: "answer ".ljust(160, "a"))
    asked = ScriptedSummarizer(lambda prompt: "They talked. ".ljust(700, "t"))
    completion = Compacter(summarizer=asked, **options).wrap(model.completion)
    history: Any = [{"role": "system", "content": "Be brief."}]
    history = History(history) if kept == "history" else history
    for number in range(200):
        history.extend(turn(number))
        reply: Any = completion("m", history)
        history.append(reply["choices"][0]["message"])

    answered = [request for request in model.requests if not request.refused]
    assert len(answered) >= 200
    assert model.invalid == 0
    assert max(request.tokens for request in answered) <= 2_000
    assert max(summaries(request.messages) for request in answered) == 1
    assert all(summaries(request.messages) == 1 for request in answered[60:])
    assert len(asked.requests) < 40
    # The past is folded once: no prompt holds more than what is new since, and the summary before.
    assert max(request.tokens for request in asked.requests) < 2_600
    if kept == "history":
        assert len(history) < 60


def test_compacting_by_hand_after_each_turn_keeps_one_summary() -> None:
    compacter = Compacter(summarizer=ScriptedSummarizer("They talked."))
    messages: list[Chat] = []
    for number in range(times(60, long=120)):
        messages = compacter.compact([*messages, *turn(number), ANSWER]).messages
        assert summaries(messages) <= 1
    assert summaries(messages) == 1
    assert len(messages) < 12


def test_receipts_of_truncation_never_pile_up() -> None:
    from compacter import Truncate

    compacter = Compacter(strategy=Truncate())
    messages: list[Chat] = []
    for number in range(60):
        messages = compacter.compact([*messages, *turn(number), ANSWER]).messages
    (receipt,) = [m["content"] for m in messages if summary_message.parse(m.get("content") or "")]
    assert receipt.count("left out without a summary") == 1
