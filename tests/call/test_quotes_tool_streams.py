"""``Quotes(tool=True)`` in streams: the model looks up what was compacted, the caller reads one
stream."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import pytest
from tests.kit.searching import (
    FACT,
    FORMATS,
    MESSAGES,
    WEATHER,
    Model,
    client_of,
    compacter,
    events,
    names,
    reply,
    talk,
)

from compacter import CompactionEvent
from compacter.testing import token_limit_error

FIRST = "Let me look. "
LAST = "In K-7. "


def text_of(wire: str, chunk: Any) -> str:
    """The visible text of a chunk, read as a program does."""
    if wire == "openai":
        return "".join(choice["delta"].get("content") or "" for choice in chunk["choices"])
    if wire == "anthropic":
        return str(chunk.get("delta", {}).get("text", ""))
    if wire == "responses":
        return str(chunk["delta"]) if chunk["type"] == "response.output_text.delta" else ""
    parts = chunk["candidates"][0]["content"]["parts"]
    return "".join(part.get("text", "") for part in parts)


def said(wire: str, chunks: Any) -> str:
    return "".join(text_of(wire, chunk) for chunk in chunks)


def stream_of(wire: str, model: Model, **options: Any) -> Any:
    call = compacter().wrap(model.streaming, wire_format=wire)
    return call(messages=talk(wire), model="m", tools=[WEATHER[wire]], **options)


@pytest.mark.parametrize("wire", FORMATS)
def test_a_call_of_recall_is_answered_inside_the_stream(wire: str) -> None:
    """Text before the call is delivered once and at once; the next reply's follows."""
    model = Model(events(wire, "recall", text=FIRST), events(wire, text=LAST, number=1))
    stream = stream_of(wire, model)

    read: list[Any] = []
    while said(wire, read) != FIRST:
        read.append(next(stream))
    assert len(model.requests) == 1
    read += stream

    assert said(wire, read) == FIRST + LAST
    assert "recall" not in json.dumps(read)
    asked, again = model.requests
    assert names(asked) == names(again) == ["weather", "recall"]
    assert again["messages"][: len(asked["messages"])] == asked["messages"]
    exchanged = json.dumps(again["messages"][len(asked["messages"]) :])
    assert FACT in exchanged
    assert exchanged.count("spare valve") > 1
    assert exchanged.count('"c0"') == 2  # The call and its result.
    assert all(piece in exchanged for piece in FIRST.split())


@pytest.mark.parametrize("wire", FORMATS)
async def test_async_streams_are_answered_alike(wire: str) -> None:
    """Sync and async programs have one logic."""
    model = Model(events(wire, "recall", text=FIRST), events(wire, text=LAST, number=1))
    call = compacter().wrap(model.astreaming, wire_format=wire)
    stream = await call(messages=talk(wire), model="m", tools=[WEATHER[wire]])
    assert said(wire, [chunk async for chunk in stream]) == FIRST + LAST
    assert FACT in json.dumps(model.requests[1]["messages"])


@pytest.mark.parametrize("wire", FORMATS)
def test_other_replies_are_passed_on_chunk_by_chunk(wire: str) -> None:
    """Answers and calls of the program's own tools are the provider's own objects."""
    for chunks in (events(wire, text=LAST), events(wire, "weather", "weather", text=FIRST)):
        read = list(stream_of(wire, Model(list(chunks))))
        assert len(read) == len(chunks)
        assert all(one is other for one, other in zip(read, chunks, strict=True))


@pytest.mark.parametrize("calls", [("weather", "recall"), ("recall", "weather")])
@pytest.mark.parametrize("wire", FORMATS)
def test_a_call_beside_it_waits_until_the_model_has_read_the_result(
    wire: str, calls: tuple[str, ...]
) -> None:
    """As in a whole reply: the other call was not carried out, and is made again."""
    model = Model(events(wire, *calls, text=FIRST), events(wire, "weather", number=1))
    read = list(stream_of(wire, model))
    assert "recall" not in json.dumps(read)
    assert json.dumps(read).count('"weather"') == json.dumps(
        events(wire, "weather", number=1)
    ).count('"weather"')
    exchanged = json.dumps(model.requests[1]["messages"])
    assert "Not carried out" in exchanged
    assert FACT in exchanged
    assert exchanged.count('"c1"') == exchanged.count('"c0"') == 2


@pytest.mark.parametrize("wire", FORMATS)
def test_a_model_that_searches_on_is_asked_once_without_the_tool(wire: str) -> None:
    """A stream has three rounds of searches at most."""
    rounds = [events(wire, "recall", number=at) for at in range(4)]
    model = Model(*rounds, events(wire, text=LAST, number=4))
    assert said(wire, stream_of(wire, model)) == LAST
    assert [len(names(request)) for request in model.requests] == [2, 2, 2, 2, 1]
    assert model.requests[-1]["messages"] == model.requests[0]["messages"]
    assert "last search" in json.dumps(model.requests[3]["messages"][-1])


