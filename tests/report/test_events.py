"""Lines become events, and events figures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from compacter import CompactionEvent
from compacter.events import Event, MaxTokensAdjusted, MessageShortened
from compacter.runtime import models
from compacter.tools.report import page, read_lines, stories

if TYPE_CHECKING:
    from tests.report.conftest import Lines

FOLD = CompactionEvent(
    original_data_size=40_000,
    compacted_data_size=10_000,
    trigger="manual",
    strategy="summarize",
    ratio=0.7,
    messages_before=9,
    messages_after=3,
    original_tokens=10_000,
    compacted_tokens=2_500,
    input_tokens=1_000,
    output_tokens=100,
    summary="s" * 2_000,
)


def line_of(**changed: object) -> str:
    """Return the line that the sink writes for a compaction."""
    event = FOLD.model_copy(update=changed)
    return json.dumps({"event": "CompactionEvent", **json.loads(event.model_dump_json())})


@pytest.mark.parametrize("kind", Event.__subclasses__())
def test_a_line_by_hand_is_known_by_its_fields(kind: type[Event]) -> None:
    """A later version may have a field more."""
    same = MaxTokensAdjusted if kind is MessageShortened else kind
    fields = {name: None for name, field in kind.model_fields.items() if not field.exclude}
    lines = [json.dumps(fields), json.dumps({**fields, "new": 1})]
    if kind is CompactionEvent:
        lines.append(FOLD.model_dump_json())
    found, strange = read_lines(lines)
    assert {(record.kind, record.time) for record in found} == {(same.__name__, None)}
    assert not strange


def test_a_line_of_the_sink_tells_its_type_and_time() -> None:
    (record,), _ = read_lines(
        [json.dumps({"event": "SomethingNew", "time": 12.5, "conversation": "k"})]
    )
    assert (record.kind, record.time, record.text("conversation")) == ("SomethingNew", 12.5, "k")


@pytest.mark.parametrize(
    "line", ["{", "[1]", "3", '{"reason": "x", "attempt": 1}', "[" * 100_000, '{"event": 7}']
)
def test_a_line_that_is_no_event_is_counted_and_left_out(line: str) -> None:
    found, strange = read_lines([line, "", line_of()])
    assert (len(found), strange) == (1, 1)


@pytest.mark.parametrize("value", [None, "x", True, [], 1e400, float("nan")])
def test_a_field_that_is_no_number_counts_as_nothing(value: object) -> None:
    (record,), _ = read_lines(
        [json.dumps({"event": "CompactionEvent", "limit": value, "compacted_tokens": value})]
    )
    assert (record.count("limit"), record.known("compacted_tokens")) == (0, None)
    assert stories([record])[0].compactions[0].after == 0


def test_conversations_are_kept_apart_and_in_order(lines: Lines) -> None:
    found = stories(read_lines(lines(conversations=3, compactions=4))[0])
    assert [story.key[-1] for story in found] == ["0", "1", "2"]
    assert [len(story.compactions) for story in found] == [4, 4, 4]
    assert [story.failures for story in found] == [2, 1, 1]
    assert found[0].largest == 8_400


def test_what_was_before_and_after(lines: Lines) -> None:
    compaction = stories(read_lines(lines(1, 1))[0])[0].compactions[0]
    assert (compaction.before, compaction.after) == (8_050, 3_250)
    assert compaction.saved == 8_050 - 3_250


def test_the_window_is_the_providers_where_it_stated_one(lines: Lines) -> None:
    stated = stories(read_lines(lines(1, 1))[0])[0]
    looked_up = stories(read_lines([line_of(model="gpt-4o")])[0])[0]
    assert stated.window == 8_000
    assert looked_up.window == models.window("gpt-4o")


def test_a_compaction_without_a_model_costs_nothing() -> None:
    alone = line_of(input_tokens=0, output_tokens=0)
    (compaction,) = stories(read_lines([alone])[0])[0].compactions
    assert compaction.cost == 0


@pytest.mark.parametrize("usage", [(0, 0), (1_000, 100)])
def test_a_cost_that_nobody_states_is_not_known(usage: tuple[int, int]) -> None:
    asked = line_of(summarizer_calls=1, input_tokens=usage[0], output_tokens=usage[1])
    (story,) = stories(read_lines([asked])[0])
    assert (story.compactions[0].cost, story.cost) == (None, None)
    assert "$0.00" not in page([story])


def test_a_compaction_that_saves_nothing_saves_nothing() -> None:
    (compaction,) = stories(read_lines([line_of(compacted_tokens=10_000)])[0])[0].compactions
    assert compaction.saved == 0
