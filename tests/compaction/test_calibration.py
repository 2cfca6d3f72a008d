"""What answers, refusals and their numbers say of a model."""

from __future__ import annotations

import base64
import random

import litellm
import pytest

from compacter.call.request import MOST_OF_ESTIMATE
from compacter.compaction.calibration import Calibration
from compacter.lines.weight import tokens

_RANDOM = random.Random(7)


@pytest.mark.parametrize(
    "text",
    [
        "Please book the early train to Oslo, and two seats by the window. " * 20,
        '{"path": "/srv/app/config.yaml", "lines": [12, 480], "ok": true}' * 20,
        base64.b64encode(_RANDOM.randbytes(900)).decode(),
        _RANDOM.randbytes(600).hex(),
        "0123456789" * 60,
        "!?;:{}[]()<>#$%&*" * 30,
        "今天天气很好我们去公园散步吧。" * 20,
        "မင်္ဂလာပါ" * 30,
        "\N{GRINNING FACE}\N{PARTY POPPER}\N{ROCKET}" * 40,
        "lone \ud83d surrogate",
        "",
    ],
)
def test_no_text_has_more_tokens_than_the_most(text: str) -> None:
    counted = litellm.token_counter(model="gpt-4", text=text.encode("utf-8", "replace").decode())
    assert counted <= MOST_OF_ESTIMATE * tokens(text.replace(" ", ""))


def test_the_most_of_plain_words_is_less_than_their_characters() -> None:
    words = "Please book the early train to Oslo, and two seats by the window. " * 20
    assert MOST_OF_ESTIMATE * tokens(words.replace(" ", "")) < 0.8 * len(words)


class TestACalibration:
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
