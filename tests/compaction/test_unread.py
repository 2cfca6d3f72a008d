"""Results that no model has answered yet: what it asked for."""

from __future__ import annotations

from typing import Any

import pytest

from compacter import Compacter, CompactionPlan
from compacter.compaction.conversation import Conversation
from compacter.compaction.cut import plan
from compacter.compaction.plan import Calibration
from compacter.messages.format import get_format
from compacter.options import Options

OPENAI = get_format("openai")


def say(role: str, size: int) -> dict[str, Any]:
    return {"role": role, "content": "x" * size}


def look(*sizes: int) -> list[dict[str, Any]]:
    """A message with as many calls, and their results of these sizes."""
    function = {"name": "look", "arguments": "{}"}
    calls = [{"id": f"c{at}", "type": "function", "function": function} for at in range(len(sizes))]
    results = [
        {
            "role": "tool",
            "tool_call_id": f"c{at}",
            "content": f"line of {at}\n" * (size // 10) + "." * (size % 10),
        }
        for at, size in enumerate(sizes)
    ]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *results]


def work(messages: list[Any], **facts: Any) -> CompactionPlan:
    facts = {"trigger": "token_limit", "must": True, **facts}
    return CompactionPlan(
        conversation=Conversation.of(messages, OPENAI), calibration=Calibration(), **facts
    )


@pytest.mark.parametrize("ratio", [0.2, 0.7, 0.95, 1.0])
@pytest.mark.parametrize("target", [None, 9_000, 2_000])
@pytest.mark.parametrize("ending", [[], [say("user", 20)]], ids=["last", "user behind"])
def test_stay_whatever_the_ratio(ratio: float, target: int | None, ending: list[Any]) -> None:
    """Results that no model has answered stay, whatever the ratio and the room for quotes."""
    talk = [say("user", 10), *look(900), *look(900), *look(2_500, 2_500), *ending]

    for reserved in (0, 2_000):
        made = plan(
            Options(compact_ratio=ratio),
            work(talk, target=target, reserved=reserved * bool(target)),
        )
        assert 0 < made.cut <= 5


def test_answered_results_go() -> None:
    """Once a model has answered them, results are compacted as all else is."""
    talk = [say("user", 10), *look(900), *look(2_500), say("assistant", 20), say("user", 20)]

    assert plan(Options(), work(talk, target=2_000)).cut == 5


def test_results_that_are_too_many() -> None:
    """Results that even shortened ones leave no room for are compacted."""
    talk = [say("user", 10), *look(*[900] * 20)]

    assert plan(Options(), work(talk, target=9_000)).cut == 0
    assert plan(Options(), work(talk, target=7_000)).cut == len(talk)


def test_by_hand_without_a_budget() -> None:
    """A compaction by hand without a budget compacts unread results if there is nothing else."""
    made = Compacter(compact_ratio=0.5)

    assert made.plan([say("user", 10), *look(400)]).cut == 3
    assert made.plan([say("user", 10), say("assistant", 400), *look(900)]).cut == 2
