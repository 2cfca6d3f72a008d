"""Window that a prompt has to fit: the summarizer's own, where that is another model."""

from __future__ import annotations

from typing import Any

import pytest
from tests.compaction.conftest import carried_out, refused
from tests.conversations import bot, user

from compacter import Compacter, CompactionEvent
from compacter.compaction.calibration import Calibration
from compacter.compaction.conversation import Conversation
from compacter.messages.format import get_format
from compacter.options import Options
from compacter.testing import token_limit_error


def prompts_for(summarizer_window: int | None) -> list[int]:
    """Characters of each prompt for a history of 40,000 characters whose model has a window of
    2,000 tokens.
    """
    options = Options(summarizer=lambda messages, **_: "They spoke.", compact_ratio=1.0)
    messages: list[Any] = [
        {"role": role, "content": f"{role} {number} ".ljust(1_000, "x")}
        for number in range(20)
        for role in ("user", "assistant")
    ]
    calibration = Calibration(window=2_000, summarizer_window=summarizer_window)
    conversation = Conversation(messages, get_format("openai"))
    job = refused(
        conversation=conversation, trigger="manual", calibration=calibration, is_required=True
    )
    asked, _ = carried_out(options, job, "They spoke.")
    return [sum(len(message["content"]) for message in one.messages) for one in asked]


def test_a_summarizer_of_the_same_model_gets_prompts_for_that_window() -> None:
    sizes = prompts_for(None)

    assert len(sizes) > 4
    assert max(sizes) < 2_000 * 4


def test_another_model_with_a_larger_window_gets_it_all_at_once() -> None:
    assert len(prompts_for(128_000)) == 1


class Verbose:
    """A summarizer with a window of its own that writes as much as it does."""

    def __init__(self, window: int, tokens: int) -> None:
        self.window = window
        self.text = " ".join(f"Pier {n:05} was {n * 7} metres long." for n in range(tokens // 9))

    def __call__(self, messages: list[Any], **_: Any) -> str:
        tokens = sum(len(message["content"]) for message in messages) // 4
        if tokens > self.window:
            raise token_limit_error(limit=self.window, input_tokens=tokens)
        return self.text


@pytest.mark.parametrize("answer", [200, 3_000])
@pytest.mark.parametrize(
    ("window", "summarizer_window"),
    [
        *((8_000, 1_000), (8_000, 4_000), (32_000, 1_000), (32_000, 8_000)),
        *((128_000, 4_000), (128_000, 8_000), (200_000, 16_000)),
    ],
)
def test_no_compaction_asks_more_than_twice_for_each_piece_and_twice_more(
    window: int, summarizer_window: int, answer: int
) -> None:
    """A ceiling on what one compaction may ask, whatever the two windows."""
    events: list[CompactionEvent] = []

    def provider(model: str, messages: list[Any]) -> dict[str, Any]:
        tokens = sum(len(message["content"]) for message in messages) // 4
        if tokens > window:
            raise token_limit_error(limit=window, input_tokens=tokens)
        return {"choices": [{"message": bot("Noted.")}]}

    history = [
        {"role": ("user", "assistant")[n % 2], "content": f"Pier {n} has {n * 7} lamps. " * 40}
        for n in range(window * 4 // 800)
    ]
    history.append(user("And now?"))
    summarizer = Verbose(summarizer_window, answer)
    compacter = Compacter(summarizer=summarizer, on_compaction=events.append, recall=None)
    compacter.wrap(provider)(model="m", messages=history)
    for event in events:
        assert event.summarizer_calls <= 2 * event.chunks + 2
        assert event.chunks <= 6 * window / summarizer_window + 2
        assert not event.fallback


def test_a_model_that_reasons_gets_the_room_by_smaller_pieces() -> None:
    """Its first answer was cut off, and the prompt left no more of the window."""
    limits: list[int] = []

    def summarize(messages: list[Any], max_tokens: int) -> dict[str, Any]:
        limits.append(max_tokens)
        is_written = max_tokens > 5_000  # The tokens that it reasons for.
        message = {"role": "assistant", "content": "They spoke." if is_written else None}
        finish = "stop" if is_written else "length"
        return {"choices": [{"message": message, "finish_reason": finish}]}

    def completion(messages: list[Any]) -> str:
        size = sum(len(message["content"]) for message in messages) // 4
        if size > 32_000:
            raise token_limit_error(limit=32_000, input_tokens=size)
        return "well"

    events: list[Any] = []
    talk = [{"role": "user", "content": f"Turn {turn}: ".ljust(900, "x")} for turn in range(180)]
    wrapped = Compacter(summarizer=summarize, on_compaction=events.append).wrap(completion)

    assert wrapped(messages=talk) == "well"
    assert limits[0] < 5_000 < min(limits[1:])
    assert [(event.fallback, event.chunks_without_model) for event in events] == [(False, 0)]
