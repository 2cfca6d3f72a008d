"""One call with a proactive trigger, as a conversation with the flow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from compacter.events import CompactionEvent, CompactionSkipped, SilentTruncation
from compacter.flow.calibration import Calibration
from compacter.flow.effects import AskSummarizer, Call, Outcome, Usage
from compacter.flow.recover import Request
from compacter.flow.trigger import Pulse, converse, estimate, expected_tokens, threshold_of
from compacter.history.wire import wire
from compacter.overflow import TokenLimit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.flow.conftest import Chat, Dialogue

    from compacter.flow.effects import Answer
    from compacter.flow.policy import Policy

OPENAI = wire("openai")
SIZE = 14 + 20 * 100 + 8
"""Characters of the default talk; 4 a token before anything is learnt."""


class TooLongError(Exception):
    pass


@pytest.fixture
def call(
    begin: type[Dialogue], policy: Callable[..., Policy], talk: Callable[..., list[Chat]]
) -> Callable[..., Dialogue]:
    """A dialogue with one call; of a conversation that had one before unless a pulse is given."""

    def make(
        *,
        messages: list[Chat] | None = None,
        pulse: Pulse | None = None,
        calibration: Calibration | None = None,
        **options: Any,
    ) -> Dialogue:
        names = ("overhead", "output_tokens")
        asked = {name: options.pop(name) for name in names if name in options}
        history = talk() if messages is None else messages
        request = Request(wire=OPENAI, original=history, messages=history, **asked)
        made = policy(**options)
        return begin(converse(made, request, calibration or Calibration(), pulse or Pulse(calls=1)))

    return make


def test_without_a_trigger_a_call_is_made_and_its_usage_read(call: Callable[..., Dialogue]) -> None:
    calibration = Calibration()
    dialogue = call(calibration=calibration)

    dialogue.expect(Call)
    dialogue.answer(Outcome("the reply"))
    dialogue.expect(Usage)
    dialogue.answer(500)

    assert dialogue.end() == "the reply"
    assert dialogue.effects == ["Call", "Usage"]
    assert calibration.chars_per_token == pytest.approx(SIZE / 500)


def test_at_the_threshold_it_compacts_and_one_below_it_does_not(call: Callable[..., Dialogue]) -> None:  # M3
    tokens = round(SIZE / 4)

    call(trigger=tokens).expect(AskSummarizer)
    call(trigger=tokens + 1).expect(Call)


def test_known_usage_counts_more_than_an_estimate(
    call: Callable[..., Dialogue], talk: Callable[..., list[Chat]]
) -> None:  # M3
    said = Pulse(calls=1, tokens=9_000, characters=SIZE - 108)

    call(trigger=9_000, pulse=said).expect(AskSummarizer)
    call(trigger=9_000, pulse=Pulse(calls=1)).expect(Call)


def test_the_first_call_is_never_compacted_ahead(call: Callable[..., Dialogue]) -> None:  # M1
    call(trigger=1, pulse=Pulse()).expect(Call)


@pytest.mark.parametrize(("tried", "compacts"), [(9, False), (7, False), (6, True), (None, True)])
def test_the_cool_down_counts_calls(
    tried: int | None, compacts: bool, call: Callable[..., Dialogue]
) -> None:  # M2
    tokens = round(SIZE / 4)
    dialogue = call(trigger=tokens, pulse=Pulse(calls=9, tried=tried), min_calls_between=3)

    dialogue.expect(AskSummarizer if compacts else Call)

    assert ("CompactionSkipped" in dialogue.told()) is not compacts


def test_far_over_its_limit_a_history_is_not_held_back(call: Callable[..., Dialogue]) -> None:  # M5
    call(trigger=100, pulse=Pulse(calls=9, tried=9)).expect(AskSummarizer)


def test_a_real_token_limit_ignores_the_cool_down(call: Callable[..., Dialogue], summary: Answer) -> None:
    found = TokenLimit(limit=None, requested=None, kind="input")
    dialogue = call(trigger=round(SIZE / 4), pulse=Pulse(calls=9, tried=9), detect=lambda error: found)

    dialogue.expect(Call)
    dialogue.fail(TooLongError())
    dialogue.expect(AskSummarizer)


def test_a_failed_try_starts_the_cool_down_too(call: Callable[..., Dialogue]) -> None:  # M2
    pulse = Pulse(calls=1)
    dialogue = call(trigger=round(SIZE / 4), pulse=pulse)

    dialogue.expect(AskSummarizer)
    dialogue.fail(ConnectionError())
    dialogue.expect(Call)

    assert pulse.tried == 2


def test_without_a_fallback_the_turn_goes_on_with_what_it_has(
    call: Callable[..., Dialogue], talk: Callable[..., list[Chat]], policy: Callable[..., Policy]
) -> None:  # M17
    from compacter.strategies.base import Settings

    history = talk()
    dialogue = call(trigger=round(SIZE / 4), messages=history, settings=Settings(fallback=()))

    dialogue.expect(AskSummarizer)
    dialogue.fail(ConnectionError())
    asked = dialogue.expect(Call)

    assert list(asked.messages) == history
    assert dialogue.told().count("CompactionFailed") >= 1


def test_what_stands_beside_the_messages_counts(call: Callable[..., Dialogue]) -> None:  # M4
    tokens = round(SIZE / 4) + 100

    call(trigger=tokens).expect(Call)
    call(trigger=tokens, overhead=400).expect(AskSummarizer)


def test_the_event_says_that_a_threshold_was_the_reason(
    call: Callable[..., Dialogue], summary: Answer
) -> None:
    dialogue = call(trigger=round(SIZE / 4))

    dialogue.expect(AskSummarizer)
    dialogue.answer(summary)
    dialogue.expect(Call)

    (event,) = [event for event in dialogue.events if isinstance(event, CompactionEvent)]
    assert event.trigger == "threshold"
    assert event.compacted_tokens < round(SIZE / 4)


def test_what_cannot_be_reduced_does_not_trigger_on_every_call(
    call: Callable[..., Dialogue],
) -> None:
    history = [{"role": "system", "content": "s" * 4_000}, {"role": "user", "content": "u"}]
    pulse = Pulse(calls=1)

    first = call(trigger=100, messages=history, pulse=pulse, min_calls_between=0)
    first.expect(Call)
    second = call(trigger=100, messages=history, pulse=pulse, min_calls_between=0)
    second.expect(Call)

    assert "CompactionSkipped" in first.told()
    assert second.told() == []


class TestThreshold:
    @pytest.mark.parametrize(
        ("trigger", "window", "output", "threshold"),
        [
            (0.8, 1_000, None, 800),
            (0.8, 1_000, 400, 600),  # A8: a reserve lowers the threshold.
            (0.8, 1_000, 5_000, 500),  # A8: one above the window leaves half of it.
            (0.8, None, None, None),
            (500, None, 100, 500),
            (5_000, 1_000, None, 1_000),
        ],
    )
    def test_a_share_of_the_window_or_a_number_less_the_output(
        self,
        trigger: float,
        window: int | None,
        output: int | None,
        threshold: int | None,
        policy: Callable[..., Policy],
    ) -> None:
        assert threshold_of(policy(trigger=trigger), Calibration(window=window), output) == threshold

    def test_without_a_known_window_a_share_warns_once(self, call: Callable[..., Dialogue]) -> None:
        calibration = Calibration()

        first = call(trigger=0.5, calibration=calibration)
        first.expect(Call)
        second = call(trigger=0.5, calibration=calibration)
        second.expect(Call)

        (event,) = first.events
        assert isinstance(event, CompactionSkipped)
        assert event.reason == "unknown_window"
        assert second.events == []

    def test_a_reserve_does_not_change_the_estimate(
        self, policy: Callable[..., Policy], talk: Callable[..., list[Chat]]
    ) -> None:  # A8
        history = talk()
        sizes = {
            estimate(
                policy(trigger=0.5),
                Request(wire=OPENAI, original=history, messages=history, output_tokens=output),
                Calibration(window=1_000),
                Pulse(),
            )
            for output in (None, 10, 5_000)
        }
        assert sizes == {round(SIZE / 4)}

    def test_the_users_own_counter_is_asked(
        self, policy: Callable[..., Policy], talk: Callable[..., list[Chat]]
    ) -> None:  # A7
        history = talk()
        request = Request(wire=OPENAI, original=history, messages=history)
        counted = policy(trigger=5, token_counter=len)

        assert estimate(counted, request, Calibration(), Pulse(tokens=9_000, characters=1)) == len(history)


class TestSilentTruncation:
    @pytest.mark.parametrize(
        ("characters", "tokens", "cut"),
        [(4_000, 1_000, False), (4_000, 600, False), (4_000, 390, True), (4_000, 4_000, False)],
    )
    def test_more_characters_a_token_than_any_text_has_were_not_read(
        self, characters: int, tokens: int, cut: bool
    ) -> None:
        assert (expected_tokens(characters, tokens, Calibration()) is not None) is cut

    def test_what_was_learnt_makes_it_sharper(self) -> None:
        learnt = Calibration()
        learnt.learn(4_000, 1_000)
        assert expected_tokens(4_000, 500, learnt) == 1_000
        assert expected_tokens(4_000, 700, learnt) is None

    def test_it_is_told_and_answered_by_compacting_and_calling_again(
        self, call: Callable[..., Dialogue], summary: Answer, talk: Callable[..., list[Chat]]
    ) -> None:
        dialogue = call(trigger=10_000)

        dialogue.expect(Call)
        dialogue.answer(Outcome("cut"))
        dialogue.expect(Usage)
        dialogue.answer(150)
        dialogue.expect(AskSummarizer)
        dialogue.answer(summary)
        again = dialogue.expect(Call)
        dialogue.answer(Outcome("whole"))
        dialogue.expect(Usage)
        dialogue.answer(100)

        assert dialogue.end() == "whole"
        assert sum(map(OPENAI.size, again.messages)) < SIZE
        (event,) = [event for event in dialogue.events if isinstance(event, SilentTruncation)]
        assert (event.prompt_tokens, event.expected_tokens) == (150, round(SIZE / 4))

    @pytest.mark.parametrize("outcome", ["raises", "too long"])
    def test_a_reply_that_is_had_is_not_lost_when_the_second_call_fails(
        self, outcome: str, call: Callable[..., Dialogue], summary: Answer
    ) -> None:
        dialogue = call(trigger=10_000)

        dialogue.expect(Call)
        dialogue.answer(Outcome("cut"))
        dialogue.expect(Usage)
        dialogue.answer(150)
        dialogue.expect(AskSummarizer)
        dialogue.answer(summary)
        dialogue.expect(Call)
        if outcome == "raises":
            dialogue.fail(ConnectionError())
        else:
            dialogue.answer(Outcome("no", TokenLimit(limit=None, requested=None, kind="input")))

        assert dialogue.end() == "cut"

    def test_without_a_trigger_it_is_only_told(self, call: Callable[..., Dialogue]) -> None:
        dialogue = call()

        dialogue.expect(Call)
        dialogue.answer(Outcome("cut"))
        dialogue.expect(Usage)
        dialogue.answer(150)

        assert dialogue.end() == "cut"
        assert dialogue.told() == ["SilentTruncation"]


def test_a_counter_that_raises_is_told_and_passed_over(call: Callable[..., Dialogue]) -> None:
    def broken(messages: Sequence[Chat]) -> int:
        raise ZeroDivisionError

    dialogue = call(trigger=round(SIZE / 4), token_counter=broken)
    dialogue.expect(AskSummarizer)

    assert dialogue.told()[0] == "CompactionFailed"


class TestCalibration:
    def test_it_begins_at_a_quarter_token_a_character(self) -> None:  # A15
        assert Calibration().tokens(400) == 100

    def test_it_learns_and_converges(self) -> None:  # A15
        calibration = Calibration()
        for _ in range(5):
            calibration.learn(3_000, 1_000)
        assert calibration.tokens(3_000) == 1_000

    @pytest.mark.parametrize(
        ("characters", "tokens"), [(0, 0), (100, 0), (0, 100), (10, 3), (10**9, 60), (1, 900)]
    )
    def test_empty_tiny_and_absurd_samples_are_ignored(self, characters: int, tokens: int) -> None:  # A15
        calibration = Calibration()
        calibration.learn(characters, tokens)
        assert (calibration.tokens(400), calibration.learnt) == (100, False)
