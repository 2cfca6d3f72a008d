"""Whose window a prompt has to fit: the summarizer's own, where that is another model."""

from __future__ import annotations

from typing import Any

from compacter.call.effects import Answer, AskPlan, AskSummarizer, Clock, Effect, Recall, drive
from compacter.compaction.calibration import Calibration
from compacter.compaction.conversation import Conversation
from compacter.compaction.plan import Job
from compacter.compaction.run import compact
from compacter.messages.format import wire
from compacter.options import Options


def prompts_for(summarizer_window: int | None) -> list[int]:
    """Characters of each prompt for a history of 40,000 characters whose model has a window of 2,000 tokens."""
    options = Options(summarizer=lambda messages, **_: "They spoke.", compact_ratio=1.0)
    messages: list[Any] = [
        {"role": role, "content": f"{role} {number} ".ljust(1_000, "x")}
        for number in range(20)
        for role in ("user", "assistant")
    ]
    calibration = Calibration(window=2_000, summarizer_window=summarizer_window)
    conversation = Conversation.of(messages, wire("openai"))
    job = Job(conversation=conversation, trigger="manual", calibration=calibration, must=True)
    sizes: list[int] = []

    def perform(effect: Effect[Any]) -> Any:
        match effect:
            case AskSummarizer():
                sizes.append(sum(len(message["content"]) for message in effect.messages))
                return Answer("They spoke.")
            case Clock():
                return 0.0
            case AskPlan():
                return effect.plan
            case Recall():
                return None
            case _:
                return None

    assert drive(compact(options, job), perform) is not None
    return sizes


def test_a_summarizer_of_the_same_model_gets_prompts_for_that_window() -> None:
    sizes = prompts_for(None)

    assert len(sizes) > 4
    assert max(sizes) < 2_000 * 4


def test_another_model_with_a_larger_window_gets_it_all_at_once() -> None:
    assert len(prompts_for(128_000)) == 1
