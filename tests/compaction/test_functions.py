"""A strategy may be a plain function of a plan; whatever it does, the caller's messages do not
change.
"""

from __future__ import annotations

import copy
from threading import Lock
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from compacter import ClearToolResults, Compacter, CompactionStrategy, Truncate
from compacter.compaction.strategies import as_strategies
from compacter.errors import ConfigurationError
from compacter.events import CompactionFailed

if TYPE_CHECKING:
    from collections.abc import Generator

    from compacter import CompactionPlan

TALK: list[Any] = [
    {"role": role, "content": f"{role} {turn} " + "word " * 40}
    for turn in range(10)
    for role in ("user", "assistant")
]


def newest(task: CompactionPlan) -> list[Any]:
    return task.keep(
        range(len(task.messages) - 4, len(task.messages)), note="Older messages were left out."
    )


@pytest.mark.parametrize("strategy", [newest, [newest], [ClearToolResults(), newest]])
def test_a_plain_function_is_a_strategy_under_its_name(strategy: Any) -> None:
    made = Compacter(strategy=strategy).compact(TALK)

    assert made.messages[1:] == TALK[-4:]
    assert made.event is not None
    assert made.event.strategy == "newest"


def test_a_lambda_and_an_object_that_is_called_are_strategies() -> None:
    class Newest:
        def __call__(self, task: CompactionPlan) -> list[Any]:
            return newest(task)

    given = (lambda task: newest(task), Newest(), Truncate())  # noqa: PLW0108
    names = [strategy.name for strategy in as_strategies(given)]

    assert names == ["lambda", "Newest", "truncate"]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        *((7, "; not 7"), ("clear_tool_results", "; say ClearToolResults()")),
        *((Truncate, "; say Truncate()"), ([Truncate], "; say Truncate()")),
        *((value, "") for value in (None, [], object(), SimpleNamespace(name="x"))),
    ],
)
def test_anything_else_is_refused_with_a_word_on_what_is_taken(value: Any, told: str) -> None:
    with pytest.raises(ConfigurationError, match=r"strategy.* Summarize\(\)") as refused:
        Compacter(strategy=value)
    assert told in str(refused.value)
    with pytest.raises(ConfigurationError, match=r"strategy.* Summarize\(\)"):
        as_strategies([value])


def test_only_strategies_that_say_so_edit() -> None:
    assert ClearToolResults().edits
    assert not hasattr(as_strategies([newest])[0], "edits")
    assert isinstance(as_strategies([newest])[0], CompactionStrategy)


class Message:
    """A message of a program's own class."""

    def __init__(self, role: str, content: str) -> None:
        self.role = role
        self.content = content


def at_once(task: CompactionPlan) -> list[Any]:
    change(task.messages[0])
    return newest(task)


def in_steps(task: CompactionPlan) -> Generator[Any, Any, list[Any]]:
    change(task.messages[0])
    yield from ()
    change(task.messages[2])
    return newest(task)


def raising(task: CompactionPlan) -> list[Any]:
    change(task.messages[0])
    raise RuntimeError("lost")


def raising_in_steps(task: CompactionPlan) -> Generator[Any, Any, list[Any]]:
    yield from ()
    change(task.messages[0])
    raise RuntimeError("lost")


def change(message: Any) -> None:
    if isinstance(message, dict):
        message["content"] = "changed"
        message["more"] = True
    else:
        message.content = "changed"


@pytest.mark.parametrize("strategy", [at_once, in_steps, raising, raising_in_steps])
@pytest.mark.parametrize("kind", ["dicts", "objects"])
def test_a_strategy_that_changes_messages_is_refused_and_they_are_put_back(
    strategy: Any, kind: str
) -> None:
    talk = copy.deepcopy(TALK) if kind == "dicts" else [Message(**message) for message in TALK]
    told: list[object] = []
    made = Compacter(strategy=strategy, on_event=told.append).compact(talk)

    assert [message if kind == "dicts" else vars(message) for message in talk] == TALK
    (failed,) = [event for event in told if isinstance(event, CompactionFailed)]
    assert "changed a message in place; what helps: copy it" in failed.reason
    assert made.event is not None
    assert made.event.fallback


def test_a_message_that_cannot_be_copied_is_no_hindrance() -> None:
    talk = [{**message, "lock": Lock()} for message in TALK]
    made = Compacter(strategy=newest).compact(talk)

    assert made.messages[1:] == talk[-4:]
    assert made.event is not None
    assert made.event.strategy == "newest"