def test_results_that_do_not_fit_are_left_out() -> None:
    """A search never makes a stream fail that would have succeeded."""
    model = Model(events("openai", "recall", text=FIRST), events("openai", text=LAST))

    def full(messages: list[Any], **options: Any) -> Any:
        if messages[-1]["role"] == "tool":
            raise token_limit_error(limit=1_500, input_tokens=1_600)
        return model.streaming(messages, **options)

    stream = compacter().wrap(full)(messages=talk("openai"), model="m", stream=True)
    assert said("openai", stream) == FIRST + LAST
    assert names(model.requests[-1]) == []


@pytest.mark.parametrize("wire", ["openai", "gemini"])
def test_text_in_the_chunk_of_a_call_is_delivered(wire: str) -> None:
    """Some servers send text and calls in one chunk."""
    both = events(wire, "recall")
    if wire == "openai":
        both[1]["choices"][0]["delta"]["content"] = FIRST
    else:
        both[0]["candidates"][0]["content"]["parts"].insert(0, {"text": FIRST})
    read = list(stream_of(wire, Model(both, events(wire, text=LAST))))
    assert said(wire, read) == FIRST + LAST
    assert "recall" not in json.dumps(read)


def test_blocks_of_anthropics_replies_are_numbered_through() -> None:
    """One message begins and ends, and its blocks have numbers of their own."""
    model = Model(
        events("anthropic", "recall", text=FIRST), events("anthropic", text=LAST, number=1)
    )
    read = list(stream_of("anthropic", model))
    kinds = [chunk["type"] for chunk in read]
    assert [kinds.count(kind) for kind in ("message_start", "message_delta", "message_stop")] == [
        1,
        1,
        1,
    ]
    started = [chunk["index"] for chunk in read if chunk["type"] == "content_block_start"]
    assert started == [0, 1, 2, 3]
    sent = model.requests[1]["messages"][-2]["content"]
    assert sent[0] == {"type": "thinking", "thinking": "Hm", "signature": "sealed"}
    assert sent[-1]["input"] == {"query": "spare valve"}


def test_items_of_responses_are_numbered_through() -> None:
    """The completed response has the items of all replies that the caller has read."""
    model = Model(
        events("responses", "recall", text=FIRST), events("responses", text=LAST, number=1)
    )
    read = list(stream_of("responses", model))
    numbers = [chunk["sequence_number"] for chunk in read]
    assert numbers == list(range(len(read)))
    assert [chunk["type"] for chunk in read].count("response.created") == 1
    added = [chunk for chunk in read if chunk["type"] == "response.output_item.added"]
    assert [chunk["output_index"] for chunk in added] == [0, 1]
    output = read[-1]["response"]["output"]
    assert [item["content"][0]["text"] for item in output] == [FIRST, LAST]


def test_chat_completions_have_one_id_and_one_role() -> None:
    """Programs add deltas up, and a role twice would be no role."""
    model = Model(events("openai", "recall", text=FIRST), events("openai", text=LAST, number=1))
    read = list(stream_of("openai", model))
    assert {chunk["id"] for chunk in read} == {"r0"}
    roles = [chunk["choices"][0]["delta"].get("role") for chunk in read]
    assert [role for role in roles if role] == ["assistant"]


def test_reasoning_goes_back_with_the_call() -> None:
    """DeepSeek and others refuse a call without the reasoning that led to it."""
    chunks = events("openai", "recall")
    for at, piece in enumerate(("Where ", "is it?")):
        chunks.insert(1 + at, {"choices": [{"delta": {"reasoning_content": piece}}]})
    model = Model(chunks, events("openai", text=LAST))
    list(stream_of("openai", model))
    call = model.requests[1]["messages"][-2]
    assert call["reasoning_content"] == "Where is it?"
    assert "index" not in call["tool_calls"][0]


@pytest.mark.parametrize("index", [0, None])
def test_whole_calls_without_numbers_are_told_apart(index: int | None) -> None:
    """Gemini's and Ollama's servers send each call in one piece, and number none or all 0."""
    chunks = events("openai", text=FIRST)
    for name in ("recall", "recall"):
        function = {"name": name, "arguments": '{"query": "K"}'}
        made: dict[str, Any] = {"id": f"c{len(chunks)}", "function": function}
        made |= {} if index is None else {"index": index}
        chunks.insert(-1, {"choices": [{"index": 0, "delta": {"tool_calls": [made]}}]})
    model = Model(chunks, events("openai", text=LAST))
    assert said("openai", stream_of("openai", model)) == FIRST + LAST
    call, *results = model.requests[1]["messages"][-3:]
    assert [each["id"] for each in call["tool_calls"]] == ["c5", "c6"]
    assert [each["tool_call_id"] for each in results] == ["c5", "c6"]
    assert {each["function"]["arguments"] for each in call["tool_calls"]} == {'{"query": "K"}'}


