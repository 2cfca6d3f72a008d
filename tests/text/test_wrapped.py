"""Paragraphs that a program has broken at a column are joined, and nothing else."""

from __future__ import annotations

import textwrap

import pytest
from tests.effort import grows_linearly, repeated

from compacter.messages.parts import Part
from compacter.summary import rules
from compacter.text.wrapped import unwrap

PARAGRAPH = (
    "The harbour office moved to the north pier in March. You shouldn't concern yourself with the "
    "old tide tables when you plan a berth, because Ottilie Brandt has replaced all of them. "
    "Please always write the times in UTC and never in local time, as the crews come from three "
    "countries and have missed each other before."
)
GERMAN = (
    "Das Hafenamt ist im März an die Nordmole gezogen. Bitte schreibe alle Zeiten immer in UTC und "
    "niemals in Ortszeit, da die Mannschaften aus drei Ländern kommen und einander sonst "
    "verpassen. Die alten Gezeitentafeln im Schrank neben der Tür gelten nicht mehr."
)


@pytest.mark.parametrize("width", [60, 66, 72, 76, 80, 100])
@pytest.mark.parametrize("text", [PARAGRAPH, GERMAN], ids=["English", "German"])
def test_a_paragraph_broken_at_a_column_is_one_line_again(text: str, width: int) -> None:
    broken = textwrap.fill(text, width, break_on_hyphens=False)

    assert all(" ".join(line.split()) in text for line in unwrap(broken).splitlines())
    sentences = [rule.partition(": ")[2] for rule in rules.lines([Part("user", "text", broken)])]
    assert sentences == [
        rule.partition(": ")[2] for rule in rules.lines([Part("user", "text", text)])
    ]
    assert sentences


def test_items_of_a_list_go_on_in_deeper_lines() -> None:
    text = (
        "The work for today:\n\n- Never touch the production\n  database without asking.\n"
        "- Write the log in English\n  and keep it short.\nThanks"
    )

    assert unwrap(text).splitlines()[2:] == [
        "- Never touch the production database without asking.",
        "- Write the log in English and keep it short.",
        "Thanks",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "fix the login page\nthen run the tests\nand tell me what fails",
        "Milk, two litres, and some butter\nA loaf of bread from the corner shop\nRed apples",
        "Name: Ottilie Brandt, harbour office, north pier, second floor, room 12\nCity: Hamburg",
        "# The plan of the harbour for the coming year, with all its piers and berths\nwe begin",
        "```\nthe first line of a listing as long as a line of prose may be\nand so on\n```",
        "| pier | the number of the berths that are free in the first week of May |\n| 7 | 3 |",
        "    for berth in berths_of(pier): plan[berth] = tide_of(berth)\n    return plan",
        "The roses are red and the violets are blue and the sky is grey.\nThe rest is not said.",
        "",
        "\n\n",
    ],
)
def test_other_breaks_stay(text: str) -> None:
    assert unwrap(text) == text


def test_words_are_neither_lost_nor_moved() -> None:
    text = f"{textwrap.fill(PARAGRAPH, 72)}\n\n* one\n  two\n\n{textwrap.fill(GERMAN, 72)}\n"

    assert unwrap(text).split() == text.split()


@pytest.mark.parametrize(
    "shape", [f"{'word ' * 14}word\n", "- a\n  b\n", "\n", "```\nx y\n", "a ", "a\n"]
)
def test_time_is_linear(shape: str) -> None:
    assert grows_linearly(unwrap, repeated(shape), 20_000)
