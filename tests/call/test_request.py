"""What is read of a reply, what is made of a provider's numbers, and what the calls of one
Compacter share.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.conversations import history, talk

from compacter import Compacter, CompactionEvent
from compacter.call.request import Request
from compacter.call.state import State
from compacter.messages.format import get_format
from compacter.messages.replies import read_reply
from compacter.messages.usage import tokens_read, usage_of
from compacter.options import Options
from compacter.runtime.io import is_large
from compacter.testing import ScriptedModel, ScriptedSummarizer, token_limit_error


def request(**options: Any) -> Request:
    messages = history()
    return Request(
        **{"format": get_format("openai"), "original": messages, "messages": messages, **options}
    )


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


class TestCalibration:
    @pytest.mark.parametrize(
        "reply",
        [
            {"usage": {"prompt_tokens": 1_000}},
            SimpleNamespace(usage=SimpleNamespace(prompt_tokens=1_000)),
            {"usage": {"input_tokens": 100, "cache_read_input_tokens": 900}},
            SimpleNamespace(usage_metadata=SimpleNamespace(prompt_token_count=1_000)),
        ],
    )
    def test_the_last_replys_usage_tells_the_characters_per_token(self, reply: Any) -> None:
        compacter = Compacter(summarizer=ScriptedSummarizer())
        messages = history()
        replies: list[Any] = [reply]

        def completion(model: str, messages: list[Any]) -> Any:
            if replies:
                return replies.pop()
            raise ValueError("context_length_exceeded") if len(messages) > 20 else KeyError("stop")

        chat = compacter.wrap(completion)
        chat("m", messages)
        messages.append({"role": "user", "content": "And now?"})
        with pytest.raises(KeyError):
            chat("m", messages)
        assert compacter._state.calibration("m").chars_per_token == pytest.approx(4.0, rel=0.1)
        assert compacter._state.calibration("m").learnt

    @pytest.mark.parametrize(
        ("tokens", "other"), [(1_000, True), (100, False)], ids=["another history", "cut"]
    )
    def test_of_another_history_or_of_a_prompt_that_was_cut_it_tells_nothing(
        self, tokens: int, other: bool
    ) -> None:
        compacter = Compacter(summarizer=ScriptedSummarizer())
        messages = history()
        replies: list[Any] = [{"usage": {"prompt_tokens": tokens}}]

        def completion(model: str, messages: list[Any]) -> Any:
            if replies:
                return replies.pop()
            raise ValueError("context_length_exceeded") if len(messages) > 20 else KeyError("stop")

        chat = compacter.wrap(completion)
        chat("m", messages)
        following = [dict(message) for message in messages] if other else messages
        with pytest.raises(KeyError):
            chat("m", [*following, {"role": "user", "content": "And now?"}])
        assert not compacter._state.calibration("m").learnt


class TestWhatIsShared:
    def test_the_table_of_conversations_is_bounded(self) -> None:
        state = State(Options(trigger_tokens=100))
        first = state.conversation("0")
        for number in range(1, 10_500):
            state.conversation(str(number))
        assert len(state._conversations) <= 10_000
        assert state.conversation("0") is not first

    def test_the_table_of_models_is_bounded(self) -> None:
        state = State(Options())
        first = state.calibration("0")
        for number in range(1, 400):
            state.calibration(str(number))
        assert state.calibration("399") is state.calibration("399")
        assert state.calibration("0") is not first

    def test_looking_at_the_totals_counts_no_call(self) -> None:
        compacter = Compacter()

        def completion(messages: list[Any]) -> str:
            return "ok"

        chat = compacter.wrap(completion)
        seen = [compacter.totals.calls]
        for _ in range(3):
            chat(messages=history(1))
            seen += [compacter.totals.calls, compacter.totals.calls]
        assert seen == [0, 1, 1, 2, 2, 3, 3]


class TestLargeHistories:
    @pytest.mark.parametrize(
        "messages",
        [
            history(1_000, 200),
            [{"role": "user", "content": [{"type": "text", "text": "x" * 250_000}]}],
            [{"role": "assistant", "tool_calls": [{"function": {"arguments": "x" * 250_000}}]}],
            [{"content": "x" * 120_000}, SimpleNamespace(content=["x" * 80_000])],
        ],
        ids=["many", "one text", "arguments", "objects"],
    )
    def test_are_told_by_the_texts_in_them(self, messages: list[Any]) -> None:
        assert is_large(messages)

    def test_a_message_that_holds_itself_is_none(self) -> None:
        message: dict[str, Any] = {"role": "user", "content": []}
        message["content"].append(message)
        assert not is_large([message])


@pytest.mark.parametrize("option", ["tools", "response_format"])
def test_a_schema_that_is_nested_hundreds_of_levels_deep_stops_no_compaction(option: str) -> None:
    schema: Any = {}
    for _ in range(400):
        schema = {"inner": schema}
    events: list[CompactionEvent] = []
    answers: Any = iter([token_limit_error(limit=900, input_tokens=9_000), {"choices": []}])

    @Compacter(summarizer="extractive", on_compaction=events.append)
    def chat(messages: Any, **options: Any) -> Any:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert chat(messages=talk(), **{option: schema}) == {"choices": []}
    assert len(events) == 1


WORDS = "They spoke."
PART = {"type": "text", "text": WORDS}


class TestWhatASummarizerAnswered:
    """In each vendor's shape."""

    @pytest.mark.parametrize(
        "reply",
        [
            WORDS,
            {
                "choices": [
                    {"message": {"content": WORDS}},
                    {"message": {"content": "Another choice."}},
                ]
            },
            {"choices": [{"message": {"content": [PART]}}]},
            {"choices": [{"text": WORDS}]},
            {"content": [{"type": "thinking", "thinking": "Hm."}, PART]},
            {"content": WORDS},
            {"text": WORDS},
            {
                "candidates": [
                    {"content": {"parts": [{"text": "Hm.", "thought": True}, {"text": WORDS}]}}
                ]
            },
            {
                "output": [
                    {"type": "reasoning"},
                    {"type": "message", "content": [{"type": "output_text", "text": WORDS}]},
                ]
            },
            {"output": [{"content": [{"text": "They "}, {"text": "spoke."}]}]},
            {"output": {"message": {"content": [{"text": WORDS}]}}},
        ],
    )
    def test_is_its_words(self, reply: Any) -> None:
        read = read_reply(reply)
        assert (read.text, read.refused, read.called_tool) == (WORDS, False, False)

    @pytest.mark.parametrize(
        "reply",
        [
            {"choices": [{"message": {"content": WORDS, "refusal": "I cannot."}}]},
            {"content": [PART], "stop_reason": "refusal"},
            {
                "output": [
                    {"type": "message", "content": [{"type": "refusal", "refusal": "I cannot."}]}
                ]
            },
            {"candidates": []},
        ],
    )
    def test_may_be_a_refusal(self, reply: Any) -> None:
        read = read_reply(reply)
        assert (read.refused, read.called_tool) == (True, False)

    @pytest.mark.parametrize(
        "reply",
        [
            {"choices": [{"message": {"content": WORDS, "tool_calls": [{"id": "1"}]}}]},
            {"choices": [{"message": {"content": WORDS, "function_call": {"name": "look"}}}]},
            {"content": [PART, {"type": "tool_use", "name": "look"}]},
            {
                "candidates": [
                    {"content": {"parts": [{"text": WORDS}, {"functionCall": {"name": "look"}}]}}
                ]
            },
            {
                "candidates": [
                    {"content": {"parts": [{"text": WORDS}, {"function_call": {"name": "look"}}]}}
                ]
            },
            {"output": [{"type": "function_call", "name": "look"}]},
            {"output": {"message": {"content": [{"toolUse": {"name": "look"}}]}}},
        ],
    )
    def test_may_be_a_tool_call(self, reply: Any) -> None:
        read = read_reply(reply)
        assert (read.refused, read.called_tool) == (False, True)

    @pytest.mark.parametrize(
        ("reply", "finish"),
        [
            ({"choices": [{"message": {"content": WORDS}, "finish_reason": "STOP"}]}, "stop"),
            ({"content": [PART], "stop_reason": "max_tokens"}, "max_tokens"),
            ({"candidates": [{"content": {}, "finishReason": "MAX_TOKENS"}]}, "max_tokens"),
            (
                {
                    "candidates": [
                        {"content": {}, "finish_reason": SimpleNamespace(name="MAX_TOKENS")}
                    ]
                },
                "max_tokens",
            ),
            (
                {"candidates": [{"content": {}, "finish_reason": SimpleNamespace(name="STOP")}]},
                "stop",
            ),
            (
                {
                    "output": [],
                    "status": "incomplete",
                    "incomplete_details": {"reason": "max_output_tokens"},
                },
                "max_output_tokens",
            ),
            (
                {
                    "output": [],
                    "status": "completed",
                    "incomplete_details": {"reason": "max_output_tokens"},
                },
                None,
            ),
            ({"output": {"message": {}}, "stopReason": "max_tokens"}, "max_tokens"),
        ],
    )
    def test_says_why_it_ends(self, reply: Any, finish: str | None) -> None:
        assert read_reply(reply).finish == finish


