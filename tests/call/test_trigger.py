"""The proactive trigger: when it fires, when it is held back, and what it counts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from compacter import Compacter, CompactionEvent
from compacter.errors import ConfigurationError
from compacter.events import CompactionFailed, CompactionSkipped
from compacter.memory import InProcessMemory
from compacter.options import TriggerFacts
from compacter.testing import ScriptedModel, ScriptedSummarizer

Chat = dict[str, Any]


class Talk:
    """A program that keeps its whole history and resends it; each turn adds about ``2 * size``
    characters.
    """

    def __init__(self, model: ScriptedModel | None = None, **options: Any) -> None:
        self.model = model or ScriptedModel(window=1_000_000, replies=lambda _: "a" * 400)
        self.told: list[Any] = []
        options.setdefault("summarizer", ScriptedSummarizer("They talked."))
        self.compacter = Compacter(on_event=self.told.append, **options)
        self.completion = self.compacter.wrap(self.model.completion)
        self.history: list[Chat] = [{"role": "system", "content": "You are terse."}]

    def turn(self, size: int = 400, **options: Any) -> list[Any]:
        """The events of one more turn."""
        self.told.clear()
        self.history.append({"role": "user", "content": f"{len(self.history)} ".ljust(size, "q")})
        reply: Any = self.completion("m", self.history, **options)
        self.history.append(reply["choices"][0]["message"])
        return list(self.told)

    def compacted(self, size: int = 400, **options: Any) -> bool:
        return any(isinstance(event, CompactionEvent) for event in self.turn(size, **options))


def reasons(events: list[Any]) -> list[str]:
    return [event.reason for event in events if isinstance(event, CompactionSkipped)]


def test_the_first_call_never_triggers_whatever_its_size() -> None:
    talk = Talk(trigger_tokens=100)
    talk.history += [{"role": role, "content": "x" * 4_000} for role in ("user", "assistant") * 3]
    assert not talk.compacted()
    assert talk.compacted()


def test_a_conversation_with_a_name_has_a_first_call_of_its_own() -> None:
    talk = Talk(trigger_tokens=100)
    compacted = [
        talk.compacted(compacter_options={"conversation": name}) for name in ("one", "other", "one")
    ]
    assert compacted == [False, False, True]


@pytest.mark.parametrize("between", [0, 1, 3, 5])
def test_the_cool_down_blocks_as_many_calls_as_it_says(between: int) -> None:
    talk = Talk(trigger_tokens=1_000, min_calls_between=between, token_counter=lambda _: 1_000)
    fired = [number for number in range(1, 31) if talk.compacted(4_000)]
    gaps = {later - earlier - 1 for earlier, later in pairwise(fired)}
    assert fired[0] == 2
    assert gaps == {between}


def test_a_failed_try_counts() -> None:
    asked = ScriptedSummarizer(fail="raises")
    talk = Talk(trigger_tokens=1_000, fallback=None, summarizer=asked)
    for _ in range(5):
        assert not any(isinstance(event, CompactionFailed) for event in talk.turn())
    failed = [bool([e for e in talk.turn(8) if isinstance(e, CompactionFailed)]) for _ in range(4)]
    assert failed == [True, False, False, False]


def test_the_estimate_alone_fires_where_no_usage_is_known() -> None:
    talk = Talk(ScriptedModel(window=10**6, usage=False, replies="a" * 400), trigger_tokens=1_000)
    assert [number for number in range(1, 8) if talk.compacted()] == [6]


def test_tools_count() -> None:
    tools = [
        {
            "type": "function",
            "function": {"name": "look", "description": "d" * 3_000, "parameters": {}},
        }
    ]
    bare = Talk(trigger_tokens=1_000)
    loaded = Talk(trigger_tokens=1_000)
    bare.turn()
    loaded.turn(tools=tools)
    assert not bare.compacted()
    assert loaded.compacted(tools=tools)


def test_far_over_the_limit_is_not_held_back() -> None:
    talk = Talk(trigger_tokens=600, min_calls_between=50)
    while not talk.compacted():
        pass
    assert not talk.compacted()
    assert talk.compacted(6_000)


def test_the_users_counter_is_used_not_characters() -> None:
    talk = Talk(trigger_tokens=100, token_counter=lambda some: 25 * len(some), min_calls_between=0)
    assert [number for number in range(1, 5) if talk.compacted(2_000)] == [2, 3, 4]
    silent = Talk(trigger_tokens=100, token_counter=len)
    assert not any(silent.compacted(2_000) for _ in range(5))


def test_a_counter_that_raises_breaks_nothing() -> None:
    def broken(messages: Any) -> int:
        raise RuntimeError("no table")

    talk = Talk(trigger_tokens=1_000, token_counter=broken)
    events = [event for _ in range(7) for event in talk.turn()]
    assert any(isinstance(event, CompactionEvent) for event in events)
    failed = {
        (event.reason, event.error) for event in events if isinstance(event, CompactionFailed)
    }
    assert failed == {("token_counter raised RuntimeError", "RuntimeError")}


def test_a_share_of_an_unknown_window_is_told_once_and_learnt_from_an_error() -> None:
    talk = Talk(ScriptedModel(window=2_000, replies="a" * 400), trigger_tokens=0.5)
    events = [event for _ in range(12) for event in talk.turn()]
    assert reasons(events).count("unknown_window") == 1
    triggers = [event.trigger for event in events if isinstance(event, CompactionEvent)]
    assert triggers == ["token_limit"]
    later = [event for _ in range(6) for event in talk.turn()]
    assert "threshold" in [event.trigger for event in later if isinstance(event, CompactionEvent)]
    assert talk.model.rejected == 1


def test_a_real_token_limit_ignores_the_cool_down() -> None:
    talk = Talk(
        ScriptedModel(window=900, replies="a" * 400), trigger_tokens=800, min_calls_between=100
    )
    for _ in range(30):
        talk.turn()
    assert talk.model.rejected > 1
    assert talk.compacter.totals.rounds > talk.model.rejected


def test_a_history_that_cannot_shrink_is_not_tried_on_every_call() -> None:
    asked = ScriptedSummarizer("They talked.")
    talk = Talk(
        trigger_tokens=1_000, min_calls_between=0, summarizer=asked, pin=lambda message: True
    )
    kinds = [type(event).__name__ for _ in range(30) for event in talk.turn(100)]
    assert not asked.requests
    assert 0 < kinds.count("CompactionSkipped") < 12


def test_a_history_whose_rest_is_too_long_is_not_summarised_on_every_call() -> None:
    asked = ScriptedSummarizer("They talked.")
    talk = Talk(
        trigger_tokens=1_000,
        min_calls_between=0,
        summarizer=asked,
        memory=InProcessMemory(),
        pin=lambda message: message["content"].startswith("RULES"),
    )
    talk.history.append({"role": "user", "content": "RULES " * 1_000})
    talk.history.append({"role": "assistant", "content": "I see."})
    for _ in range(20):
        talk.turn(100)
    assert 0 < len(asked.requests) <= 8


def test_a_trigger_that_fails_is_not_in_the_way_of_the_call() -> None:
    talk = Talk(trigger_tokens=100, fallback=None, summarizer=ScriptedSummarizer(fail="raises"))
    events = [event for _ in range(6) for event in talk.turn()]
    assert len(talk.model.requests) == 6
    last = [event for event in events if isinstance(event, CompactionFailed)][-1]
    assert (last.reason, last.trigger, last.error) == (
        "no summary could be had",
        "threshold",
        "InternalServerError",
    )


async def test_two_calls_at_once_make_one_summary() -> None:
    import asyncio

    asked = ScriptedSummarizer("They talked.")

    async def slowly(messages: Any) -> Any:
        await asyncio.sleep(0)
        return asked(messages)

    model = ScriptedModel(window=10**6, replies="ok")
    completion = Compacter(trigger_tokens=500, summarizer=slowly).wrap(model.acompletion)
    history = [
        {"role": "user", "content": "x" * 900},
        {"role": "assistant", "content": "y" * 900},
    ] * 3
    history.append({"role": "user", "content": "And now?"})
    await completion("m", history[:1])
    await asyncio.gather(*(completion("m", history) for _ in range(4)))
    assert len(asked.requests) == 1
    assert {request.tokens for request in model.requests[1:]} == {model.requests[1].tokens}
    assert len(model.requests[1].messages) < len(history)


def test_streaming_calls_trigger_too() -> None:
    talk = Talk(trigger_tokens=1_000)
    fired = []
    for number in range(8):
        talk.told.clear()
        talk.history.append({"role": "user", "content": f"{number} ".ljust(400, "q")})
        list(talk.completion("m", talk.history, stream=True))
        talk.history.append({"role": "assistant", "content": "a" * 400})
        fired.append(any(isinstance(event, CompactionEvent) for event in talk.told))
    assert fired == [number == 5 for number in range(8)]


class TestAFunction:
    def test_decides_by_what_is_known(self) -> None:
        seen: list[TriggerFacts] = []

        def is_due(facts: TriggerFacts) -> bool:
            seen.append(facts)
            return facts.messages > 10

        talk = Talk(trigger_tokens=is_due, min_calls_between=0)
        talk.compacter._state.calibration("m").window = 50_000
        fired = [number for number in range(1, 12) if talk.compacted()]
        assert fired[0] == 6  # Eleven messages; never at the first call, at which it is not asked.
        assert [facts.calls for facts in seen[:6]] == [2, 3, 4, 5, 6, 1]
        assert [facts.messages for facts in seen[:5]] == [4, 6, 8, 10, 12]
        assert {facts.window for facts in seen} == {50_000}
        assert all(later.tokens > earlier.tokens for earlier, later in pairwise(seen[:5]))

    def test_that_fails_is_told_and_skipped(self, caplog: pytest.LogCaptureFixture) -> None:
        def broken(facts: TriggerFacts) -> bool:
            raise ZeroDivisionError(facts)

        talk = Talk(trigger_tokens=broken)
        told = [event for _ in range(3) for event in talk.turn()]
        failed = [event for event in told if isinstance(event, CompactionFailed)]
        assert [(event.trigger, event.error) for event in failed] == [
            ("threshold", "ZeroDivisionError")
        ] * 2
        assert str(failed[0]).count("trigger_tokens raised ZeroDivisionError") == 1
        warnings = [record for record in caplog.records if record.levelname == "WARNING"]
        assert len(warnings) == 1
        assert "trigger_tokens raised ZeroDivisionError" in warnings[0].getMessage()

    def test_that_is_async_or_takes_nothing_is_refused_when_it_is_given(self) -> None:
        async def later(facts: TriggerFacts) -> bool:
            return True

        with pytest.raises(ConfigurationError, match=r"trigger_tokens\(facts\) and not awaited"):
            Compacter(trigger_tokens=later)  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError, match="trigger_tokens"):
            Compacter(trigger_tokens=lambda: True)  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError, match="prepare_tokens"):
            Compacter(prepare_tokens=lambda facts: True)  # type: ignore[arg-type]

    def test_of_one_call_alone(self) -> None:
        talk = Talk()
        asked = {"trigger_tokens": lambda facts: True}
        assert not talk.compacted(compacter_options=asked)
        assert talk.compacted(4_000, compacter_options=asked)
