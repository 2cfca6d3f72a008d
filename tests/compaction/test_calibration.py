"""The facts about a model that refusals and replies teach."""

from __future__ import annotations

import pytest

from compacter.compaction.calibration import Calibration
from compacter.compaction.sizes import Sizes
from compacter.options import Options


@pytest.mark.parametrize(
    ("characters", "tokens", "learnt"),
    [
        (150, 50, True),
        (147, 49, False),
        (25, 100, True),
        (24, 100, False),
        (2_000, 100, True),
        (2_001, 100, False),
    ],
)
def test_calibration(characters: int, tokens: int, *, learnt: bool) -> None:
    """Nothing is learnt of tiny and absurd samples; a token has four characters until then."""
    calibration = Calibration()
    calibration.learn(characters, tokens)

    assert calibration.learnt is learnt
    assert calibration.chars_per_token == (characters / tokens if learnt else 4.0)


class TestTheWindow:
    def test_a_larger_answered_request_refutes_a_window(self) -> None:
        """A server that was restarted with more context gets all of it."""
        learnt = Calibration()
        learnt.state_window(8_000)
        learnt.take(8_000)
        assert learnt.window == 8_000
        learnt.take(9_500)
        assert learnt.window is None
        learnt.assume_window(8_000)  # A record made before says the same again.
        assert learnt.window is None
        learnt.assume_window(32_000)
        assert learnt.window == 32_000

    def test_refusals_without_numbers_teach_a_bracket(self) -> None:
        """The window lies between the largest answered and the smallest refused request."""
        learnt = Calibration()
        learnt.refuse(10_000)
        assert learnt.window is None  # Nothing was answered yet.
        learnt.take(6_000)
        assert learnt.window == 8_000
        learnt.take(7_000)
        assert learnt.window == 8_500
        learnt.refuse(8_000)
        assert learnt.window == 7_500
        learnt.take(8_200)
        assert learnt.window is None  # What was refused now is answered.

    def test_a_stated_number_replaces_the_bracket(self) -> None:
        learnt = Calibration()
        learnt.refuse(10_000)
        learnt.take(6_000)
        learnt.state_window(9_000)
        learnt.take(7_000)
        assert learnt.window == 9_000

    def test_a_smaller_window_than_was_answered_is_believed_once_it_is_stated_again(self) -> None:
        learnt = Calibration()
        learnt.take(30_000)
        assert not learnt.state_window(8_000)
        assert not learnt.state_window(20)
        assert learnt.window is None
        assert not learnt.state_window(8_000)
        assert learnt.state_window(8_000)
        assert learnt.window == 8_000
        assert learnt.taken == 0

    @pytest.mark.parametrize(
        ("known", "refused", "window"),
        [(True, 7_999, None), (True, 8_000, 8_000), (True, 9_000, 8_000), (False, 7_999, 8_000)],
    )
    def test_a_smaller_refused_request_refutes_a_window_if_sizes_are_known(
        self, *, known: bool, refused: int, window: int | None
    ) -> None:
        learnt = Calibration(window=8_000, learnt=known)
        learnt.refuse(refused)
        assert learnt.window == window

    def test_is_tried_again_after_one_compaction_below_it_then_two_then_four(self) -> None:
        sizes = Sizes(Options(trigger_tokens=0.8), Calibration())
        learnt = sizes.calibration
        learnt.state_window(8_000)
        for patience in (1, 2, 4):
            for _ in range(patience):
                assert not sizes.tries_window
                learnt.compactions += 1
            assert sizes.tries_window
            learnt.state_window(8_000)
