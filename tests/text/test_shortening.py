"""Result of ``Shorten`` for one long text: whole characters, and an exact receipt."""

from __future__ import annotations

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


@pytest.mark.parametrize("text", ["x" * 600, "a " * 300])
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


@pytest.mark.parametrize("size", [600, 4_000, 9_000])
def test_most_of_the_room_is_used_and_no_more(size: int) -> None:
    text = " ".join(f"Ship {number} lies in harbour {number * 7}." for number in range(400))
    assert 0.9 * size < len(shorten(text, size)) <= size


def test_one_character_that_is_longer_than_the_room_is_left_out_whole() -> None:
    head, left, tail = parts(shorten("e" + "\u0301" * 2_000, 300))

    assert (head, left, tail) == ("", 2_001, "")


WORDS = " ".join(f"word{number:05}" for number in range(2_000))


@pytest.mark.parametrize("sizes", [(900,), (9_000, 900), (19_000, 9_000, 2_000, 900, 400)])
@pytest.mark.parametrize(
    "text",
    [
        WORDS,
        WORDS[:2_000] + " […, characters left out…] " + WORDS[2_000:],
    ],
    ids=["words", "a receipt without a number"],
)
def test_a_receipt_counts_what_is_missing_of_the_original(text: str, sizes: list[int]) -> None:
    short = text
    for size in sizes:
        short = shorten(short, size)
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