def test_a_call_that_was_cut_off_is_answered() -> None:
    """Its arguments are no JSON; the model is told that it gave no query."""
    whole = events("anthropic", "recall")
    pieces = [chunk.get("delta", {}).get("partial_json") for chunk in whole]
    end = max(at for at, piece in enumerate(pieces) if piece)
    model = Model([*whole[:end], *whole[end + 1 :]], events("anthropic", text=LAST))
    assert said("anthropic", stream_of("anthropic", model)) == LAST
    assert "No query" in json.dumps(model.requests[1]["messages"][-1])


def test_an_abandoned_stream_is_closed() -> None:
    """``close`` ends whichever reply is being read."""
    closed: list[int] = []

    class Chunks:
        def __init__(self, number: int, chunks: list[Any]) -> None:
            self.number = number
            self.rest = iter(chunks)

        def __iter__(self) -> Any:
            return self

        def __next__(self) -> Any:
            return next(self.rest)

        def close(self) -> None:
            closed.append(self.number)

    model = Model(
        Chunks(0, events("openai", "recall", text=FIRST)), Chunks(1, events("openai", text=LAST))
    )
    stream = compacter().wrap(model.completion)(messages=talk("openai"), model="m", stream=True)
    assert isinstance(stream, Chunks)
    while "In" not in text_of("openai", next(stream)):
        pass
    stream.close()
    assert closed == [1]


def test_an_error_after_the_search_reaches_the_reader() -> None:
    """It is the provider's own."""

    class DownError(Exception):
        pass

    def answer(messages: list[Any], **options: Any) -> Any:
        if messages[-1]["role"] == "tool":
            raise DownError
        return model.streaming(messages, **options)

    model = Model(events("openai", "recall", text=FIRST))
    stream = compacter().wrap(answer)(messages=talk("openai"), model="m", stream=True)
    with pytest.raises(DownError) as caught:
        list(stream)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("number", [0, 1])
def test_a_limit_that_ends_a_stream_is_noted_for_the_next_call(number: int) -> None:
    """In the first reply and in one that follows a search, as in any stream."""
    said_too_long = token_limit_error(limit=300, input_tokens=1_000)

    def breaking(chunks: list[Any]) -> Any:
        yield from chunks[:-1]
        raise said_too_long

    replies: list[Any] = [events("openai", "recall", text=FIRST), events("openai", text=LAST)]
    replies[number] = breaking(events("openai", text=LAST))
    model = Model(*replies[: number + 1], events("openai", text=LAST))
    told: list[Any] = []
    chat = compacter(told.append).wrap(model.streaming)
    with pytest.raises(type(said_too_long)):
        list(chat(messages=talk("openai"), model="m"))
    before = len(told)
    list(chat(messages=talk("openai"), model="m"))
    assert any(isinstance(event, CompactionEvent) for event in told[before:])


def test_generator_functions_are_answered() -> None:
    """Functions that yield the provider's chunks have the tool too."""
    model = Model(events("openai", "recall", text=FIRST), events("openai", text=LAST))

    def chat(messages: list[Any], tools: Any = None) -> Any:
        yield from model.completion(messages, tools=tools)

    assert said("openai", compacter().wrap(chat)(talk("openai"))) == FIRST + LAST


async def test_async_generator_functions_are_answered() -> None:
    """Also async ones."""
    model = Model(events("openai", "recall", text=FIRST), events("openai", text=LAST))

    async def chat(messages: list[Any], tools: Any = None) -> Any:
        for chunk in model.completion(messages, tools=tools):
            yield chunk

    stream: Any = compacter().wrap(chat)(talk("openai"))
    assert said("openai", [chunk async for chunk in stream]) == FIRST + LAST


@pytest.mark.parametrize("streams", [True, False])
async def test_plain_functions_of_async_programs_are_answered(streams: bool) -> None:
    """A plain function may return a coroutine or an async stream; so at its first call."""
    by = compacter()
    by.compact(talk("openai"), model="m")
    warm = Model(events("openai", text=LAST) if streams else reply("openai"))
    model = Model(
        *(events("openai", "recall", text=FIRST), events("openai", text=LAST))
        if streams
        else (reply("openai", "recall"), reply("openai"))
    )
    called: list[Model] = [warm]

    def chat(messages: list[Any], **options: Any) -> Any:
        made = called[0].astreaming if streams else called[0].acompletion
        return made(messages, **options)

    await by.wrap(chat)(messages=talk("openai"), model="m")
    called[0] = model
    # Memory now has a compaction, so this call is not a quiet one.
    told = await by.wrap(chat)(messages=talk("openai"), model="m")
    if streams:
        assert said("openai", [chunk async for chunk in told]) == FIRST + LAST
    else:
        assert told["choices"][0]["message"]["content"] == "K-7."
    assert FACT in json.dumps(model.requests[1]["messages"])


