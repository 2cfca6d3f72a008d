"""By hand and with a budget, passages fill what a model's summary leaves of it."""

from __future__ import annotations

from typing import Any

import pytest

from compacter import Compacter, Truncate
from compacter.testing import ScriptedSummarizer, token_limit_error

PROSE = "The user and the assistant compared piers."
BUDGET = 4_000


def talk() -> list[dict[str, Any]]:
    history: list[dict[str, Any]] = [
        {"role": "user", "content": ("Never close pier 7. Which piers are there?")}
    ]
    for number in range(60):
        said = (
            f"Pier {number} was built by the firm Harbour-{number * 37} and costs "
            f"{number * 13 + 400} euros a year."
        )
        history.append(
            {
                "role": "assistant",
                "content": said + (" People like to sit there and look at the water.") * 2,
            }
        )
        history.append(
            {"role": "user", "content": (f"Thanks. And the next one, after pier {number}?")}
        )
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
    result = Compacter(summarizer=ScriptedSummarizer(PROSE), strategy=Truncate()).compact(
        talk(), budget=BUDGET
    )
    assert result.fits
    assert sum(len(message["content"]) for message in result.messages[1:]) > 0.4 * BUDGET


def test_without_a_budget_a_summary_is_as_short_as_the_model_makes_it() -> None:
    result = Compacter(summarizer=ScriptedSummarizer(PROSE)).compact(talk())
    assert result.event is not None
    assert result.event.summary == PROSE


@pytest.mark.parametrize("turns", [90, 160])
@pytest.mark.parametrize("name", ["model", "none"])
def test_a_larger_budget_never_buys_less(turns: int, name: str) -> None:
    """Within 3 % of the length and 15 % of the user's statements: where the cut lies moves in whole
    messages.
    """
    history: list[dict[str, Any]] = []
    for turn in range(turns):
        history.append(
            {
                "role": "user",
                "content": f"I need lamp {turn * 7} in hall {turn}. " + "Look well. " * (turn % 4),
            }
        )
        history.append(
            {
                "role": "assistant",
                "content": (f"Oller-{turn * 37} sells it, shelf {turn}. ") * (1 + turn % 5),
            }
        )
    history.append({"role": "user", "content": "And now?"})
    longest = most = 0
    for budget in range(1_000, 20_001, 500):
        summarizer: Any = ScriptedSummarizer(PROSE) if name == "model" else "extractive"
        kept = (
            Compacter(summarizer=summarizer, memory=None).compact(history, budget=budget).messages
        )
        size = sum(len(message["content"]) for message in kept)
        text = str(kept)
        told = sum(f"I need lamp {turn * 7} in hall {turn}." in text for turn in range(turns))
        assert size <= budget
        assert size >= 0.97 * longest
        assert told >= 0.85 * most - 1
        longest = max(size, longest)
        most = max(told, most)


ASIDES = (
    "Gulls cry to warn the others of a hawk above the harbour.",
    "Rivers carry minerals from the rocks, and only water leaves the sea as vapour.",
    "Bread stays fresh in a linen cloth, and goes stale in a cold cellar.",
    "A knife is drawn along the wet stone at one steady angle.",
    "The moon pulls at the near side of the ocean more than at the far one.",
    "Leaves turn yellow because their green pigment breaks down before the frost.",
    "Owls hear well as their ears sit at uneven heights in the feathers.",
    "A lock lifts a barge while its upper gate lets the canal flow in.",
)


@pytest.mark.parametrize("sentences", [2, 5, 8])
def test_a_small_model_that_says_much_leaves_half_of_the_room_to_what_the_user_said(
    sentences: int,
) -> None:
    told = [f"Shed {number * 7} holds {number * 13 + 5} kegs." for number in range(8)]
    history: list[dict[str, Any]] = []
    for said in told:
        history.append({"role": "user", "content": said})
        history.append({"role": "assistant", "content": "Good to know, what else is there?"})
    for aside in ASIDES * 8:
        history.append({"role": "user", "content": "Why is that so?"})
        history.append({"role": "assistant", "content": aside})
    history.append({"role": "user", "content": "Thanks!"})
    requests: list[str] = []

    def provider(messages: list[Any]) -> dict[str, Any]:
        tokens = sum(len(message["content"]) for message in messages) // 4
        if tokens > 900:
            raise token_limit_error(limit=900, input_tokens=tokens)
        requests.append(str(messages))
        return {"choices": [{"message": {"role": "assistant", "content": "Noted."}}]}

    story = ScriptedSummarizer(" ".join(ASIDES[:sentences]))
    Compacter(summarizer=story, recall=None).wrap(provider)(messages=history)

    assert ASIDES[0] in requests[0]
    assert sum(said in requests[0] for said in told) >= 6
