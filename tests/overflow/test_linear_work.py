"""Hostile texts cost no more than their length: ten times the text is about ten times the work."""

from __future__ import annotations

import time

import pytest

from compacter.overflow import detect_text
from compacter.overflow.text import MAX_TEXT

SMALL = 6_000
FLOOR = 0.004
"""Seconds below which a time is noise."""

SHAPES = [
    "max ",
    "a",
    " ",
    "\n",
    "9",
    "9,",
    "9 ",
    "9.",
    "9\n",
    "9│\n│",
    "context ",
    "con\n",
    "too long ",
    "prompt ",
    "prompt too ",
    "max_tokens ",
    "max_",
    "(",
    "((9",
    "[1, ",
    "\\",
    "\\n",
    "\\u00",
    "\\ud83d",
    "9 + ",
    "9 + 9 ",
    "9 > 9 ",
    "tokens > ",
    "exceed ",
    "'content': '",
    '"role": "user" "content": "',
    "input_value='",
    "requested ",
    "you requested ",
    "http://",
    "a://",
    "rate ",
    "tool file ",
    "output ",
    "number of ",
    "image ",
    "maximum number of ",
    "limit for the model ",
    "上下文",
    "超过",
    "最大",
    "\x1b[",
    "\x1b[0;0;",
    "&amp;",
    "\u200d",
    "e\u0301",
    "AError",
    "Aa.",
    "a-\n",
    ". ",
    ";",
    "{",
]


def is_within(times: int, longer: str, shorter: str) -> bool:
    """Whether the longer text takes at most so many times as long; a run that was disturbed is repeated."""
    return any(seconds(longer) <= times * max(seconds(shorter), FLOOR) for _ in range(3))


def seconds(text: str) -> float:
    start = time.process_time()
    detect_text(text)
    return time.process_time() - start


@pytest.mark.parametrize("shape", SHAPES)
def test_ten_times_the_text_is_no_more_than_thirty_times_the_work(shape: str) -> None:
    detect_text("the patterns are compiled by the first text")
    shorter, longer = (f"x{shape * (size // len(shape))}x" for size in (SMALL, 10 * SMALL))

    assert is_within(30, longer, shorter)


def test_what_is_longer_than_the_cap_costs_no_more() -> None:
    at_the_cap, beyond = ("prompt too long " * (size // 16) for size in (MAX_TEXT, 20 * MAX_TEXT))

    assert is_within(3, beyond, at_the_cap)
