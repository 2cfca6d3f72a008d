"""Costs of a conversation: no summary that cannot help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from compacter import Compacter, CompactionEvent, InProcessMemory, Shorten
from compacter.testing import ScriptedModel

if TYPE_CHECKING:
    from tests.conversations import Chat

SAID = "They talked of piers."


def turns(count: int, start: int = 0) -> list[Chat]:
    return [
        message
        for number in range(start, start + count)
        for message in (
            {"role": "user", "content": f"How long is pier {number}?".ljust(150)},
            {"role": "assistant", "content": f"Pier {number} has {number} metres.".ljust(150)},
        )
    ]


class Writer:
    def __init__(self, *answers: str) -> None:
        self.answers = answers
        self.asked = 0

    def __call__(self, messages: list[Chat]) -> str:
        self.asked += 1
        return self.answers[min(self.asked, len(self.answers)) - 1]


@pytest.mark.parametrize(("window", "size"), [(4_000, 720), (4_096, 250), (8_192, 1_800)])
def test_a_first_refusal_waits_for_one_summary(window: int, size: int) -> None:
    """In a small window too, of which the messages to summarise take four fifths."""
    writer = Writer(SAID)
    compacter = Compacter(summarizer=writer)
    completion = compacter.wrap(ScriptedModel(window=window).completion)
    history: list[Chat] = []
    while not compacter.totals.rounds:
        number = len(history)
        history.append({"role": "user", "content": f"How long is pier {number}?".ljust(size, "?")})
        completion(model="m", messages=history)
        history.append({"role": "assistant", "content": f"{number} metres".ljust(size, ".")})
    assert writer.asked == 1


class TestACallThatCannotBeHelped:
    @pytest.mark.parametrize("grows", [False, True])
    @pytest.mark.parametrize("memory", [None, "in-process"])
    @pytest.mark.parametrize("answer", [SAID, "", "They talked. " * 2_000])
    @pytest.mark.parametrize("size", [5_000, 9_000])
    def test_pays_for_a_summary_once(
        self, size: int, answer: str, memory: Any, grows: bool
    ) -> None:
        """Or never, where what must stay takes more than twice the window."""
        model = ScriptedModel(window=1_000)
        writer = Writer(answer)
        compacter = Compacter(summarizer=writer, memory=memory and InProcessMemory())
        completion = compacter.wrap(model.completion)
        history = turns(20)
        paid: list[int] = []
        for number in range(10):
            before = writer.asked
            sent = len(model.requests)
            with pytest.raises(Exception, match="context") as caught:
                completion("m", [*history, {"role": "user", "content": "z" * size}])
            assert "last user message" in str(caught.value.__notes__)
            paid.append(writer.asked - before)
            history += turns(1, 20 + number) if grows else []
            assert len(model.requests) == sent + 1 or number == 0
        assert (paid[0] > 0) is (size < 8_000)
        assert sum(paid[1:]) == 0

    def test_is_helped_once_it_can_be(self) -> None:
        model = ScriptedModel(window=1_000)
        compacter = Compacter(summarizer=Writer(SAID))
        completion = compacter.wrap(model.completion)
        with pytest.raises(Exception, match="context"):
            completion("m", [*turns(20), {"role": "user", "content": "z" * 9_000}])
        assert completion("m", [*turns(40), {"role": "user", "content": "z" * 900}])


@pytest.mark.parametrize("strategy", [Shorten(), [Shorten()]])
def test_many_short_messages_are_left_out_where_a_strategy_can_do_nothing(strategy: Any) -> None:
    model = ScriptedModel(window=2_000)
    compacter = Compacter(strategy=strategy, recall=None)
    history = turns(5_000)
    assert compacter.wrap(model.completion)("m", [*history, {"role": "user", "content": "Now?"}])
    assert compacter.totals.rounds >= 1


class TestTheSummaryCallStandsOnTheWarmPrefix:
    """A compaction that the wrapped call makes ahead itself continues the program's own request."""

    def make(self, answers: Any) -> tuple[list[Any], list[CompactionEvent]]:
        requests: list[Any] = []
        events: list[CompactionEvent] = []

        def completion(*, model: str, messages: list[Chat], tools: Any = None) -> Any:
            requests.append((list(messages), tools))
            usage = {"prompt_tokens": 4_000, "prompt_tokens_details": {"cached_tokens": 3_500}}
            answer = next(answers) if len(requests) > 2 else {"content": "ok"}
            message = {"role": "assistant", **answer}
            finish = "tool_calls" if "tool_calls" in answer else "stop"
            return {"choices": [{"message": message, "finish_reason": finish}], "usage": usage}

        compacter = Compacter(prepare_tokens=3_000, recall=None, on_compaction=events.append)
        call = compacter.wrap(completion)
        for count in (10, 12):
            call(model="m", messages=turns(count), tools=[{"type": "function"}])
        assert compacter.drain(30)
        return requests, events

    def test_with_the_same_tools_and_messages(self) -> None:
        requests, (event,) = self.make(iter([{"content": SAID}]))
        messages, tools = requests[2]
        assert messages[:8] == turns(12)[:8]
        assert tools == [{"type": "function"}]
        assert messages[-1]["role"] == "user"
        assert (event.trigger, event.fallback, event.cached_tokens) == ("prepared", False, 3_500)

    def test_and_once_on_the_transcript_where_the_answer_is_no_summary(self) -> None:
        calls = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
        answers = iter([{"content": None, "tool_calls": calls}, {"content": SAID}])
        requests, (event,) = self.make(answers)
        assert len(requests) == 4
        assert "<transcript" in str(requests[3][0][0]["content"])
        assert event.summarizer_calls == 2
