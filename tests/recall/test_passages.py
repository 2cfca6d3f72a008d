"""Texts are cut into whole sentences and lines, each of which says something by itself."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import grows_linearly, repeated

from compacter.messages.format import get_format
from compacter.recall.frame import folded
from compacter.recall.passages import LONGEST, cut, readable

SENTENCES = {
    "English": (
        "The lighthouse keeper retired in March after forty winters. ",
        ("Nobody has taken his place yet. "),
    ),
    "German": (
        "Die Brücke wird ab Montag für schwere Lastwagen gesperrt. ",
        ("Die Umleitung führt über Altdorf. "),
    ),
    "Chinese": (
        "图书馆下周一开始整修三楼的阅览室，为期两个月左右。",
        "借书请到一楼的服务台办理所有手续，谢谢。",
    ),
    "Japanese": (
        "来週の会議は三階の大きな部屋で午前十時から始まります。",
        "資料は前日までに全員へ配布しておいてください。",
    ),
    "Arabic": (
        "يبدأ القطار رحلته من المحطة القديمة عند الساعة السابعة صباحا كل يوم. ",
        "هل وصلت التذاكر؟ ",
    ),
}


def runs(text: str, *, lines: bool = False) -> list[str]:
    return [text[start:end] for start, end in cut(text, lines=lines)]


@pytest.mark.parametrize("language", SENTENCES)
def test_no_run_ends_within_a_sentence(language: str) -> None:
    one, other = SENTENCES[language]

    found = runs((one + other) * 12)

    assert len(found) > 1
    assert all(run.endswith((one.strip(), other.strip())) for run in found)


def test_a_sentence_that_is_longer_than_a_run_is_cut_between_words() -> None:
    words = [f"word{number}" for number in range(400)]

    found = runs(" ".join(words))

    assert len(found) > 1
    assert [word for run in found for word in run.split()] == words


def test_output_of_a_tool_is_cut_between_lines() -> None:
    text = "\n".join(
        f"2031-04-0{day} ward {day} closed. Beds: {day * 7} of 80 are taken" for day in range(1, 10)
    )

    assert all(
        line in text.split("\n") for run in runs(text, lines=True) for line in run.split("\n")
    )


@given(st.text(), st.booleans())
def test_every_letter_is_in_one_run(text: str, lines: bool) -> None:
    letters = [letter for letter in text if letter.isalnum()]

    assert [
        letter for run in runs(text, lines=lines) for letter in run if letter.isalnum()
    ] == letters


@given(st.text(alphabet="ab. ?!\n\"'。", max_size=2_000))
def test_no_run_is_longer_than_its_bound(text: str) -> None:
    assert all(len(run) <= LONGEST for run in runs(text))


@pytest.mark.parametrize(
    "unit", ["a", ".", ".'", '."', " ", "\n", "?)", "。", "a.", "\t|", "\x1b[", "{", '["']
)
def test_no_text_takes_more_than_linear_time(unit: str) -> None:
    def passages(text: str) -> object:
        return list(cut(readable(text, is_data=True), lines=False))

    assert grows_linearly(passages, repeated(unit), 20_000)


def test_json_is_read_as_one_line_for_each_record_with_its_keys() -> None:
    order = {
        "order": {
            "id": 7,
            "items": [{"name": "lamp", "price": 12.5}, {"name": "rug", "price": None}],
        }
    }

    text = readable(json.dumps(order), is_data=True)

    assert text.split("\n") == [
        "order.id: 7",
        'order.items.0: {"name": "lamp", "price": 12.5}',
        'order.items.1: {"name": "rug", "price": null}',
    ]


def test_json_that_is_broken_or_too_deep_is_read_as_it_stands() -> None:
    broken = '{"a": '
    deep = "[" * 100_000

    assert [readable(text, is_data=True) for text in (broken, deep)] == [broken, deep]


def test_what_looks_like_json_in_a_message_stays_as_it_was_said() -> None:
    assert readable('{"a": 1}', is_data=False) == '{"a": 1}'


def test_colours_of_a_terminal_are_left_out() -> None:
    assert readable("\x1b[31mred\x1b[0m alert", is_data=True) == "red alert"


def test_results_are_read_with_the_names_of_their_tools() -> None:
    messages = [
        {"role": "user", "content": "Weather?"},
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "t1", "name": "forecast", "input": {"at": "Ulm"}}
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "Hail at noon."}],
        },
    ]

    result = folded(messages, (), get_format("anthropic"))[-1]

    assert (result.text, result.role, result.name, result.index) == (
        "Hail at noon.",
        "tool",
        "forecast",
        2,
    )
