"""What one compaction would fold: how much, and where the cut lies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.compaction.conftest import plan, refused

from compacter import Compacter, CompactionPlan, Shorten
from compacter.compaction.conversation import Conversation, check
from compacter.compaction.cut import cut_at
from compacter.compaction.sizes import Calibration
from compacter.messages.format import get_format
from compacter.options import Options
from compacter.summary import message as summary_message

OPENAI = get_format("openai")


def say(role: str, size: int) -> dict[str, Any]:
    return {"role": role, "content": "x" * size}


def look(size: int) -> list[dict[str, Any]]:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "r" * size},
    ]


def turns(*sizes: int) -> list[dict[str, Any]]:
    """Messages of these sizes, the user's first."""
    return [say(("user", "assistant")[place % 2], size) for place, size in enumerate(sizes)]


def test_a_turn_that_is_nearly_folded_is_folded_to_its_end() -> None:
    talk = turns(500, 500, 500, 40, 300, 300, 9)

    assert cut_at(Conversation.of(talk, OPENAI), ratio=0.7) == 4


def test_a_turn_with_more_left_than_a_twentieth_is_cut_where_the_share_is_reached() -> None:
    talk = turns(500, 500, 500, 140, 300, 300, 9)

    assert cut_at(Conversation.of(talk, OPENAI), ratio=0.65) == 3


@pytest.mark.parametrize(("rest", "cut"), [(100, 4), (101, 3)])
def test_a_twentieth_of_what_may_go_is_the_most_that_is_folded_for_a_whole_turn(
    rest: int, cut: int
) -> None:
    talk = turns(500, 500, 500, rest, 200, 300 - rest, 9)

    assert cut_at(Conversation.of(talk, OPENAI), ratio=0.7) == cut


def test_a_head_is_as_large_as_a_summary_of_forty_characters_at_least() -> None:
    made = plan(Options(compact_ratio=0.001), job(turns(*[1] * 600)))

    assert made.head_size == summary_message.FRAME + 41  # The odd one is the end of its turn.


def test_a_prior_summary_does_not_count_against_the_share_of_the_messages() -> None:
    prior = {"role": "user", "content": summary_message.compose("p" * 2_000)}
    talk = [say(role, 100) for _ in range(5) for role in ("assistant", "user")]
    folded = [cut_at(Conversation.of(list_, OPENAI), ratio=0.5) for list_ in ([prior, *talk], talk)]

    assert folded[0] - 1 == folded[1] > 0


@pytest.mark.parametrize(("pins", "cut"), [((), 2), ((1,), 3), ((1, 2), 4), ((1, 2, 3, 4), 0)])
def test_a_head_that_is_a_prior_summary_alone_takes_the_next_step_that_may_go(
    pins: tuple[int, ...], cut: int
) -> None:
    prior = {"role": "user", "content": summary_message.compose("p" * 500)}
    talk = Conversation.of([prior, *turns(100, 100, 100, 100, 100)], OPENAI, pinned=pins)

    assert cut_at(talk, ratio=0.7, keep_turns=3, is_required=True) == cut
    assert cut_at(talk, ratio=0.7, keep_turns=3, keep_need=100) == cut
    assert cut_at(talk, ratio=0.7, keep_turns=3) == 0


def test_what_stands_between_a_prior_summary_and_the_turns_that_stay_is_folded() -> None:
    prior = {"role": "user", "content": summary_message.compose("p" * 500)}
    talk = Conversation.of([prior, say("assistant", 300), *turns(100, 100, 100)], OPENAI)

    assert cut_at(talk, ratio=0.7, keep_turns=9) == 2


def test_a_prior_summary_alone_is_not_folded_where_there_is_room_enough() -> None:
    talk = [
        {"role": "user", "content": summary_message.compose("p" * 500)},
        *turns(100, 100, 100, 100, 100),
    ]
    work = refused(
        conversation=Conversation.of(talk, OPENAI),
        trigger="threshold",
        calibration=Calibration(),
        target=10_000,
    )

    assert plan(Options(preserve_recent_turns=3), work).cut == 0


def test_a_pinned_prior_summary_does_not_count_either() -> None:
    prior = {"role": "user", "content": summary_message.compose("p" * 2_000)}
    talk = turns(*[100] * 11)
    pinned = cut_at(Conversation.of([prior, *talk], OPENAI, pinned=(0,)), ratio=0.5)

    assert pinned - 1 == cut_at(Conversation.of(talk, OPENAI), ratio=0.5)


