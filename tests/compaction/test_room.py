"""How large a summary and what stays are in the requests of a whole run."""

from __future__ import annotations

from typing import Any

from compacter import Compacter
from compacter.messages.format import get_format
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


def test_a_largest_summary_that_is_set_wins() -> None:
    sent = refused_run(summarizer="extractive", max_summary_tokens=500)

    assert max(OPENAI.size(message) for message in sent[:2]) < 500 * 4 + 400


def test_a_chat_of_two_hundred_turns_asks_for_one_summary_a_dozen_turns_in_one_request_each() -> (
    None
):
    """In a small window each compaction leaves more than half of it free, so that few are made."""
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
