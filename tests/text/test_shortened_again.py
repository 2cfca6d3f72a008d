"""What a receipt says is missing of the original, whenever it was shortened."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from compacter import ClearToolResults, Compacter
from compacter.text.shorten import shorten

CUT = re.compile(r" \[…([\d,]+) characters left out…\] ")
WORDS = " ".join(f"word{number:05}" for number in range(2_000))
MORE = re.compile(r'"\[…(\d+) more items left out…\]"|"…": "(\d+) more entries left out"')


def in_steps(text: str, *sizes: int) -> str:
    for size in sizes:
        text = shorten(text, size)
    return text


@pytest.mark.parametrize(
    "sizes", [(900,), (9_000, 900), (19_000, 9_000, 4_000, 2_000, 900, 400), (900, 850, 801)]
)
def test_a_text(sizes: tuple[int, ...]) -> None:
    short = in_steps(WORDS, *sizes)
    before, left, after = CUT.split(short)
    assert len(before) + int(left.replace(",", "")) + len(after) == len(WORDS)
    assert WORDS.startswith(before)
    assert WORDS.endswith(after)


def test_a_text_of_which_the_caller_has_put_two_shortened_ones_together() -> None:
    short = shorten(shorten(WORDS, 3_000) + " and " + shorten(WORDS, 3_000), 1_000)
    before, left, after = CUT.split(short)
    assert len(before) + int(left.replace(",", "")) + len(after) == 2 * len(WORDS) + 5


@pytest.mark.parametrize("sizes", [(1_500,), (6_000, 1_500), (6_000, 3_000, 1_500, 700)])
@pytest.mark.parametrize(
    "value", [list(range(10_000, 12_000)), {f"key {number}": number for number in range(2_000)}]
)
def test_the_items_of_a_list_and_of_a_record(value: Any, sizes: tuple[int, ...]) -> None:
    short = in_steps(json.dumps(value), *sizes)
    assert len(short) <= sizes[-1]
    (left,) = (int(items or entries) for items, entries in MORE.findall(short))
    assert len(json.loads(short)) - 1 + left == 2_000


@pytest.mark.parametrize("sizes", [(8_000,), (12_000, 8_000), (12_000, 8_000, 2_000)])
def test_a_string_of_a_record(sizes: tuple[int, ...]) -> None:
    page = json.loads(in_steps(json.dumps({"url": "https://a.example/", "page": WORDS}), *sizes))[
        "page"
    ]
    before, left, after = CUT.split(page)
    assert len(before) + int(left.replace(",", "")) + len(after) == len(WORDS)


@pytest.mark.parametrize("sizes", [(2_500,), (9_000, 2_500)])
def test_a_text_with_records_in_it(sizes: tuple[int, ...]) -> None:
    record = json.dumps({"id": 1, "page": WORDS[:3_000]})
    text = f"{WORDS}\n{record}\n{WORDS}\n{record}\n{WORDS}"
    short = in_steps(text, *sizes)
    before, left, after = CUT.split(short)
    assert len(before) + int(left.replace(",", "")) + len(after) == len(text)


def test_a_receipt_without_a_number_is_text() -> None:
    text = WORDS[:2_000] + " […, characters left out…] " + WORDS[2_000:]
    before, left, after = CUT.split(shorten(text, 900))
    assert len(before) + int(left.replace(",", "")) + len(after) == len(text)


def test_a_tool_result_that_is_cleared_at_last() -> None:
    messages: list[Any] = [{"role": "user", "content": "Read the file."}]
    call = {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
    messages.append({"role": "tool", "tool_call_id": "a", "content": shorten(WORDS, 2_000)})
    messages.append({"role": "user", "content": "And now?"})
    cleared = Compacter(strategy=ClearToolResults(keep_recent=0)).compact(messages).messages[2]
    assert cleared["content"] == f"[tool result cleared to save room: {len(WORDS):,} characters]"