def test_what_the_assistant_said_last_is_not_kept_back_as_unread_results_are() -> None:
    talk = [say("user", 10), say("assistant", 100), say("assistant", 400)]

    assert cut_at(Conversation.of(talk, OPENAI), ratio=0.9) == 3


def test_turns_stay_only_where_what_is_left_to_fold_is_worth_it() -> None:
    talk = turns(20, 20, 500, 500, 500, 500, 9)

    assert plan(Options(preserve_recent_turns=3), job(talk)).cut == 2
    assert plan(Options(preserve_recent_turns=3), job(talk, is_required=True)).cut == 4


@pytest.mark.parametrize(("pins", "prior"), [((), 0), ((0,), None)])
def test_a_prior_summary_is_a_plans_where_it_is_folded(
    pins: tuple[int, ...], prior: int | None
) -> None:
    talk = [
        {"role": "user", "content": summary_message.compose("p" * 500)},
        *turns(100, 100, 100, 100, 100),
    ]
    work = refused(
        conversation=Conversation.of(talk, OPENAI, pinned=pins),
        trigger="token_limit",
        calibration=Calibration(),
    )

    assert plan(Options(), work).prior == prior
    assert plan(Options(), replace(work, is_chosen=True)).prior is None


@pytest.mark.parametrize("count", [2, 300])
def test_at_least_one_message_stays_where_nobody_asked_anything(count: int) -> None:
    assert cut_at(Conversation.of([say("assistant", 9)] * count, OPENAI), ratio=1.0) == count - 1


@pytest.mark.parametrize("ratio", [0.2, 0.4, 0.6, 0.8, 1.0])
@pytest.mark.parametrize("turns_kept", [0, 2])
def test_a_user_who_answers_and_speaks_in_one_message_is_not_parted_from_the_call(
    ratio: float, turns_kept: int
) -> None:
    talk: list[Any] = [say("user", 20)]
    for number in range(8):
        use = {"type": "tool_use", "id": f"c{number}", "name": "look", "input": {}}
        seen = {"type": "tool_result", "tool_use_id": f"c{number}", "content": "ship " * 60}
        talk += [
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [seen, {"type": "text", "text": "Go on."}]},
        ]
    found = Conversation.of(talk, get_format("anthropic"))
    cut = cut_at(found, ratio=ratio, keep_turns=turns_kept)

    assert cut in found.steps
    assert cut > 0


def test_without_a_summary_no_filler_opens_a_history_that_began_with_the_assistant() -> None:
    talk = [say("assistant", 1), say("user", 2), say("assistant", 3), say("user", 4)]
    made, _ = check(Conversation.of(talk, OPENAI), talk[2:], alternate=True)

    assert made.messages == tuple(talk[2:])


def test_by_hand_what_just_fits_is_enough() -> None:
    talk = turns(*[100] * 20)
    made = Compacter(strategy=[lambda task: task.messages[1:]] * 3).compact(talk, budget=1_900)

    assert made.messages == talk[1:]


def job(messages: list[Any], **facts: Any) -> CompactionPlan:
    return refused(
        conversation=Conversation.of(messages, OPENAI),
        trigger="token_limit",
        calibration=Calibration(),
        **facts,
    )


def test_a_plan_is_made_once_and_carries_what_was_read() -> None:
    work = job([say(role, 100) for _ in range(5) for role in ("user", "assistant")])
    made = plan(Options(), work)

    assert made.conversation is work.conversation


def test_a_plan_of_nothing_folds_nothing() -> None:
    assert plan(Options(), job([])).cut == plan(Options(), job([], is_required=True)).cut == 0
    assert Compacter().plan([]).cut == 0


def test_shortening_takes_no_more_than_the_goal_wants() -> None:
    talk = [*(say(role, 3_000) for role in ("user", "assistant", "user")), say("user", 777)]

    made = Compacter(strategy=Shorten()).compact(talk, budget=4_000)

    assert 3_900 <= Conversation.of(made.messages, OPENAI).size <= 4_000
    assert made.messages[-1] is talk[-1]


def test_alone_and_without_a_goal_shortening_goes_for_half() -> None:
    talk = [say(role, 1_000) for _ in range(5) for role in ("user", "assistant")]
    size = Conversation.of(talk, OPENAI).size

    alone = Compacter(strategy=Shorten(), compact_ratio=0.9).compact(talk)

    assert 0.4 * size < Conversation.of(alone.messages, OPENAI).size <= 0.5 * size
