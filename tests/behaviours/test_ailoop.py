"""What ailoop's ``History`` promises: pins, fallbacks, snapshots, a loop that goes on (A1 to A15)."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from compacter import Compacter, CompactionError, History, InvalidHistoryError, Truncate
from compacter.summary import message as summary_message
from compacter.testing import (
    Interrupted,
    ScriptedModel,
    ScriptedSummarizer,
    TokenLimitError,
    server_error,
    token_limit_error,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.behaviours.conftest import Chat, MakeStage, Talk


def compacter(**options: Any) -> Compacter:
    options.setdefault("summarizer", ScriptedSummarizer("Short."))
    return Compacter(**options)


@pytest.mark.parametrize("turns", [1, 2, 4])
def test_a1_a_clean_boundary_keeps_the_last_turns(turns: int, talk: type[Talk]) -> None:
    history = talk.turns(10)[:-1]

    result = compacter(preserve_recent_turns=turns, compact_ratio=1).compact(history)

    assert result.messages[-2 * turns :] == history[-2 * turns :]


@pytest.mark.parametrize("ratio", [number / 10 for number in range(1, 10)])
def test_a1_a_boundary_on_a_result_walks_to_the_call(ratio: float, talk: type[Talk]) -> None:
    result = compacter(compact_ratio=ratio).compact(talk.errand(9, size=150))

    behind = next(i for i, message in enumerate(result.messages) if summary_message.TAG in str(message["content"])) + 1
    assert [message["role"] for message in result.messages[behind:]][:2] in (
        ["user", "assistant"],
        ["assistant", "tool"],
        ["user"],
    )


def test_a2_pinned_messages_survive_in_order_and_stay_pinned(talk: type[Talk]) -> None:
    history = History(talk.turns(10), compacter=compacter(compact_ratio=1))
    wanted = [history[3], history[8], history[15]]
    for index in (15, 3, 8):
        history.pin(index)

    result = history.compact()

    assert result.changed
    assert [message for message in history if any(message is one for one in wanted)] == wanted
    assert [message for message, pinned in zip(history, history.pins, strict=True) if pinned] == wanted


def test_a2_a_predicate_pins_too(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=600, pin=lambda message: "question 2:" in str(message["content"]))
    history = talk.turns(12)

    scene.ask(history)

    assert history[5] in scene.sent
    assert history[5] not in scene.compactions[0].discarded


def test_a2_a_message_can_be_appended_pinned_and_let_go(talk: type[Talk]) -> None:
    history = History(talk.turns(6), compacter=compacter(compact_ratio=1))
    rule = talk.user("Never mention the harbour.")
    history.append(rule, pinned=True)
    history.extend(talk.turns(6)[1:])
    history.compact()
    assert rule in list(history)

    history.unpin(list(history).index(rule))
    history.extend(talk.turns(6)[1:])
    history.compact()
    assert rule not in list(history)


@pytest.mark.parametrize("half", ["call", "first result", "second result"])
def test_a3_a_pin_on_half_a_pair_keeps_the_whole(half: str, talk: type[Talk]) -> None:
    history = History(talk.errand(8, parallel=2), compacter=compacter(compact_ratio=1))
    at = 2 + 3 * 3
    step = history[at : at + 3]
    history.pin(at + ["call", "first result", "second result"].index(half))

    history.compact()

    kept = [message for message in history if any(message is one for one in step)]
    assert kept == step


def test_a4_a_head_that_is_wholly_pinned_asks_no_model(talk: type[Talk]) -> None:
    asked = ScriptedSummarizer("Short.")
    history = talk.turns(6)

    result = compacter(summarizer=asked, pin=lambda message: True).compact(history)

    assert not result.changed
    assert not asked.requests


def test_a5_an_error_of_the_model_ends_in_the_fallback_or_in_its_own_words(talk: type[Talk]) -> None:
    error = server_error()

    result = compacter(summarizer=ScriptedSummarizer(fail=error)).compact(talk.turns(8))
    assert result.event is not None
    assert result.event.fallback

    with pytest.raises(CompactionError) as caught:
        compacter(summarizer=ScriptedSummarizer(fail=error), fallback=None).compact(talk.turns(8))
    assert str(error) in str(caught.value)


def test_a6_under_its_threshold_nothing_happens_and_over_it_there_is_a_report(talk: type[Talk]) -> None:
    size = sum(len(message["content"]) for message in talk.turns(8)) // 4
    roomy = History(talk.turns(8), compacter=compacter(), max_tokens=size * 2)
    tight = History(talk.turns(8), compacter=compacter(), max_tokens=size // 2)

    assert not roomy.needs_compaction()
    assert not roomy.compact_if_needed().changed
    assert tight.needs_compaction()
    event = tight.compact_if_needed().event

    assert list(roomy) == talk.turns(8)
    assert event is not None
    assert event.strategy == "summarize"
    assert event.compacted_data_size < event.original_data_size


def test_a7_the_users_token_counter_is_used(talk: type[Talk]) -> None:
    counted: list[int] = []

    def counter(messages: Sequence[Chat]) -> int:
        counted.append(len(messages))
        return 50 * len(messages)

    history = History(talk.turns(4), compacter=compacter(token_counter=counter), max_tokens=501)

    assert not history.needs_compaction()
    history.append(talk.answer("x"))
    assert history.needs_compaction()
    assert counted == [10, 11]


@pytest.mark.parametrize(("reserve", "needed"), [(0, False), (100, False), (600, True), (10**6, True)])
def test_a8_a_reserve_lowers_the_threshold_and_not_the_estimate(reserve: int, needed: bool, talk: type[Talk]) -> None:
    history = History(talk.turns(8), compacter=compacter(), max_tokens=1_200, reserve_tokens=reserve)

    assert history.tokens() == History(talk.turns(8), compacter=compacter()).tokens()
    assert history.needs_compaction() is needed


def test_a9_compaction_by_hand_works_under_its_threshold(talk: type[Talk]) -> None:
    history = History(talk.turns(6), compacter=compacter(), max_tokens=10**6)

    assert not history.needs_compaction()
    assert history.compact().changed


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a9_on_a_history_that_is_too_short_it_is_an_error_and_nothing_changes(count: int, talk: type[Talk]) -> None:
    messages = talk.turns(0)[:count]
    history = History(messages, compacter=compacter())

    with pytest.raises(CompactionError, match="too short"):
        history.compact()

    assert list(history) == messages


def test_a10_snapshot_and_restore_keep_messages_pins_and_the_summary(talk: type[Talk]) -> None:
    history = History(talk.turns(10), compacter=compacter(compact_ratio=0.5))
    history.pin(3)
    history.compact()

    restored = History()
    restored.restore(history.snapshot())

    assert restored == history
    assert restored.pins == history.pins
    assert restored.snapshot() == history.snapshot()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: {**data, "version": 99},
        lambda data: {name: value for name, value in data.items() if name != "version"},
        lambda data: {**data, "pins": data["pins"][1:]},
        lambda data: {**data, "messages": "none"},
        lambda data: {**data, "pins": ["yes"] * len(data["pins"])},
        lambda data: [data],
        lambda data: None,
    ],
    ids=["version", "no version", "lengths", "messages", "pins", "a list", "nothing"],
)
def test_a10_a_wrong_snapshot_is_refused_and_changes_nothing(damage: Any, talk: type[Talk]) -> None:
    history = History(talk.turns(3))
    history.pin(2)
    before = history.snapshot()

    with pytest.raises(InvalidHistoryError, match="snapshot"):
        history.restore(json.dumps(damage(json.loads(before))))

    assert history.snapshot() == before


@pytest.mark.parametrize("text", ["", "{", b"\xff\xfe", "[1, 2"])
def test_a10_what_is_no_json_is_refused_too(text: Any, talk: type[Talk]) -> None:
    history = History(talk.turns(3))

    with pytest.raises(InvalidHistoryError, match="snapshot"):
        history.restore(text)

    assert list(history) == talk.turns(3)


def test_a11_a_compaction_between_steps_of_a_loop_stands_between_its_calls(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=700)
    history, record = talk.errand(0), talk.errand(0)[:0]
    steps: list[int] = []

    for number in range(12):
        scene.ask(history)
        steps.append(len(scene.told))
        step = [
            talk.calls(f"call_{number}"),
            talk.result(f"call_{number}", talk.text(f"result {number}", 300)),
        ]
        history += step
        record += step

    compacted = scene.kinds().index("CompactionEvent")
    assert steps[0] == 0
    assert any(earlier <= compacted < later for earlier, later in pairwise(steps))
    assert history[2:] == record


def test_a12_persistent_overflow_is_the_providers_error_once_and_the_history_as_it_was(
    talk: type[Talk],
) -> None:
    refusal = token_limit_error("bedrock", limit=10, input_tokens=20)
    history = History(talk.turns(20))
    before = history.snapshot()

    with pytest.raises(TokenLimitError) as caught:
        compacter(compact_ratio=0.3).wrap(ScriptedModel(window=10**9, replies=refusal).completion)("m", history)

    assert caught.value is refusal
    assert history.snapshot() == before


def test_a12_a_call_that_succeeds_leaves_the_history_compacted(talk: type[Talk]) -> None:
    model = ScriptedModel(window=600)
    history = History(talk.turns(12))
    completion = compacter().wrap(model.completion)

    completion("m", history)
    assert len(history) < 25
    assert list(history) == list(model.requests[-1].messages)
    completion("m", history)
    assert model.rejected == 1


def test_a13_nothing_to_compact_is_the_error_without_a_second_request(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=100)
    history = History([talk.system("s" * 900), talk.user("And now?")])

    with pytest.raises(TokenLimitError):
        scene.compacter.wrap(scene.model.completion)("m", history)

    assert len(scene.model.requests) == 1
    assert len(history) == 2


def test_a14_a_dropped_stream_leaves_the_history_as_it_was(talk: type[Talk]) -> None:
    model = ScriptedModel(window=600, replies=Interrupted("a long answer in many chunks", after=3), chunk_size=3)
    history = History(talk.turns(12))
    before = history.snapshot()

    stream = compacter().wrap(model.completion)("m", history, stream=True)
    with pytest.raises(TokenLimitError):
        list(stream)

    assert model.rejected == 1
    assert history.snapshot() == before


def test_a14_a_stream_that_is_closed_early_leaves_it_so_too(talk: type[Talk]) -> None:
    model = ScriptedModel(window=600, replies="a long answer in many chunks", chunk_size=3)
    history = History(talk.turns(12))
    before = history.snapshot()

    with compacter().wrap(model.completion)("m", history, stream=True) as stream:
        next(stream)

    assert history.snapshot() == before


def test_a14_a_stream_read_to_its_end_installs_what_was_compacted(talk: type[Talk]) -> None:
    model = ScriptedModel(window=600, replies="a long answer in many chunks", chunk_size=3)
    history = History(talk.turns(12))

    list(compacter().wrap(model.completion)("m", history, stream=True))

    assert list(history) == list(model.requests[-1].messages)


# A15, the calibrated estimate, is held in tests/flow/test_trigger.py (TestCalibration).


def test_a_history_is_a_mutable_sequence(talk: type[Talk]) -> None:
    history = History(talk.turns(2))
    history.pin(1)

    history.insert(0, talk.user("first"))
    assert list(history.pins) == [False, False, True, False, False, False, False]
    del history[1]
    assert list(history.pins) == [False, True, False, False, False, False]
    history[2:4] = []
    assert list(history.pins) == [False, True, False, False]
    history[0] = talk.user("other")
    assert (len(history), history[0], list(reversed(history))[-1]) == (
        4,
        talk.user("other"),
        talk.user("other"),
    )
    history += [talk.user("last")]
    assert history.pop() == talk.user("last")
    history.clear()
    assert list(history) == []
    assert list(history.pins) == []


def test_a_strategy_names_itself_in_the_report(talk: type[Talk]) -> None:  # A6
    event = History(talk.turns(8), compacter=Compacter(strategy=Truncate())).compact().event
    assert event is not None
    assert event.strategy == "truncate"
