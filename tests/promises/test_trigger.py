"""Compacting ahead of the limit."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from compacter import Compacter, History
from compacter.testing import ScriptedSummarizer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.promises.conftest import Chat, MakeStage, Stage, Talk


def compacter(**options: Any) -> Compacter:
    options.setdefault("summarizer", ScriptedSummarizer("Short."))
    return Compacter(**options)


def chat(
    scene: Stage, history: list[Chat], turns: int, talk: type[Talk], size: int = 200
) -> list[int]:
    """Hold so many more turns; the numbers of the calls before which it was compacted."""
    when = []
    for number in range(turns):
        history.append(talk.user(talk.text(f"question {number}", size)))
        seen = len(scene.compactions)
        scene.ask(history)
        if len(scene.compactions) > seen:
            when.append(number)
        history.append(talk.answer(talk.text(f"answer {number}", size)))
    return when


# ailoop
def test_the_users_token_counter_is_used(talk: type[Talk]) -> None:
    counted: list[int] = []

    def counter(messages: Sequence[Chat]) -> int:
        counted.append(len(messages))
        return 50 * len(messages)

    history = History(talk.turns(4), compacter=compacter(token_counter=counter), max_tokens=501)

    assert not history.needs_compaction()
    history.append(talk.answer("x"))
    assert history.needs_compaction()
    assert counted == [10, 11]


# ailoop
@pytest.mark.parametrize(
    ("reserve", "needed"), [(0, False), (100, False), (600, True), (10**6, True)]
)
def test_a_reserve_lowers_the_threshold_and_not_the_estimate(
    reserve: int, needed: bool, talk: type[Talk]
) -> None:
    history = History(
        talk.turns(8), compacter=compacter(), max_tokens=1_200, reserve_tokens=reserve
    )

    assert history.tokens() == History(talk.turns(8), compacter=compacter()).tokens()
    assert history.needs_compaction() is needed


# meerkat
def test_never_on_the_first_call(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=10**6, trigger_tokens=100)

    scene.ask(talk.turns(50))

    assert scene.told == []


# meerkat
def test_but_on_the_second(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=10**6, trigger_tokens=1_000)
    history = talk.turns(50)

    scene.ask(history)
    scene.ask([*history, talk.answer("x"), talk.user("y")])

    (event,) = scene.compactions
    assert event.trigger == "threshold"
    assert scene.model.requests[-1].tokens < 1_000
    assert scene.model.rejected == 0


# meerkat
@pytest.mark.parametrize("between", [0, 2, 5])
def test_the_cool_down_holds_back_the_next_calls(
    between: int, stage: MakeStage, talk: type[Talk]
) -> None:
    # Each turn adds 100 tokens, each compaction takes few away: the threshold is reached again
    # soon.
    scene = stage(window=10**6, trigger_tokens=2_000, min_calls_between=between, compact_ratio=0.05)

    when = chat(scene, [talk.system()], 60, talk)

    assert len(when) > 1
    assert all(later - earlier > between for earlier, later in pairwise(when))


# meerkat
def test_a_failed_compaction_counts(stage: MakeStage, talk: type[Talk]) -> None:
    asked = ScriptedSummarizer(fail="raises", returns="completion")
    scene = stage(
        window=10**6,
        trigger_tokens=1_000,
        min_calls_between=5,
        fallback=None,
        summarizer=asked,
        memory=None,
    )

    chat(scene, [talk.system()], 16, talk)

    failed = scene.kinds().count("CompactionFailed")
    assert failed
    assert len(asked.requests) <= 3


# meerkat
def test_tool_schemas_count(stage: MakeStage, talk: type[Talk]) -> None:
    tools = [
        {
            "type": "function",
            "function": {"name": "f", "description": "d" * 2_000, "parameters": {}},
        }
    ]
    without = stage(window=10**6, trigger_tokens=1_000)
    beside = stage(window=10**6, trigger_tokens=1_000)
    history = talk.turns(7)

    for scene, options in ((without, {}), (beside, {"tools": tools})):
        scene.ask(history, **options)
        scene.ask([*history, talk.answer("x"), talk.user("y")], **options)

    assert (len(without.compactions), len(beside.compactions)) == (0, 1)
