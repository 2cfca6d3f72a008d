"""By hand and with a budget, passages fill what a model's summary leaves of it."""

from __future__ import annotations

from typing import Any

import pytest

from compacter import Compacter, Truncate
from compacter.testing import ScriptedSummarizer

PROSE = "The user and the assistant compared piers."
BUDGET = 4_000


def talk() -> list[dict[str, Any]]:
    history: list[dict[str, Any]] = [{"role": "user", "content": "Never close pier 7. Which piers are there?"}]
    for number in range(60):
        said = f"Pier {number} was built by the firm Harbour-{number * 37} and costs {number * 13 + 400} euros a year."
        history.append({"role": "assistant", "content": said + " People like to sit there and look at the water." * 2})
        history.append({"role": "user", "content": f"Thanks. And the next one, after pier {number}?"})
    return history


def named(messages: Any) -> int:
    return sum(f"Harbour-{number * 37} " in str(messages) for number in range(60))


@pytest.mark.parametrize("name", ["model", "none"])
def test_a_budget_buys_as_much_with_a_model_as_without(name: str) -> None:
    summarizer: Any = ScriptedSummarizer(PROSE) if name == "model" else "extractive"
    result = Compacter(summarizer=summarizer).compact(talk(), budget=BUDGET)

    assert result.fits
    assert result.event is not None
    assert result.event.compacted_data_size > 0.9 * BUDGET
    assert named(result.messages) > 40
    assert "Never close pier 7." in result.event.ledger
    if name == "model":
        assert result.event.summary.startswith(PROSE)


def test_what_was_filled_in_is_folded_on() -> None:
    summarizer = ScriptedSummarizer(PROSE)
    compacter = Compacter(summarizer=summarizer)
    once = compacter.compact(talk(), budget=BUDGET)
    more = [{"role": "assistant", "content": f"Boat {n} has {n} masts. " * 6} for n in range(20)]
    twice = compacter.compact([*once.messages, *more, talk()[-1]], budget=BUDGET)

    assert twice.fits
    assert str(twice.messages).count("Quoted from it:") == 1
    assert str(twice.messages).count(PROSE) == 1
    assert "Never close pier 7." in str(twice.messages)


def test_a_strategy_without_a_summary_keeps_as_long_a_tail_as_fits() -> None:
    result = Compacter(summarizer=ScriptedSummarizer(PROSE), strategy=Truncate()).compact(talk(), budget=BUDGET)
    assert result.fits
    assert sum(len(message["content"]) for message in result.messages[1:]) > 0.4 * BUDGET


def test_without_a_budget_a_summary_is_as_short_as_the_model_makes_it() -> None:
    result = Compacter(summarizer=ScriptedSummarizer(PROSE)).compact(talk())
    assert result.event is not None
    assert result.event.summary == PROSE
