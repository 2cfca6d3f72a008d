"""The summary's request begins with the messages that the provider has in its cache."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest

from compacter import Compacter

WINDOW = 4_000
SUMMARY = "They counted the ships of Pier 3 and of Pier 5."
INSTRUCTIONS = ("The record ends here.", "Write a summary of this conversation")


class CachingModel:
    """A server with a prompt cache, which tells in its usage what it has read from there."""

    def __init__(self, *, caches: bool = True, summary: str = SUMMARY) -> None:
        self.caches = caches
        self.summary = summary
        self.requests: list[list[Any]] = []
        self.asked: list[list[Any]] = []

    def complete(self, messages: list[Any], tools: Any = None, **_: Any) -> Any:
        if any(text in messages[-1]["content"] for text in INSTRUCTIONS):
            self.asked.append(copy.deepcopy(messages))
            is_native = len(messages) > 1
            assert bool(tools) == is_native
            return reply(self.summary if is_native else SUMMARY, 0)
        tokens = len(str(messages)) // 4
        if tokens > WINDOW:
            error: Any = ValueError(f"prompt is too long: {tokens} tokens > {WINDOW} maximum")
            error.status_code = 400
            raise error
        before = self.requests[-1] if self.requests else []
        self.requests.append(copy.deepcopy(messages))
        same = messages[: len(before)] == before
        return reply("Noted.", len(str(before)) // 4 if same and self.caches else 0)

    async def complete_later(self, messages: list[Any], **options: Any) -> Any:
        return self.complete(messages, **options)


def reply(text: str, cached: int) -> Any:
    message = {"role": "assistant", "content": text}
    counts = {"prompt_tokens": cached * 2, "completion_tokens": 2}
    usage = {**counts, "prompt_tokens_details": {"cached_tokens": cached}} if cached else {}
    return {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}


def talk(model: CachingModel, turns: int = 90, *, later: bool = False, **options: Any) -> None:
    """Have a chat of this many turns, each with the tools."""
    function: Any = model.complete_later if later else model.complete
    call = Compacter(**options).wrap(function)
    tools = [{"type": "function", "function": {"name": "count"}}]
    messages: list[Any] = [{"role": "system", "content": "Be brief."}]
    for number in range(turns):
        text = f"Pier {number} has {number * 3} ships, as was counted at dawn. " * 5
        messages.append({"role": "user", "content": text})
        raw: Any = call(messages=messages, tools=tools)
        raw = asyncio.run(raw) if later else raw
        messages.append(raw["choices"][0]["message"])


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("options", [{}, {"trigger_tokens": 3_200}])
def test_it_is_asked_at_the_end_of_the_conversations_own_head(
    options: dict[str, Any], *, later: bool
) -> None:
    model = CachingModel()
    talk(model, later=later, **options)

    assert len(model.asked) >= 2
    for asked in model.asked:
        # Whole, and among what was answered: so the cache has it.
        assert any(asked[:-1] == sent[: len(asked) - 1] for sent in model.requests)
        assert len(asked) > 2


@pytest.mark.parametrize(
    ("caches", "options"),
    [(False, {}), (True, {"redact": lambda text: text}), (True, {"redact": "secrets"})],
)
def test_without_a_cache_or_with_redaction_it_is_a_transcript(
    options: dict[str, Any], *, caches: bool
) -> None:
    model = CachingModel(caches=caches)
    talk(model, **options)

    assert model.asked
    assert all(len(asked) == 1 for asked in model.asked)


def test_if_the_answer_is_no_summary_the_transcript_follows() -> None:
    model = CachingModel(summary="ok")
    talk(model)

    assert len(model.asked) >= 2
    assert [len(asked) == 1 for asked in model.asked[:2]] == [False, True]