class TestTheUsageOfAReply:
    @pytest.mark.parametrize(
        "edited",
        [
            {"context_management": {"applied_edits": [{"type": "clear"}]}},
            {
                "provider_specific_fields": {
                    "context_management": {"applied_edits": [{"type": "clear"}]}
                }
            },
            {
                "choices": [
                    {
                        "message": {
                            "provider_specific_fields": {
                                "compaction_blocks": [{"content": "So far."}]
                            }
                        }
                    }
                ]
            },
            {"stop_reason": "compaction"},
            {"content": [{"type": "compaction", "content": "So far."}]},
            {"output": [{"type": "message"}, {"type": "compaction"}]},
        ],
    )
    def test_says_nothing_of_a_request_that_the_provider_has_edited(
        self, edited: dict[str, Any]
    ) -> None:
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


class TestWhatIsSent:
    """Beside the messages as they are: a shortened one in its place, and quotes right before the
    last user message.
    """

    def test_is_the_list_itself_where_nothing_was_changed(self) -> None:
        asked = request()
        assert asked.sent is asked.messages

    def test_has_a_shortened_message_in_the_place_of_the_whole_one(self) -> None:
        messages = [
            *history(2),
            {"role": "user", "content": "Long."},
            {"role": "assistant", "content": "So?"},
        ]
        short = {"role": "user", "content": "L."}
        asked = request(messages=messages, shortened=short, saved=3)
        assert asked.sent == [*messages[:4], short, messages[5]]
        assert asked.size == sum(len(message["content"]) for message in asked.sent)

    def test_has_quotes_right_before_the_last_user_message(self) -> None:
        messages = [
            *history(2),
            {"role": "user", "content": "Why?"},
            {"role": "assistant", "content": "So?"},
        ]
        asked = request(messages=messages, quotes="User, message 0: yes", overhead=70)
        assert [message["content"] for message in asked.sent[4:]] == [
            "User, message 0: yes",
            "Why?",
            "So?",
        ]
        assert asked.size == sum(len(message["content"]) for message in asked.sent) + 70


def test_a_conversation_without_any_message_of_the_user_is_compacted_too() -> None:
    model = ScriptedModel(window=1_000)
    messages: list[Any] = [
        {"role": "assistant", "content": f"Step {number} of the plan. " * 9} for number in range(40)
    ]

    Compacter(summarizer="extractive").wrap(model.completion)("m", messages)

    assert model.rejected == 1
    assert len(model.requests[-1].messages) < len(messages)
