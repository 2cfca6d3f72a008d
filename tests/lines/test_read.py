"""A line carries what it depends on: headings, lead-ins, columns, keys and ids."""

from __future__ import annotations

import json

import pytest

from compacter.lines.read import Line, read_output, read_talk

_LONG = (
    "It was agreed at the table in the yard, and nobody has asked for anything else since then. "
    * 4
)


def above(lines: list[Line], text: str) -> str:
    """A line and what it needs, as it would be quoted."""
    line = next(line for line in lines if text in line.text)
    return "\n".join([line.lead, *(lines[need].text for need in line.needs), line.text])


@pytest.mark.parametrize(
    "form",
    [
        "{}:\n- {}\n- {}",
        "## {}\n\n- {}\n- {}",
        "**{}**\n* {}\n* {}",
        "{}\n1. {}\n2. {}",
        "- {}:\n    - {}\n    - {}",
    ],
)
def test_an_item_has_its_heading(form: str) -> None:
    intro = "" if form.startswith("-") else "Please do:\n- paint the gate\n- sort the seeds\n\n"
    section = form.format("Nicht anfassen", f"den Hafen {_LONG}", f"die Liste {_LONG}")
    lines = read_talk(f"{intro}{section}\n\n{_LONG}")
    assert "Nicht anfassen" in above(lines, "die Liste")
    assert "Please do" not in above(lines, "die Liste")


def test_items_of_three_levels_have_all_that_leads_to_them() -> None:
    text = f"Big:\n- Take:\n    - the blue crate {_LONG}\n- Leave:\n    - the red crate {_LONG}"
    quoted = above(read_talk(text), "red crate")
    assert "Big:" in quoted
    assert "Leave:" in quoted
    assert "Take:" not in quoted


def test_what_stands_below_a_list_does_not_depend_on_it() -> None:
    lines = read_talk(f"Do not:\n- push {_LONG}\n- pull {_LONG}\n\nTell me when it is done.")
    assert above(lines, "Tell me").strip() == "Tell me when it is done."


@pytest.mark.parametrize("mark", ["|", ",", ";", "\t"])
def test_a_row_has_its_columns(mark: str) -> None:
    rows = [["pump", "state", "bar"], *(["P-" + str(n) * 40, "idle", str(n)] for n in range(1, 9))]
    lines = read_output("\n".join(mark.join(row) for row in rows))
    assert "state" in above(lines, "P-7777")


def test_a_table_of_one_row_that_is_the_whole_output_has_its_columns() -> None:
    row = ";".join(["P-7", "idle " * 60, "2 bar"])
    assert "state" in above(read_output(f"pump;state;pressure\n{row}"), "P-7;")


def test_a_short_record_is_one_line() -> None:
    text = "\n\n".join(f"room: RM{n}\nrent: {n}.12\nuntil: 2033" for n in (452, 468, 479))
    assert [line.text for line in read_output(text)] == text.split("\n\n")


def test_a_value_of_a_large_record_has_its_key_and_the_records_id() -> None:
    record = {"booking": "KX12", **{f"note_{n}": f"{n} " * 60 for n in range(9)}, "fare": 449.28}
    line = next(line for line in read_output(json.dumps([record])) if "449.28" in line.text)
    assert "booking: KX12" in line.lead
    assert '"fare": 449.28' in line.text


def test_a_value_deep_in_json_has_the_name_at_its_top() -> None:
    sizes = {f"88{n}": {"cloth": f"kind {n} {'x' * 90}", "price": 190 + n} for n in range(9)}
    lines = read_output(json.dumps({"product": "Awning", "variants": sizes}, indent=1))
    assert "Awning" in above(lines, '"price": 195')
    assert '"price": 196' not in above(lines, '"price": 195')


def test_a_long_map_of_texts_has_no_id() -> None:
    towns = {f"C{n:02}": f"the town of number {n}" for n in range(40)}
    assert {line.lead for line in read_output(json.dumps(towns))} == {""}


@pytest.mark.parametrize(
    "text", ["[" * 5_000, "{" * 5_000, "[1, 2", '{"a": "b" * 3}', "- " * 9_000]
)
def test_what_only_begins_like_json_is_read_as_lines(text: str) -> None:
    assert len(read_output(text)) <= 1
