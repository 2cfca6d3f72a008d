"""What ``Shorten`` leaves of one long text: whole characters, whole JSON values, and an exact
receipt.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from compacter import ClearToolResults, Compacter
from compacter.text.shorten import shorten

RECEIPT = re.compile(r" […\[]*…([\d,]+) characters left out…\] ")


def parts(short: str) -> tuple[str, int, str]:
    """Beginning, number of characters left out, end."""
    found = RECEIPT.search(short)
    assert found is not None
    return short[: found.start()], int(found[1].replace(",", "")), short[found.end() :]


@pytest.mark.parametrize("text", ["x" * 600, json.dumps(["word"] * 74, indent=1), "a " * 300])
def test_a_text_that_is_no_longer_than_the_size_stays_as_it_is(text: str) -> None:
    assert shorten(text, len(text)) == text
    assert shorten(text, len(text) + 40) == text
    assert len(shorten(text + text, len(text))) <= len(text)


@pytest.mark.parametrize("size", [200, 600, 2_000])
def test_the_receipt_counts_what_is_left_out_and_the_beginning_gets_the_larger_share(
    size: int,
) -> None:
    text = "".join(f"{number:05}" for number in range(2_000))
    head, left, tail = parts(shorten(text, size))

    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + left + len(tail) == len(text)
    assert 1.3 < len(head) / len(tail) < 1.7
    assert size - 20 <= len(shorten(text, size)) <= size


PAIRS = ["\ud800\udc00", "\udbff\udfff"]
"""Characters as some programs decode them: in two halves."""


@pytest.mark.parametrize(
    "character",
    ["👍🏻", "👍🏿", "👩‍👩‍👧", "e\u0301", "o\u0300", "\r\n", *PAIRS],
)
@pytest.mark.parametrize("shift", range(6))
def test_what_is_seen_as_one_character_stays_whole(character: str, shift: int) -> None:
    head, _, tail = parts(shorten("a" * shift + "|".join([character] * 400) + "b", 300))

    for piece in (*head[shift:].split("|")[:-1], *tail.rstrip("b").split("|")[1:]):
        assert piece.strip() in {character, character.strip()}
    assert not tail.startswith(character[1:])
    assert head.split("|")[-1].strip() in {"", character, character.strip()}


@pytest.mark.parametrize("value", [{"text": "x" * 280, "number": 1}, ["x" * 280, 1]])
def test_a_small_json_value_that_is_too_large_is_still_one(value: object) -> None:
    short = shorten(json.dumps(value), 150)

    assert len(short) <= 200
    assert type(json.loads(short)) is type(value)
    assert "left out" in short


def test_a_long_value_keeps_its_ends_and_says_that_something_is_missing() -> None:
    """A list loses its middle, an object its end."""
    rows = {f"key {number}": f"row {number}" for number in range(3_000)}
    items = json.loads(shorten(json.dumps([*rows.values()]), 2_000))
    at = items.index("[…more items left out…]")
    assert (items[0], items[-1]) == ("row 0", "row 2999")
    assert at == len(items) // 2
    members = json.loads(shorten(json.dumps(rows), 2_000))
    assert members.pop("…") == "more entries left out"
    assert members == dict([*rows.items()][: len(members)])


def test_a_value_in_another_script_can_still_be_read() -> None:
    for value in ({"text": "漢字" * 400}, ["漢字"] * 400):
        short = shorten(json.dumps(value, ensure_ascii=False), 300)
        assert "漢字" in short
        assert "\\u" not in short


SENTENCES = [f"Ship {number} lies in harbour {number * 7}." for number in range(400)]
TEXTS = {
    "prose": " ".join(SENTENCES),
    "a list": json.dumps(SENTENCES),
    "an object": json.dumps(
        {f"key {number}": sentence for number, sentence in enumerate(SENTENCES)}
    ),
    "a long string": json.dumps({"name": "log", "text": " ".join(SENTENCES)}),
    "a value below a heading": "Found:\n" + json.dumps(SENTENCES),
    "an indented value": "\n  " + json.dumps(SENTENCES, indent=2),
}


@pytest.mark.parametrize("size", [600, 1_500, 4_000, 9_000])
@pytest.mark.parametrize("name", TEXTS)
def test_most_of_the_room_is_used_and_no_more(name: str, size: int) -> None:
    short = shorten(TEXTS[name], size)

    assert 0.45 * size < len(short) <= size
    if name != "prose":
        json.loads(short.removeprefix("Found:\n"))


def test_a_value_that_cannot_be_made_small_enough_keeps_its_first_and_last_member() -> None:
    rows = [f"row {number} " + "x" * 200 for number in range(10)]
    first, left, last = json.loads(shorten(json.dumps(rows), 100))

    assert left == "[…more items left out…]"
    assert first.startswith("row 0 ")
    assert last.endswith("x")


def test_inner_values_are_shortened_like_outer_ones() -> None:
    value = {
        "page": {"rows": list(range(5_000)), "log": ["x" * 5_000]},
        "done": True,
        "cost": 0.5,
        "next": None,
    }
    short = json.loads(shorten(json.dumps(value), 1_500))

    assert (short["done"], short["cost"], short["next"]) == (True, 0.5, None)
    assert (short["page"]["rows"][0], short["page"]["rows"][-1]) == (0, 4_999)
    assert "characters left out" in short["page"]["log"][0]


def test_one_character_that_is_longer_than_the_room_is_left_out_whole() -> None:
    head, left, tail = parts(shorten("e" + "\u0301" * 2_000, 300))

    assert (head, left, tail) == ("", 2_001, "")


WORDS = " ".join(f"word{number:05}" for number in range(2_000))
RECORD = json.dumps({"id": 1, "page": WORDS[:3_000]})


@pytest.mark.parametrize("sizes", [(900,), (9_000, 900), (19_000, 9_000, 2_000, 900, 400)])
@pytest.mark.parametrize(
    "text",
    [
        WORDS,
        f"{WORDS}\n{RECORD}\n{WORDS}",
        WORDS[:2_000] + " […, characters left out…] " + WORDS[2_000:],
        json.dumps({"url": "https://a.example/", "page": WORDS}),
    ],
    ids=["words", "records", "a receipt without a number", "a string of a record"],
)
def test_a_receipt_counts_what_is_missing_of_the_original(text: str, sizes: list[int]) -> None:
    short = text
    for size in sizes:
        short = shorten(short, size)
    if text.startswith("{"):
        text, short = (json.loads(each)["page"] for each in (text, short))
    head, left, tail = parts(short)
    assert len(head) + left + len(tail) == len(text)


def test_two_shortened_texts_put_together_count_as_both_originals() -> None:
    short = shorten(shorten(WORDS, 3_000) + " and " + shorten(WORDS, 3_000), 1_000)
    head, left, tail = parts(short)
    assert len(head) + left + len(tail) == 2 * len(WORDS) + 5


def test_a_tool_result_that_is_cleared_at_last() -> None:
    messages: list[Any] = [{"role": "user", "content": "Read the file."}]
    call = {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
    messages.append({"role": "tool", "tool_call_id": "a", "content": shorten(WORDS, 2_000)})
    messages.append({"role": "user", "content": "And now?"})
    cleared = Compacter(strategy=ClearToolResults(keep_recent=0)).compact(messages).messages[2]
    assert cleared["content"] == f"[tool result cleared to save room: {len(WORDS):,} characters]"
