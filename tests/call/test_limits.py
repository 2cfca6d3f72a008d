"""The numbers of a call: output limits that are lowered, replies without room, thresholds, and what
giving up says.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.conversations import talk

from compacter import Compacter, CompactionEvent
from compacter.events import MaxTokensAdjusted, RetriesExhausted
from compacter.testing import ScriptedModel, ScriptedSummarizer, TokenLimitError


class RefusedError(Exception):
    """A provider's refusal."""


def refusing_once(text: str) -> tuple[Any, list[dict[str, Any]]]:
    """A call that is refused with ``text`` and then answered, and the options that it was given
    each time.
    """
    asked: list[dict[str, Any]] = []

    def complete(messages: list[Any], **options: Any) -> str:
        asked.append({"messages": messages, **options})
        if len(asked) == 1:
            raise RefusedError(text)
        return "done"

    return complete, asked


SUM = (
    "This model's maximum context length is {limit} tokens. However, you requested {total} tokens "
    "({input} in the messages, {output} in the completion)."
)
EXCEEDED = (
    "The context window is exceeded: prompt {input} tokens, max_tokens {output}, "
    "limit {limit} tokens."
)


class TestTheOutputLimit:
    def ask(
        self, *, limit: int, prompt: int, output: int, text: str = SUM
    ) -> tuple[dict[str, Any], list[Any]]:
        told: list[Any] = []
        text = text.format(limit=limit, total=prompt + output, input=prompt, output=output)
        complete, asked = refusing_once(text)
        compacter = Compacter(summarizer=ScriptedSummarizer("They talked."), on_event=told.append)
        compacter.wrap(complete)(messages=talk(), max_tokens=output)
        return asked[-1], told

    @pytest.mark.parametrize("output", [600, 2_000, 9_000])
    def test_is_lowered_to_what_the_prompt_leaves_less_a_few_tokens(self, output: int) -> None:
        last, told = self.ask(limit=2_000, prompt=1_500, output=output)

        assert last["max_tokens"] == 492
        assert last["messages"] == talk()
        (event,) = told
        assert isinstance(event, MaxTokensAdjusted)
        assert (event.before, event.after, event.limit) == (output, 492, 2_000)

    @pytest.mark.parametrize(("prompt", "lowered"), [(1_928, True), (1_929, False)])
    def test_below_64_tokens_is_no_answer(self, prompt: int, *, lowered: bool) -> None:
        """The history is folded instead."""
        last, told = self.ask(limit=2_000, prompt=prompt, output=1_000)

        assert (last["max_tokens"] == 64) is lowered
        assert any(isinstance(event, CompactionEvent) for event in told) is not lowered

    def test_is_never_raised(self) -> None:
        # By its own numbers the request fits: the provider still refuses it.
        last, told = self.ask(limit=2_000, prompt=1_000, output=100, text=EXCEEDED)

        assert last["max_tokens"] == 100
        assert any(isinstance(event, CompactionEvent) for event in told)


@pytest.mark.parametrize(
    ("window", "read", "written", "again"),
    [
        (8_000, 7_830, 10, True),  # 98 % of the window
        (8_000, 7_829, 10, False),
        (8_000, 4_000, 1, False),
        (None, 4_000, 1, True),
        (None, 4_000, 16, True),  # No limit was asked for.
        (None, 4_000, 17, False),
        (8_000, 7_990, 16, True),
        (8_000, 7_990, 17, False),  # an answer, if a short one
    ],
)
def test_reply_without_room(window: int | None, read: int, written: int, *, again: bool) -> None:
    """A reply that was cut for want of room is asked for again."""
    answers: list[Any] = [{"content": "wo", "finish_reason": "length"}, "fine"]
    usage = {"prompt_tokens": read, "completion_tokens": written}
    model = ScriptedModel(window=10**6, replies=lambda _: answers.pop(0), usage=usage)
    compacter = Compacter(summarizer=ScriptedSummarizer("They talked."))
    compacter._state.calibration("m").window = window

    reply: Any = compacter.wrap(model.completion)("m", talk(80, 200))

    assert (reply["choices"][0]["message"]["content"] == "fine") is again
    assert len(model.requests) == 1 + again


class TestGivingUp:
    def give_up(self, **options: Any) -> tuple[TokenLimitError, RetriesExhausted]:
        told: list[Any] = []
        model = ScriptedModel(window=100)
        compacter = Compacter(
            summarizer=ScriptedSummarizer("They talked."), on_event=told.append, **options
        )
        with pytest.raises(TokenLimitError) as caught:
            compacter.wrap(model.completion)(
                "m", [*talk(6)[:-1], {"role": "user", "content": "x" * 700}]
            )
        return caught.value, told[-1]

    def test_says_what_each_round_did(self) -> None:
        error, event = self.give_up(compact_ratio=0.4, max_retries=1)

        (note,) = error.__notes__
        assert note.startswith("compacter gave up: no rounds are left (round 1: ")
        assert "(summarize)" in note
        assert "round 2" not in note
        assert (event.rounds, event.attempt, event.reason) == (1, 1, "no rounds are left")

    def test_says_that_nothing_was_allowed(self) -> None:
        error, event = self.give_up(max_retries=0)

        (note,) = error.__notes__
        assert note.startswith("compacter gave up: max_retries=0 (nothing was tried).")
        assert (event.rounds, event.reason) == (0, "max_retries=0")

    def test_tells_the_providers_numbers_and_the_model(self) -> None:
        _, event = self.give_up(max_retries=0)

        assert (event.limit, event.model) == (100, "m")
        assert event.requested is not None
        assert event.requested > 300


@pytest.mark.parametrize(("tokens", "fires"), [(599, False), (600, True)])
def test_the_trigger_keeps_room_for_the_answer(tokens: int, *, fires: bool) -> None:
    """Of a window of 1,000 tokens 400 are the answer's."""
    told: list[Any] = []
    counted = [1]
    compacter = Compacter(
        summarizer="extractive",
        on_event=told.append,
        trigger_tokens=0.8,
        token_counter=lambda _: counted[0],
    )
    compacter._state.calibration("m").window = 1_000
    completion = compacter.wrap(ScriptedModel(window=10**6, replies="ok").completion)
    completion("m", talk(3), max_tokens=400)
    counted[0] = tokens
    completion("m", talk(6), max_tokens=400)

    assert any(isinstance(event, CompactionEvent) for event in told) is fires
