"""Anthropic's message threads: the server keeps the conversation, and a call holds only what is
new.
"""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any

import anthropic
import pytest
from anthropic import beta_async_tool, beta_tool

from compacter import Compacter, CompactionEvent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.clients.loopback import Answer, Body, Provider

OPTIONS: dict[str, Any] = {"model": "claude-test", "max_tokens": 300}
BOOK = "It has been painted many times since then. " * 30
"""What a tool answers: a few of these fill the window."""


class Harbour:
    """A server with threads: it adds up what was sent, calls a tool a few times, and then
    answers.
    """

    def __init__(self, serve: Any, calls: int) -> None:
        self.serve = serve
        self.calls = calls
        self.threads: dict[str, list[Any]] = {}
        self.sizes: list[int] = []
        self.refused = 0

    def __call__(self, server: Provider, path: str, body: Body) -> Answer:
        thread = body.get("thread") or {}
        held = self.threads.get(thread.get("previous_message_id", ""), [])
        messages = [*held, *body["messages"]]
        answered: Answer = self.serve(server, path, {**body, "messages": messages})
        if answered.status != 200 or not thread or b'"type": "error"' in answered.body:
            self.refused += bool(thread)
            return answered
        self.sizes.append(len(json.dumps(messages)))
        name = f"msg_{len(self.sizes)}"
        results = [
            part
            for message in messages
            for part in parts(message)
            if part.get("type") == "tool_result"
        ]
        content: list[Any] = [{"type": "text", "text": "The harbour is blue."}]
        if len(self.sizes) <= self.calls:
            content = [
                {
                    "type": "tool_use",
                    "id": f"toolu_{name}",
                    "name": "look_up",
                    "input": {"pier": len(results)},
                }
            ]
        reason = "tool_use" if content[0]["type"] == "tool_use" else "end_turn"
        self.threads[name] = [*messages, {"role": "assistant", "content": content}]
        text = answered.body.decode()
        if body.get("stream"):
            return type(answered)(streamed(name, content, reason), answered.kind)
        reply = {**json.loads(text), "id": name, "content": content, "stop_reason": reason}
        return type(answered)(json.dumps(reply).encode(), answered.kind)


def streamed(name: str, content: list[Any], reason: str) -> bytes:
    message: dict[str, Any] = {
        "id": name,
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 90, "output_tokens": 1},
    }
    block = (
        {**content[0], "text": ""} if content[0]["type"] == "text" else {**content[0], "input": {}}
    )
    delta = (
        {"type": "text_delta", "text": content[0]["text"]}
        if content[0]["type"] == "text"
        else {"type": "input_json_delta", "partial_json": json.dumps(content[0]["input"])}
    )
    events: list[Any] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]
    return "".join(
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events
    ).encode()


def parts(message: Any) -> list[Any]:
    return (
        [part for part in message["content"] if isinstance(part, dict)]
        if message["content"]
        else []
    )


@pytest.fixture
def harbour(anthropic_server: Provider) -> Harbour:
    made = Harbour(anthropic_server.vendor, calls=12)
    anthropic_server.vendor = made
    return made


@pytest.fixture
def client(anthropic_server: Provider) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=anthropic_server.url, api_key="none", max_retries=0) as made:
        yield made


def look_up(pier: int) -> str:
    """Look a pier up in the book of the harbour.

    Args:
        pier: its number
    """
    return f"Pier {pier}: {BOOK}"


def check(server: Provider, events: list[CompactionEvent]) -> None:
    """Each turn before the window is full continues the thread; a summary is asked for outside of
    it.
    """
    assert events
    assert all(event.trigger == "token_limit" and not event.fallback for event in events)
    assert isinstance(server.vendor, Harbour)
    # The turn's refusal is enough to know that the whole history is too long.
    assert server.vendor.refused == len({event.model_dump_json() for event in events})
    threads = [(body.get("thread") or {}).get("type") for body in server.bodies]
    assert threads[:3] == ["create", "continue", "continue"]
    assert threads[-1] in ("continue", "create")
    summaries = [body for body in server.bodies if not body.get("thread")]
    assert len(summaries) == sum(event.summarizer_calls for event in events)
    for body in summaries:
        assert set(body) == {"model", "max_tokens", "messages", "system"} or set(body) == {
            "model",
            "max_tokens",
            "messages",
        }
    refused_again = [
        json.dumps(body["messages"])
        for body in server.bodies
        if (body.get("thread") or {}).get("type") == "create"
    ]
    assert len(refused_again) == len(set(refused_again))


