"""The sticky view: the histories that a remembered compaction matches, and their views."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from litellm import Message as LitellmMessage
from tests.memory.matching import Matching

from compacter.memory import InProcessMemory, Record
from compacter.messages.format import MessageFormat, get_format

Talk = Callable[..., list[dict[str, Any]]]
SUMMARY = {"role": "user", "content": "[summary] So far."}


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def answered(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


@pytest.fixture
def recall() -> Matching:
    return Matching(InProcessMemory())


def fold(
    history: Sequence[Any], cut: int, keep: Sequence[int] = (), summary: Any = SUMMARY
) -> list[Any]:
    """The history with a summary for what stands before ``cut``, but for a system message and
    ``keep``.
    """
    return [history[0], summary, *(history[index] for index in keep), *history[cut:]]


def test_a_history_that_went_on_gets_the_summary_and_the_rest(
    recall: Matching, openai: MessageFormat, talk: Talk
) -> None:
    history = talk(10)
    recall.remember("scope", openai, history, fold(history, 7))
    later = [*history, said("And now?")]
    view = recall.view("scope", openai, later)
    assert view is not None
    assert view == fold(later, 7)
    assert all(one is other for one, other in zip(view[2:], later[7:], strict=True))


def test_the_longest_prefix_wins(recall: Matching, openai: MessageFormat, talk: Talk) -> None:
    history = talk(12)
    longer = {"role": "user", "content": "[summary] Longer."}
    recall.remember("scope", openai, history, fold(history, 9, summary=longer))
    recall.remember("scope", openai, history, fold(history, 5))
    assert recall.view("scope", openai, history) == fold(history, 9, summary=longer)
    forked = [*history[:8], said("A fork."), *history[9:]]
    assert recall.view("scope", openai, forked) == fold(forked, 5)


def test_of_two_views_with_one_boundary_the_one_that_folded_more_wins(
    recall: Matching, openai: MessageFormat, talk: Talk
) -> None:
    history = talk(10)
    shortened = answered("Cut short.")
    first = [*history[:6], shortened, *history[7:]]
    recall.remember("scope", openai, history, first)
    assert recall.view("scope", openai, history) == first
    second = [history[0], SUMMARY, shortened, *history[7:]]
    recall.remember("scope", openai, history, second)
    assert recall.view("scope", openai, history) == second


def test_a_filler_stays_behind_the_system_message_it_stood_behind(
    recall: Matching, openai: MessageFormat, talk: Talk
) -> None:
    history = talk(8)
    history.insert(5, {"role": "system", "content": "It is noon."})
    after = [history[0], SUMMARY, history[5], answered("Understood."), *history[6:]]
    recall.remember("scope", openai, history, after)
    assert recall.view("scope", openai, history) == after
    assert recall.view("scope", openai, [*history, said("More.")]) == [*after, said("More.")]


def test_messages_may_be_an_sdks_objects_now_and_dicts_then(
    recall: Matching, openai: MessageFormat, talk: Talk
) -> None:
    history: list[Any] = talk(10)
    objects = [
        LitellmMessage(**message) if message["role"] == "assistant" else message
        for message in history
    ]
    recall.remember("scope", openai, objects, fold(objects, 7))
    assert recall.view("scope", openai, objects) == fold(objects, 7)
    assert recall.view("scope", openai, history) == fold(history, 7)
    objects[4].content = "Something else."
    assert recall.view("scope", openai, objects) is None


def test_the_view_is_the_same_bytes_each_time_whatever_is_done_to_it(
    recall: Matching, openai: MessageFormat, talk: Talk
) -> None:
    history = talk(10)
    after = fold(history, 7, summary=dict(SUMMARY))
    recall.remember("scope", openai, history, after)
    after[1]["content"] = "The function that was called first changed this."
    for _ in range(3):
        view = recall.view("scope", openai, history)
        assert view is not None
        assert json.dumps(view[1]) == json.dumps(SUMMARY)
        view[1]["content"] = "So did this one."


@pytest.mark.parametrize("pinned", [2, 4, 6])
def test_pinned_messages_may_stand_before_all_that_was_folded(
    recall: Matching, openai: MessageFormat, talk: Talk, pinned: int
) -> None:
    history = talk(12)
    after = [*history[: 1 + pinned], SUMMARY, *history[10:]]
    recall.remember("scope", openai, history, after)
    assert recall.view("scope", openai, history) == after


def test_a_shortened_history_never_loses_its_last_user_message(
    recall: Matching, openai: MessageFormat, talk: Talk
) -> None:
    history = talk(10)
    recall.remember("scope", openai, history, fold(history, 8))
    assert recall.view("scope", openai, history[:8]) is None
    assert recall.view("scope", openai, [*history[:8], answered("Hm.")]) is None
    regenerated = [*history[:8], said("Try again.")]
    assert recall.view("scope", openai, regenerated) == fold(regenerated, 8)


def test_a_kept_user_message_that_became_another_ones_does_not_count_as_the_users(
    recall: Matching, openai: MessageFormat, talk: Talk
) -> None:
    history = talk(6)
    history += [answered(f"Step {number}.") for number in range(6)]
    after = fold(history, 10, keep=(5,))
    recall.remember("scope", openai, history, after)
    assert recall.view("scope", openai, history) == after
    rewritten = [*history[:5], answered("The user said nothing."), *history[6:]]
    assert recall.view("scope", openai, rewritten) is None


def test_an_edited_message_stands_in_the_place_of_its_original(
    recall: Matching, openai: MessageFormat, talk: Talk
) -> None:
    history = talk(10)
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    history[4] = {"role": "assistant", "content": None, "tool_calls": [call]}
    history[5] = {"role": "tool", "tool_call_id": "c1", "content": "much " * 500}
    after = [*history[:5], {**history[5], "content": "[cleared]"}, *history[6:]]
    recall.remember("scope", openai, history, after)
    assert recall.view("scope", openai, [*history, said("More.")]) == [*after, said("More.")]
    history[5]["content"] = "other " * 500
    assert recall.view("scope", openai, history) is None


def test_a_fork_with_another_role_is_not_put_beside_a_filler_made_for_the_old_one(
    talk: Talk,
) -> None:
    openai = get_format("openai")
    strict = Matching(InProcessMemory(), alternate=True)
    history = talk(6)
    history[4] = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "function": {"name": "f"}}],
    }
    history[5] = {"role": "tool", "tool_call_id": "c", "content": "It is so."}
    user = said("Stop.")
    assistant = answered("It is so.")
    made_for_assistant = [*history[:6], assistant, user]
    strict.remember("scope", openai, made_for_assistant, fold(made_for_assistant, 6))
    assert strict.view("scope", openai, made_for_assistant) == fold(made_for_assistant, 6)
    assert strict.view("scope", openai, [*history[:6], user]) is None
    lenient = Matching(strict.memory)
    assert lenient.view("scope", openai, [*history[:6], user]) == fold([*history[:6], user], 6)


def test_an_openings_repetition_by_many_users_costs_no_long_search(
    recall: Matching, openai: MessageFormat, talk: Talk
) -> None:
    greeting = answered("Hello! How can I help?")
    history = talk(1)
    for user in range(50):
        history = [*talk(1)[:1], greeting, *talk(9, f"journey {user}")[1:]]
        recall.remember("scope", openai, history, fold(history, 8))
    found: list[int] = []

    class Counting(InProcessMemory):
        def find(self, keys: Sequence[str]) -> Sequence[Record]:
            records = recall.memory.find(keys)
            found.append(len(records))
            return records

        def empty(self) -> bool:
            return False

    view = Matching(Counting()).view("scope", openai, history)
    assert view == fold(history, 8)
    assert found == [1]


def test_what_a_memory_gives_that_is_no_sound_record_is_left_out(
    recall: Matching, openai: MessageFormat, talk: Talk
) -> None:
    history = talk(10)
    recall.remember("scope", openai, history, fold(history, 7))

    class Muddled(InProcessMemory):
        def find(self, keys: Sequence[str]) -> Sequence[Any]:
            return [None, "record", Record("k", 5, (9,), "d", "l"), *recall.memory.find(keys)]

        def empty(self) -> bool:
            return False

    assert Matching(Muddled()).view("scope", openai, history) == fold(history, 7)


def test_a_compaction_that_folded_nothing_is_not_kept(
    recall: Matching, openai: MessageFormat, talk: Talk
) -> None:
    history = talk(4)
    recall.remember("scope", openai, history, history)
    assert recall.memory.empty()


ANTHROPIC: list[dict[str, Any]] = [
    {"role": "user", "content": "Where is the nearest station?"},
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t", "name": "map", "input": {"q": "station"}}],
    },
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t", "content": "Two streets north."}],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "Two streets north."}]},
    {"role": "user", "content": "Thanks. And the next train?"},
]


def test_a_view_does_not_end_with_an_answer_that_was_put_in() -> None:
    recall = Matching(InProcessMemory())
    form = get_format("anthropic")
    history = [*ANTHROPIC[:3], said("And the next train?")]
    after = [ANTHROPIC[0], SUMMARY, answered("Understood."), history[3]]
    recall.remember("scope", form, history, after)
    assert recall.view("scope", form, history) == after
    assert recall.view("scope", form, history[:3]) is None


@pytest.mark.parametrize("stays", [True, False])
def test_the_providers_own_compaction_is_in_the_view_only_where_it_was_kept(
    recall: Matching, *, stays: bool
) -> None:
    form = get_format("responses")
    native = {"type": "compaction", "encrypted_content": '{"content": "They met."}'}
    history = [
        {"role": "developer", "content": "Be brief."},
        native,
        said("One?"),
        answered("One."),
        said("Two?"),
    ]
    after = [history[0], *([native] if stays else []), SUMMARY, history[4]]

    recall.remember("scope", form, history, after)

    assert recall.view("scope", form, history) == after
    assert recall.view("scope", form, copy.deepcopy(history)) == after
