"""``summarizer="provider"``: Anthropic's compaction on demand, OpenAI's ``/responses/compact``."""

from __future__ import annotations

import asyncio
import logging
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from tests import conversations
from tests.dialects import retold
from tests.kit.compaction import BETA, SUMMARY, CompactingServer

from compacter import Compacter, History, SQLiteMemory
from compacter.errors import ConfigurationError
from compacter.events import CompactionFailed, Event
from compacter.gateway.checks import read_summarizer
from compacter.summary.message import TAG
from compacter.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RULE = "Answer in whole sentences."
KINDS = ("messages", "beta.messages", "responses")


@pytest.fixture
def server() -> Iterator[CompactingServer]:
    made: CompactingServer
    with CompactingServer(window=1_500, strict=False, replies=lambda _: made.reply) as made:
        yield made


@pytest.fixture
def events() -> list[Event]:
    return []


@pytest.fixture
def compacter(events: list[Event]) -> Compacter:
    return Compacter(summarizer="provider", rules=[RULE], recall=None, on_event=events.append)


def turns(first: int, last: int) -> list[Any]:
    said = []
    for number in range(first, last):
        said.append(conversations.user(f"Pier {number}? Never paint pier {number} red."))
        said.append(conversations.bot(f"Pier {number} was built in {1800 + number}. " + "A " * 150))
    return said


class Client:
    """One client with its history: asks, and appends the answer."""

    def __init__(self, kind: str, server: CompactingServer, compacter: Compacter) -> None:
        self.kind = kind
        sdk = server.openai() if kind == "responses" else server.anthropic()
        wrapped: Any = compacter.wrap(sdk)
        for name in kind.split("."):
            wrapped = getattr(wrapped, name)
        self.create = wrapped.create
        self.history: list[Any] = []

    def add(self, messages: list[Any]) -> None:
        self.history += retold("responses" if self.kind == "responses" else "anthropic", messages)

    def ask(self, question: str = "And now?", **options: Any) -> Any:
        self.add([conversations.user(question)])
        if self.kind == "responses":
            return self.create(model="m", input=list(self.history), **options)
        return self.create(model="m", max_tokens=300, messages=list(self.history), **options)


def sent(server: CompactingServer) -> list[Any]:
    body = server.requests(compacting=False)[-1]
    messages: list[Any] = body.get("messages") or body["input"]
    return messages


