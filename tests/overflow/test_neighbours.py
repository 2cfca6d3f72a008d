"""A token limit is one beside whatever a log, a gateway or a status page adds, and its look-alikes
stay what they are.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import every, seconds
from tests.overflow.phrases import detect_text
from tests.overflow.test_messages import read

from compacter.overflow import TokenLimit

FRAMES = {
    "an attempt after": "{}\nretrying in 5 s (2/5)",
    "an attempt before": "attempt 1 failed: 429, rate limit reached\nattempt 2 failed: {}",
    "a log": "08:11:09 WARN queue is full, service unavailable\n08:11:12 ERROR {}",
    "an invoice": "{} For your invoices, credits and payment methods see the billing page.",
    "an upgrade": "{} Larger models come with a larger plan: upgrade your plan at any time.",
    "a key about a quota": '{"detail": "{}", "daily_quota": {"left": 912, "resets in": "4 h"}}',
    "headers": "{} (ratelimit-policy: 900;w=60, ratelimit-remaining: 118)",
    "a mark": "{} [truncated]",
    "a cut body": "response (cut after 4096 characters): {}",
    "advice": "{} Trim or split the documents first.",
    "nothing done": "{} No message was dropped.",
    "settings": "{} [timeout=45 retries=3 stream=true]",
    "an account": "{} (API key ending in 9f2c, workspace acme)",
    "usage": "{} Usage this month: 1,204,551 tokens",
    "a model": "[deepseek-chat-2025-03-24, 64k] {}",
    "a trace": "{} trace_id=4bf92f3577b34da6",
    "an exit": "{}\nprocess exited with code 1 after 12,004 ms",
}
frames = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
STATEMENTS = [
    "This model's maximum context length is {limit} tokens, but the request has {sent} tokens",
    "The prompt has {sent} tokens and exceeds the context window of {limit} tokens.",
    "prompt is too long: {sent} tokens > {limit} maximum",
    "input length ({sent}) exceeds the model's maximum context length ({limit})",
    "context_length_exceeded: limit {limit} tokens, requested {sent} tokens",
    "输入的 token 数 {sent} 超过了模型最大上下文长度 {limit}",
    "Запрос превышает контекстное окно: {sent} токенов, максимум {limit}.",
    "A conversa não cabe no contexto do modelo: {sent} tokens, e o limite é {limit}.",
]


@given(
    statement=st.sampled_from(STATEMENTS),
    frame=st.sampled_from(list(FRAMES.values())),
    limit=st.integers(4_096, 900_000),
    over=st.integers(1, 90_000),
)
def test_a_statement_keeps_its_numbers_beside_other_words(
    statement: str, frame: str, limit: int, over: int
) -> None:
    text = frame.replace("{}", statement.format(limit=limit, sent=limit + over))

    found = detect_text(text)

    assert found is not None
    assert (found.limit, found.requested) == (limit, limit + over)


def beside(frame: str, name: str) -> list[dict[str, Any]]:
    """A share of the collected texts, another one beside each frame."""
    first = list(FRAMES.values()).index(frame)
    rows = [row for row in read(name)[first:] if row.keys() <= {"text", "limit", "requested"}]
    return [row | {"framed": frame.replace("{}", row["text"])} for row in every(len(FRAMES), rows)]


@frames
def test_collected_limits_are_found_beside_other_words(frame: str) -> None:
    rows = beside(frame, "token_limits.jsonl")
    lost = [row for row in rows if detect_text(row["framed"]) is None]

    # What is lost speaks of tokens, and neither of a prompt nor of a window.
    assert len(lost) <= 0.15 * len(rows), [row["text"] for row in lost]
    assert len([row for row in lost if row.get("limit") and row.get("requested")]) <= 2


@frames
def test_hardly_any_look_alike_becomes_a_limit_beside_other_words(frame: str) -> None:
    rows = beside(frame, "look_alikes.jsonl")

    false = [row["text"] for row in rows if detect_text(row["framed"]) is not None]

    assert len(false) <= 0.05 * len(rows), false


@pytest.mark.parametrize(
    "text",
    [
        "The prompt exceeds the context window of your plan's daily quota.",
        "The context window is exceeded per minute: rate limit reached.",
        "Rate limit reached: input tokens exceed the limit. Context window 8192.",
        "The prompt exceeds the context window. The oldest messages were dropped.",
    ],
)
def test_another_error_in_the_same_sentence_and_what_was_done_still_count(text: str) -> None:
    assert detect_text(text) is None


def test_the_outranked_sentence_gives_no_number() -> None:
    found = detect_text(
        "The prompt exceeds the context window. The quota resets in 3 h, 18211 tokens remaining."
    )

    assert found == TokenLimit(source="context exceeded")


def test_a_letter_that_stands_for_eighteen_costs_no_more_than_others() -> None:
    assert seconds(detect_text, "\ufdfa" * 25_000) < 0.1
