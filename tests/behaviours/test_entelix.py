"""What entelix's ``Compactor`` promises: tool pairs come whole or not at all (E1 to E11)."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from compacter import Compacter, InvalidHistoryError, Truncate
from compacter.compaction.summarize import Summarize
from compacter.compaction.task import CompactionTask
from compacter.messages.format import FORMATS, get_format
from compacter.testing import ScriptedModel, ScriptedSummarizer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.behaviours.conftest import Chat, MakeStage, Talk


def test_e1_empty_in_empty_out() -> None:
    result = Compacter(summarizer=ScriptedSummarizer()).compact([])
    assert (result.messages, result.changed, result.fits) == ([], False, True)


def test_e1_under_budget_everything_is_kept(talk: type[Talk]) -> None:
    history = talk.turns(5)
    size = sum(len(message["content"]) for message in history)
    asked = ScriptedSummarizer("Short.")
    compacter = Compacter(summarizer=asked)

    result = compacter.compact(history, budget=size)

    assert (result.messages, result.changed, result.fits) == (history, False, True)
    assert compacter.plan(history, budget=size).cut == 0
    assert not asked.requests
    assert compacter.compact(history, budget=size - 1).changed


@pytest.mark.parametrize("budget", [200, 400, 700, 1_000, 2_000, 4_000, 8_000])
@pytest.mark.parametrize("parallel", [1, 3])
@pytest.mark.parametrize("strategy", [Summarize(), Truncate()], ids=lambda strategy: strategy.name)
def test_e2_a_pair_is_never_halved_however_tight_the_budget(
    budget: int, parallel: int, strategy: Any, talk: type[Talk]
) -> None:
    history = talk.errand(8, size=300, parallel=parallel)

    result = Compacter(summarizer=ScriptedSummarizer("Short."), strategy=strategy).compact(history, budget=budget)

    outline = get_format("openai").outline(result.messages)
    assert outline.broken == ()
    assert outline.open is None


@pytest.mark.parametrize("where", ["result", "call"])
def test_e3_strict_names_the_id_of_half_a_pair(where: str, talk: type[Talk]) -> None:
    half = talk.result("call_x", "42") if where == "result" else talk.calls("call_x")
    history = [*talk.turns(2), half, *talk.turns(2)[1:]]

    with pytest.raises(InvalidHistoryError, match="call_x") as caught:
        Compacter(summarizer=ScriptedSummarizer()).compact(history, strict=True)

    assert caught.value.index == history.index(half)


def test_e3_a_last_open_call_is_no_fault_and_stays(talk: type[Talk]) -> None:
    history = [*talk.turns(8), talk.calls("call_open")]

    result = Compacter(summarizer=ScriptedSummarizer("Short."), compact_ratio=1).compact(history, strict=True)

    assert result.messages[-1] is history[-1]


@pytest.mark.parametrize("ratio", [0.1, 0.5, 0.9, 1.0])
def test_e4_truncation_drops_the_oldest_and_keeps_a_contiguous_newest_part(ratio: float, talk: type[Talk]) -> None:
    history = talk.turns(10)

    result = Compacter(strategy=Truncate(), compact_ratio=ratio).compact(history)

    kept = [history.index(message) for message in result.messages if message in history]
    assert kept[0] == 0
    assert kept[1:] == list(range(kept[1], len(history)))
    assert result.discarded == tuple(history[1 : kept[1]])


class Window:
    """A strategy of a user's own: the newest messages only."""

    name = "window"

    def __init__(self, size: int) -> None:
        self.size = size

    def compact(self, task: CompactionTask) -> list[Any]:
        count = len(task.messages)
        return task.keep(range(max(count - self.size, 0), count), note="Older messages are gone.")


class Breaker:
    """A strategy that forgets that calls have results."""

    name = "breaker"

    def compact(self, task: CompactionTask) -> list[Any]:
        return [message for message in task.messages if message["role"] != "tool"]


class Thief:
    """A strategy that loses the system prompt."""

    name = "thief"

    def compact(self, task: CompactionTask) -> list[Any]:
        return list(task.messages[-1:])


class Inventor:
    """A strategy that puts words into the user's mouth."""

    name = "inventor"

    def compact(self, task: CompactionTask) -> list[Any]:
        invented = [{"role": "user", "content": f"I said {number}."} for number in range(3)]
        return [task.messages[0], *invented, *task.messages[-1:]]


def test_e5_a_strategy_of_ones_own_can_be_plugged_in(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=500, strategy=Window(5))
    history = talk.errand(8, size=300)

    assert scene.ask(history) == "ok"

    (event,) = scene.compactions
    assert (event.strategy, event.fallback) == ("window", False)
    assert scene.sent[-1] == history[-1]
    assert scene.model.invalid == 0


@pytest.mark.parametrize("strategy", [Breaker(), Thief(), Inventor()], ids=lambda strategy: strategy.name)
def test_e5_one_that_breaks_a_promise_is_caught_before_anything_is_sent(
    strategy: Any, stage: MakeStage, talk: type[Talk]
) -> None:
    scene = stage(window=500, strategy=strategy)

    assert scene.ask(talk.errand(8, size=250)) == "ok"

    (event,) = scene.compactions
    assert (event.strategy, event.fallback) == ("extractive", True)
    assert scene.model.invalid == 0
    assert scene.sent[0]["role"] == "system"


