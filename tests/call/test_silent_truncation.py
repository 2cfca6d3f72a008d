"""Servers that cut the prompt without a word, and replies that end for want of room."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.conversations import Chat, talk

from compacter import Compacter, CompactionEvent
from compacter.call.request import MOST_CHARACTERS, expected_tokens, measure
from compacter.compaction.calibration import Calibration
from compacter.events import SilentTruncation
from compacter.testing import ScriptedModel, ScriptedSummarizer


def told(events: list[Any], kind: type) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def listening(**options: Any) -> tuple[Compacter, list[Any]]:
    events: list[Any] = []
    return Compacter(
        summarizer=ScriptedSummarizer("They talked."), on_event=events.append, **options
    ), events


@pytest.mark.parametrize("options", [{}, {"trigger_tokens": 10**6}])
def test_a_cut_prompt(options: dict[str, Any]) -> None:
    """A server that cuts the prompt silently is reported in an event; its reply is returned."""
    model = ScriptedModel(window=1_000, truncates=True)
    compacter, events = listening(**options)
    reply: Any = compacter.wrap(model.completion)("m", talk(20, 400))
    assert reply["choices"][0]["message"]["content"] == "ok"
    (event,) = told(events, SilentTruncation)
    assert event.prompt_tokens == 1_000
    assert event.expected_tokens > 3_900
    assert len(model.requests) == 1


def test_so_it_is_of_a_conversation_with_a_record_whose_model_is_known() -> None:
    compacter, events = listening()
    compacter.wrap(ScriptedModel(window=9_000).completion)("m", talk(10, 4_000))
    cutting = ScriptedModel(window=9_000, usage={"prompt_tokens": 200, "completion_tokens": 1})
    compacter.wrap(cutting.completion)("m", talk(10, 4_000))
    assert [request.refused for request in cutting.requests] == [False]
    assert [event.prompt_tokens for event in told(events, SilentTruncation)] == [200]


@pytest.mark.parametrize("options", [{}, {"trigger_tokens": 10**6}])
def test_no_window_is_as_small_as_the_usage_of_a_pretended_server(options: dict[str, Any]) -> None:
    model = ScriptedModel(window=9_000, usage={"prompt_tokens": 10, "completion_tokens": 1})
    compacter, events = listening(**options)
    completion = compacter.wrap(model.completion)
    for _ in range(3):
        completion("m", talk(10, 200))
    assert events == []
    assert len(model.requests) == 3


@pytest.mark.parametrize("options", [{}, {"trigger_tokens": 10**6}])
def test_a_prompt_that_was_read_whole_is_no_news(options: dict[str, Any]) -> None:
    compacter, events = listening(**options)
    completion = compacter.wrap(ScriptedModel(window=10**6).completion)
    for turns in (1, 5, 20):
        completion("m", talk(turns))
    assert told(events, SilentTruncation) == []


def test_images_and_reasoning_are_not_held_against_the_server() -> None:
    model = ScriptedModel(
        window=10**6, usage={"prompt_tokens": 60, "completion_tokens": 1}, strict=False
    )
    picture = {
        "type": "image_url",
        "image_url": {"url": "https://pictures.test/1.png", "detail": "high"},
    }
    history: list[Chat] = [
        {"role": "user", "content": [{"type": "text", "text": "What is this?"}, picture]},
        {"role": "assistant", "reasoning_content": "hm " * 2_000, "content": "A harbour."},
        {"role": "user", "content": "And now?"},
    ]
    compacter, events = listening()
    compacter.wrap(model.completion)("m", history)
    assert told(events, SilentTruncation) == []


@pytest.mark.parametrize(
    ("characters", "tokens", "learnt", "cut"),
    [
        (4_000, 1_000, 4.0, False),
        (6_900, 1_000, None, False),
        (7_100, 1_000, None, True),
        (6_000, 1_000, 1.5, False),  # learnt from Chinese, now English: no proof
        (12_000, 1_000, 8.0, False),
        (14_000, 1_000, 8.0, True),
    ],
)
def test_only_what_no_text_can_be_is_a_cut(
    characters: int, tokens: int, learnt: float | None, cut: bool
) -> None:
    calibration = Calibration()
    if learnt:
        calibration.learn(int(learnt * 1_000), 1_000)
    assert (expected_tokens(characters, tokens, calibration) is not None) is cut


def test_a_server_that_always_cuts_is_read_again_only_when_it_reads_more() -> None:
    """Without a known window nothing can be made ahead, and the cut was reported."""
    compacter, events = listening(prepare_tokens=0.7)
    completion = compacter.wrap(ScriptedModel(window=1_000, truncates=True).completion)
    for _ in range(3):
        completion("unknown-model", talk(20, 400))
    larger = compacter.wrap(ScriptedModel(window=1_500, truncates=True).completion)
    for _ in range(3):
        larger("unknown-model", talk(20, 400))
    assert [event.prompt_tokens for event in told(events, SilentTruncation)] == [1_000, 1_500]


@pytest.mark.parametrize("tokens", [450, 500, 600])
def test_a_chat_of_short_lines_is_not_read_for_its_frames(tokens: int) -> None:
    """JSON around 100 lines of 20 characters is larger than they are; nobody reads it."""
    chat = [{"role": ("user", "assistant")[at % 2], "content": "x" * 20} for at in range(100)]
    assert tokens / 2 < measure(chat, (), {}) / MOST_CHARACTERS <= tokens


class TestNoRoomForAnAnswer:
    @pytest.mark.parametrize("options", [{"max_tokens": 1}, {"max_tokens": 16}])
    def test_a_reply_that_was_meant_to_be_short_is_none(self, options: dict[str, Any]) -> None:
        model = ScriptedModel(window=10**6, replies="word " * 200)
        compacter, events = listening()
        reply: Any = compacter.wrap(model.completion)("m", talk(20, 400), **options)
        assert reply["choices"][0]["finish_reason"] == "length"
        assert events == []

    def test_a_reason_to_stop_that_says_so_is_enough(self) -> None:
        answers: Iterator[Any] = iter(
            [{"content": "", "finish_reason": "model_context_window_exceeded"}, "fine"]
        )
        model = ScriptedModel(window=10**6, replies=lambda _: next(answers))
        compacter, events = listening()
        reply: Any = compacter.wrap(model.completion)("m", talk(20, 400))
        assert reply["choices"][0]["message"]["content"] == "fine"
        assert len(told(events, CompactionEvent)) == 1

    def test_what_cannot_shrink_gets_the_short_reply(self) -> None:
        model = ScriptedModel(window=1_010, replies="word " * 200)
        compacter, _ = listening()
        compacter._state.calibration("m").window = 1_010
        reply: Any = compacter.wrap(model.completion)(
            "m", [{"role": "user", "content": "x" * 4_000}]
        )
        assert reply["choices"][0]["finish_reason"] == "length"
        assert len(model.requests) == 1


def test_a_conversation_that_the_provider_has_compacted_since_does_not_calibrate() -> None:
    block = {
        "role": "assistant",
        "content": [{"type": "compaction", "content": "They talked of boats."}],
    }

    def provider(messages: list[Any], tools: Any, model: str = "m") -> dict[str, Any]:
        if block in messages and len(messages) - messages.index(block) > 30:
            raise ValueError("prompt is too long: the maximum context length is exceeded")
        return {"usage": {"prompt_tokens": 60_000}, "content": "ok"}

    compacter, events = listening(recall=None)
    completion = compacter.wrap(provider, wire_format="anthropic")
    messages = talk(20, 5_000)
    tools = [{"name": "look", "description": "x" * 40_000}]
    completion(messages, tools)
    completion([*messages, block, *talk(20, 400)], tools)
    (event,) = told(events, CompactionEvent)
    assert event.original_tokens == pytest.approx(event.original_data_size / 4, rel=0.01)
