"""When a compaction is due before any refusal, and to what size."""

from __future__ import annotations

import pytest

from compacter.compaction.sizes import Calibration, Sizes
from compacter.options import Options

SIZES = Sizes(Options())


@pytest.mark.parametrize(
    ("trigger", "window", "output", "expected"),
    [
        (1_000, None, 0, 1_000),
        (0.8, None, 0, None),
        (0.8, 1_000, 0, 800),
        (1_000, 8_000, 500, 1_000),
        (1_000, 1_200, 500, 700),
        (0.8, 1_000, 1_000, 500),
        (5_000, 1_000, 0, 1_000),
        (1, 1_000, 0, 1),
    ],
)
def test_the_threshold_leaves_room_for_the_output(
    trigger: float, window: int | None, output: int, expected: int | None
) -> None:
    sizes = Sizes(Options(), Calibration(window=window), output_tokens=output)
    assert sizes.threshold(trigger) == expected


def test_nothing_is_due_below_the_threshold() -> None:
    assert SIZES.below(1_000, 4_000, 999) is None


def test_at_the_threshold_the_goal_lies_below_it() -> None:
    assert SIZES.below(1_000, 4_000, 1_000) == 3_600


def test_the_goal_is_in_the_characters_of_this_history() -> None:
    assert SIZES.below(1_000, 2_000, 2_000) == 900


def test_what_could_not_become_small_enough_must_grow_by_a_quarter() -> None:
    assert SIZES.below(1_000, 5_000, 1_500, 4_000) is None
    assert SIZES.below(1_000, 5_001, 1_500, 4_000) is not None
