"""One compaction from its plan to its event: hooks, strategies in a row, and the report of one that
fails.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.compaction.conftest import carried_out, plan, refused
from tests.conversations import history, talk, user

from compacter import (
    ClearToolResults,
    Compacter,
    CompactionPlan,
    Shorten,
    Summarize,
    Truncate,
)
from compacter.compaction.calibration import Calibration
from compacter.compaction.conversation import Conversation
from compacter.events import CompactionFailed, CompactionSkipped, CompactionStarted
from compacter.messages.format import get_format
from compacter.options import Options
from compacter.summary.message import Summary

OPENAI = get_format("openai")
TALK = history(10, 100)
WAITING: list[Any] = [
    user("Look."),
    {
        "role": "assistant",
        "content": "x" * 4_000,
        "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        ],
    },
]
"""Nothing of it can be folded; its last message can be shortened."""


def look(number: int, size: int) -> list[Any]:
    call = {"id": f"c{number}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": "r" * size},
    ]


def told(messages: list[Any], strategy: Any, **facts: Any) -> tuple[list[Any], Any]:
    """All events, and the compaction."""
    events: list[Any] = []
    options = Options(strategy=strategy, before_compaction=lambda plan: plan)
    facts = {"trigger": "token_limit", "calibration": Calibration(), **facts}
    work = refused(conversation=Conversation(messages, OPENAI), **facts)
    _, made = carried_out(options, work, "They talked of many things.", told=events)
    return events, made


class Watching:
    """Changes nothing, and keeps the tasks."""

    name = "watching"

    def __init__(self) -> None:
        self.tasks: list[CompactionPlan] = []

    def compact(self, task: CompactionPlan) -> Any:
        self.tasks.append(task)
        return task.messages


def fails(task: CompactionPlan) -> Any:
    task.replace_head(Summary("They never talked.", notes=("Some are left out.",)))
    raise LookupError("lost")


@pytest.mark.parametrize(
    ("messages", "strategy", "must", "asked", "started"),
    [
        (TALK, Summarize(), False, True, True),
        (WAITING, Summarize(), False, False, False),
        (WAITING, Summarize(), True, True, True),  # It can be shortened.
        (WAITING, ClearToolResults(), False, True, False),  # It edits where nothing can be folded.
    ],
)
def test_hooks_are_asked_where_something_may_be_done(
    messages: list[Any], strategy: Any, *, must: bool, asked: bool, started: bool
) -> None:
    events, _ = told(messages, strategy, is_required=must)

    assert any(isinstance(event, CompactionPlan) for event in events) is asked
    assert any(isinstance(event, CompactionStarted) for event in events) is started


def test_a_strategy_knows_what_is_known_of_the_model() -> None:
    watching = Watching()
    told(TALK, watching, calibration=Calibration(2.0, 5_000), target=1_000)
    (task,) = watching.tasks

    assert (task.sizes.calibration.window, task.target) == (5_000, 1_000)


def test_that_nothing_can_be_folded_is_told() -> None:
    events, made = told(WAITING, Summarize())

    assert made is None
    assert [event.reason for event in events if isinstance(event, CompactionSkipped)] == [
        "nothing_to_compact"
    ]


def test_the_event_names_each_strategy_once_and_the_share_to_four_digits() -> None:
    def drop(task: CompactionPlan) -> Any:
        return task.messages[1:]

    _, made = told(history(10, 100), [drop, drop, Truncate()], target=1_700)

    assert made.event.strategy == "drop+truncate"
    assert (
        made.event.ratio
        == round(sum(map(OPENAI.size, made.event.discarded)) / 1_900, 4)
        != round(made.event.ratio, 1)
    )


class TestACutThatAHookHasChosen:
    @pytest.mark.parametrize(("cut", "first"), [(11, 11), (20, 20)])
    def test_holds_for_what_a_strategy_has_left(self, cut: int, first: int) -> None:
        talk = [*history(10, 100), user("?")]

        def dropping(task: CompactionPlan) -> list[Any]:
            return [message for at, message in enumerate(task.messages) if at not in (1, 2, 10)]

        task = self.task(talk, dropping, cut)
        assert task.messages[task.cut] is talk[first]

    @pytest.mark.parametrize(
        ("messages", "first", "cut", "there"),
        [
            (
                [user("Look."), *look(0, 2_000), *look(1, 2_000), *look(2, 2_000)],
                ClearToolResults(keep_recent=1),
                3,
                3,
            ),
            (history(10, 2_000), Shorten(), 3, 3),  # The message at it is edited.
            (TALK, lambda task: task.messages[2:], 20, 18),  # The end of all.
        ],
    )
    def test_holds_where_a_strategy_has_edited(
        self, messages: list[Any], first: Any, cut: int, there: int
    ) -> None:
        assert self.task(messages, first, cut).cut == there

    def task(self, messages: list[Any], first: Any, cut: int) -> CompactionPlan:
        """The plan of the second strategy."""
        watching = Watching()
        hook: Any = lambda plan: replace(plan, cut=cut)  # noqa: E731
        Compacter(strategy=[first, watching], before_compaction=hook).compact(messages, budget=500)
        return watching.tasks[0]

    def test_is_none_where_the_hook_changes_nothing(self) -> None:
        watching = Watching()
        told(
            TALK, [lambda task: [*task.messages[:14], *task.messages[18:]], watching], target=1_500
        )
        (task,) = watching.tasks
        asked = replace(task, is_chosen=False)
        options: Any = task.options
        assert task.cut == plan(options, asked).cut < 14


class TestAStrategyThatFails:
    def test_is_told_with_its_error(self) -> None:
        events, made = told(TALK, fails)
        (failed,) = [event for event in events if isinstance(event, CompactionFailed)]
        assert (failed.error, type(failed.cause)) == ("LookupError", LookupError)
        assert made.event.fallback

    def test_leaves_nothing_of_itself_in_the_event_of_the_next(self) -> None:
        messages = [*talk(), *look(0, 4_000), *look(1, 10)]
        _, made = told(messages, [fails, ClearToolResults(keep_recent=1)])
        assert (made.event.strategy, made.event.summary, made.event.ledger) == (
            "clear_tool_results",
            "",
            "",
        )

    def test_leaves_the_work_to_the_next(self) -> None:
        _, made = told(TALK, [fails, Truncate()])
        assert (made.event.strategy, made.event.fallback) == ("truncate", False)

    def test_is_no_fallback_where_nothing_can_be_folded(self) -> None:
        _, made = told(WAITING, fails, is_required=True)
        assert (made.event.strategy, made.event.fallback) == ("shorten", False)

    def test_has_no_fallback_that_would_make_the_list_larger(self) -> None:
        messages = [user("Hi."), *TALK]
        hook: Any = lambda plan: replace(plan, cut=1)  # noqa: E731
        assert (
            not Compacter(strategy=fails, fallback="truncate", before_compaction=hook)
            .compact(messages)
            .changed
        )

    def test_in_a_summary_is_not_named_beside_the_fallback(self) -> None:
        work = refused(
            conversation=Conversation(TALK, OPENAI),
            trigger="token_limit",
            calibration=Calibration(),
        )
        _, made = carried_out(Options(), work, RuntimeError("lost"))
        assert (made.event.strategy, made.event.fallback) == ("extractive", True)
