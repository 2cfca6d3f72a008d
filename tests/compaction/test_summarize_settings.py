"""What ``Summarize`` takes, beside the older options that say the same."""

from __future__ import annotations

from typing import Any

import pytest
from tests.compaction.conftest import carried_out

from compacter import Chain, ClearToolResults, Compacter, CompactionPlan, Summarize
from compacter.compaction.conversation import Conversation
from compacter.compaction.plan import Calibration
from compacter.compaction.summarize import planned_reserve
from compacter.errors import ConfigurationError
from compacter.messages.format import get_format
from compacter.options import Options
from compacter.testing import ScriptedModel

TALK = [{"role": "user", "content": f"Part {number} ".ljust(100, "x")} for number in range(41)]
OPTION_OF = {
    "summary_prompt": "prompt",
    "max_summary_tokens": "max_tokens",
    "summary_request": "request",
}
VALUES: dict[str, Any] = {
    "summary_prompt": "In French, please.",
    "max_summary_tokens": 300,
    "summary_request": "native",
}
OTHERS: dict[str, Any] = {
    "summary_prompt": "In Dutch, please.",
    "max_summary_tokens": 400,
    "summary_request": "transcript",
}


def work() -> CompactionPlan:
    return CompactionPlan(
        conversation=Conversation.of(TALK, get_format("openai")),
        trigger="token_limit",
        calibration=Calibration(window=4_000),
        must=True,
    )


def ask(options: Options) -> Any:
    asked, _ = carried_out(options, work(), "They talked of many things, one after the other.")
    return asked[0]


@pytest.mark.parametrize("option", OPTION_OF)
@pytest.mark.parametrize("nested", [False, True], ids=["alone", "in a chain"])
def test_the_summarizer_is_asked_as_with_the_older_option(option: str, nested: bool) -> None:
    summarize = Summarize(**{OPTION_OF[option]: VALUES[option]})
    strategy: Any = Chain(ClearToolResults(), summarize) if nested else summarize
    usual: Any = Chain(ClearToolResults(), Summarize()) if nested else Summarize()
    newer = ask(Compacter(strategy=strategy).options)
    older = ask(Compacter(strategy=usual, **{option: VALUES[option]}).options)
    assert newer == older
    assert newer != ask(Compacter(strategy=usual).options)


def test_a_strategy_of_ones_own_may_hand_its_task_to_it() -> None:
    def first(task: Any) -> Any:
        return Summarize(prompt="In French, please.").compact(task)

    asked = ask(Compacter(strategy=first).options)
    assert "In French, please." in asked.messages[0]["content"]


def test_each_of_several_has_its_own() -> None:
    options = Compacter(
        strategy=[Summarize(max_tokens=100, prompt="A"), Summarize(max_tokens=700)]
    ).options
    assert ask(options).max_tokens == 100
    largest = Options(max_summary_tokens=700)
    assert planned_reserve(options, work(), 40_000) == planned_reserve(largest, work(), 40_000)


@pytest.mark.parametrize("option", OPTION_OF)
def test_what_the_strategy_says_wins(option: str) -> None:
    summarize = Summarize(**{OPTION_OF[option]: OTHERS[option]})
    both = Compacter(strategy=summarize, **{option: VALUES[option]})
    assert ask(both.options) == ask(Compacter(strategy=summarize).options)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("prompt", ""),
        ("prompt", 3),
        ("max_tokens", 15),
        ("max_tokens", True),
        ("max_tokens", "300"),
        ("request", "fenced"),
    ],
)
def test_a_bad_argument_is_named_when_it_is_given(argument: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=rf"^Summarize: {argument} takes"):
        Summarize(**{argument: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("option", OPTION_OF)
class TestRecords:
    @pytest.mark.parametrize("nested", [False, True], ids=["alone", "in a chain"])
    def test_are_not_shared_by_different_settings(self, option: str, nested: bool) -> None:
        scopes = set()
        for given in ({}, VALUES, OTHERS):
            values = {OPTION_OF[option]: given[option]} if given else {}
            one = Summarize(**values)
            strategy: Any = Chain(ClearToolResults(), one) if nested else one
            scopes.add(Options(strategy=strategy).memory_scope)
        assert len(scopes) == 3


def test_records_from_before_these_arguments_are_found_again() -> None:
    scope = Options().memory_scope
    assert "compacter.compaction.summarize.Summarize('summarize')" in scope


class TestACopy:
    """What was left out stays left out, in a copy and with options for one call."""

    def test_has_the_options_that_were_set(self) -> None:
        compacter = Compacter(max_retries=1)
        made = compacter.replace(timeout=9).options
        assert made.memory is compacter.options.memory
        unset = {"compact_ratio", "max_summary_tokens", "strategy"}
        assert not unset & made.model_fields_set
        assert made.max_retries == 1

    def test_of_one_call_divides_an_agents_history_as_the_call_before_it(self) -> None:
        sizes = []
        calls: list[dict[str, Any]] = [{}, {"compacter_options": {"max_retries": 2}}]
        for options in calls:
            model = ScriptedModel(window=3_000)
            messages: list[dict[str, Any]] = [{"role": "user", "content": "Read all the files."}]
            for number in range(40):
                function = {"name": "read", "arguments": f'{{"path": "src/file_{number}.py"}}'}
                call = {"id": f"call_{number}", "type": "function", "function": function}
                text = f"line {number} of the file\n" * 20
                messages += [
                    {"role": "assistant", "content": None, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": f"call_{number}", "content": text},
                ]
            ask = Compacter(summarizer="extractive").wrap(model.completion)
            ask("any-model", messages, **options)
            sizes.append(len(model.requests[-1].messages))
        assert sizes[0] == sizes[1]
