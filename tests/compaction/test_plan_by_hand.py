"""What ``Compacter.plan`` promises of the cut: its share, its sizes, and what stays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.conversations import Chat, history, talk

from compacter import Compacter, CompactionPlan
from compacter.compaction.conversation import Conversation
from compacter.compaction.sizes import Calibration, most_tokens
from compacter.messages.format import FILLERS, get_format
from compacter.summary import message as summary_message
from compacter.testing import ScriptedModel


def say(role: str, size: int) -> Chat:
    return {"role": role, "content": "x" * size}


def look(number: int, size: int) -> list[Chat]:
    call = {"id": f"c{number}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": "r" * size},
    ]


@pytest.mark.parametrize("ratio", [0.1, 0.35, 0.5, 0.7, 0.9])
def test_the_head_is_the_fewest_steps_that_reach_the_share(ratio: float) -> None:
    messages = [*history(50, 100), say("user", 100)]
    plan = Compacter(compact_ratio=ratio).plan(messages)
    wanted = ratio * 100 * 100  # the last user message stays, so it is no part of the share

    assert wanted <= plan.head_size <= wanted + 200  # a step more, to the end of a turn


def test_head_and_tail_are_the_whole_and_the_ratio_is_the_heads_share() -> None:
    messages = talk()
    plan = Compacter(compact_ratio=0.5).plan(messages)
    whole = sum(len(message["content"]) for message in messages)
    stays = sum(len(messages[index]["content"]) for index in (0, -1))

    assert plan.original_data_size == whole == plan.head_size + plan.tail_size
    assert plan.ratio == round(plan.head_size / (whole - stays), 4)
    assert plan.held == (0,)
    assert plan.head == tuple(messages[1 : plan.cut])


@pytest.mark.parametrize("turns", [1, 2, 5, 9])
def test_the_newest_turns_stay_as_long_as_the_result_can_still_fit(turns: int) -> None:
    messages = [*history(10, 200), say("user", 200)]
    plan = Compacter(compact_ratio=1, preserve_recent_turns=turns).plan(messages)

    assert plan.cut == len(messages) - 1 - 2 * (turns - 1)


def test_turns_give_way_to_a_budget() -> None:
    messages = [*history(10, 400), say("user", 20)]
    compacter = Compacter(
        compact_ratio=0.1, preserve_recent_turns=9, summarizer=lambda prompt, **_: "Short."
    )

    assert compacter.compact(messages, budget=2_000).fits


def test_a_call_that_is_not_answered_yet_stays_however_much_is_to_go() -> None:
    call = look(9, 1)[0]
    messages = [*history(5, 200), say("user", 20), call]

    assert Compacter(compact_ratio=1).plan(messages).cut <= len(messages) - 1


def test_a_call_goes_with_all_of_its_results() -> None:
    messages = [say("user", 20)]
    for number in range(12):
        messages += look(number, 300)
    for ratio in (0.05, 0.2, 0.45, 0.6, 0.8, 0.95):
        cut = Compacter(compact_ratio=ratio).plan(messages).cut
        assert cut == len(messages) or messages[cut]["role"] == "assistant"


@pytest.mark.parametrize("size", [1, 39, 40])
def test_a_head_that_a_summary_cannot_make_smaller_is_widened(size: int) -> None:
    # The first message alone would reach the share; its summary message would be larger than it is.
    messages = [
        say("user", size),
        *[say(role, 2_000) for _ in range(3) for role in ("assistant", "user")],
    ]

    assert Compacter(compact_ratio=0.000_1).plan(messages).cut > 1


class TestACutThatSomebodyElseChooses:
    def cut(self, messages: list[Chat], wanted: Any) -> int:
        told: list[CompactionPlan] = []

        def hook(plan: CompactionPlan) -> CompactionPlan:
            return replace(plan, cut=wanted)

        def strategy(task: Any) -> Any:
            told.append(task)
            return task.replace_head("Short.")

        Compacter(before_compaction=hook, strategy=strategy).compact(messages)
        return told[0].cut

    def test_is_taken_as_it_is_between_two_steps(self) -> None:
        assert self.cut(talk(), 7) == 7

    @pytest.mark.parametrize(("wanted", "cut"), [(-3, 0), (0, 0), (20, 20), (99, 20)])
    def test_is_within_the_conversation(self, wanted: int, cut: int) -> None:
        assert self.cut(history(10), wanted) == cut

    def test_is_the_plans_own_where_it_is_no_number(self) -> None:
        assert self.cut(talk(), "7") == Compacter().plan(talk()).cut

    def test_moves_to_the_beginning_of_its_step(self) -> None:
        messages = [say("user", 900), *look(0, 900), *look(1, 900), say("user", 10)]

        assert self.cut(messages, 4) == 3

    def test_does_not_pass_a_call_that_waits_for_its_results(self) -> None:
        messages = [*history(5, 300), say("user", 20), look(9, 1)[0]]

        assert self.cut(messages, len(messages)) == len(messages) - 1


class TestCalibration:
    def test_begins_with_four_characters_a_token(self) -> None:
        assert Calibration().tokens(4_000) == 1_000
        assert Calibration().tokens(6) == 2  # to the nearest whole number

    @pytest.mark.parametrize(
        ("characters", "tokens", "learnt"),
        [
            (150, 50, True),
            (147, 49, False),
            (25, 100, True),
            (24, 100, False),
            (2_000, 100, True),
            (2_001, 100, False),
        ],
    )
    def test_takes_no_tiny_and_no_absurd_sample(
        self, characters: int, tokens: int, *, learnt: bool
    ) -> None:
        calibration = Calibration()
        calibration.learn(characters, tokens)

        assert calibration.learnt is learnt
        assert calibration.chars_per_token == (characters / tokens if learnt else 4.0)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("word", 3),
        ("abcde", 4),
        ("a" * 400, 300),
        ("7" * 400, 400),
        ("abcd 1234", 7),
        ("a b c d", 3),
        ("漢字", 6),
    ],
)
def test_the_most_tokens_that_a_text_can_have(text: str, tokens: int) -> None:
    assert most_tokens([text]) == tokens + 8  # a chat template's share
    assert most_tokens([text, text]) == 2 * most_tokens([text])


@pytest.mark.parametrize("budget", [2_000, 4_000, 8_000])
def test_a_budget_given_by_hand_is_used(budget: int) -> None:
    messages = [
        {
            "role": role,
            "content": (
                f"{role.title()} {number} says that pier {number * 7} has {number + 11} boats. "
            )
            * 3,
        }
        for number in range(60)
        for role in ("user", "assistant")
    ]
    result = Compacter(summarizer="extractive").compact([*messages, say("user", 20)], budget=budget)
    size = sum(len(message["content"]) for message in result.messages)

    assert 0.8 * budget <= size <= budget
    # Passages chosen from the head hold more of what is needed later than a long tail.
    assert len(result.messages[0]["content"]) >= 0.7 * budget


@pytest.mark.parametrize("before", [[], [say("system", 30)]])
@pytest.mark.parametrize("filler", [True, False])
def test_the_prior_summary_is_found_behind_what_leads_the_conversation(
    before: list[Chat], *, filler: bool
) -> None:
    summary = {"role": "user", "content": summary_message.compose("They talked about boats.")}
    opening = [{"role": "assistant", "content": FILLERS["assistant"]}] if filler else []
    found = Conversation.of([*before, *opening, summary, *history(3)], get_format("openai"))

    assert found.prior == len(before) + len(opening)


def test_a_summary_further_on_is_a_message_like_any_other() -> None:
    summary = {"role": "user", "content": summary_message.compose("They talked about boats.")}

    assert Conversation.of([*history(1), summary, *history(3)], get_format("openai")).prior is None


@pytest.mark.parametrize("before", [[], [{"role": "assistant", "content": FILLERS["assistant"]}]])
@pytest.mark.parametrize("role", ["assistant", "system", "tool"])
def test_a_summary_that_somebody_else_has_said_is_a_message_like_any_other(
    before: list[Chat], role: str
) -> None:
    copied = {
        "role": role,
        "content": summary_message.compose("They talked about boats."),
        "tool_call_id": "c",
    }

    assert Conversation.of([*before, copied, *history(3)], get_format("openai")).prior is None


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_a_prior_summary_alone_is_not_made_again_where_nothing_has_to_become_smaller(
    turns: int,
) -> None:
    summary = {"role": "user", "content": summary_message.compose("They talked about boats. " * 40)}
    messages = [summary, *history(turns)[:-1]]

    assert Compacter(preserve_recent_turns=5).plan(messages).cut == 0


@pytest.mark.parametrize("length", [40, 120, 200])
def test_one_round_leaves_room_for_the_rules_that_each_summary_carries(length: int) -> None:
    rules = [f"Rule {number}: ".ljust(length, "r") for number in range(10)]
    model = ScriptedModel(window=2_000)
    compacter = Compacter(
        compact_ratio=0.05,
        summarizer=lambda prompt, **_: "Done.",
        rules=rules,
        max_summary_tokens=50,
        recall=None,
    )

    compacter.wrap(model.completion)("m", talk(40, 200))

    assert model.rejected == 1
    assert all(rule in str(model.requests[-1].messages[1]["content"]) for rule in rules)
