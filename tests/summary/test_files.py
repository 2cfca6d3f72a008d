"""The chapter of files worked on, in summaries without a model and beside a model's story."""

from __future__ import annotations

import json

from compacter.messages.parts import Part
from compacter.summary.files import HEADING, lines, split_off
from compacter.summary.head import Head
from compacter.summary.message import Summary
from compacter.summary.write import quote


def call(tool: str, number: int, **arguments: object) -> Part:
    return Part.of_call(tool, json.dumps(arguments), f"c{number}", number)


def result(number: int, text: str) -> Part:
    return Part.of_result(text, f"c{number}", number)


PARTS = [
    call("read", 1, path="src/app.py"),
    result(1, "import os\n" * 100),
    call("edit", 2, path="src/app.py", old_text="import os\n\nx", new_text="import sys"),
    result(2, "No match for the text."),
    call("bash", 3, command="pytest -q tests/test_app.py"),
    result(3, "...\n3 passed"),
    call("write", 4, path="docs/notes.md", content="# Notes\n\nSee src/app.py."),
    result(4, "Written."),
]


def test_a_file_has_one_line_with_its_tools_and_the_last_answer() -> None:
    assert lines(PARTS, 1_000) == [
        "Tool write: docs/notes.md … Written.",
        "Tool edit, read: src/app.py … No match for the text.",
    ]


def test_answers_belong_to_their_calls_in_whatever_order_they_come() -> None:
    parts = [
        call("edit", 1, path="src/a.py"),
        call("edit", 2, path="src/b.py"),
        result(2, "ERROR:\nNo match in b."),
        result(1, "Done with a."),
    ]

    assert lines(parts, 1_000) == [
        "Tool edit: src/b.py … No match in b.",
        "Tool edit: src/a.py … Done with a.",
    ]


def test_a_tool_that_does_several_things_is_told_with_what_it_did() -> None:
    parts = [
        call("editor", 1, command="view", path="/src/a.py"),
        call("editor", 2, command="str_replace", path="/src/a.py", new_text="x = 1"),
    ]

    assert lines(parts, 1_000) == ["Tool editor (str_replace), editor (view): /src/a.py"]


def test_an_answer_that_a_tool_always_gives_is_left_out() -> None:
    parts = [
        part
        for number in range(5)
        for part in (
            call("edit", number, path=f"src/part_{number}.py"),
            result(number, f"The file src/part_{number}.py was updated."),
        )
    ]

    assert lines(parts, 1_000)[0] == "Tool edit: src/part_4.py"


def test_without_enough_room_the_files_used_last_are_told() -> None:
    parts = [call("read", number, path=f"src/part_{number}.py") for number in range(50)]

    told = lines(parts, 200)

    assert told[0] == "Tool read: src/part_49.py"
    assert len("\n".join([HEADING, *told])) <= 200


def test_the_lines_of_an_earlier_summary_are_carried_on() -> None:
    earlier = ["Tool read: src/app.py", "Tool edit: src/old.py … No match for the text."]

    told = lines([call("edit", 1, path="src/app.py")], 1_000, earlier)

    assert told == [
        "Tool edit, read: src/app.py",
        "Tool edit: src/old.py … No match for the text.",
    ]


def test_the_chapter_is_split_off_an_earlier_text() -> None:
    text = f"User: Tidy up.\n\nArtifacts:\nTool bash: ls\n\n{HEADING}\nTool read: src/app.py"

    assert split_off(text) == (
        "User: Tidy up.\n\nArtifacts:\nTool bash: ls",
        ["Tool read: src/app.py"],
    )
    assert split_off("User: Hi.") == ("User: Hi.", [])


def test_a_summary_without_a_model_has_the_chapter_also_after_the_next_one() -> None:
    first = quote(Head(PARTS), 2_000, 2_000)
    second = quote(Head([call("read", 9, path="setup.cfg")], first), 2_000, 2_000)

    assert f"{HEADING}\nTool write: docs/notes.md" in first.quoted
    assert second.quoted.count(HEADING) == 1
    assert "Tool edit, read: src/app.py … No match for the text." in second.quoted


def test_the_chapter_stands_beside_a_models_story() -> None:
    made = quote(Head(PARTS, Summary("The user wants it tidy.")), 2_000, 2_000)

    assert made.story == "The user wants it tidy."
    assert "docs/notes.md" in made.quoted
