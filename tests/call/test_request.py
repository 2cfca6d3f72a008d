"""The request of a call, and the state that the calls of one Compacter share."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.conversations import bot, history, talk, user

from compacter import Compacter, CompactionEvent
from compacter.call.request import Request
from compacter.call.state import State
from compacter.messages.format import get_format
from compacter.options import Options
from compacter.runtime.io import is_large
from compacter.testing import ScriptedModel, ScriptedSummarizer, token_limit_error


def request(**options: Any) -> Request:
    messages = history()
    return Request(
        **{"format": get_format("openai"), "original": messages, "messages": messages, **options}
    )


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
