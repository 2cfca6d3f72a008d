"""Hostile texts cost no more than their length: ten times the text is about ten times the work."""

from __future__ import annotations

import pytest
from tests.effort import grows_linearly, repeated, seconds, times
from tests.overflow.phrases import detect_text

MAX_TEXT = 32_768
"""Characters that are read of a text, its beginning and its end, as the manual says."""
SHAPES = [
    *("max ", "a", " ", "\n", "9", "9,", "9 ", "9.", "9\n", "9│\n│", "context ", "con\n"),
    *("too long ", "prompt ", "prompt too ", "max_tokens ", "max_", "(", "((9", "[1, ", "\\"),
    *("\\n", "\\u00", "\\ud83d", "9 + ", "9 + 9 ", "9 > 9 ", "tokens > ", "exceed "),
    *("'content': '", '"role": "user" "content": "', "input_value='", "requested "),
    *("you requested ", "http://", "a://", "rate ", "tool file ", "output ", "number of "),
    *("image ", "maximum number of ", "limit for the model ", "上下文", "超过", "最大", "\x1b["),
    *("\x1b[0;0;", "&amp;", "\u200d", "e\u0301", "AError", "Aa.", "a-\n", ". ", ";", "{"),
]


SIZE = times(750, long=1_500)
SIZES = {"a://": 3_000}
"""Characters of the shorter text, where ``SIZE`` is so little that it is hardly looked at."""


@pytest.mark.parametrize("shape", SHAPES)
def test_ten_times_the_text_is_no_more_than_thirty_times_the_work(shape: str) -> None:
    size = SIZES.get(shape, SIZE)
    assert grows_linearly(detect_text, lambda size: f"x{repeated(shape)(size)}x", size)


def test_what_is_longer_than_the_cap_costs_no_more() -> None:
    at_the_cap, beyond = map(repeated("prompt too long "), (MAX_TEXT, 20 * MAX_TEXT))

    assert any(
        seconds(detect_text, beyond) < 3 * seconds(detect_text, at_the_cap) for _ in range(5)
    )
