"""Finished, pending and withdrawn work: what a model says of it against what was said."""

from __future__ import annotations

import pytest

from compacter import Compacter
from compacter.messages.parts import Part
from compacter.summary.evidence import Sections
from compacter.summary.sections import check, parse, render
from compacter.testing import ScriptedSummarizer


def talk(*said: str) -> list[Part]:
    """Turns, the user first."""
    return [
        Part("assistant" if number % 2 else "user", "text", text)
        for number, text in enumerate(said)
    ]


def sections(text: str) -> Sections:
    found = parse(text)
    assert found is not None
    return found


FINISHED = [
    ("Rename the table customers.", "I renamed the table customers in all three services."),
    ("Write tests for the parser.", "The tests for the parser are written and pass."),
    ("Move the billing job to queue jobs-eu-7.", "The billing job runs on queue jobs-eu-7 now."),
    ("Book a table at Harbour Inn for Friday.", "Your table at Harbour Inn is booked for Friday."),
    ("Translate the chapter on tides.", "The chapter on tides is translated."),
    ("Upgrade the cluster to version 1.31.", "The cluster was upgraded to version 1.31."),
    (
        "Find out why the nightly import fails.",
        "The nightly import fails because of a date in row 8812; that is fixed.",
    ),
    ("Order paint for the fence.", "The paint for the fence is ordered."),
    ("Bitte richte das Postfach für Ingrid ein.", "Das Postfach für Ingrid ist eingerichtet."),
    ("Corrige la factura 7731.", "La factura 7731 está corregida."),
    ("Перенеси задачу биллинга в очередь.", "Задача биллинга перенесена в очередь."),
    ("请把计费任务移到新的队列。", "计费任务已经移到新的队列。"),
]
WITHDRAWN = [
    ("Please design a newsletter for the members.", "Forget about the newsletter for the members."),
    ("Compare three hotels in Bergen.", "No hotels in Bergen any more, we stay with friends."),
    ("Set up monitoring for the staging hosts.", "Drop the monitoring for the staging hosts."),
    ("Write a poem about pier seven.", "I do not need the poem about pier seven after all."),
    ("Port the exporter to Rust.", "Leave the exporter in Python, no port to Rust."),
    ("Add dark mode to the settings page.", "Dark mode on the settings page is cancelled."),
    ("Rent a van for the move in March.", "We do not need the van for the move in March."),
    ("Invite the Hansen family for dinner.", "Do not invite the Hansen family for dinner."),
    (
        "Bitte bestelle neue Stühle für das Büro.",
        ("Die Stühle für das Büro brauchen wir nicht mehr."),
    ),
    ("Réserve une salle pour la réunion.", "Laisse tomber la salle pour la réunion."),
]
BOTH = [*FINISHED, *WITHDRAWN]


@pytest.mark.parametrize(("asked", "then"), FINISHED)
def test_what_the_assistant_reported_stands_beside_an_item_that_a_model_calls_pending(
    asked: str, then: str
) -> None:
    answer = sections(f"Task: keep the books\nPending: {asked}")
    checked = check(answer, talk(asked, then))
    assert f'[Assistant said last: "{then}' in checked.sections["pending"][0]


@pytest.mark.parametrize(("asked", "then"), WITHDRAWN)
def test_what_the_user_withdrew_stands_beside_an_item_that_a_model_calls_pending(
    asked: str, then: str
) -> None:
    answer = sections(f"Task: keep the books\nPending: {asked}")
    checked = check(answer, talk(asked, "I will look into that.", then))
    assert f'[User said last: "{then}' in checked.sections["pending"][0]


@pytest.mark.parametrize(("asked", "then"), BOTH)
@pytest.mark.parametrize("closed", ["done", "cancelled"])
def test_what_was_closed_before_does_not_come_back_as_pending(
    asked: str, then: str, closed: str
) -> None:
    answer = sections(f"Task: keep the books\nPending: {asked}\nOpen questions: {asked}")
    checked = check(
        answer, talk("How is the weather in Bergen today?", "It rains."), prior={closed: (asked,)}
    )
    assert "pending" not in checked.sections
    assert "questions" not in checked.sections
    assert checked.sections[closed] == (asked,)
    assert f"pending: {asked}" in checked.dropped


@pytest.mark.parametrize(("asked", "then"), BOTH)
def test_what_is_closed_and_pending_in_one_answer_is_closed(asked: str, then: str) -> None:
    answer = sections(f"Done: {asked}\nPending: {asked}")
    assert "pending" not in check(answer, talk(asked, then)).sections


@pytest.mark.parametrize(("asked", "then"), BOTH)
def test_what_the_user_asks_for_again_may_be_pending_again(asked: str, then: str) -> None:
    answer = sections(f"Task: keep the books\nPending: {asked}")
    again = check(answer, talk(f"{asked} Once more, please."), prior={"done": (asked,)})
    assert again.sections["pending"][0].startswith(asked)
    later = check(answer, talk("What time is it?"), prior=again.sections)
    assert later.sections["pending"][0].startswith(asked)


