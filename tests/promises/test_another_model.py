"""A conversation goes on with another model, which cannot read what the one before has sealed."""

from __future__ import annotations

import asyncio
import copy
from typing import TYPE_CHECKING, Any

import pytest

from compacter import Compacter
from compacter.events import Event, RetriesExhausted, SealedContentRemoved

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from compacter.messages.format import FormatName, Message


class BadRequestError(Exception):
    """An SDK's error for HTTP 400."""

    def __init__(self, text: str, status_code: int = 400) -> None:
        super().__init__(text)
        self.status_code = status_code


ASK = {"role": "user", "content": "Look up."}
CALL = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "blue"}
THINKING = {"type": "thinking", "thinking": "To be looked at.", "signature": "c2ln"}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAQUJD"}
ITEM = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "blue"}
LOOK = {"name": "look", "args": {}}
SEEN = {"name": "look", "response": {"output": "blue"}}

TALKS: dict[FormatName, tuple[list[Message], str, str]] = {
    "anthropic": (
        [
            ASK,
            {"role": "assistant", "content": [THINKING, CALL]},
            {"role": "user", "content": [RESULT]},
        ],
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "thinking",
    ),
    "responses": (
        [ASK, REASONING, ITEM, OUTPUT],
        "The encrypted content gAAA...QUJD could not be verified.",
        "reasoning",
    ),
    "gemini": (
        [
            {"role": "user", "parts": [{"text": "Look up."}]},
            {"role": "model", "parts": [{"functionCall": LOOK, "thoughtSignature": "QUJD"}]},
            {"role": "user", "parts": [{"functionResponse": SEEN}]},
        ],
        "400 INVALID_ARGUMENT. Unable to submit request because Thought signature is not valid.",
        "thought_signature",
    ),
}
REPLIES: dict[FormatName, Any] = {
    "anthropic": {
        "type": "message",
        "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "Blue."}],
    },
    "responses": {"object": "response", "status": "completed", "output": []},
    "gemini": {"candidates": [{"content": {"parts": [{"text": "Blue."}]}}]},
}
SEALS = ("c2ln", "gAAAQUJD", "'QUJD'", "rs_1", "fc_1")


class OtherModel:
    """Refuses each request with what it cannot read, or each request at all."""

    def __init__(self, name: FormatName, *, always: bool = False) -> None:
        self.name: FormatName = name
        self.error = BadRequestError(TALKS[name][1])
        self.always = always
        self.requests: list[list[Message]] = []

    def answer(self, messages: list[Message]) -> Any:
        self.requests.append(copy.deepcopy(messages))
        if self.always or any(seal in str(messages) for seal in SEALS):
            raise self.error
        return REPLIES[self.name]

    async def answer_later(self, messages: list[Message]) -> Any:
        return self.answer(messages)

    def stream(self, messages: list[Message]) -> Iterator[Any]:
        """Fail when the first chunk is asked for."""
        reply = self.answer(messages)
        yield reply

    async def stream_later(self, messages: list[Message]) -> AsyncIterator[Any]:
        yield self.answer(messages)


def wrapped(told: list[Event], **options: Any) -> Compacter:
    return Compacter(summarizer="extractive", on_event=told.append, **options)


@pytest.mark.parametrize("way", ["sync", "async", "stream", "async stream"])
@pytest.mark.parametrize("name", list(TALKS))
def test_the_request_goes_again_without_it_and_an_event_tells(name: FormatName, way: str) -> None:
    talk, _, kind = TALKS[name]
    before = copy.deepcopy(talk)
    told: list[Event] = []
    compacter = wrapped(told)
    model = OtherModel(name)

    def ask() -> Any:
        if way == "sync":
            return compacter.wrap(model.answer, wire_format=name)(talk)
        if way == "async":
            return asyncio.run(compacter.wrap(model.answer_later, wire_format=name)(talk))
        if way == "stream":
            return next(iter(compacter.wrap(model.stream, wire_format=name)(talk)))

        async def read() -> Any:
            return await anext(aiter(compacter.wrap(model.stream_later, wire_format=name)(talk)))

        return asyncio.run(read())

    assert ask() == REPLIES[name]
    assert talk == before
    assert len(model.requests) == 2
    assert model.requests[0] == before
    (event,) = told
    assert isinstance(event, SealedContentRemoved)
    assert (event.removed, event.kinds, event.error) == (1, (kind,), "BadRequestError")
    assert event.conversation
    assert event.attempt == 1
    assert compacter.totals.unsealed == 1
    assert compacter.totals.rounds == 0


@pytest.mark.parametrize("name", list(TALKS))
def test_a_second_such_error_is_raised_as_it_came_with_a_note(name: FormatName) -> None:
    told: list[Event] = []
    model = OtherModel(name, always=True)

    with pytest.raises(BadRequestError) as raised:
        wrapped(told).wrap(model.answer, wire_format=name)(TALKS[name][0])

    assert raised.value is model.error
    (note,) = raised.value.__notes__
    assert "sealed blocks left out" in note
    assert len(model.requests) == 2
    assert [type(event) for event in told] == [SealedContentRemoved, RetriesExhausted]


def test_a_request_with_nothing_sealed_is_not_sent_again_and_the_error_is_untouched() -> None:
    told: list[Event] = []
    model = OtherModel("anthropic", always=True)

    with pytest.raises(BadRequestError) as raised:
        wrapped(told).wrap(model.answer, wire_format="anthropic")([ASK])

    assert not hasattr(raised.value, "__notes__")
    assert len(model.requests) == 1
    assert told == []


def test_max_retries_counts_it() -> None:
    model = OtherModel("anthropic")

    with pytest.raises(BadRequestError):
        Compacter(max_retries=0).wrap(model.answer, wire_format="anthropic")(TALKS["anthropic"][0])

    assert len(model.requests) == 1


def test_an_error_inside_http_200_is_mended_too() -> None:
    requests: list[list[Message]] = []
    error = {"code": "invalid_encrypted_content", "message": "could not be verified"}
    failed = {"object": "response", "status": "failed", "error": error, "output": []}

    def answer(input: list[Message]) -> Any:  # noqa: A002 - the API's own name
        requests.append(input)
        return failed if "gAAA" in str(input) else REPLIES["responses"]

    told: list[Event] = []
    talk = TALKS["responses"][0]

    assert wrapped(told).wrap(answer)(input=talk) == REPLIES["responses"]
    assert [type(event) for event in told] == [SealedContentRemoved]
    assert len(requests) == 2


def test_a_long_conversation_is_left_unsealed_and_then_compacted() -> None:
    """The same call may need both."""
    turns: list[Message] = []
    for number in range(40):
        turns += [
            {"role": "user", "content": f"Question {number}. " * 20},
            {"role": "assistant", "content": [THINKING, {"type": "text", "text": "Aye. " * 40}]},
        ]
    talk = [*turns, {"role": "user", "content": "And now?"}]
    told: list[Event] = []

    def answer(messages: list[Message]) -> Any:
        if "c2ln" in str(messages):
            raise BadRequestError(TALKS["anthropic"][1])
        if len(str(messages)) > 12_000:
            raise BadRequestError("prompt is too long: 9000 tokens > 4000 maximum")
        return REPLIES["anthropic"]

    assert wrapped(told).wrap(answer, wire_format="anthropic")(talk) == REPLIES["anthropic"]
    names = [type(event).__name__ for event in told]
    assert names[0] == "SealedContentRemoved"
    assert "CompactionEvent" in names
    assert names.count("SealedContentRemoved") == 1