@pytest.mark.parametrize("stream", [False, True])
def test_the_tool_runner_goes_on_in_a_new_thread(
    stream: bool,
    harbour: Harbour,
    client: anthropic.Anthropic,
    anthropic_server: Provider,
    compacter: Compacter,
    events: list[CompactionEvent],
    refusing: Any,
) -> None:
    anthropic_server.refuse = refusing
    runner: Any = compacter.wrap(client).beta.messages.tool_runner(
        messages=[{"role": "user", "content": "Which colour has the harbour?"}],
        tools=[beta_tool(look_up)],
        stream=stream,
        **OPTIONS,
    )
    assert runner.until_done().content[0].text == "The harbour is blue."
    check(anthropic_server, events)


async def test_so_does_the_async_one(
    harbour: Harbour,
    anthropic_server: Provider,
    compacter: Compacter,
    events: list[CompactionEvent],
) -> None:
    async def alook_up(pier: int) -> str:
        return look_up(pier)

    tool: Any = beta_async_tool(alook_up, name="look_up", description=inspect.getdoc(look_up))
    async with anthropic.AsyncAnthropic(
        base_url=anthropic_server.url, api_key="none", max_retries=0
    ) as client:
        runner = compacter.wrap(client).beta.messages.tool_runner(
            messages=[{"role": "user", "content": "Which colour has the harbour?"}],
            tools=[tool],
            **OPTIONS,
        )
        assert (await runner.until_done()).content[0].text == "The harbour is blue."
    check(anthropic_server, events)


def test_a_thread_object_keeps_its_whole_history(
    harbour: Harbour,
    client: anthropic.Anthropic,
    anthropic_server: Provider,
    compacter: Compacter,
    events: list[CompactionEvent],
) -> None:
    harbour.calls = 0
    thread = compacter.wrap(client).beta.messages.thread(**OPTIONS)
    for number in range(12):
        reply = thread.send({"role": "user", "content": f"Part {number}: {BOOK}"})
        assert reply.content[0].type == "text"
    assert len(thread.messages) == 24
    check(anthropic_server, events)


def test_a_turn_that_the_program_continues_itself_is_left_whole_and_says_why(
    harbour: Harbour,
    client: anthropic.Anthropic,
    anthropic_server: Provider,
    compacter: Compacter,
    events: list[CompactionEvent],
) -> None:
    create = compacter.wrap(client).beta.messages.create
    first = create(
        messages=[{"role": "user", "content": "What?"}], thread={"type": "create"}, **OPTIONS
    )
    new: Any = [{"role": "user", "content": BOOK * 6}]
    follow: Any = {"type": "continue", "previous_message_id": first.id}
    with pytest.raises(anthropic.BadRequestError) as caught:
        create(messages=new, thread=follow, **OPTIONS)
    assert "the history is kept by the server" in caught.value.__notes__[0]
    assert events == []
    assert all(body.get("thread") for body in anthropic_server.bodies)


def test_a_whole_history_that_begins_a_thread_is_compacted(
    client: anthropic.Anthropic,
    anthropic_server: Provider,
    compacter: Compacter,
    events: list[CompactionEvent],
    blocks: list[Any],
    words: str,
) -> None:
    reply: Any = compacter.wrap(client).beta.messages.create(
        messages=blocks, thread={"type": "create"}, **OPTIONS
    )
    assert reply.content[0].text == words
    refused, *summaries, answered = anthropic_server.bodies
    assert refused["thread"] == answered["thread"] == {"type": "create"}
    assert not any("thread" in body for body in summaries)
    assert len(events) == 1


def test_other_errors_of_a_thread_come_as_they_are(
    harbour: Harbour, client: anthropic.Anthropic, anthropic_server: Provider, compacter: Compacter
) -> None:
    harbour.calls = 0
    thread = compacter.wrap(client).beta.messages.thread(**OPTIONS)
    thread.send({"role": "user", "content": "What?"})
    anthropic_server.vendor = lambda *_: type(
        harbour.serve(anthropic_server, "", {"messages": [], "model": "m"})
    )(
        b'{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}',
        "application/json",
        529,
    )
    with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
        thread.send({"role": "user", "content": "And now?"})
    assert len(anthropic_server.bodies) == 2


def test_giving_up_raises_the_servers_refusal(
    harbour: Harbour, client: anthropic.Anthropic, anthropic_server: Provider
) -> None:
    harbour.calls = 0
    thread = Compacter(max_retries=0).wrap(client).beta.messages.thread(**OPTIONS)
    thread.send({"role": "user", "content": "What?"})
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
        thread.send({"role": "user", "content": BOOK * 6})