def compactions(events: list[Event]) -> list[Any]:
    return [event for event in events if type(event).__name__ == "CompactionEvent"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_providers_block_stands_first_and_rules_and_lines_behind_it(
    kind: str, server: CompactingServer, compacter: Compacter, events: list[Event]
) -> None:
    client = Client(kind, server, compacter)
    client.add(turns(0, 20))
    client.ask()
    asked = server.requests(compacting=True)
    assert len(asked) == 1
    given = asked[0].get("messages") or asked[0]["input"]
    assert given == client.history[: len(given)]
    request = sent(server)
    text = str(request)
    assert text.count(TAG) == 1
    assert f"Rule: {RULE}" in text
    assert "Never paint pier 0 red" in text.partition(TAG)[2]
    assert text.index("compaction") < text.index(TAG)
    assert request[-1] == client.history[-1]
    (event,) = compactions(events)
    assert (event.summarizer_calls, event.input_tokens, event.output_tokens) == (1, 700, 70)
    assert event.fallback is False
    if kind != "responses":
        assert event.summary == SUMMARY
        assert [BETA in betas for _, _, betas in server.seen] == [False, True, True]


@pytest.mark.parametrize("kind", KINDS)
def test_the_next_calls_begin_with_the_same_block_and_a_second_compaction_replaces_it(
    kind: str, server: CompactingServer, compacter: Compacter, events: list[Event]
) -> None:
    client = Client(kind, server, compacter)
    client.add(turns(0, 20))
    client.ask()
    first = sent(server)
    client.add([conversations.bot("It is blue.")])
    client.ask("Why?")
    assert sent(server)[: len(first) - 1] == first[:-1]
    assert len(server.requests(compacting=True)) == 1
    client.add([conversations.bot("So."), *turns(20, 40)])
    client.ask()
    assert len(server.requests(compacting=True)) == 2
    asked = str(server.requests(compacting=True)[-1])
    assert TAG in asked
    assert "compaction" in asked.replace("'compaction': {'type': 'summarize'}", "")
    text = str(sent(server))
    assert text.count(TAG) == text.count("'type': 'compaction'") == 1
    assert "Never paint pier 0 red" in text
    assert [event.fallback for event in compactions(events)] == [False, False]


@pytest.mark.parametrize("kind", KINDS)
def test_another_program_goes_on_from_a_stored_block(
    kind: str, server: CompactingServer, compacter: Compacter, tmp_path: Path
) -> None:
    with closing(SQLiteMemory(tmp_path / "memory")) as memory:
        client = Client(kind, server, compacter.replace(memory=memory))
        client.add(turns(0, 20))
        client.ask()
        before = sent(server)
        again = Client(kind, server, compacter.replace(memory=memory))
        again.history = client.history[:-1]
        again.ask()
        assert sent(server) == before
        assert len(server.requests(compacting=True)) == 1


def thinking_agent(server: CompactingServer, compacter: Compacter, steps: int) -> Client:
    """An agent of one task, whose replies have thinking that is bound to what stands before it."""
    server.thinks = True
    call = {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
    server.reply = {"content": None, "tool_calls": [call]}
    client = Client("messages", server, compacter)
    client.add([conversations.user("Find the oldest pier. Never paint pier 7 red.")])
    for number in range(steps):
        reply = client.create(model="m", max_tokens=300, messages=list(client.history))
        client.history.append({"role": "assistant", "content": reply.to_dict()["content"]})
        result = {
            "type": "tool_result",
            "tool_use_id": client.history[-1]["content"][-1]["id"],
            "content": f"Pier {number} was built in {1800 + number}. " * 8,
        }
        client.history.append({"role": "user", "content": [result]})
    return client


def test_thinking_in_the_kept_turns_stays_valid(
    server: CompactingServer, compacter: Compacter, events: list[Event]
) -> None:
    thinking_agent(server, compacter, steps=70)
    made = compactions(events)
    assert len(made) > 1
    assert not any(event.fallback for event in made)
    # Each compaction costs the refused call and its own request, and no thinking is refused.
    assert len(server.seen) == 70 + 2 * len(made)
    assert [event for event in events if type(event).__name__ == "SealedContentRemoved"] == []
    assert "'thinking'" in str(sent(server))
    assert str(sent(server)).count(f"Rule: {RULE}") == 1
    assert str(sent(server)).count("Find the oldest pier.") >= 1


FAILURES = {
    "unknown beta": (400, {"type": "invalid_request_error", "message": "Unexpected beta"}),
    "too long": (400, {"type": "invalid_request_error", "message": "prompt is too long: 9 > 5"}),
    "down": (529, {"type": "overloaded_error", "message": "Overloaded"}),
    "nothing there": (404, {"type": "not_found_error", "message": "Not found"}),
}
DECLINED = {
    "id": "msg_c",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [],
    "stop_reason": "refusal",
    "usage": {"input_tokens": 0, "output_tokens": 0},
}


@pytest.mark.parametrize("failure", [*FAILURES, "declined"])
@pytest.mark.parametrize("kind", KINDS)
def test_after_an_error_the_wrapped_call_summarizes_and_that_is_told(
    kind: str,
    failure: str,
    server: CompactingServer,
    compacter: Compacter,
    events: list[Event],
    caplog: pytest.LogCaptureFixture,
) -> None:
    status, error = FAILURES.get(failure, (200, {}))
    server.failure = status, {"type": "error", "error": error} if error else DECLINED
    server.reply = "They talked about piers, and that pier 0 was built in 1800."
    client = Client(kind, server, compacter)
    client.add(turns(0, 20))
    with caplog.at_level(logging.WARNING, "compacter"):
        client.ask()
    (event,) = compactions(events)
    assert event.summary == server.reply
    assert event.fallback is False
    assert "'type': 'compaction'" not in str(sent(server))
    (failed,) = [one for one in events if isinstance(one, CompactionFailed)]
    assert failed.reason.startswith('summarizer="provider"')
    assert "the wrapped call summarizes" in failed.reason
    assert failed.reason in caplog.text


@pytest.mark.parametrize("kind", KINDS)
def test_a_block_stands_as_long_as_no_new_one_replaces_it(
    kind: str, server: CompactingServer, compacter: Compacter, events: list[Event]
) -> None:
    client = Client(kind, server, compacter)
    client.add(turns(0, 20))
    client.ask()
    first = sent(server)
    server.failure = FAILURES["down"][0], {"type": "error", "error": FAILURES["down"][1]}
    server.reply = "They talked about more piers; pier 20 was built in 1820."
    client.add([conversations.bot("So."), *turns(20, 40)])
    client.ask()
    text = str(sent(server))
    block = next(one for one in (first[0].get("content"), *first) if "compaction" in str(one))
    assert str(block).strip("[]") in text
    assert server.reply in text
    assert text.count(TAG) == 1
    assert [event.fallback for event in compactions(events)] == [False, False]


def test_where_the_wrapped_call_has_none_it_summarizes_itself_and_says_so_once(
    compacter: Compacter, events: list[Event], caplog: pytest.LogCaptureFixture
) -> None:
    summary = "They talked, and the question was number 3."
    model = ScriptedModel(window=900, replies=summary)
    chat = compacter.replace(memory=None).wrap(model.completion)
    with caplog.at_level(logging.WARNING, "compacter"):
        for _ in range(2):
            chat(model="m", messages=conversations.talk(turns=40))
    assert [event.summary for event in compactions(events)] == [summary] * 2
    usual: list[Event] = []
    plain = Compacter(rules=[RULE], recall=None, memory=None, on_event=usual.append)
    plain.wrap(model.completion)(model="m", messages=conversations.talk(turns=40))
    calls = {event.summarizer_calls for event in compactions(events)}
    assert calls == {event.summarizer_calls for event in compactions(usual)}
    assert len([one for one in events if isinstance(one, CompactionFailed)]) == 1
    assert caplog.text.count('summarizer="provider"') == 1


@pytest.mark.parametrize("redacting", [True, False])
def test_not_with_redaction_nor_beside_anthropics_own_context_management(
    *, redacting: bool, server: CompactingServer, compacter: Compacter
) -> None:
    server.reply = "They talked about piers, and that pier 0 was built in 1800."
    client = Client(
        "beta.messages", server, compacter.replace(redact="secrets") if redacting else compacter
    )
    client.add(turns(0, 20))
    managed: dict[str, Any] = {"context_management": {"edits": []}}
    client.ask("And now?", **({} if redacting else managed))
    assert server.requests(compacting=True) == []
    assert server.reply in str(sent(server))


@pytest.mark.parametrize("kind", ["messages", "beta.messages"])
def test_a_prompt_or_a_focus_becomes_the_instructions(
    kind: str, server: CompactingServer, compacter: Compacter
) -> None:
    client = Client(kind, server, compacter.replace(focus="the colours"))
    client.add(turns(0, 20))
    client.ask(
        tools=[{"name": "look_up", "input_schema": {"type": "object"}}],
        tool_choice={"type": "any"},
        stop_sequences=["STOP"],
        system="You know piers.",
        extra_headers={"anthropic-beta": "files-api-2025-04-14"},
    )
    (asked,) = server.requests(compacting=True)
    assert asked["compaction"]["instructions"].endswith("lose nothing about: the colours")
    assert asked["system"] == "You know piers."
    assert asked["tools"]
    assert "tool_choice" not in asked
    assert server.seen[-1][2] == f"files-api-2025-04-14,{BETA}"


@pytest.mark.parametrize("kind", KINDS)
def test_async_clients_and_streams(kind: str, server: CompactingServer) -> None:
    async def run() -> None:
        compacter = Compacter(summarizer="provider", rules=[RULE])
        sdk: Any = server.async_openai() if kind == "responses" else server.async_anthropic()
        create: Any = compacter.wrap(sdk)
        for name in (*kind.split("."), "create"):
            create = getattr(create, name)
        wire = "responses" if kind == "responses" else "anthropic"
        history = retold(wire, [*turns(0, 20), conversations.user("And now?")])
        param = "input" if kind == "responses" else "messages"
        options = {} if kind == "responses" else {"max_tokens": 300}
        stream = await create(model="m", **{param: history}, stream=True, **options)
        assert [event async for event in stream]
        await sdk.close()

    asyncio.run(run())
    assert len(server.requests(compacting=True)) == 1
    assert "'type': 'compaction'" in str(sent(server))


def test_a_history_keeps_the_block(server: CompactingServer, compacter: Compacter) -> None:
    history = History(retold("anthropic", turns(0, 20)), compacter=compacter)
    create: Any = compacter.wrap(server.anthropic()).messages.create
    for question in ("And now?", "And then?"):
        history.append(conversations.user(question))
        create(model="m", max_tokens=300, messages=history)
        history.append(conversations.bot("Blue."))
        assert sent(server)[0]["content"][0]["type"] == "compaction"
    assert len(server.requests(compacting=True)) == 1


def test_by_hand_there_is_no_wrapped_call() -> None:
    with pytest.raises(ConfigurationError, match="there is no summarizer"):
        Compacter(summarizer="provider").compact(conversations.talk())


def test_a_gateway_says_that_it_needs_a_client() -> None:
    with pytest.raises(ConfigurationError, match="provider"):
        read_summarizer({"summarizer": "provider"})


def test_a_mistyped_name_is_no_model() -> None:
    with pytest.raises(ConfigurationError, match="did you mean 'provider'"):
        Compacter(summarizer="providers")
