"""What the flow relies on in tenacity, and tenacity does not document: ``iter`` and what it returns."""

from __future__ import annotations

import threading

import pytest
import tenacity
from tenacity import DoAttempt, DoSleep, RetryCallState, Retrying, stop_after_attempt, wait_fixed

from compacter import Compacter
from compacter.options import never_sleep
from compacter.testing import ScriptedModel, ScriptedSummarizer


def begun(retrying: Retrying) -> RetryCallState:
    retrying.begin()
    return RetryCallState(retrying, fn=None, args=(), kwargs={})


def failed(state: RetryCallState, error: Exception) -> None:
    state.set_exception((type(error), error, error.__traceback__))


def slept(seconds: float) -> None:
    raise AssertionError("tenacity slept itself")


def test_a_failed_attempt_is_followed_by_a_wait_and_then_an_attempt() -> None:
    retrying = Retrying(stop=stop_after_attempt(2), wait=wait_fixed(1.5), reraise=True, sleep=slept)
    state = begun(retrying)
    failed(state, ValueError())

    step = retrying.iter(state)
    assert isinstance(step, DoSleep)
    assert float(step) == 1.5
    state.prepare_for_next_attempt()
    assert state.attempt_number == 2
    assert isinstance(retrying.iter(state), DoAttempt)


def test_the_last_attempt_raises_its_own_error() -> None:
    retrying = Retrying(stop=stop_after_attempt(1), reraise=True, sleep=slept)
    state, error = begun(retrying), ValueError("mine")
    failed(state, error)

    with pytest.raises(ValueError, match="mine") as raised:
        retrying.iter(state)
    assert raised.value is error


def test_without_reraise_it_would_be_wrapped() -> None:
    retrying = Retrying(stop=stop_after_attempt(1), sleep=slept)
    state = begun(retrying)
    failed(state, ValueError())

    with pytest.raises(tenacity.RetryError) as raised:
        retrying.iter(state)
    assert isinstance(raised.value.last_attempt.exception(), ValueError)


def test_a_copy_has_its_own_state_and_the_same_rules() -> None:
    original = Retrying(stop=stop_after_attempt(2), reraise=True, sleep=never_sleep)
    one, other = original.copy(), original.copy()

    for retrying in (one, other):
        state = begun(retrying)
        failed(state, ValueError())
        assert isinstance(retrying.iter(state), DoSleep)

    assert one is not other
    assert one.stop is original.stop
    assert one.reraise


def test_stops_combine_and_see_the_state() -> None:
    event = threading.Event()
    event.set()
    stop = stop_after_attempt(9) | tenacity.stop_when_event_set(event)
    retrying = Retrying(stop=stop, reraise=True, sleep=slept)
    state = begun(retrying)
    failed(state, ValueError())

    assert stop(state)


async def test_a_large_history_gets_all_its_rounds_though_each_step_has_a_thread_of_its_own() -> None:
    history = [
        {"role": ("user", "assistant")[turn % 2], "content": f"{turn} " + "so it goes " * 700} for turn in range(41)
    ]
    model = ScriptedModel(replies="fine", window=30_000, style="bedrock")
    compacter = Compacter(summarizer=ScriptedSummarizer("They talked."), compact_ratio=0.4, max_retries=5, recall=None)
    reply = await compacter.wrap(model.acompletion)("a-model", history)
    assert reply["choices"][0]["message"]["content"] == "fine"
    assert compacter.totals.rounds > 1
