"""Overflows that arrive as a success (HTTP 200)."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from tests.kit import refusals

from compacter import Compacter
from compacter.messages.refusals import EMPTY, NO_ROOM, detect_empty, detect_in_reply
from compacter.overflow import TokenLimit

TEXT = "prompt is too long: 9000 tokens > 8192 maximum"


# The forms that the SDKs make objects of, beside those that stand in the table.
REPLIES = [
    *(
        (str(form), json.loads(form.body), form.states_numbers)
        for form in refusals(8192, 9000)
        if form.content_type == "application/json"
    ),
    ("object", SimpleNamespace(error=SimpleNamespace(message=TEXT, code=400), choices=None), True),
    ("flat object", SimpleNamespace(type="error", message=TEXT), True),
    ("object with a stop reason", SimpleNamespace(stop_reason="model_length"), False),
    ("Mistral", {"choices": [{"finish_reason": "model_length"}, {"finish_reason": "stop"}]}, False),
]


@pytest.mark.parametrize(
    ("reply", "states_numbers"), [row[1:] for row in REPLIES], ids=[row[0] for row in REPLIES]
)
def test_a_refusal_in_a_reply_is_a_token_limit(reply: object, *, states_numbers: bool) -> None:
    """An error, a flat one too, and a stop reason are token limits, with the numbers they state."""
    found = detect_in_reply(reply)

    assert found is not None
    assert not states_numbers or (found.limit, found.requested) == (8192, 9000)


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


def messages(stopped: str, **usage: int) -> dict[str, object]:
    return {stopped: "max_tokens", "usage": usage}


@pytest.mark.parametrize(
    ("reply", "written"),
    [
        (cut_off(prompt_tokens=9000, completion_tokens=0), 0),
        (cut_off(prompt_tokens=9000, completion_tokens=16), 16),
        (cut_off(prompt_tokens=9000, completion_tokens=17), None),
        (cut_off(), None),
        (cut_off(prompt_tokens=9000), None),
        (cut_off(completion_tokens=3), None),
        (messages("stop_reason", input_tokens=9000, output_tokens=2), 2),
        (messages("stopReason", inputTokens=9000, outputTokens=2), 2),
    ],
)
def test_a_reply_cut_off_after_a_few_tokens_may_have_had_no_room(
    reply: object, written: int | None
) -> None:
    """Where its usage states both counts, in every format; the request has to confirm it."""
    likely = TokenLimit(None, None, "input_plus_output", 9000, written, NO_ROOM)

    assert detect_in_reply(reply) == (None if written is None else likely)


CALL = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
QUIET = [
    {"choices": [{"message": message, "finish_reason": finish}], "usage": None}
    for message, finish in (
        ({"content": "x"}, "stop"),
        ({"content": None, "tool_calls": [CALL]}, "tool_calls"),
    )
]


@pytest.mark.parametrize("reply", QUIET)
def test_a_chat_completion_that_answers_is_not_searched(
    reply: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each search takes ten to thirty microseconds; a quiet call may take one."""
    searched: list[str] = []
    monkeypatch.setattr("compacter.messages.refusals._detect", lambda _: searched.append("error"))
    monkeypatch.setattr("compacter.messages.replies.first", lambda *_: searched.append("usage"))
    completion: Any = Compacter().wrap(lambda messages: reply)

    assert completion(messages=[{"role": "user", "content": "x"}]) is reply
    assert searched == []


def test_a_reply_of_ollama_with_counts_is_searched_for_them() -> None:
    reply = {"message": {"content": "x"}, "done": True, "prompt_eval_count": 7, "eval_count": 2}
    compacter = Compacter()
    compacter.wrap(lambda messages: reply)(messages=[{"role": "user", "content": "x"}])
    assert compacter._state.last_reply is not None
    assert compacter._state.last_reply[0] == 7


def gemini(parts: list[Any] | None, written: int = 0, finish: str = "STOP") -> dict[str, Any]:
    usage = {"promptTokenCount": 9, "candidatesTokenCount": written}
    content = None if parts is None else {"role": "model", "parts": parts}
    return {"candidates": [{"content": content, "finishReason": finish}], "usageMetadata": usage}


def response(output: list[Any], status: str = "completed", written: int = 0) -> dict[str, Any]:
    usage = {"input_tokens": 9, "output_tokens": written}
    return {"object": "response", "status": status, "output": output, "usage": usage}


BLANK = {"type": "message", "content": [{"type": "output_text", "text": ""}]}
ANTHROPIC = {"content": [], "stop_reason": "end_turn"}
CONVERSE = {"output": {"message": {"content": []}}, "stopReason": "end_turn"}
OLLAMA = {"message": {"role": "assistant", "content": ""}, "done": True, "prompt_eval_count": 9}


@pytest.mark.parametrize(
    ("reply", "is_empty"),
    [
        ({**ANTHROPIC, "usage": {"input_tokens": 9, "output_tokens": 0}}, True),
        ({**ANTHROPIC, "usage": {"input_tokens": 9, "output_tokens": 3}}, False),
        ({**ANTHROPIC, "stop_reason": "refusal"}, False),
        ({**ANTHROPIC, "content": [{"type": "thinking", "thinking": "hm"}]}, False),
        (response([]), True),
        (response([BLANK]), True),
        (response([BLANK], written=3), False),
        (response([{"type": "reasoning", "summary": []}]), False),
        (response([{"type": "function_call", "name": "look"}]), False),
        (response([], "in_progress"), False),
        (gemini([]), True),
        (gemini(None), True),
        (gemini([{"text": ""}]), True),
        (gemini([], 2), False),
        (gemini([], finish="SAFETY"), False),
        (gemini([{"functionCall": {"name": "look", "args": {}}}]), False),
        (gemini([{"text": "hm", "thought": True}]), False),
        ({**CONVERSE, "usage": {"inputTokens": 9, "outputTokens": 0}}, True),
        ({**CONVERSE, "usage": {"inputTokens": 9, "outputTokens": 4}}, False),
        ({**OLLAMA, "eval_count": 0}, True),
        ({**OLLAMA, "eval_count": 2}, False),
        ({"output": "some text"}, False),
        ({"answer": ""}, False),
        (["not", "a", "reply"], False),
        (object(), False),
        (None, False),
    ],
)
def test_an_empty_reply_is_a_sign_unless_it_says_why(reply: Any, is_empty: bool) -> None:
    limit = detect_empty(reply)
    assert (limit is not None) is is_empty
    assert limit is None or limit.source == EMPTY
