"""Strategies of one's own, and the check of what they return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from compacter import (
    ClearToolResults,
    Compacter,
    CompactionEvent,
    CompactionPlan,
    History,
    Summarize,
    Truncate,
)
from compacter.compaction.check import check
from compacter.compaction.conversation import Conversation
from compacter.messages.format import get_format
from compacter.summary import message as summary_message
from compacter.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable

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


def test_a_strategy_of_ones_own_can_be_plugged_in(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=500, strategy=Window(5))
    history = talk.errand(8, size=300)

    assert scene.ask(history) == "ok"

    (event,) = scene.compactions
    assert (event.strategy, event.fallback) == ("window", False)
    assert scene.sent[-1] == history[-1]
    assert scene.model.invalid == 0


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


SUMMARY: Chat = {"role": "user", "content": summary_message.compose("x")}
LONG: Chat = {"role": "user", "content": summary_message.compose("x" * 9_000)}
STRAYS: list[Chat] = [
    {"role": "user", "content": "I never said that."},
    {"role": "assistant", "content": "Nor I."},
]
REWRITES: dict[str, Callable[[list[Chat]], list[Any]]] = {
    "sound": lambda h: [h[0], SUMMARY, *h[8:]],
    "nothing left": lambda h: [],
    "nothing discarded": list,
    "growth": lambda h: [h[0], LONG, *h[8:]],
    "a message twice": lambda h: [h[0], *h[8:], *h[8:]],
    "a lost system message": lambda h: [SUMMARY, *h[8:]],
    "stray messages": lambda h: [h[0], SUMMARY, *STRAYS, *h[8:]],
    "a summary before the system message": lambda h: [SUMMARY, h[0], *h[8:]],
    "another order": lambda h: [h[0], SUMMARY, *h[10:], *h[8:10]],
    "a call without its result": lambda h: [h[0], SUMMARY, *h[8:-1]],
    "a result without its call": lambda h: [h[0], SUMMARY, *h[8:-2], h[-1]],
}


@pytest.mark.parametrize("name", REWRITES)
def test_a_rewrite_that_breaks_a_promise_is_refused(name: str, talk: type[Talk]) -> None:
    history = [talk.system(), *talk.turns(6)[1:], talk.calls("c"), talk.result("c", "42")]
    conversation = Conversation(history, OPENAI, pinned=(0,))

    _, faults = check(conversation, REWRITES[name](history), alternate=False)

    assert bool(faults) is (name != "sound")


def test_a_chain_summarizes_a_short_head_before_long_turns_that_stay(talk: type[Talk]) -> None:
    told: list[CompactionEvent] = []
    model = ScriptedModel(window=3_000, style="bedrock")  # states no numbers
    compacter = Compacter(
        strategy=[ClearToolResults(), Summarize()],
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
