"""How the window is divided: by what the history is, unless an option says otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from compacter import Compacter, CompactionPlan
from compacter.compaction.conversation import Conversation
from compacter.compaction.cut import is_agents, plan
from compacter.compaction.plan import Calibration
from compacter.compaction.summarize import planned_reserve
from compacter.messages.format import get_format
from compacter.options import Options
from compacter.testing import token_limit_error

OPENAI = get_format("openai")


def step(number: int, size: int = 900) -> list[dict[str, Any]]:
    """A call that reads a file, and its result."""
    called = {"name": "read", "arguments": f'{{"path": "src/part_{number}.py"}}'}
    call = {"id": f"c{number}", "type": "function", "function": called}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {
            "role": "tool",
            "tool_call_id": f"c{number}",
            "content": f"value_{number} = 1\n" * (size // 12),
        },
    ]


def run(steps: int) -> list[dict[str, Any]]:
    """An agent's history: one request, and so many steps."""
    asked = [{"role": "user", "content": "Tidy up the package."}]
    return [*asked, *(message for number in range(steps) for message in step(number))]


def chat(turns: int) -> list[dict[str, Any]]:
    return [
        {"role": role, "content": f"{role} says {number}. " * 20}
        for number in range(turns)
        for role in ("user", "assistant")
    ]


def job(messages: list[Any], target: int) -> CompactionPlan:
    return CompactionPlan(
        conversation=Conversation.of(messages, OPENAI),
        trigger="token_limit",
        calibration=Calibration(window=target // 4),
        target=target,
        must=True,
    )


def test_steps_with_tools_make_an_agents_history_and_a_look_now_and_then_does_not() -> None:
    assert is_agents(Conversation.of(run(5), OPENAI))
    assert not is_agents(Conversation.of([*chat(20), *step(1)], OPENAI))
    assert not is_agents(Conversation.of([], OPENAI))


@pytest.mark.parametrize("messages", [run(40), chat(60)], ids=["agent", "chat"])
def test_more_than_half_of_the_room_is_free_afterwards(messages: list[Any]) -> None:
    made = plan(Options(), job(messages, 10_000))
    summary = planned_reserve(Options(), made, made.head_size)

    assert 0.1 < made.tail_size / 10_000 < 0.35
    assert made.tail_size + summary < 0.5 * 10_000


def test_results_that_the_model_has_not_read_stay_where_they_leave_room() -> None:
    history = [*run(30), *step(30, size=5_400)]

    made = plan(Options(), job(history, 20_000))

    assert made.cut == len(history) - 2


def test_a_ratio_that_is_set_wins() -> None:
    history = run(22)
    size = Conversation.of(history, OPENAI).size

    made = plan(Options(compact_ratio=0.3), job(history, size - 500))

    assert 0.25 < made.ratio < 0.45


def refused_run(steps: int = 60, **options: Any) -> list[Any]:
    """The request that a provider with a window of 5,000 tokens accepts of an agent's long run."""
    sent: list[Any] = []

    def completion(*, messages: list[Any], model: str) -> dict[str, Any]:
        tokens = sum(OPENAI.size(message) for message in messages) // 4
        if tokens > 5_000:
            raise token_limit_error(limit=5_000, input_tokens=tokens)
        sent[:] = messages
        usage = {"prompt_tokens": tokens, "completion_tokens": 1}
        return {"choices": [{"message": {"role": "assistant", "content": "So."}}], "usage": usage}

    Compacter(**options).wrap(completion)(model="m", messages=run(steps))
    return sent


def test_nothing_is_filled_because_there_is_room() -> None:
    def says_nothing(messages: list[Any], **_: Any) -> str:
        return "They have read parts of the package."

    sent = refused_run(summarizer=says_nothing)

    assert len(sent[0]["content"]) < 2_000


def test_a_compaction_leaves_free_room_for_the_next_steps() -> None:
    sent = refused_run(22, summarizer="extractive")

    assert sum(OPENAI.size(message) for message in sent) < 0.5 * 20_000


def test_a_largest_summary_that_is_set_wins() -> None:
    sent = refused_run(summarizer="extractive", max_summary_tokens=500)

    assert max(OPENAI.size(message) for message in sent[:2]) < 500 * 4 + 400


def test_a_chat_of_two_hundred_turns_asks_for_one_summary_a_dozen_turns_in_one_request_each() -> (
    None
):
    """Small windows: what is compacted is read in one request, and most of the window is free."""
    asked: list[int] = []
    refused: list[int] = []
    events: list[Any] = []

    def says_little(messages: list[Any], **_: Any) -> str:
        asked.append(sum(OPENAI.size(message) for message in messages) // 4)
        return "They talked of many parts, one after the other, and settled none of them yet."

    def completion(*, messages: list[Any], model: str) -> dict[str, Any]:
        tokens = sum(OPENAI.size(message) for message in messages) // 4
        if tokens > 8_000:
            refused.append(tokens)
            raise token_limit_error(limit=8_000, input_tokens=tokens)
        usage = {"prompt_tokens": tokens, "completion_tokens": 1}
        return {"choices": [{"message": {"role": "assistant", "content": "So."}}], "usage": usage}

    wrapped = Compacter(summarizer=says_little, on_compaction=events.append).wrap(completion)
    history: list[dict[str, Any]] = []
    spoken = 0
    for number in range(200):
        for role in ("user", "assistant"):
            text = f"{role} says {number} of part {number * 7919 % 1000}. ".ljust(800, "x")
            spoken += len(text) // 4
            history.append({"role": role, "content": text})
            if role == "user":
                wrapped(model="m", messages=history)

    assert len(asked) == len(events) <= 17
    assert len(refused) <= len(events)
    assert sum(asked) < 1.3 * spoken
    assert max(event.compacted_tokens for event in events) < 8_000 / 2
