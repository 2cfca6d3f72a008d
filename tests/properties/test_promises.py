"""The manual's promises, for any history and any options."""

from __future__ import annotations

import asyncio
import copy
from itertools import pairwise
from typing import TYPE_CHECKING, Any, get_args

from hypothesis import given, note, settings
from hypothesis import strategies as st
from tests.effort import times
from tests.kit import OddModel, strict_roles

from compacter import ClearToolResults, Compacter, Shorten, Summarize, Truncate
from compacter.messages.format import get_format
from compacter.summary import message as summary_message
from compacter.testing import (
    Failure,
    ScriptedModel,
    ScriptedSummarizer,
    TokenLimitError,
    chat_fault,
)

if TYPE_CHECKING:
    from hypothesis.strategies import DataObject, SearchStrategy

Chat = dict[str, Any]
OPENAI = get_format("openai")
MANY = settings(max_examples=times(15, long=120))

strategies = st.sampled_from(
    [
        Summarize(),
        Truncate(),
        Shorten(),
        ClearToolResults(keep_recent=1, min_size=60),
        [ClearToolResults(keep_recent=0), Summarize()],
        [Truncate(), Shorten()],
    ]
)
failures = st.lists(st.sampled_from([None, *get_args(Failure)]), max_size=4)
options: SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "compact_ratio": st.floats(0.01, 1),
        "strategy": strategies,
        "preserve_recent_turns": st.integers(0, 4),
        "fallback": st.sampled_from(["truncate", "extractive", ("extractive", "truncate")]),
    }
)


def systems(messages: list[Chat]) -> list[Chat]:
    return [message for message in messages if message["role"] == "system"]


def kept_of(history: list[Chat], messages: list[Any]) -> list[Chat]:
    return [message for message in messages if any(message is own for own in history)]


def summaries(messages: list[Any]) -> list[Any]:
    return [
        message
        for message in messages
        if str(message.get("content")).startswith(summary_message.TAG)
    ]


@MANY
@given(data=st.data())
def test_compacting_by_hand_keeps_every_promise(
    any_chat: SearchStrategy[list[Chat]], data: DataObject
) -> None:
    history = data.draw(any_chat)
    chosen = data.draw(options)
    pins = data.draw(st.sets(st.integers(0, len(history) - 1), max_size=3))
    budget = data.draw(st.none() | st.integers(1, 2 * sum(map(OPENAI.size, history)) + 1))
    pinned = [history[index] for index in pins]
    before = copy.deepcopy(history)
    ids = list(map(id, history))
    asked = ScriptedSummarizer("They spoke.", fail=data.draw(failures))

    result = Compacter(
        summarizer=asked, pin=lambda message: any(message is one for one in pinned), **chosen
    ).compact(history, budget=budget)

    note(f"{result.messages!r}")
    # The caller's list is unchanged, and nothing is lost.
    assert history == before
    assert list(map(id, history)) == ids
    kept = kept_of(history, result.messages)
    assert len(kept) + len(result.discarded) == len(history)
    assert [id(message) for message in kept] == [
        id(m) for m in history if any(m is one for one in kept)
    ]
    # What goes out is what a provider takes.
    assert result.messages
    assert chat_fault(result.messages) is None or chat_fault(history) is not None
    assert len(summaries(result.messages)) <= 1
    # What must stay has stayed.
    assert systems(result.messages) == systems(history)
    assert all(any(message is own for own in result.messages) for message in pinned)
    last = next((message for message in reversed(history) if message["role"] == "user"), None)
    assert last is None or any(message is last for message in result.messages)
    # A change is one for the better, and the report is right about it.
    size = sum(map(OPENAI.size, result.messages))
    assert result.changed is (result.event is not None)
    if result.event is None:
        assert result.messages == history
    else:
        size_before = sum(map(OPENAI.size, history))
        assert result.event.original_data_size == size_before
        is_other_script = len(str(result.messages).encode()) < len(str(history).encode())
        assert size < size_before or is_other_script
        assert (size, len(result.messages)) == (
            result.event.compacted_data_size,
            result.event.messages_after,
        )
    assert result.fits is (budget is None or size <= budget)


