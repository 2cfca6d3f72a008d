"""What the flow relies on in tenacity, and tenacity does not document: a state that stops are asked with."""

from __future__ import annotations

import threading

import tenacity
from tenacity import RetryCallState, Retrying, stop_after_attempt

from compacter import Compacter
from compacter.testing import ScriptedModel, ScriptedSummarizer


def failed(state: RetryCallState) -> None:
    error = ValueError()
    state.set_exception((type(error), error, error.__traceback__))


def test_a_state_counts_the_attempts() -> None:
    state = RetryCallState(Retrying(), fn=None, args=(), kwargs={})
    stop, answers = stop_after_attempt(2), []

    for _ in range(2):
        failed(state)
        answers.append(stop(state))
        state.prepare_for_next_attempt()

    assert answers == [False, True]


def test_stops_combine_and_see_the_state() -> None:
    event = threading.Event()
    event.set()
    stop = stop_after_attempt(9) | tenacity.stop_when_event_set(event)
    state = RetryCallState(Retrying(), fn=None, args=(), kwargs={})
    failed(state)

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
