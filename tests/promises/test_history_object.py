"""A History: snapshots, installation, streams that end early."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from compacter import Compacter, CompactionError, History, InvalidHistoryError
from compacter.testing import (
    Interrupted,
    ScriptedModel,
    ScriptedSummarizer,
    TokenLimitError,
    token_limit_error,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.promises.conftest import Chat, MakeStage, SummariesIn, Talk


def compacter(**options: Any) -> Compacter:
    options.setdefault("summarizer", ScriptedSummarizer("Short."))
    return Compacter(**options)


# ailoop
def test_compaction_by_hand_works_under_its_threshold(talk: type[Talk]) -> None:
    history = History(talk.turns(6), compacter=compacter(), max_tokens=10**6)

    assert not history.needs_compaction()
    assert history.compact().changed


# ailoop
@pytest.mark.parametrize("count", [0, 1, 2])
def test_on_a_history_that_is_too_short_it_is_an_error_and_nothing_changes(
    count: int, talk: type[Talk]
) -> None:
    messages = talk.turns(0)[:count]
    history = History(messages, compacter=compacter())

    with pytest.raises(CompactionError, match="too short"):
        history.compact()

    assert list(history) == messages


# ailoop
def test_snapshot_and_restore_keep_messages_pins_and_the_summary(talk: type[Talk]) -> None:
    history = History(talk.turns(10), compacter=compacter(compact_ratio=0.5))
    history.pin(3)
    history.compact()

    restored = History()
    restored.restore(history.snapshot())

    assert restored == history
    assert restored.pins == history.pins
    assert restored.snapshot() == history.snapshot()


# ailoop
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
def test_a_wrong_snapshot_is_refused_and_changes_nothing(damage: Any, talk: type[Talk]) -> None:
    history = History(talk.turns(3))
    history.pin(2)
    before = history.snapshot()

    with pytest.raises(InvalidHistoryError, match="snapshot"):
        history.restore(json.dumps(damage(json.loads(before))))

    assert history.snapshot() == before


# ailoop
@pytest.mark.parametrize("text", ["", "{", b"\xff\xfe", "[1, 2"])
def test_what_is_no_json_is_refused_too(text: Any, talk: type[Talk]) -> None:
    history = History(talk.turns(3))

    with pytest.raises(InvalidHistoryError, match="snapshot"):
        history.restore(text)

    assert list(history) == talk.turns(3)


# ailoop
def test_a_compaction_between_steps_of_a_loop_stands_between_its_calls(
    stage: MakeStage, talk: type[Talk]
) -> None:
    scene = stage(window=700)
    history = talk.errand(0)
    record = talk.errand(0)[:0]
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


# ailoop
def test_persistent_overflow_is_the_providers_error_once_and_the_history_as_it_was(
    talk: type[Talk],
) -> None:
    refusal = token_limit_error("bedrock", limit=10, input_tokens=20)
    history = History(talk.turns(20))
    before = history.snapshot()

    with pytest.raises(TokenLimitError) as caught:
        compacter(compact_ratio=0.3).wrap(ScriptedModel(window=10**9, replies=refusal).completion)(
            "m", history
        )

    assert caught.value is refusal
    assert history.snapshot() == before


# ailoop
def test_a_call_that_succeeds_leaves_the_history_compacted(talk: type[Talk]) -> None:
    model = ScriptedModel(window=600)
    history = History(talk.turns(12))
    completion = compacter(recall=None).wrap(model.completion)

    completion("m", history)
    assert len(history) < 25
    assert list(history) == list(model.requests[-1].messages)
    completion("m", history)
    assert model.rejected == 1


# ailoop
def test_a_dropped_stream_leaves_the_history_as_it_was(talk: type[Talk]) -> None:
    model = ScriptedModel(
        window=600, replies=Interrupted("a long answer in many chunks", after=3), chunk_size=3
    )
    history = History(talk.turns(12))
    before = history.snapshot()

    stream = compacter().wrap(model.completion)("m", history, stream=True)
    with pytest.raises(TokenLimitError):
        list(stream)

    assert model.rejected == 1
    assert history.snapshot() == before


# ailoop
def test_a_stream_that_is_closed_early_leaves_it_so_too(talk: type[Talk]) -> None:
    model = ScriptedModel(window=600, replies="a long answer in many chunks", chunk_size=3)
    history = History(talk.turns(12))
    before = history.snapshot()

    with compacter().wrap(model.completion)("m", history, stream=True) as stream:
        next(stream)

    assert history.snapshot() == before


# ailoop
def test_a_stream_read_to_its_end_installs_what_was_compacted(talk: type[Talk]) -> None:
    model = ScriptedModel(window=600, replies="a long answer in many chunks", chunk_size=3)
    history = History(talk.turns(12))

    list(compacter(recall=None).wrap(model.completion)("m", history, stream=True))

    assert list(history) == list(model.requests[-1].messages)


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


# localharness
def test_a_history_that_changed_meanwhile_is_not_overwritten(talk: type[Talk]) -> None:
    history = History(talk.turns(12))

    def summarizer(messages: Sequence[Chat]) -> str:
        history.append(talk.answer("I came in between."))
        return "Short."

    told: list[Any] = []
    compacter = Compacter(summarizer=summarizer, on_event=told.append)
    history_before = list(history)
    compacter.wrap(ScriptedModel(window=500).completion)("m", history)

    added = list(history)[len(history_before) :]
    assert list(history)[: len(history_before)] == history_before
    assert added
    assert all(message["content"] == "I came in between." for message in added)
    assert any(getattr(event, "reason", "") == "history_changed" for event in told)


# meerkat
def test_after_a_restart_a_compacted_conversation_goes_on(
    talk: type[Talk], summaries_in: SummariesIn
) -> None:
    before = History(talk.turns(12))
    compacter().wrap(ScriptedModel(window=600).completion)("m", before)
    stored = before.snapshot()

    model = ScriptedModel(window=600)
    after = History()
    after.restore(stored)
    completion = compacter().wrap(model.completion)
    for turn in talk.turns(20)[1:]:
        after.append(turn)
        if turn["role"] == "user":
            completion("m", after)

    assert model.invalid == 0
    assert model.rejected > 0
    assert len(summaries_in(list(after))) == 1
