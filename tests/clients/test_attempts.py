"""A call whose attempts somebody else makes: what each of them sends."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from tests.conversations import dialogue, user

from compacter.call.arguments import Binding
from compacter.call.state import State
from compacter.errors import CompactionError
from compacter.gateway.litellm_proxy.attempts import SteppedCall
from compacter.memory import InProcessMemory
from compacter.options import validated
from compacter.overflow import TokenLimit
from compacter.testing import TokenLimitError, token_limit_error

Chat = list[dict[str, Any]]
BINDING = Binding(wire_format="openai", vendors=True, server=lambda: "a gateway")
TOO_LONG = TokenLimit(limit=400, requested=900)


def talk(turns: int = 16) -> Chat:
    asked, answered = "What of wall number {n}? " * 4, "Wall number {n} still stands. " * 4
    return [*dialogue(turns, asked, answered), user("And now?")]


def refusal() -> TokenLimitError:
    return token_limit_error(limit=400, input_tokens=900)


class Writer:
    """A summarizer that counts, and fails on demand."""

    def __init__(self, error: Exception | None = None) -> None:
        self.calls = 0
        self.error = error

    async def __call__(self, messages: Sequence[Any], **_: Any) -> str:
        self.calls += 1
        if self.error is not None:
            raise self.error
        return "The user asks for walls, and all of them still stand."


def state(writer: Writer, **options: Any) -> State:
    return State(validated({"summarizer": writer, "memory": InProcessMemory(), **options}))


async def test_after_a_refusal_the_next_attempt_sends_less_and_the_callers_list_is_as_it_was() -> (
    None
):
    messages = talk()
    before = [dict(message) for message in messages]
    call = SteppedCall(state(Writer()), BINDING)
    await call.first({"model": "m", "messages": messages})
    sent = await call.again({"model": "m", "messages": messages}, refusal(), TOO_LONG)
    assert len(sent["messages"]) < len(messages)
    assert sent["messages"][-1] == messages[-1]
    assert messages == before
    assert call.tokens_saved > 100


async def test_after_another_failure_the_same_is_sent_again() -> None:
    kwargs = {"model": "m", "messages": talk()}
    call = SteppedCall(state(Writer()), BINDING)
    await call.first(kwargs)
    sent = await call.again(kwargs, refusal(), TOO_LONG)
    assert call.same(kwargs) == sent


async def test_each_refusal_folds_deeper_until_the_rounds_are_used_up() -> None:
    kwargs = {"model": "m", "messages": talk()}
    call = SteppedCall(state(Writer(), max_retries=2, compact_ratio=0.3), BINDING)
    await call.first(kwargs)
    sizes = [len(str(kwargs["messages"]))]
    for _ in range(2):
        sent = await call.again(kwargs, refusal(), TokenLimit())
        sizes.append(len(str(sent["messages"])))
    assert sizes == sorted(sizes, reverse=True)
    error = refusal()
    with pytest.raises(TokenLimitError) as raised:
        await call.again(kwargs, error, TokenLimit())
    assert raised.value is error
    with pytest.raises(TokenLimitError):
        call.same(kwargs)


async def test_what_cannot_be_folded_raises_the_providers_own_error() -> None:
    kwargs = {"model": "m", "messages": [{"role": "user", "content": "wall " * 500}]}
    call = SteppedCall(state(Writer()), BINDING)
    await call.first(kwargs)
    error = refusal()
    with pytest.raises(TokenLimitError) as raised:
        await call.again(kwargs, error, TOO_LONG)
    assert raised.value is error


async def test_a_later_call_of_the_conversation_starts_from_what_was_folded() -> None:
    writer = Writer()
    messages = talk()
    shared = state(writer)
    first = SteppedCall(shared, BINDING)
    await first.first({"model": "m", "messages": messages})
    await first.again({"model": "m", "messages": messages}, refusal(), TOO_LONG)
    calls = writer.calls
    later = [
        *messages,
        {"role": "assistant", "content": "Fine."},
        {"role": "user", "content": "Good."},
    ]
    second = SteppedCall(shared, BINDING)
    sent = await second.first({"model": "m", "messages": later})
    assert len(sent["messages"]) < len(later)
    assert writer.calls == calls
    assert second.tokens_saved > 100


async def test_a_short_history_is_not_looked_up() -> None:
    shared = state(Writer())
    kwargs = {"model": "m", "messages": talk()}
    call = SteppedCall(shared, BINDING)
    await call.first(kwargs)
    await call.again(kwargs, refusal(), TOO_LONG)
    shared.calibration("m").window = 1_000_000
    assert await SteppedCall(shared, BINDING).first(kwargs) is kwargs


async def test_a_summarizer_that_fails_leaves_the_fallback() -> None:
    kwargs = {"model": "m", "messages": talk()}
    call = SteppedCall(state(Writer(RuntimeError("no access"))), BINDING)
    await call.first(kwargs)
    sent = await call.again(kwargs, refusal(), TOO_LONG)
    assert len(sent["messages"]) < len(kwargs["messages"])


async def test_a_call_without_messages_raises_the_providers_error() -> None:
    kwargs = {"model": "m", "input": "wall " * 500}
    call = SteppedCall(state(Writer()), BINDING)
    assert await call.first(kwargs) is kwargs
    error = refusal()
    for each in (error, refusal()):
        with pytest.raises(TokenLimitError) as raised:
            await call.again(kwargs, each, TOO_LONG)
        assert raised.value is error


async def test_without_a_fallback_a_summarizer_that_fails_ends_the_call() -> None:
    kwargs = {"model": "m", "messages": talk()}
    call = SteppedCall(state(Writer(RuntimeError("no access")), fallback=None), BINDING)
    await call.first(kwargs)
    with pytest.raises(CompactionError):
        await call.again(kwargs, refusal(), TOO_LONG)
    with pytest.raises(CompactionError):
        call.same(kwargs)


async def test_the_usage_of_an_answer_is_what_the_trigger_goes_by() -> None:
    shared = state(Writer(), trigger_tokens=5_000)
    kwargs = {"model": "m", "messages": talk()}
    for tokens, folded in ((4_999, False), (4_999, False), (5_000, False), (1, True)):
        call = SteppedCall(shared, BINDING)
        sent = await call.first(kwargs)
        assert (len(sent["messages"]) < len(kwargs["messages"])) is folded
        await call.answered({"usage": {"prompt_tokens": tokens}})


async def test_where_compacter_itself_fails_the_providers_error_is_raised(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kwargs = {"model": "m", "messages": talk()}
    call = SteppedCall(state(Writer()), BINDING)
    await call.first(kwargs)

    monkeypatch.setattr(call.state, "calibration", lambda *_: SimpleNamespace(window=None))
    error = refusal()
    with pytest.raises(TokenLimitError) as raised:
        await call.again(kwargs, error, TOO_LONG)
    assert raised.value is error
    assert "compaction failed (AttributeError)" in caplog.text
    assert error.__notes__ == ["compacter could not compact: it raised AttributeError"]
