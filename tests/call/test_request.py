"""The usage of a reply, the numbers of a provider, and the state that the calls of one Compacter
share.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.conversations import bot, history, talk, user

from compacter import Compacter, CompactionEvent
from compacter.call.request import Request
from compacter.call.state import State
from compacter.messages.format import get_format
from compacter.messages.replies import read_reply, tokens_read, usage_of
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


@pytest.mark.parametrize(
    ("reply", "is_other", "learnt"),
    [
        ({"usage": {"prompt_tokens": 1_000}}, False, True),
        (SimpleNamespace(usage=SimpleNamespace(prompt_tokens=1_000)), False, True),
        ({"usage": {"input_tokens": 100, "cache_read_input_tokens": 900}}, False, True),
        (SimpleNamespace(usage_metadata=SimpleNamespace(prompt_token_count=1_000)), False, True),
        ({"usage": {"prompt_tokens": 1_000}}, True, False),  # Another history.
        ({"usage": {"prompt_tokens": 100}}, False, False),  # The prompt was cut.
    ],
)
def test_the_last_replys_usage(reply: Any, is_other: bool, learnt: bool) -> None:
    """It states the characters of a token, if its request was an earlier state of this history."""
    compacter = Compacter(summarizer=ScriptedSummarizer())
    messages = history()
    replies: list[Any] = [reply]

    def completion(model: str, messages: list[Any]) -> Any:
        if replies:
            return replies.pop()
        raise ValueError("context_length_exceeded") if len(messages) > 20 else KeyError("stop")

    chat = compacter.wrap(completion)
    chat("m", messages)
    following = [dict(message) for message in messages] if is_other else messages
    with pytest.raises(KeyError):
        chat("m", [*following, user("And now?")])
    calibration = compacter._state.calibration("m")
    assert calibration.learnt is learnt
    assert calibration.chars_per_token == pytest.approx(4.0, rel=0.1)


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


class TestWhatIsSent:
    """Beside the unchanged messages: a shortened one in its place, and quotes right before the last
    user message.
    """

    def test_is_the_list_itself_where_nothing_was_changed(self) -> None:
        asked = request()
        assert asked.sent is asked.messages

    def test_has_a_shortened_message_in_the_place_of_the_whole_one(self) -> None:
        messages = [*history(2), user("Long."), bot("So?")]
        short = user("L.")
        asked = request(messages=messages, shortened=short, saved=3)
        assert asked.sent == [*messages[:4], short, messages[5]]
        assert asked.size == sum(len(message["content"]) for message in asked.sent)

    def test_has_quotes_right_before_the_last_user_message(self) -> None:
        messages = [*history(2), user("Why?"), bot("So?")]
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
