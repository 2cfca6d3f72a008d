"""Stateless callers pay once: whole programs that resend their history, with each memory
there is.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from compacter import Compacter, InProcessMemory, SQLiteMemory
from compacter.memory import Memory
from compacter.testing import ScriptedModel, ScriptedSummarizer

Talk = Callable[..., list[dict[str, Any]]]
PIN = "Never book a night train."


def talk_on(completion: Callable[..., Any], history: list[Any], turns: int) -> None:
    """Resend the whole history at each turn, as most programs do."""
    for number in range(turns):
        history.append({"role": "user", "content": f"Question {len(history)}, {number}. " * 8})
        history.append(completion("model", history)["choices"][0]["message"])


def answering(messages: Sequence[Any]) -> str:
    return f"Answer to {messages[-1]['content'][:14]}. " * 8


def test_between_two_compactions_each_request_begins_with_the_one_before_it(memory: Memory) -> None:
    model = ScriptedModel(window=3_000, replies=answering)
    compacter = Compacter(memory=memory, recall=None, summarizer=ScriptedSummarizer())
    history: list[Any] = [{"role": "system", "content": "Be brief."}]
    talk_on(compacter.wrap(model.completion), history, 120)
    answered = [request.messages for request in model.requests if not request.refused]
    broken = sum(later[: len(earlier)] != earlier for earlier, later in pairwise(answered))
    assert 2 <= compacter.totals.rounds == broken <= 10
    assert model.invalid == 0


def test_after_a_restart_the_conversation_goes_on_and_is_compacted_again(tmp_path: Path) -> None:
    model = ScriptedModel(window=2_000, replies=answering)
    history: list[Any] = [{"role": "system", "content": "Be brief."}]

    def program(turns: int) -> tuple[int, int]:
        """One life of the program: rounds made and requests rejected in it."""
        rejected = model.rejected
        compacter = Compacter(
            memory=SQLiteMemory(tmp_path / "m.db"), summarizer=ScriptedSummarizer()
        )
        talk_on(compacter.wrap(model.completion), history, turns)
        return compacter.totals.rounds, model.rejected - rejected

    assert program(30)[0] > 0
    assert program(1) == (0, 0)
    assert program(30)[0] > 0
    heads = [
        sum(
            "Answer" not in str(message) and "Question" not in str(message)
            for message in request.messages
        )
        for request in model.requests
        if not request.refused
    ]
    assert max(heads) <= 2


@pytest.mark.parametrize(
    ("changes", "model", "shared"),
    [
        ({}, "model", True),
        ({"max_retries": 5, "timeout": 9.0}, "model", True),
        ({}, "another model", False),
        ({"compact_ratio": 0.5}, "model", False),
        ({"summary_prompt": "Sum it up: {history}"}, "model", False),
        ({"max_summary_tokens": 100}, "model", False),
        ({"preserve_recent_turns": 2}, "model", False),
        ({"summarizer": "extractive"}, "model", False),
        ({"alternate_roles": True}, "model", False),
        ({"redact": str.lower}, "model", False),
        ({"redact": str.upper}, "model", False),
    ],
    ids=str,
)
def test_only_calls_that_would_have_the_same_summary_share_it(
    memory: Memory, talk: Talk, changes: dict[str, Any], model: str, shared: bool
) -> None:
    history = [*talk(60), {"role": "user", "content": "And now?"}]
    scripted = ScriptedModel(window=2_000)
    options: dict[str, Any] = {"memory": memory, "summarizer": ScriptedSummarizer()}
    Compacter(**options).wrap(scripted.completion)("model", history)
    if changes.get("redact") is str.upper:
        Compacter(**options, redact=str.lower).wrap(scripted.completion)("model", history)
    compacter = Compacter(**{**options, **changes})
    compacter.wrap(scripted.completion)(model, copy.deepcopy(history))
    assert compacter.totals.rounds == (0 if shared else 1)


class Failing(InProcessMemory):
    """A memory of which one method raises."""

    def __init__(self, method: str, *, blocking: bool) -> None:
        super().__init__()
        self.blocking = blocking
        self.failed = 0

        def fail(*_: Any) -> Any:
            self.failed += 1
            raise OSError("the disk is gone")

        if method == "release":
            self.claim = lambda key, seconds: SimpleNamespace(release=fail)  # type: ignore[method-assign]
        else:
            setattr(self, method, fail)

    def __len__(self) -> int:
        return 1


METHODS = ["find", "save", "claim", "release"]


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("blocking", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_a_memory_that_fails_never_breaks_a_call(
    method: str, blocking: bool, asynchronous: bool
) -> None:
    memory = Failing(method, blocking=blocking)
    model = ScriptedModel(window=1_000, replies=answering)
    compacter = Compacter(memory=memory, summarizer=ScriptedSummarizer())
    wrapped: Any = compacter.wrap(model.acompletion)
    completion = compacter.wrap(model.completion)
    if asynchronous:
        completion = lambda *given: asyncio.run(wrapped(*given))  # noqa: E731
    history: list[Any] = [{"role": "system", "content": "Be brief."}]
    talk_on(completion, history, 20)
    assert len(history) == 41
    assert model.rejected > 0
    assert bool(memory.failed) is (blocking or method in ("find", "save"))


def test_after_a_restart_quotes_come_as_before(stored: Memory) -> None:
    model = ScriptedModel(window=2_000, replies=answering)
    fact = "The spare key of the boathouse hangs behind the copper kettle."
    history: list[Any] = [
        {"role": "user", "content": "Tell me of the house."},
        {"role": "assistant", "content": fact},
    ]
    told = "Question 1, Question 2 and Question 3 were answered, and so was Question 4."
    before = Compacter(memory=stored, summarizer=ScriptedSummarizer(told))
    talk_on(before.wrap(model.completion), history, 25)
    history.append({"role": "user", "content": "Where does the spare key of the boathouse hang?"})
    refused = len([request for request in model.requests if request.refused])

    # Nothing of the first one is at hand.
    after = Compacter(memory=stored, summarizer=ScriptedSummarizer(told))
    after.wrap(model.completion)("model", history)

    quotes = model.requests[-1].messages[-2]["content"]
    assert f"Assistant, message 1: {fact}" in quotes
    assert len([request for request in model.requests if request.refused]) == refused > 0
