"""The options by which ``Summarize`` writes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.compaction.conftest import carried_out, refused

from compacter import ClearToolResults, Compacter, CompactionPlan, Summarize, Truncate
from compacter.compaction.calibration import Calibration
from compacter.compaction.conversation import Conversation
from compacter.compaction.sizes import Sizes
from compacter.messages.format import get_format
from compacter.options import Options

TALK = [{"role": "user", "content": f"Part {number} ".ljust(100, "x")} for number in range(41)]


def work() -> CompactionPlan:
    return refused(
        conversation=Conversation(TALK, get_format("openai")),
        trigger="token_limit",
        calibration=Calibration(window=4_000),
        is_required=True,
    )


def ask(options: Options) -> Any:
    asked, _ = carried_out(options, work(), "They talked of many things, one after the other.")
    return asked[0]


@pytest.mark.parametrize("nested", [False, True], ids=["alone", "in a chain"])
def test_every_summarize_writes_by_the_options(nested: bool) -> None:
    """Prompt and size of a summary are options of ``Compacter``, wherever ``Summarize`` stands."""
    strategy: Any = [ClearToolResults(), Summarize()] if nested else Summarize()
    options = Options(
        strategy=strategy, summary_prompt="In French, please.", max_summary_tokens=300
    )
    asked = ask(options)
    assert "In French, please." in asked.messages[0]["content"]
    assert asked.max_tokens == 300
    assert Sizes(options).summary(40_000) < Sizes(Options()).summary(40_000)


def test_a_strategy_of_ones_own_may_hand_its_task_to_it() -> None:
    """A function may be a strategy that passes its task to ``Summarize``."""

    def first(task: Any) -> Any:
        return Summarize().compact(task)

    asked = ask(Compacter(strategy=first, summary_prompt="In French, please.").options)
    assert "In French, please." in asked.messages[0]["content"]


@pytest.mark.parametrize("given", [{"keep_recent": 5}, [5]])
@pytest.mark.parametrize("kind", [Summarize, Truncate])
def test_an_argument_that_a_strategy_lacks_is_refused(kind: Any, given: Any) -> None:
    with pytest.raises(TypeError, match=rf"call it as {kind.__name__}\(\)"):
        kind(**given) if isinstance(given, dict) else kind(*given)


@pytest.mark.parametrize("option", ["summary_prompt", "max_summary_tokens"])
def test_records_are_not_shared_by_different_settings(option: str) -> None:
    """Compactions with another prompt or size of summaries are not reused."""
    values: dict[str, list[Any]] = {"summary_prompt": ["A", "B"], "max_summary_tokens": [300, 400]}
    given: list[dict[str, Any]] = [{}, *({option: value} for value in values[option])]
    assert len({Options(**options).memory_scope for options in given}) == 3
