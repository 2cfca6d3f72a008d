"""Strategies of one's own, and the check of what they return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from compacter import (
    Chain,
    ClearToolResults,
    Compacter,
    CompactionEvent,
    CompactionPlan,
    History,
    Summarize,
    Truncate,
)
from compacter.compaction.conversation import Conversation, check
from compacter.messages.format import get_format
from compacter.summary import message as summary_message
from compacter.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.promises.conftest import Chat, MakeStage, Talk


class Window:
    """A strategy of a user's own: the newest messages only."""

    name = "window"

    def __init__(self, size: int) -> None:
        self.size = size

    def compact(self, task: CompactionPlan) -> list[Any]:
        count = len(task.messages)
        return task.keep(range(max(count - self.size, 0), count), note="Older messages are gone.")


class Inventor:
    """A strategy that puts words into the user's mouth."""

    name = "inventor"

    def compact(self, task: CompactionPlan) -> list[Any]:
        invented = [{"role": "user", "content": f"I said {number}."} for number in range(3)]
        return [task.messages[0], *invented, *task.messages[-1:]]


class Thief:
    """A strategy that loses the system prompt."""

    name = "thief"

    def compact(self, task: CompactionPlan) -> list[Any]:
        return list(task.messages[-1:])


class Breaker:
    """A strategy that forgets that calls have results."""

    name = "breaker"

    def compact(self, task: CompactionPlan) -> list[Any]:
        return [message for message in task.messages if message["role"] != "tool"]


OPENAI = get_format("openai")


def test_a_strategy_names_itself_in_the_report(talk: type[Talk]) -> None:
    event = History(talk.turns(8), compacter=Compacter(strategy=Truncate())).compact().event
    assert event is not None
    assert event.strategy == "truncate"


# entelix
def test_a_strategy_of_ones_own_can_be_plugged_in(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=500, strategy=Window(5))
    history = talk.errand(8, size=300)

    assert scene.ask(history) == "ok"

    (event,) = scene.compactions
    assert (event.strategy, event.fallback) == ("window", False)
    assert scene.sent[-1] == history[-1]
    assert scene.model.invalid == 0


# entelix
@pytest.mark.parametrize(
    "strategy", [Breaker(), Thief(), Inventor()], ids=lambda strategy: strategy.name
)
def test_one_that_breaks_a_promise_is_caught_before_anything_is_sent(
    strategy: Any, stage: MakeStage, talk: type[Talk]
) -> None:
    scene = stage(window=500, strategy=strategy)

    assert scene.ask(talk.errand(8, size=250)) == "ok"

    (event,) = scene.compactions
    assert (event.strategy, event.fallback) == ("extractive", True)
    assert scene.model.invalid == 0
    assert scene.sent[0]["role"] == "system"


# meerkat
class TestTheCheck:
    """It refuses every rewrite that breaks a promise."""

    @pytest.fixture
    def history(self, talk: type[Talk]) -> list[Chat]:
        return [talk.system(), *talk.turns(6)[1:], talk.calls("c"), talk.result("c", "42")]

    def faults(
        self, before: list[Chat], after: list[Any], protected: Sequence[int] = (0,)
    ) -> list[str]:
        conversation = Conversation.of(before, OPENAI, pinned=protected)
        return check(conversation, after, alternate=False)[1]

    def test_a_sound_rewrite_has_no_fault(self, history: list[Chat], talk: type[Talk]) -> None:
        assert (
            self.faults(
                history, [history[0], talk.user(summary_message.compose("x")), *history[8:]]
            )
            == []
        )

    def test_nothing_left(self, history: list[Chat]) -> None:
        assert self.faults(history, [])

    def test_nothing_discarded(self, history: list[Chat]) -> None:
        assert self.faults(history, list(history))

    def test_growth(self, history: list[Chat], talk: type[Talk]) -> None:
        assert self.faults(
            history, [history[0], talk.user(summary_message.compose("x" * 9_000)), *history[8:]]
        )

    def test_a_message_twice(self, history: list[Chat]) -> None:
        assert self.faults(history, [history[0], *history[8:], *history[8:]])

    def test_a_lost_system_message(self, history: list[Chat], talk: type[Talk]) -> None:
        assert self.faults(history, [talk.user(summary_message.compose("x")), *history[8:]])

    def test_a_stray_message(self, history: list[Chat], talk: type[Talk]) -> None:
        strays = [talk.user("I never said that."), talk.answer("Nor I.")]
        assert self.faults(
            history, [history[0], talk.user(summary_message.compose("x")), *strays, *history[8:]]
        )

    def test_a_wrong_place_for_the_summary(self, history: list[Chat], talk: type[Talk]) -> None:
        assert self.faults(
            history, [talk.user(summary_message.compose("x")), history[0], *history[8:]]
        )

    def test_another_order(self, history: list[Chat], talk: type[Talk]) -> None:
        assert self.faults(
            history,
            [history[0], talk.user(summary_message.compose("x")), *history[10:], *history[8:10]],
        )

    def test_half_a_pair(self, history: list[Chat], talk: type[Talk]) -> None:
        assert self.faults(
            history, [history[0], talk.user(summary_message.compose("x")), *history[8:-1]]
        )
        assert self.faults(
            history,
            [history[0], talk.user(summary_message.compose("x")), *history[8:-2], history[-1]],
        )


def test_a_chain_summarizes_a_short_head_before_long_turns_that_stay(talk: type[Talk]) -> None:
    told: list[CompactionEvent] = []
    model = ScriptedModel(window=3_000, style="bedrock")  # states no numbers
    compacter = Compacter(
        strategy=Chain(ClearToolResults(), Summarize()),
        preserve_recent_turns=4,
        compact_ratio=1.0,
        summarizer="extractive",
        rules=["Answer in metres."],
        on_compaction=told.append,
    )

    compacter.wrap(model.completion)("m", [*talk.turns(6)[:-1], *talk.turns(3, 1_800)[1:]])

    (event,) = told
    assert (event.strategy, event.fallback) == ("summarize", False)
    assert len(event.discarded) == 12
