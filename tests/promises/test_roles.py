"""Roles alternate where the provider wants it; thinking stays only where it is valid."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from tests.kit import strict_roles

from compacter import Compacter
from compacter.testing import ScriptedModel, ScriptedSummarizer

if TYPE_CHECKING:
    from tests.promises.conftest import MakeStage, Talk


@pytest.mark.parametrize("answers_too", [False, True])
def test_roles_alternate_where_they_must(
    answers_too: bool, stage: MakeStage, talk: type[Talk]
) -> None:
    model = ScriptedModel(window=500, check=strict_roles)
    scene = stage(model=model, alternate_roles=True)
    history = talk.turns(12)
    if answers_too:
        history = [*history[:-1], talk.user("And now?"), talk.answer("Rain."), talk.user("Sure?")]

    for ratio in (0.2, 0.5, 0.55, 0.9, 1.0):
        scene = stage(model=model, alternate_roles=True, compact_ratio=ratio, memory=None)
        assert scene.ask(history) == "ok"

    assert model.rejected == 5
    assert model.invalid == 0


def test_thinking_stays_only_where_its_provider_takes_it(talk: type[Talk]) -> None:
    history: list[Any] = [talk.user("Count the ships.")]
    for number in range(10):
        thought = {"type": "thinking", "thinking": "hm " * 40, "signature": f"sig{number}"}
        use = {"type": "tool_use", "id": f"call_{number}", "name": "look", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"call_{number}", "content": "ship " * 40}
        history += [
            {"role": "assistant", "content": [thought, use]},
            {"role": "user", "content": [result]},
        ]
    asked = ScriptedSummarizer("Short.")

    for ratio in (0.3, 0.6, 0.9, 1.0):
        compacted = Compacter(summarizer=asked, compact_ratio=ratio).compact(
            history, wire_format="anthropic"
        )
        for message in compacted.messages:
            blocks = message["content"] if isinstance(message["content"], list) else []
            kinds = [block["type"] for block in blocks]
            # A block of thoughts is valid only unchanged, before the call it led to.
            assert "thinking" not in kinds or kinds == ["thinking", "tool_use"]
            assert "thinking" not in kinds or any(message is own for own in history)
    assert "hm hm" not in "".join(asked.prompts)


@pytest.mark.parametrize("strict_model", [True, False])
def test_alternation_over_a_session(strict_model: bool, stage: MakeStage, talk: type[Talk]) -> None:
    model = ScriptedModel(window=900, check=partial(strict_roles, alternate=strict_model))
    scene = stage(model=model, alternate_roles=strict_model or None)
    history = [talk.system()]

    for number in range(40):
        history.append(talk.user(talk.text(f"question {number}", 150)))
        assert scene.ask(history) == "ok"
        history.append(talk.answer(talk.text(f"answer {number}", 150)))

    assert model.invalid == 0
    assert model.rejected >= 3
