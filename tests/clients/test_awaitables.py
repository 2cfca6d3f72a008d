"""A plain function may return an awaitable: a lambda around a coroutine function, a decorated
method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from compacter import Compacter, CompactionEvent

if TYPE_CHECKING:
    from collections.abc import Awaitable

WINDOW = 4_000


def history(word: str) -> list[dict[str, str]]:
    return [
        {"role": "assistant" if number % 2 else "user", "content": f"{word}{number} " * 50}
        for number in range(41)
    ]


class Model:
    """A coroutine behind a plain function. Refuses when it is called, or when it is awaited."""

    def __init__(self, *, at_once: bool) -> None:
        self.at_once = at_once
        self.lengths: list[int] = []

    def __call__(self, messages: list[dict[str, str]]) -> Awaitable[dict[str, Any]]:
        self.lengths.append(len(messages))
        size = sum(len(message["content"]) for message in messages)
        if self.at_once:
            self.check(size)
        return self.answer(size)

    async def answer(self, size: int) -> dict[str, Any]:
        self.check(size)
        return {
            "choices": [
                {"message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}
            ]
        }

    @staticmethod
    def check(size: int) -> None:
        if size > WINDOW:
            text = f"prompt is too long: {size // 4} tokens > {WINDOW // 4} maximum"
            raise ValueError(text)


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("trigger", [None, 100_000])
async def test_each_call_of_a_plain_function_that_returns_an_awaitable_recovers(
    at_once: bool, trigger: int | None
) -> None:
    events: list[CompactionEvent] = []
    model = Model(at_once=at_once)
    chat = Compacter(
        summarizer="extractive", trigger_tokens=trigger, on_compaction=events.append
    ).wrap(model)
    for word in ("a", "b"):
        reply = await chat(messages=history(word))
        assert reply["choices"][0]["message"]["content"] == "yes"
    assert [event.trigger for event in events] == ["token_limit", "token_limit"]
    assert model.lengths[0] == model.lengths[2] == 41
    assert max(model.lengths[1], model.lengths[3]) < 41