# -- the vendors' clients --------------------------------------------------------------------------


def opened(wire: str, client: Any) -> Any:
    """The stream that a client returns, or its awaitable."""
    if wire == "gemini":
        config = {"tools": [WEATHER[wire]]}
        return client.models.generate_content_stream(model="m", contents=talk(wire), config=config)
    given = {MESSAGES.get(wire, "messages"): talk(wire), "tools": [WEATHER[wire]]}
    if wire == "anthropic":
        return client.messages.create(model="m", max_tokens=99, stream=True, **given)
    method = client.chat.completions if wire == "openai" else client.responses
    return method.create(model="m", stream=True, **given)


def plain(chunk: Any) -> Any:
    return json.loads(chunk.model_dump_json(exclude_none=True))


def text_from_sdk(wire: str, chunk: Any) -> str:
    if wire == "gemini":
        return str(chunk.text or "")
    return text_of(wire, plain(chunk))


@pytest.mark.parametrize("wire", FORMATS)
def test_an_sdks_stream_is_its_own(wire: str) -> None:
    """The object and its chunks have the SDK's types, and its context manager works."""
    model = Model(events(wire, "recall", text=FIRST), events(wire, text=LAST, number=1))
    client = compacter().wrap(client_of(wire, model))
    stream = opened(wire, client)
    if wire != "gemini":
        sdk = import_module("anthropic" if wire == "anthropic" else "openai")
        assert isinstance(stream, sdk.Stream)
        with stream as entered:
            chunks = list(entered)
    else:
        chunks = list(stream)
    assert "".join(text_from_sdk(wire, chunk) for chunk in chunks) == FIRST + LAST
    assert len({type(chunk) for chunk in chunks if wire in ("openai", "gemini")}) <= 1
    assert FACT in json.dumps(model.requests[1]["messages"])
    assert "recall" in names(model.requests[1])


@pytest.mark.parametrize("wire", FORMATS)
async def test_an_async_sdks_stream_is_its_own(wire: str) -> None:
    """As the sync one."""
    model = Model(events(wire, "recall", text=FIRST), events(wire, text=LAST, number=1))
    client = compacter().wrap(client_of(wire, model, asynchronous=True))
    stream = await opened(wire, client.aio) if wire == "gemini" else await opened(wire, client)
    chunks = [chunk async for chunk in stream]
    assert "".join(text_from_sdk(wire, chunk) for chunk in chunks) == FIRST + LAST
    assert FACT in json.dumps(model.requests[1]["messages"])


@pytest.mark.parametrize("wire", ["openai", "anthropic", "responses"])
def test_the_helpers_add_up_one_reply(wire: str) -> None:
    """``.stream()`` of an SDK accumulates what it reads."""
    model = Model(events(wire, "recall", text=FIRST), events(wire, text=LAST, number=1))
    client = compacter().wrap(client_of(wire, model))
    if wire == "anthropic":
        with client.messages.stream(model="m", max_tokens=99, messages=talk(wire)) as stream:
            assert "".join(stream.text_stream) == FIRST + LAST
            message = stream.get_final_message()
        texts = [block.text for block in message.content if block.type == "text"]
        assert texts == [FIRST, LAST]
        assert message.stop_reason == "end_turn"
    elif wire == "openai":
        with client.chat.completions.stream(model="m", messages=talk(wire)) as stream:
            choice = stream.get_final_completion().choices[0]
        assert choice.message.content == FIRST + LAST
        assert choice.message.role == "assistant"
        assert not choice.message.tool_calls
    else:
        with client.responses.stream(model="m", input=talk(wire)) as stream:
            response = stream.get_final_response()
        assert response.output_text == FIRST + LAST
    assert FACT in json.dumps(model.requests[1]["messages"])


async def test_the_async_helper_adds_up_one_reply() -> None:
    """As the sync one."""
    model = Model(
        events("anthropic", "recall", text=FIRST), events("anthropic", text=LAST, number=1)
    )
    client = compacter().wrap(client_of("anthropic", model, asynchronous=True))
    given: Any = talk("anthropic")
    async with client.messages.stream(model="m", max_tokens=99, messages=given) as stream:
        read = [event async for event in stream]
        message = await stream.get_final_message()
    assert "".join(event.text for event in read if event.type == "text") == FIRST + LAST
    assert len([event for event in read if event.type == "content_block_stop"]) == 4
    assert [block.text for block in message.content if block.type == "text"] == [FIRST, LAST]
