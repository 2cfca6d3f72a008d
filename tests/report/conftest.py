"""Events of made-up conversations, as lines that a sink would write."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compacter import CompactionEvent
from compacter.events import (
    CompactionFailed,
    CompactionSkipped,
    Event,
    MaxTokensAdjusted,
    PassagesRecalled,
    RetriesExhausted,
    SilentTruncation,
)

Lines = Callable[..., list[str]]
SUMMARY = (
    "The user keeps a register of lighthouses. Decided: heights in metres, lamps by their makers."
)


def line(event: Event, seconds: float) -> str:
    return json.dumps(
        {"event": type(event).__name__, "time": seconds, **json.loads(event.model_dump_json())}
    )


def conversation(key: str, compactions: int, start: float, **more: Any) -> Iterator[str]:
    """Compactions with their quotes; each third one fell back."""
    common: dict[str, Any] = {"model": "gpt-4o", "conversation": key} | more
    for number in range(compactions):
        now = start + number * 300
        before = 8_050 + 37 * (number % 7)
        failed = number % 3 == 2
        if failed:
            failure = CompactionFailed(
                **common, attempt=1, trigger="token_limit", reason="no answer", error="OSError"
            )
            yield line(failure, now)
        event = CompactionEvent(
            **common,
            attempt=1,
            original_data_size=before * 4,
            compacted_data_size=13_000,
            input_tokens=0 if failed else 5_100,
            output_tokens=0 if failed else 180,
            cost=0.0 if failed else 0.0146,
            summary=SUMMARY,
            ledger="Rule: Answer in French.",
            trigger="token_limit",
            strategy="extractive" if failed else "summarize",
            fallback=failed,
            ratio=0.7,
            messages_before=61,
            messages_after=24,
            first_removed=2,
            last_removed=40,
            original_tokens=before,
            compacted_tokens=3_250,
            limit=8_000,
            requested=before,
            summarizer_calls=1,
            duration=1.4,
        )
        yield line(event, now + 2)
        yield line(PassagesRecalled(**common, passages=3, characters=900, tokens=225), now + 60)


def endings(key: str, start: float) -> list[str]:
    """One of each of the other events."""
    common: dict[str, Any] = {"model": "gpt-4o", "conversation": key}
    events: list[Event] = [
        CompactionSkipped(**common, trigger="threshold", reason="cool_down"),
        MaxTokensAdjusted(**common, before=4_000, after=1_200, limit=8_000),
        SilentTruncation(**common, expected_tokens=9_000, prompt_tokens=8_000),
        RetriesExhausted(**common, rounds=3, reason="no progress", limit=8_000, requested=8_400),
    ]
    return [line(event, start + place) for place, event in enumerate(events)]


@pytest.fixture
def lines() -> Lines:
    """So many conversations of so many compactions each, and the other events in the first one."""

    def lines(conversations: int = 2, compactions: int = 8) -> list[str]:
        begin = 1_790_000_000.0
        made = [
            each
            for at in range(conversations)
            for each in conversation(f"{at:016x}", compactions, begin + at * 9_000)
        ]
        return [*made, *endings(f"{0:016x}", begin + 5_000)]

    return lines
