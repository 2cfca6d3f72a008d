"""Declared rules stand in every summary, word for word, or nothing is folded."""

from __future__ import annotations

from typing import Any

import pytest

from compacter import Compacter, History, Truncate
from compacter.testing import ScriptedModel, ScriptedSummarizer, TokenLimitError

RULES = ["Ask Ann before any payment.", "Prices are in euros."]
SUMMARIZERS: dict[str, Any] = {
    "a model": lambda: ScriptedSummarizer("They compared boats."),
    "no model": lambda: "extractive",
    "a dead model": lambda: ScriptedSummarizer(fail=RuntimeError("down")),
    "a model that refuses": lambda: ScriptedSummarizer("I'm sorry, but I can't help with that."),
}


def talk(turns: int, first: int = 0) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = []
    for turn in range(first, first + turns):
        said.append(
            {
                "role": "user",
                "content": (f"Which boat lies at pier {turn}? I saw {turn * 3} of them."),
            }
        )
        said.append(
            {
                "role": "assistant",
                "content": (f"Boat {turn * 7} of Oller, {turn + 11} metres long. ") * 4,
            }
        )
    return said


def rules_of(messages: Any) -> list[str]:
    return [line[6:] for line in messages[0]["content"].splitlines() if line.startswith("Rule: ")]


@pytest.mark.parametrize("summarizer", SUMMARIZERS)
@pytest.mark.parametrize("fallback", ["extractive", "truncate"])
def test_they_stand_in_all_of_fifty_folds(summarizer: str, fallback: Any) -> None:
    compacter = Compacter(summarizer=SUMMARIZERS[summarizer](), rules=RULES, fallback=fallback)
    messages: list[Any] = talk(3)
    for fold in range(50):
        result = compacter.compact(
            [*messages, *talk(6, fold * 6), {"role": "user", "content": "And now?"}]
        )
        assert result.changed
        assert rules_of(result.messages)[:2] == RULES
        messages = list(result.messages)


@pytest.mark.parametrize(
    "strategy", [Truncate(), lambda task: task.keep([0], "Some were left out.")]
)
def test_they_stand_in_the_summary_of_any_strategy(strategy: Any) -> None:
    result = Compacter(strategy=strategy, rules=RULES).compact(talk(20))
    summary = next(message for message in result.messages if "[compacter" in message["content"])
    assert rules_of([summary]) == RULES


def test_they_stand_in_a_summary_that_the_caller_has_made() -> None:
    history = History(talk(20), compacter=Compacter(rules=RULES))
    assert rules_of(history.compact(summary="They talked of boats.").messages) == RULES


def test_a_fold_that_cannot_carry_them_is_refused_and_told() -> None:
    told: list[Any] = []
    rules = [f"Rule number {number} says that pier {number} stays shut." for number in range(60)]
    result = Compacter(summarizer="extractive", rules=rules, on_event=told.append).compact(talk(8))
    assert not result.changed
    assert any("the declared rules take" in str(getattr(event, "reason", "")) for event in told)


@pytest.mark.parametrize("options", [{"summarizer": "extractive"}, {"strategy": Truncate()}])
def test_rules_larger_than_the_window_get_the_providers_error(options: dict[str, Any]) -> None:
    """Rules that exceed the window get the provider's error, with a note that names the option."""
    model = ScriptedModel(window=500)
    rules = [f"Rule number {number} says that pier {number} stays shut." for number in range(120)]
    completion = Compacter(rules=rules, **options).wrap(model.completion)
    with pytest.raises(TokenLimitError) as raised:
        completion("m", talk(40))
    assert "declare fewer rules (option rules)" in raised.value.__notes__[0]


def test_a_call_that_they_leave_no_room_raises_the_providers_error_with_a_note_that_names_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = ScriptedModel(window=500)
    rules = [f"Rule number {number} says that pier {number} stays shut." for number in range(20)]
    completion = Compacter(summarizer="extractive", rules=rules).wrap(model.completion)
    with pytest.raises(TokenLimitError) as raised:
        completion("m", [*talk(40), {"role": "user", "content": "x y " * 250}])
    (note,) = raised.value.__notes__
    assert (
        "The declared rules take 1,000 characters, and beside what must stay there is room for"
        in note
    )
    assert "declare fewer rules (option rules)" in note
    (logged,) = caplog.messages
    assert "the declared rules take 1000 characters" in logged
    assert "takes over" not in logged


def test_in_a_wrapped_call_they_reach_the_provider() -> None:
    model = ScriptedModel(window=900)
    completion = Compacter(summarizer="extractive", rules=RULES).wrap(model.completion)
    completion("m", talk(40))
    assert rules_of(model.requests[-1].messages) == RULES


class TestOfAHistory:
    def test_a_message_appended_as_a_rule_is_one_from_then_on(self) -> None:
        history = History(talk(10), compacter=Compacter(summarizer="extractive"))
        history.append({"role": "user", "content": "The code word\nis Tern."}, rule=True)
        for fold in range(3):
            history.extend(talk(10, 10 + fold * 10))
            history.compact()
            assert rules_of(history) == ["The code word is Tern."]

    def test_a_record_that_was_made_without_it_does_not_serve_a_history_that_has_it(self) -> None:
        model = ScriptedModel(window=900)
        completion = Compacter(summarizer="extractive", recall=None).wrap(model.completion)
        messages = [
            {"role": "user", "content": "Terns nest here."},
            {"role": "assistant", "content": "Fine."},
            *talk(40),
        ]
        completion("m", messages)
        history = History()
        history.append(messages[0], rule=True)
        history.extend(messages[1:])

        completion("m", history)

        assert rules_of(model.requests[-1].messages) == ["Terns nest here."]

    def test_rules_go_with_copies_and_snapshots(self) -> None:
        history = History(talk(2))
        history.append({"role": "user", "content": "Be brief."}, rule=True)
        restored = History()
        restored.restore(history.snapshot())
        assert restored.rules == history.copy().rules == History(history).rules == ("Be brief.",)

    def test_a_rule_without_text_is_an_error(self) -> None:
        with pytest.raises(ValueError, match="rule=True"):
            History().append({"role": "user", "content": ""}, rule=True)
