"""No tool call without its result, no result without its call."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from tests.dialects import DIALECTS

from compacter import Compacter, History, InvalidHistoryError, Summarize, Truncate
from compacter.messages.format import FORMATS, get_format
from compacter.testing import ScriptedSummarizer

if TYPE_CHECKING:
    from tests.promises.conftest import MakeStage, Talk


def compacter(**options: Any) -> Compacter:
    options.setdefault("summarizer", ScriptedSummarizer("Short."))
    return Compacter(**options)


def errand(name: str, text: str, call: str, result: str) -> list[Any]:
    """A question, a call, its result and an answer, as this wire format writes them."""
    dialect = DIALECTS[name]
    return [
        dialect.user(text),
        *dialect.calls([(call, "f", {})]),
        *dialect.results([(call, "f", result)]),
        dialect.answer("ok"),
    ]


OPENAI = get_format("openai")


@pytest.mark.parametrize("half", ["call", "first result", "second result"])
def test_a_pin_on_half_a_pair_keeps_the_whole(half: str, talk: type[Talk]) -> None:
    history = History(talk.errand(8, parallel=2), compacter=compacter(compact_ratio=1))
    at = 2 + 3 * 3
    step = history[at : at + 3]
    history.pin(at + ["call", "first result", "second result"].index(half))

    history.compact()

    kept = [message for message in history if any(message is one for one in step)]
    assert kept == step


@pytest.mark.parametrize("budget", [200, 400, 700, 1_000, 2_000, 4_000, 8_000])
@pytest.mark.parametrize("parallel", [1, 3])
@pytest.mark.parametrize("strategy", [Summarize(), Truncate()], ids=lambda strategy: strategy.name)
def test_a_pair_is_never_halved_however_tight_the_budget(
    budget: int, parallel: int, strategy: Any, talk: type[Talk]
) -> None:
    history = talk.errand(8, size=300, parallel=parallel)

    result = Compacter(summarizer=ScriptedSummarizer("Short."), strategy=strategy).compact(
        history, budget=budget
    )

    outline = get_format("openai").outline(result.messages)
    assert outline.broken == ()
    assert outline.open is None


@pytest.mark.parametrize("where", ["result", "call"])
def test_strict_names_the_id_of_half_a_pair(where: str, talk: type[Talk]) -> None:
    half = talk.result("call_x", "42") if where == "result" else talk.calls("call_x")
    history = [*talk.turns(2), half, *talk.turns(2)[1:]]

    with pytest.raises(InvalidHistoryError, match="call_x") as caught:
        Compacter(summarizer=ScriptedSummarizer()).compact(history, strict=True)

    assert caught.value.index == history.index(half)


def test_a_last_open_call_is_no_fault_and_stays(talk: type[Talk]) -> None:
    history = [*talk.turns(8), talk.calls("call_open")]

    result = Compacter(summarizer=ScriptedSummarizer("Short."), compact_ratio=1).compact(
        history, strict=True
    )

    assert result.messages[-1] is history[-1]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("ratio", [0.2, 0.5, 0.8, 1.0])
def test_tool_conversations_are_valid_in_each_format(
    name: str, ratio: float, talk: type[Talk]
) -> None:
    history = [
        message
        for number in range(8)
        for message in errand(
            name,
            talk.text(f"question {number}", 300),
            f"call_{number}",
            talk.text(f"result {number}", 300),
        )
    ]

    result = Compacter(summarizer=ScriptedSummarizer("Short."), compact_ratio=ratio).compact(
        history, wire_format=name
    )

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


@pytest.mark.parametrize("rounds", range(4, 21, 4))
@pytest.mark.parametrize("parallel", [1, 3])
def test_tool_heavy_history(rounds: int, parallel: int, stage: MakeStage, talk: type[Talk]) -> None:
    history = talk.errand(rounds, size=400, parallel=parallel)
    size = sum(map(OPENAI.size, history))
    scene = stage(window=size // 4 * 6 // 10 + 100)

    assert scene.ask(history) == "ok"

    assert scene.model.invalid == 0
    assert OPENAI.outline(scene.sent).broken == ()
    assert scene.sent[0] == history[0]
    assert history[1] in scene.sent
    assert any(message in history[2:] for message in scene.sent)


def test_results_beside_text_stay_with_their_calls() -> None:
    history: list[Any] = [{"role": "user", "content": "Count the ships."}]
    for number in range(8):
        use = {"type": "tool_use", "id": f"call_{number}", "name": "look", "input": {}}
        seen = {"type": "tool_result", "tool_use_id": f"call_{number}", "content": "ship " * 60}
        history.append({"role": "assistant", "content": [use]})
        history.append(
            {"role": "user", "content": [seen, {"type": "text", "text": f"Go on, {number}."}]}
        )

    for ratio in (0.2, 0.4, 0.6, 0.8, 1.0):
        result = Compacter(summarizer=ScriptedSummarizer("Short."), compact_ratio=ratio).compact(
            history, wire_format="anthropic"
        )
        assert result.changed
        assert get_format("anthropic").outline(result.messages).broken == ()
        assert result.messages[-1] is history[-1]
        assert result.messages[-2] is history[-2]


@pytest.mark.parametrize("ratio", [0.1, 0.35, 0.6, 0.85, 1.0])
@pytest.mark.parametrize("parallel", [1, 3])
def test_no_orphans_in_a_session(
    ratio: float, parallel: int, stage: MakeStage, talk: type[Talk]
) -> None:
    scene = stage(window=1_200, compact_ratio=ratio, max_retries=10)
    history = talk.errand(0)

    for number in range(40):
        assert scene.ask(history) == "ok"
        ids = [f"call_{number % 3}_{place}" for place in range(parallel)]
        history += [
            talk.calls(*ids),
            *(talk.result(name, talk.text(f"result {number}", 200)) for name in ids),
        ]

    assert scene.model.rejected
    assert scene.model.invalid == 0