@MANY
@given(data=st.data())
def test_a_wrapped_call_is_answered_or_ends_in_the_providers_error(
    any_chat: SearchStrategy[list[Chat]], data: DataObject
) -> None:
    history = data.draw(any_chat)
    chosen = data.draw(options)
    retries = data.draw(st.integers(0, 5))
    before = copy.deepcopy(history)
    tokens = ScriptedModel().count(tuple(history), {})
    model = OddModel(
        window=data.draw(st.integers(max(1, tokens // 8), tokens + 5)),
        style=data.draw(st.sampled_from(["openai", "bedrock", "llama.cpp", "anthropic"])),
        overflow_in_reply=data.draw(st.booleans()),
    )
    asked = ScriptedSummarizer("They spoke.", fail=data.draw(failures))
    completion = Compacter(summarizer=asked, max_retries=retries, **chosen).wrap(model.completion)

    for _ in range(2):  # The second one begins with what the first one has left in memory.
        sent = len(model.requests)
        try:
            reply: Any = completion("m", history)
        except TokenLimitError as error:
            assert error.__notes__  # noqa: PT017 - either outcome is right
        else:
            assert "choices" in reply or "error" in reply
        requests = model.requests[sent:]
        assert 1 <= len(requests) <= 1 + retries
        assert all(request.refused for request in requests[:-1])
        assert all(one.messages != other.messages for one, other in pairwise(requests))

    note(f"{[request.messages for request in model.requests]!r}")
    assert history == before
    assert model.invalid == 0
    for request in model.requests:
        messages = list(request.messages)
        assert systems(messages) == systems(history)
        assert len(summaries(messages)) <= 1


@settings(max_examples=times(15, long=120))
@given(data=st.data())
def test_so_it_is_in_an_async_program(
    any_chat: SearchStrategy[list[Chat]], data: DataObject
) -> None:
    history = data.draw(any_chat)
    tokens = ScriptedModel().count(tuple(history), {})
    window = data.draw(st.integers(max(1, tokens // 8), tokens + 5))
    fail = data.draw(failures)
    chosen = data.draw(options)
    sync_model = ScriptedModel(window=window)
    async_model = ScriptedModel(window=window)

    def sync_run() -> object:
        completion = Compacter(
            summarizer=ScriptedSummarizer("They spoke.", fail=fail), **chosen
        ).wrap(sync_model.completion)
        try:
            return completion("m", history)
        except TokenLimitError:
            return None

    async def async_run() -> object:
        asked = ScriptedSummarizer("They spoke.", fail=fail)
        completion = Compacter(summarizer=asked.acall, **chosen).wrap(async_model.acompletion)
        try:
            return await completion("m", history)
        except TokenLimitError:
            return None

    assert sync_run() == asyncio.run(async_run())
    assert [one.messages for one in sync_model.requests] == [
        one.messages for one in async_model.requests
    ]


@MANY
@given(data=st.data())
def test_strict_turns_stay_strict(
    any_dialogue: SearchStrategy[list[Chat]], data: DataObject
) -> None:
    history = data.draw(any_dialogue)
    chosen = data.draw(options)

    result = Compacter(
        summarizer=ScriptedSummarizer("They spoke."), alternate_roles=True, **chosen
    ).compact(history)

    note(f"{result.messages!r}")
    assert strict_roles(result.messages) is None or strict_roles(history) is not None


@MANY
@given(data=st.data())
def test_a_plan_is_what_is_done(any_chat: SearchStrategy[list[Chat]], data: DataObject) -> None:
    history = data.draw(any_chat)
    compacter = Compacter(
        summarizer=ScriptedSummarizer("S."),
        compact_ratio=data.draw(st.floats(0.01, 1)),
        preserve_recent_turns=data.draw(st.integers(0, 3)),
    )

    plan = compacter.plan(history)
    result = compacter.compact(history)

    assert (
        plan.head_size + plan.tail_size == plan.original_data_size == sum(map(OPENAI.size, history))
    )
    assert plan.head_size == sum(map(OPENAI.size, plan.head))
    if result.changed:
        assert result.discarded == plan.head


@settings(max_examples=times(15, long=120))
@given(data=st.data())
def test_a_broken_history_is_never_made_worse(
    any_chat: SearchStrategy[list[Chat]], data: DataObject
) -> None:
    history = data.draw(any_chat)
    for _ in range(data.draw(st.integers(1, 3))):
        del history[data.draw(st.integers(0, len(history) - 1))]
        if not history:
            return
    halves = OPENAI.outline(history).broken

    result = Compacter(
        summarizer=ScriptedSummarizer("S."), compact_ratio=data.draw(st.floats(0.01, 1))
    ).compact(history)

    after = OPENAI.outline(result.messages)
    assert len(after.broken) <= len(halves)
    assert {half.call_id for half in after.broken} <= {half.call_id for half in halves}