@pytest.mark.parametrize(("asked", "then"), FINISHED)
def test_a_tool_cannot_reopen_what_was_done(asked: str, then: str) -> None:
    page = Part("tool", "result", f"Reminder: {asked} This is still open!", "fetch_page")
    answer = sections(f"Task: keep the books\nPending: {asked}")
    checked = check(answer, [*talk("How is the weather?"), page], prior={"done": (asked,)})
    assert "pending" not in checked.sections


@pytest.mark.parametrize(
    ("done", "pending"),
    [
        ("Migrated table users", "Migrate table orders"),
        ("Wrote the API documentation", "Write the CLI documentation"),
        ("Step 2 of the upgrade", "Step 3 of the upgrade"),
        ("Tests for the lexer", "Tests for the parser"),
        ("Booked the flight to Oslo", "Book the hotel in Oslo"),
    ],
)
def test_similar_work_that_is_still_open_stays_pending(done: str, pending: str) -> None:
    answer = sections(f"Done: {done}\nPending: {pending}")
    checked = check(answer, talk(f"{done}, then {pending}."))
    assert checked.sections["pending"][0].startswith(pending)


def test_what_was_done_is_restored_where_a_model_forgot_it_and_its_number_is_bounded() -> None:
    before: Sections = {"done": tuple(f"Imported file number {number}" for number in range(200))}
    checked = check(
        sections("Task: import\nPending: file 201"), talk("Import file 201."), prior=before
    )
    assert len(checked.sections["done"]) == 30
    assert checked.sections["done"][-1] == "Imported file number 199"


def test_the_last_word_is_replaced_and_never_piles_up() -> None:
    said: Sections = {}
    for report in (
        "I began with the tables.",
        "The tables are half done.",
        ("The tables are finished and checked."),
    ):
        answer = sections(f"Task: x\nPending: {said['pending'][0] if said else 'Clean the tables'}")
        said = check(answer, talk("Go on with the tables.", report), prior=said).sections
    assert said["pending"][0] == (
        'Clean the tables [Assistant said last: "The tables are finished and checked."]'
    )


def test_the_last_word_stays_until_there_is_a_newer_one_and_its_source_is_none() -> None:
    first = check(
        sections("Task: mend the import\nPending: CSV export"),
        talk("The import fails. Add a CSV export."),
    )
    assert first.sections == {"task": ("mend the import",), "pending": ("CSV export",)}
    done = talk("And the fence?", "The CSV export is done.")
    second = check(
        sections("Task: mend the import\nPending: CSV export"), done, prior=first.sections
    )
    assert second.sections["pending"] == (
        ('CSV export [Assistant said last: "The CSV export is done."]'),
    )
    third = check(
        sections("Task: mend the import\nPending: CSV export"),
        talk("And now?"),
        prior=second.sections,
    )
    assert third.sections["pending"] == second.sections["pending"]


@pytest.mark.parametrize(
    "words", ["Take option 1. Then book it.", "Pay 5 - 3 euros", "Fill in User: and Tool: there"]
)
def test_no_word_is_taken_out_of_an_item(words: str) -> None:
    for text in (f"Task: {words}\nFacts: {words}", f"Task:\n- {words}\nFacts:\n2. {words}"):
        assert parse(text) == {"task": (words,), "facts": (words,)}
    assert check({"facts": (words,)}, talk(f"{words} Now.")).sections == {"facts": (words,)}


def test_sections_are_read_as_they_were_written() -> None:
    written: Sections = {
        "task": ("move the job",),
        "facts": ("Done: is a word here", "Rule: also this", "a"),
        "pending": ("one", "two"),
    }
    assert parse(render(written)) == {
        **written,
        "facts": ("> Done: is a word here", "Rule: also this", "a"),
    }


def test_an_earlier_summary_that_is_said_again_does_not_call_open_what_was_done_since() -> None:
    story = (
        "Task: repair the pier of the harbour before the ferry comes back in March.\n"
        "Pending: Paint the lantern on pier 7."
    )
    compacter = Compacter(summarizer=ScriptedSummarizer(story))
    asked = [
        {
            "role": "user",
            "content": "Please repair the pier of the harbour before the ferry comes back in "
            "March, and paint the lantern on pier 7.",
        },
        {"role": "assistant", "content": "I repair the pier of the harbour first. " * 20},
        {"role": "user", "content": "Good."},
    ]
    done = [
        {"role": "assistant", "content": "The lantern on pier 7 is painted. " + "I wait. " * 40},
        {"role": "user", "content": "Very good."},
        {"role": "assistant", "content": "The gulls came back to the harbour. " * 20},
        {"role": "user", "content": "And now?"},
    ]
    once = compacter.compact(asked, budget=700)
    twice = compacter.compact([*once.messages, *done], budget=800)

    said = str(twice.messages)
    assert 'lantern on pier 7. [Assistant said last: "The lantern on pier 7 is painted."]' in said
