"""Plans, results and totals that somebody looks at, and the progress of a summary."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conversations import history

from compacter import Compacter, History
from compacter.events import Event, SummaryProgress
from compacter.lines.passages import Passage

LONG = [
    {"role": role, "content": f"{role} {number}: the pump of hall {number} ran. " * 60}
    for number in range(40)
    for role in ("user", "assistant")
]


def test_a_plan_is_printed_with_what_goes_what_stays_and_how_large_each_is() -> None:
    """``print(compacter.plan(messages))`` answers what a compaction would do."""
    plan = Compacter(summarizer="extractive").plan(history(), budget=900)
    assert 0 < plan.head_size < plan.original_data_size
    lines = dict(line.split("  ", 1) for line in str(plan).splitlines())
    for name, count, size in (
        ("messages", len(plan.messages), plan.original_data_size),
        ("compacted", len(plan.compacted), plan.head_size),
        ("kept", len(plan.kept), plan.tail_size),
    ):
        assert lines[name].strip().startswith(f"{count:,}, {size:,} characters, about ")
    assert lines["target"].strip() == "at most 900 characters"
    assert repr(plan) == f"CompactionPlan(cut={plan.cut}, strategy='summarize')"


def test_what_is_printed_is_a_table_in_a_notebook_and_no_markup_of_others() -> None:
    """A name in a result cannot put HTML into a notebook."""
    compacter = Compacter(summarizer=lambda messages: "They spoke.")
    result = compacter.compact(history(), model="<b>m</b>")
    assert "<b>m</b>" in str(result)
    for shown in (result, compacter.plan(history()), compacter.totals):
        table: str = shown._repr_html_()
        assert table.startswith("<table><tr><th>")
        assert "<b>" not in table
    assert "&lt;b&gt;m&lt;/b&gt;" in result._repr_html_()
    assert "<tr><th>rounds<td>1<" in compacter.totals._repr_html_()


def test_a_compacter_a_history_and_a_passage_are_tables_in_a_notebook() -> None:
    """A cell that ends with one of them shows what it holds."""
    compacter = Compacter(summarizer="extractive", focus="<i>prices</i>")
    chat = History(history(), compacter=compacter)
    chat.append({"role": "user", "content": "Ask <b>Ann</b>."}, rule=True)
    chat.pin(0)
    chat.compact(budget=900)
    html = chat._repr_html_()
    for row in (
        f"<tr><th>messages<td>{len(chat)}",
        "<tr><th>pinned<td>1",
        "<tr><th>rule<td>Ask &lt;b&gt;Ann&lt;/b&gt;.",
    ):
        assert row in html
    assert "<th>Compacter<td>" in (html := compacter._repr_html_())
    assert "&lt;i&gt;prices" in html
    assert "<i>" not in html
    assert "<th>rounds<td>1" in html
    passage: Any = Passage("Ask <b>Ann</b>.", "tool", "read", 3, 1.5)
    assert passage._repr_html_() == (
        "<table><tr><th>message 3<td>Ask &lt;b&gt;Ann&lt;/b&gt;."
        "<tr><th>said by<td>tool read<tr><th>score<td>1.50</table>"
    )


def test_a_result_without_a_change_says_so() -> None:
    """A conversation within its budget does not change."""
    assert "nothing was changed" in str(Compacter().compact(history(), budget=10**9))


def pieces_of(*answers: str) -> list[tuple[int, int]]:
    """Progress of a summary of a history that is too long for the model's window."""
    told: list[Event] = []
    replies = iter(answers)
    Compacter(
        summarizer=lambda messages: next(replies, "They spoke of pumps."),
        on_event=told.append,
        compact_ratio=1.0,
    ).compact(LONG, model="gpt-4")
    return [(event.piece, event.pieces) for event in told if isinstance(event, SummaryProgress)]


def test_a_summary_in_pieces_reports_each() -> None:
    """A terminal shows the progress of a summary in pieces."""
    progress = pieces_of()
    count = progress[-1][1]
    assert count > 1
    assert [piece for piece, _ in progress] == list(range(1, count + 1))


def test_a_piece_whose_answer_was_refused_is_reported_once() -> None:
    """A second request for a piece is not progress."""
    pieces = [piece for piece, _ in pieces_of("")]
    assert pieces == sorted(set(pieces))
    assert len(pieces) > 1


@pytest.mark.parametrize("limit", [1_500, 3_000, 6_000])
def test_progress_runs_forward_where_a_piece_is_too_long(limit: int) -> None:
    told: list[Event] = []
    refused: list[int] = []

    def summarizer(messages: list[Any]) -> str:
        size = sum(len(message["content"]) for message in messages)
        if size > limit:
            refused.append(size)
            raise ValueError(f"prompt is too long: {size // 4} tokens > {limit // 4} maximum")
        return "They spoke of pumps."

    compacter = Compacter(summarizer=summarizer, on_event=told.append, compact_ratio=1.0)
    compacter.compact(LONG, model="gpt-4")
    shares = [event.piece / event.pieces for event in told if isinstance(event, SummaryProgress)]
    assert refused
    assert shares == sorted(set(shares))
    assert shares[-1] == 1


def test_a_summary_in_one_piece_reports_no_progress() -> None:
    """Most summaries are made by one request, of which two other events tell."""
    told: list[Event] = []
    Compacter(summarizer=lambda messages: "They spoke.", on_event=told.append).compact(history())
    assert [type(event).__name__ for event in told] == ["CompactionStarted", "CompactionEvent"]
