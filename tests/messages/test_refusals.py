"""Overflows that arrive as a success (HTTP 200)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from compacter import Compacter
from compacter.messages.replies import NO_ROOM, detect_in_reply
from compacter.overflow import TokenLimit

TEXT = "prompt is too long: 9000 tokens > 8192 maximum"


@pytest.mark.parametrize(
    "reply",
    [
        {"error": {"message": TEXT, "code": 400}},
        {"error": TEXT},
        {"type": "error", "error": {"type": "invalid_request_error", "message": TEXT}},
        {"type": "error", "code": "context_length_exceeded", "message": TEXT},
        {
            "type": "response.failed",
            "response": {"error": {"code": "context_length_exceeded", "message": TEXT}},
        },
        {"id": "x", "choices": [], "error": {"message": TEXT}},
        {
            "choices": [
                {"delta": {"content": ""}, "finish_reason": "error", "error": {"message": TEXT}}
            ]
        },
        {"choices": [{"delta": {}, "finish_reason": "error"}], "error": {"message": TEXT}},
        SimpleNamespace(error=SimpleNamespace(message=TEXT, code=400), choices=None),
        SimpleNamespace(type="error", message=TEXT),
    ],
)
def test_an_error_in_a_reply_is_a_token_limit_with_numbers(reply: object) -> None:
    found = detect_in_reply(reply)

    assert found is not None
    assert (found.limit, found.requested) == (8192, 9000)


@pytest.mark.parametrize(
    "reply",
    [
        {"stop_reason": "model_context_window_exceeded"},
        {"stopReason": "model_context_window_exceeded"},
        {
            "choices": [
                {"finish_reason": "model_context_window_exceeded", "message": {"content": ""}}
            ]
        },
        {"choices": [{"finish_reason": "model_length"}]},
        {"choices": [{"finish_reason": "model_length"}, {"finish_reason": "stop"}]},
        {"type": "message_delta", "delta": {"stop_reason": "model_context_window_exceeded"}},
        SimpleNamespace(stop_reason="model_context_window_exceeded"),
    ],
)
def test_a_stop_reason_may_say_it(reply: object) -> None:
    assert detect_in_reply(reply) is not None


@pytest.mark.parametrize(
    "reply",
    [
        None,
        "",
        TEXT,
        {},
        [],
        {"choices": [{"message": {"content": TEXT}, "finish_reason": "stop"}]},
        {"choices": [{"message": {"content": "x"}, "finish_reason": "length"}]},
        {
            "choices": [{"message": {"content": "half an answer"}, "finish_reason": "error"}],
            "error": {"message": TEXT},
        },
        {"error": {"message": "Rate limit reached", "code": 429}},
        {"error": None, "choices": []},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": TEXT}},
        {"stop_reason": "max_tokens"},
        {"choices": 5},
        SimpleNamespace(
            choices=[SimpleNamespace(finish_reason=None, delta=SimpleNamespace(content=TEXT))]
        ),
    ],
)
def test_any_other_reply_is_left_alone(reply: object) -> None:
    assert detect_in_reply(reply) is None


def cut_off(**usage: int) -> dict[str, object]:
    return {"choices": [{"finish_reason": "length", "message": {"content": "a"}}], "usage": usage}


@pytest.mark.parametrize(("written", "likely"), [(0, True), (16, True), (17, False)])
def test_a_reply_cut_off_after_a_few_tokens_may_have_had_no_room(
    written: int, *, likely: bool
) -> None:
    found = detect_in_reply(cut_off(prompt_tokens=9000, completion_tokens=written))

    expected = (
        TokenLimit(None, None, "input_plus_output", 9000, written, NO_ROOM) if likely else None
    )
    assert found == expected


@pytest.mark.parametrize("usage", [{}, {"prompt_tokens": 9000}, {"completion_tokens": 3}])
def test_a_reply_without_usage_is_not_suspected(usage: dict[str, int]) -> None:
    assert detect_in_reply(cut_off(**usage)) is None


@pytest.mark.parametrize(
    "reply",
    [
        {"stop_reason": "max_tokens", "usage": {"input_tokens": 9000, "output_tokens": 2}},
        {"stopReason": "max_tokens", "usage": {"inputTokens": 9000, "outputTokens": 2}},
    ],
)
def test_every_format_tells_of_a_reply_without_room(reply: object) -> None:
    found = detect_in_reply(reply)

    assert found is not None
    assert (found.input_tokens, found.output_tokens, found.source) == (9000, 2, NO_ROOM)


QUIET: dict[str, dict[str, Any]] = {
    "openai": {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], "usage": None},
    "responses": {"object": "response", "status": "completed", "output": []},
    "anthropic": {"type": "message", "content": [], "stop_reason": "end_turn"},
    "gemini": {"candidates": [{"finishReason": "STOP"}]},
    "bedrock": {"output": {"message": {"content": []}}, "stopReason": "end_turn"},
    "ollama": {"message": {"role": "assistant", "content": "x"}, "done": True},
    "own": {"answer": "x"},
}


@pytest.mark.parametrize("name", [name for name in QUIET if name != "ollama"])  # It always counts.
def test_a_quiet_reply_without_usage_is_neither_searched_for_an_error_nor_for_usage(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each search takes ten to thirty microseconds; a quiet call may take one."""
    searched: list[str] = []
    monkeypatch.setattr("compacter.messages.replies._detect", lambda _: searched.append("error"))
    monkeypatch.setattr("compacter.messages.replies.first", lambda *_: searched.append("usage"))

    def answer(messages: list[dict[str, str]]) -> dict[str, Any]:
        return QUIET[name]

    completion = Compacter().wrap(answer)
    assert completion(messages=[{"role": "user", "content": "x"}]) is QUIET[name]
    assert searched == []


def test_a_reply_of_ollama_with_counts_is_searched_for_them() -> None:
    reply = {**QUIET["ollama"], "prompt_eval_count": 7, "eval_count": 2}
    compacter = Compacter()
    compacter.wrap(lambda messages: reply)(messages=[{"role": "user", "content": "x"}])
    assert compacter._state.last_reply is not None
    assert compacter._state.last_reply[0] == 7
