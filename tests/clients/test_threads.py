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
from tests.clients.conftest import Recording
from tests.clients.loopback import WORDS

if TYPE_CHECKING:
    from tests.clients.loopback import Answer, Body, Provider

OPTIONS: dict[str, Any] = {"model": "claude-test", "max_tokens": 300}
BOOK = "It has been painted many times since then. " * 30
"""The output of a tool: a few of these fill the window."""
CALLS = 12


def calling(serve: Any) -> Any:
    """Return a server that calls a tool a few times before it answers."""
    made: list[str] = []

    def answer(server: Provider, path: str, body: Body) -> Answer:
        answered: Answer = serve(server, path, body)
        if answered.status != 200 or not body.get("tools") or len(made) == CALLS:
            return answered
        made.append(f"toolu_{len(made)}")
        call = {"type": "tool_use", "id": made[-1], "name": "look_up", "input": {"pier": 1}}
        reply = {**json.loads(answered.body), "content": [call], "stop_reason": "tool_use"}
        return type(answered)(json.dumps(reply).encode(), answered.kind)

    return answer


def look_up(pier: int) -> str:
    """Look a pier up in the book of the harbour.

    Args:
        pier: its number
    """
    return f"Pier {pier}: {BOOK}"


async def alook_up(pier: int) -> str:
    return look_up(pier)


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_the_tool_runner_sends_whole_histories(
    asynchronous: bool, anthropic_server: Provider, compacter: Recording
) -> None:
    """A wrapped client's tool runner begins no thread, so each of its turns can be compacted."""
    anthropic_server.vendor = calling(anthropic_server.vendor)
    kind: Any = anthropic.AsyncAnthropic if asynchronous else anthropic.Anthropic
    client = kind(base_url=anthropic_server.url, api_key="none", max_retries=0)
    tool: Any = (
        beta_async_tool(alook_up, name="look_up", description=inspect.getdoc(look_up))
        if asynchronous
        else beta_tool(look_up)
    )
    runner = compacter.wrap(client).beta.messages.tool_runner(
        messages=[{"role": "user", "content": "Which colour has the harbour?"}],
        tools=[tool],
        **OPTIONS,
    )
    last = runner.until_done()
    last = await last if asynchronous else last
    closed = client.close()
    if asynchronous:
        await closed
    assert last.content[0].text == WORDS
    assert compacter.events
    assert not any(body.get("thread") for body in anthropic_server.bodies)


@pytest.mark.parametrize(("options", "threads"), [({}, False), ({"thread": anthropic.omit}, True)])
def test_the_sdks_own_threads_are_kept_on_request(
    options: Any, threads: bool, anthropic_server: Provider, compacter: Recording
) -> None:
    """``thread=anthropic.omit`` leaves the tool runner of a wrapped client what it is."""
    with anthropic.Anthropic(base_url=anthropic_server.url, api_key="none") as client:
        messages: Any = [{"role": "user", "content": "Which colour?"}]
        given = {"messages": messages, "tools": [beta_tool(look_up)], **OPTIONS, **options}
        runner: Any = compacter.wrap(client).beta.messages.tool_runner(**given)
    assert runner._thread._state.threading is threads


def test_a_turn_that_continues_a_thread_is_left_whole_and_says_why(
    anthropic_server: Provider, compacter: Recording
) -> None:
    """The server has the history of a thread, so the refusal comes with a note that says so."""
    new: Any = [{"role": "user", "content": BOOK * 9}]
    follow: Any = {"type": "continue", "previous_message_id": "msg_1"}
    with (
        anthropic.Anthropic(base_url=anthropic_server.url, api_key="none", max_retries=0) as client,
        pytest.raises(anthropic.BadRequestError) as caught,
    ):
        compacter.wrap(client).beta.messages.create(messages=new, thread=follow, **OPTIONS)
    assert "the history is kept by the server" in caught.value.__notes__[0]
    assert compacter.events == []
    assert len(anthropic_server.bodies) == 1


def test_a_whole_history_that_begins_a_thread_is_compacted(
    anthropic_server: Provider, compacter: Recording, blocks: list[Any]
) -> None:
    """The first call of a thread has the whole history; its summary is requested outside of it."""
    options: Any = {"base_url": anthropic_server.url, "api_key": "none", "max_retries": 0}
    with anthropic.Anthropic(**options) as client:
        reply: Any = compacter.wrap(client).beta.messages.create(
            messages=blocks, thread={"type": "create"}, **OPTIONS
        )
    assert reply.content[0].text == WORDS
    refused, *summaries, answered = anthropic_server.bodies
    assert refused["thread"] == answered["thread"] == {"type": "create"}
    assert not any("thread" in body for body in summaries)
    assert len(compacter.events) == 1