def errand(name: str, text: str, call: str, result: str) -> list[Any]:
    """A question, a call, its result and an answer, as this wire format writes them."""
    match name:
        case "openai":
            function = {"name": "f", "arguments": "{}"}
            calls = [{"id": call, "type": "function", "function": function}]
            return [
                {"role": "user", "content": text},
                {"role": "assistant", "content": None, "tool_calls": calls},
                {"role": "tool", "tool_call_id": call, "content": result},
                {"role": "assistant", "content": "ok"},
            ]
        case "anthropic":
            use = {"type": "tool_use", "id": call, "name": "f", "input": {}}
            answer = {"type": "tool_result", "tool_use_id": call, "content": result}
            return [
                {"role": "user", "content": text},
                {"role": "assistant", "content": [use]},
                {"role": "user", "content": [answer]},
                {"role": "assistant", "content": "ok"},
            ]
        case "responses":
            said = [{"type": "output_text", "text": "ok"}]
            return [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]},
                {"type": "function_call", "call_id": call, "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": call, "output": result},
                {"type": "message", "role": "assistant", "content": said},
            ]
        case "gemini":
            response = {"name": "f", "response": {"result": result}}
            return [
                {"role": "user", "parts": [{"text": text}]},
                {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
                {"role": "user", "parts": [{"functionResponse": response}]},
                {"role": "model", "parts": [{"text": "ok"}]},
            ]
        case _:
            use = {"toolUseId": call, "name": "f", "input": {}}
            block = {"toolUseId": call, "content": [{"text": result}]}
            return [
                {"role": "user", "content": [{"text": text}]},
                {
                    "role": "assistant",
                    "content": [{"toolUse": {"toolUseId": call, "name": "f", "input": {}}}],
                },
                {"role": "user", "content": [{"toolResult": block}]},
                {"role": "assistant", "content": [{"text": "ok"}]},
            ]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("ratio", [0.2, 0.5, 0.8, 1.0])
def test_e6_a_compacted_tool_conversation_is_valid_in_every_wire_format(
    name: str, ratio: float, talk: type[Talk]
) -> None:
    history = [
        message
        for number in range(8)
        for message in errand(
            name, talk.text(f"question {number}", 300), f"call_{number}", talk.text(f"result {number}", 300)
        )
    ]

    result = Compacter(summarizer=ScriptedSummarizer("Short."), compact_ratio=ratio).compact(history, wire_format=name)

    form = get_format(name)
    outline = form.outline(result.messages)
    assert result.changed
    assert outline.broken == ()
    roles = [form.speaker(message) for message in result.messages]
    if form.alternates:
        assert roles[0] == "user"
        assert all(one != other for one, other in pairwise(roles))
    kept = [message for message in result.messages if any(message is own for own in history)]
    assert len(kept) + len(result.discarded) == len(history)


def test_e7_what_fits_is_passed_on_unchanged_and_nothing_is_told(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=10_000)
    history = talk.turns(5)

    scene.ask(history)

    assert scene.sent == history
    assert scene.told == []


def test_e8_what_does_not_fit_is_fewer_messages_and_one_event(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=500)
    history = talk.turns(12)

    scene.ask(history)

    (event,) = scene.compactions
    assert len(scene.sent) == event.messages_after < event.messages_before == len(history)
    assert event.compacted_data_size == sum(len(message["content"]) for message in scene.sent)
    assert len(event.discarded) == event.messages_before - event.messages_after + 1


def test_e9_few_turns_do_not_ask_the_summarizer(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=10_000, trigger_tokens=9_000)

    for count in range(1, 4):
        scene.ask(talk.turns(count))

    assert not scene.summarizer.requests


@pytest.mark.parametrize(
    ("prompt", "begins", "ends"),
    [
        ("Sum up:\n{history}\nBriefly!", "Sum up:\n", "\nBriefly!"),
        ("Sum up:\n%s\nBriefly!", "Sum up:\n", "\nBriefly!"),
        ("Sum up.", "Sum up.\n", ""),
    ],
)
def test_e10_the_custom_prompt_reaches_the_summarizer(prompt: str, begins: str, ends: str, talk: type[Talk]) -> None:
    asked = ScriptedSummarizer("Short.")

    Compacter(summarizer=asked, summary_prompt=prompt).compact(talk.turns(6))

    (sent,) = asked.prompts
    assert sent.startswith(begins)
    assert sent.endswith(ends)
    assert "question 0" in sent
    assert "%s" not in sent
    assert "{history}" not in sent


async def test_e11_cancellation_reaches_the_summarizer(talk: type[Talk]) -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def summarizer(messages: Sequence[Chat]) -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return ""

    completion: Callable[..., Any] = Compacter(summarizer=summarizer).wrap(ScriptedModel(window=500).acompletion)
    task = asyncio.create_task(completion("m", talk.turns(12)))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert cancelled.is_set()


async def test_e11_the_deadline_reaches_the_summarizer(talk: type[Talk]) -> None:
    cancelled = asyncio.Event()

    async def summarizer(messages: Sequence[Chat]) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return ""

    result = await Compacter(summarizer=summarizer, timeout=0.05).acompact(talk.turns(12))

    assert cancelled.is_set()
    assert result.event is not None
    assert result.event.fallback
