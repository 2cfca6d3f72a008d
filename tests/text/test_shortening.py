"""What ``Shorten`` leaves of one long text: whole characters, and an exact receipt."""

from __future__ import annotations

import json
import re

import pytest

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


def test_a_text_that_its_receipt_would_make_longer_stays() -> None:
    assert shorten("a" * 60, 50) == "a" * 60


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
    ["👍🏻", "👍🏽", "👍🏿", "👩‍👩‍👧", "e\u0301", "o\u0300", "\r\n", *PAIRS],
)
@pytest.mark.parametrize("shift", range(6))
def test_what_is_seen_as_one_character_stays_whole(character: str, shift: int) -> None:
    head, _, tail = parts(shorten("a" * shift + "|".join([character] * 400) + "b", 300))

    for piece in (*head[shift:].split("|")[:-1], *tail.rstrip("b").split("|")[1:]):
        assert piece.strip() in {character, character.strip()}
    assert not tail.startswith(character[1:])
    assert head.split("|")[-1].strip() in {"", character, character.strip()}


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

    assert 0.9 * size < len(short) <= size


def test_one_character_that_is_longer_than_the_room_is_left_out_whole() -> None:
    head, left, tail = parts(shorten("e" + "\u0301" * 2_000, 300))

    assert (head, left, tail) == ("", 2_001, "")


def test_a_link_to_data_is_left_out_whole_where_it_is_longer_than_the_room() -> None:
    url = "data:image/png;base64," + "A" * 3_000
    head, left, tail = parts(shorten(f"See {url} there. " + "word " * 100, 300))

    assert head == "See"
    assert "AA" not in tail
    assert left > 3_000
