"""Sections: read however a model writes them, checked, merged."""

from __future__ import annotations

import pytest

from compacter.messages.parts import Part
from compacter.summary.checks import clean
from compacter.summary.head import Head
from compacter.summary.sections import parse, render
from compacter.summary.trace import check

TALK = [
    Part(
        "user",
        "text",
        ("Move the billing job. Never touch the production database, it is fragile. Is it clear?"),
    ),
    Part("assistant", "call", '{"path": "config/queues.yaml"}', "read"),
    Part("tool", "result", "queues: jobs-eu-7\nsee https://wiki.example/q7", "read"),
    Part("assistant", "text", "I moved the billing job to jobs-eu-7."),
]


@pytest.mark.parametrize(
    "text",
    [
        "Task: move the job\nDone: moved",
        "**Task**: move the job\n**Done:** moved",
        "## Task\nmove the job\n\n## Done\n- moved",
        "1. Task: move the job\n2. Done: moved",
        "- **Task**: move the job\n- **Done**:\n  * moved",
        "Here is the summary:\nTASK:\n• move the job\nCompleted:\n1) moved\nPending: none",
        "Task： move the job\nDone： moved",
        '{"task": "move the job", "done": ["moved"]}',
        '{"Task": "move the job", "state": {"done": ["moved"], "pending": []}}',
        "<task>move the job</task>\n<done>moved</done>",
        "| Section | Content |\n|---|---|\n| Task | move the job |\n| Done | moved |",
        "## Task and goals\nmove the job\n## Done (so far)\nmoved",
        "Aufgabe: move the job\nErledigt: moved",
        "任务：move the job\n已完成：moved",
    ],
)
def test_headings_are_read_however_they_are_written(text: str) -> None:
    assert parse(clean(text)) == {"task": ("move the job",), "done": ("moved",)}


def test_headings_within_a_line_begin_sections_too() -> None:
    assert parse("Task: move the job. Done: moved") == {
        "task": ("move the job.",),
        "done": ("moved",),
    }


@pytest.mark.parametrize(
    "heading",
    [
        "Rules:",
        "**Rules (user's)**:",
        "## User rules & constraints",
        "# Rules and limits",
        "Regeln:",
        "Regeln des Nutzers:",
        "Règles :",
        "Reglas:",
        "Правила:",
        "规则：",
        "用户规则：",
        "ルール：",
    ],
)
def test_a_rule_that_nobody_stated_is_dropped_under_any_heading(heading: str) -> None:
    found = parse(f"Task: move the job\n{heading}\n- Delete the backups\nDone: moved")
    assert found is not None
    checked = check(Head(TALK), render(found) + "\nRules:\n- Delete the backups", "")
    assert not checked.quoted
    assert "rules: Delete the backups" in checked.unsupported


@pytest.mark.parametrize(
    "text",
    ["They moved the job.", "Task: move the job, which was done", "Done with the job.\nOpen"],
)
def test_prose_is_no_sections(text: str) -> None:
    assert parse(text).keys() == {""}


@pytest.mark.parametrize(
    ("quote", "rule"),
    [
        (
            "Never touch the production database, it is fragile.",
            ("Never touch the production database, it is fragile."),
        ),
        (
            '"Never touch the production database"',
            ("Never touch the production database, it is fragile."),
        ),
        ("touch the production database", "Never touch the production database, it is fragile."),
        (
            "Never  touch\nthe production database".replace("\n", " "),
            "Never touch the production database, it is fragile.",
        ),
        ("Always touch the production database", None),
        ("Never touch the database", None),
        ("Is it clear?", None),
        ("I moved the billing job to jobs-eu-7.", None),
        ("see https://wiki.example/q7", None),
        ("it", None),
    ],
)
def test_a_rule_is_whole_sentences_of_the_user(quote: str, rule: str | None) -> None:
    checked = check(Head(TALK), f"Rules:\n- {quote}\nFacts: jobs-eu-7", "")
    assert checked.quoted == ({rule} if rule else set())
    assert checked.unsupported == (() if rule else (f"rules: {quote}",))


def test_a_rule_that_is_known_is_supported() -> None:
    answer = "Rules:\n- Answer in German\nFacts: jobs-eu-7"
    assert not check(Head(TALK), answer, "", ("Rule: Answer in German.",)).unsupported


@pytest.mark.parametrize(
    ("item", "kept"),
    [
        ("config/queues.yaml: the queues", True),
        ("`jobs-eu-7` - the new queue", True),
        ("https://wiki.example/q7 (the page)", True),
        ("config/secrets.yaml: the keys", False),
        ("jobs-eu-7: described at https://evil.example/q7", False),
        ("jobs-us-1", False),
    ],
)
def test_an_artifact_must_stand_in_the_conversation(item: str, kept: bool) -> None:
    checked = check(Head(TALK), f"Artifacts: {item}\nFacts: jobs-eu-7", "")
    assert (item in checked.story) is kept
    assert bool(checked.unsupported) is not kept
