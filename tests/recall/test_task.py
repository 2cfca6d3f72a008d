"""Which steps of an agent state a task: names in them bring lines, names that are only printed do
not.
"""

from __future__ import annotations

import pytest

from compacter.messages.parts import Part
from compacter.recall.question import task


def result(text: str) -> Part:
    return Part("tool", "result", text, "tool", 1)


@pytest.mark.parametrize(
    "line",
    [
        "Job: ship order A-680 now.",
        "Job: the order of Lindqvist (cables) is to be shipped now.",
        "Next: send car K-989 to its lane.",
        "Please renew the contract of Mrs. Okafor before Friday.",
        "All tests pass. Now look at the failing check in billing.",
    ],
)
def test_a_result_whose_last_line_is_prose_states_a_task(line: str) -> None:
    """An id or two in a short sentence does not make it a line of a log."""
    assert task([result(f"Note 7\n{line}")])


@pytest.mark.parametrize(
    "line",
    [
        "Exit code: 0",
        "    return foo(bar, baz)",
        "drwxr-xr-x 2 root root 4096 Nov 28 07:52 build",
        "12:     if value == other:",
        "Successfully installed foo-1.2 bar-2.0",
        ".button-primary:hover { color: #fff; }",
        "}",
        "Done.",
        "FAILED tests/test_ship.py::test_dock - AssertionError",
    ],
)
def test_a_result_that_only_prints_states_none(line: str) -> None:
    """Listings, code, logs and receipts name much and ask for nothing."""
    assert task([result(f"Note 7\n{line}")]) == []
