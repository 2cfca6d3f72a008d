"""The replies of a model: text, usage, and why they end, in each vendor's shape."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from compacter.messages.replies import read_reply, tokens_read, usage_of


class TestUsage:
    @pytest.mark.parametrize(
        ("usage", "read"),
        [
            ({"prompt_tokens": 100, "completion_tokens": 5}, 100),
            ({"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 80}}, 100),
            ({"input_tokens": 100, "input_tokens_details": {"cached_tokens": 80}}, 100),
            (
                {
                    "input_tokens": 10,
                    "cache_read_input_tokens": 900,
                    "cache_creation_input_tokens": 90,
                },
                1_000,
            ),
            ({"prompt_tokens": 100, "cache_read_input_tokens": 80}, 100),
            ({"input_tokens": 100, "input_tokens_details": {}, "cache_read_input_tokens": 80}, 100),
            ({"inputTokens": 10, "cacheReadInputTokens": 900, "cacheWriteInputTokens": 90}, 1_000),
            ({"prompt_tokens": 0, "input_tokens": 100}, 100),
            ({"prompt_tokens": True}, 0),
            ({"prompt_tokens": -1}, 0),
            ({}, 0),
            (None, 0),
        ],
    )
    def test_cached_tokens_count_as_input_once(self, usage: Any, read: int) -> None:
        assert usage_of({"usage": usage}) == (read, (usage or {}).get("completion_tokens", 0))

    def test_a_summarizers_reply_has_text_usage_and_reason(self) -> None:
        reply = read_reply(
            {
                "choices": [{"message": {"content": "They spoke."}, "finish_reason": "length"}],
                "usage": {"prompt_tokens": 9, "completion_tokens": 2},
            }
        )
        assert (reply.text, reply.input_tokens, reply.output_tokens, reply.finish) == (
            "They spoke.",
            9,
            2,
            "length",
        )

    @pytest.mark.parametrize("unknown", [object(), 3, {"surprise": 1}, [], None])
    def test_an_unknown_reply_is_an_empty_text(self, unknown: Any) -> None:
        assert read_reply(unknown).text == ""


WORDS = "They spoke."
PART = {"type": "text", "text": WORDS}


def chat_reply(finish: str | None = None, **message: Any) -> Any:
    return {"choices": [{"message": {"content": WORDS, **message}, "finish_reason": finish}]}


def gemini(*parts: Any, **candidate: Any) -> Any:
    return {"candidates": [{"content": {"parts": list(parts)}, **candidate}]}


def response(*items: Any, **more: Any) -> Any:
    return {"output": list(items), **more}


def converse(*content: Any, **more: Any) -> Any:
    return {"output": {"message": {"content": list(content)}}, **more}


SPOKEN = {"text": WORDS}
REFUSAL = {"type": "refusal", "refusal": "I cannot."}
CUT = {"incomplete_details": {"reason": "max_output_tokens"}}


class TestWhatASummarizerAnswered:
    """In each vendor's shape."""

    @pytest.mark.parametrize(
        ("reply", "kind"),
        [
            (WORDS, "words"),
            ({"choices": [*chat_reply()["choices"], {"message": {"content": "2"}}]}, "words"),
            (chat_reply(content=[PART]), "words"),
            ({"choices": [SPOKEN]}, "words"),
            ({"content": [{"type": "thinking", "thinking": "Hm."}, PART]}, "words"),
            ({"content": WORDS}, "words"),
            (SPOKEN, "words"),
            (gemini({"text": "Hm.", "thought": True}, SPOKEN), "words"),
            (
                response(
                    {"type": "reasoning"},
                    {"type": "message", "content": [{"type": "output_text", "text": WORDS}]},
                ),
                "words",
            ),
            (response({"content": [{"text": "They "}, {"text": "spoke."}]}), "words"),
            (converse(SPOKEN), "words"),
            (chat_reply(refusal="I cannot."), "refusal"),
            ({"content": [PART], "stop_reason": "refusal"}, "refusal"),
            (response({"type": "message", "content": [REFUSAL]}), "refusal"),
            ({"candidates": []}, "refusal"),
            (chat_reply(tool_calls=[{"id": "1"}]), "tool"),
            (chat_reply(function_call={"name": "look"}), "tool"),
            ({"content": [PART, {"type": "tool_use", "name": "look"}]}, "tool"),
            (gemini(SPOKEN, {"functionCall": {"name": "look"}}), "tool"),
            (gemini(SPOKEN, {"function_call": {"name": "look"}}), "tool"),
            (response({"type": "function_call", "name": "look"}), "tool"),
            (converse({"toolUse": {"name": "look"}}), "tool"),
        ],
    )
    def test_is_words_a_refusal_or_a_tool_call(self, reply: Any, kind: str) -> None:
        read = read_reply(reply)
        assert (read.refused, read.called_tool) == (kind == "refusal", kind == "tool")
        assert kind != "words" or read.text == WORDS

    @pytest.mark.parametrize(
        ("reply", "finish"),
        [
            (chat_reply("STOP"), "stop"),
            ({"content": [PART], "stop_reason": "max_tokens"}, "max_tokens"),
            (gemini(finishReason="MAX_TOKENS"), "max_tokens"),
            (gemini(finish_reason=SimpleNamespace(name="MAX_TOKENS")), "max_tokens"),
            (gemini(finish_reason=SimpleNamespace(name="STOP")), "stop"),
            (response(status="incomplete", **CUT), "max_output_tokens"),
            (response(status="completed", **CUT), None),
            (converse(stopReason="max_tokens"), "max_tokens"),
        ],
    )
    def test_says_why_it_ends(self, reply: Any, finish: str | None) -> None:
        assert read_reply(reply).finish == finish


EDITS = {"context_management": {"applied_edits": [{"type": "clear"}]}}
BLOCKS = {"provider_specific_fields": {"compaction_blocks": [{"content": "So far."}]}}


class TestTheUsageOfAReply:
    @pytest.mark.parametrize(
        "edited",
        [
            EDITS,
            {"provider_specific_fields": EDITS},
            {"choices": [{"message": BLOCKS}]},
            {"stop_reason": "compaction"},
            {"content": [{"type": "compaction", "content": "So far."}]},
            response({"type": "message"}, {"type": "compaction"}),
        ],
    )
    def test_says_nothing_of_an_edited_request(self, edited: dict[str, Any]) -> None:
        """The provider has edited the request itself, so its size says nothing of ours."""
        usage = {"input_tokens": 100}
        assert tokens_read({"usage": usage, "content": [PART], "stop_reason": "end_turn"}) == 100
        assert tokens_read({"usage": usage, **edited}) == 0
        assert tokens_read({"usage": {**usage, "iterations": [{"input_tokens": 9}]}}) == 0

    @pytest.mark.parametrize(
        "reply", [None, "words", iter(()), {"usage": {"prompt_tokens": -5}}, {"usage": 7}]
    )
    def test_is_nothing_where_none_is_stated(self, reply: Any) -> None:
        assert tokens_read(reply) == 0

    def test_counts_what_was_written(self) -> None:
        assert usage_of({"usage": {"input_tokens": 9, "output_tokens": 4}}) == (9, 4)
        assert usage_of({"usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 4}}) == (
            9,
            4,
        )
        assert usage_of({"usage": {"prompt_tokens": 1, "completion_tokens": 1}}) == (1, 1)
        assert usage_of(
            {"usage": {"prompt_tokens": 0, "input_tokens": 9, "completion_tokens": 0}}
        ) == (9, 0)
