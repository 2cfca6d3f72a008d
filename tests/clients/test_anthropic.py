"""Anthropic's clients, wrapped whole: each way to call them survives a token limit."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import anthropic
import pytest
from anthropic.lib.streaming import MessageStream, MessageStreamManager
from tests.clients.conftest import Recording
from tests.clients.loopback import WORDS

from compacter import Compacter, CompactionEvent

if TYPE_CHECKING:
    from tests.clients.loopback import Provider

OPTIONS: dict[str, Any] = {"model": "claude-test", "max_tokens": 300}
THINKING = {"type": "enabled", "budget_tokens": 1024}
TOOLS: list[Any] = [
    {
        "name": "look_up",
        "description": "The book of the harbour.",
        "input_schema": {"type": "object", "properties": {"pier": {"type": "integer"}}},
    }
]


def check(server: Provider, history: list[Any], events: list[CompactionEvent]) -> None:
    """Refused, summarised by the same model, sent again: a list Anthropic takes, its tail byte for
    byte.
    """
    refused, *summaries, answered = server.bodies
    sent = answered["messages"]
    assert refused["messages"] == history
    # The summary, at most one filler message beside it, and the unchanged tail.
    tails = [sent[new:] for new in (1, 2)]
    assert any(tail and tail == history[-len(tail) :] for tail in tails)
    assert sent[0]["role"] == "user"
    assert all(one["role"] != other["role"] for one, other in pairwise(sent))
    assert [event.trigger for event in events] == ["token_limit"]
    assert (events[0].fallback, events[0].summarizer_calls) == (False, len(summaries))
    for body in summaries:
        assert body["messages"][0]["role"] == "user"
        assert not any(body.get(name) for name in ("stream", "tools", "thinking", "output_config"))
        assert "The book knows." not in str(body)


def test_thinking_stays_only_where_it_is_valid_and_the_cache_mark_where_it_was(
    anthropic_client: anthropic.Anthropic,
    anthropic_server: Provider,
    compacter: Recording,
    blocks: list[Any],
) -> None:
    long: Any = {**OPTIONS, "max_tokens": 2000, "thinking": THINKING}
    compacter.wrap(anthropic_client).messages.create(messages=blocks, tools=TOOLS, **long)
    check(anthropic_server, blocks, compacter.events)
    for message in anthropic_server.bodies[-1]["messages"]:
        kinds = [part["type"] for part in message["content"] if isinstance(part, dict)]
        if "thinking" in kinds:
            assert kinds[0] == "thinking"
            assert "tool_use" in kinds
    assert anthropic_server.bodies[-1]["messages"][-1]["content"][0]["cache_control"] == {
        "type": "ephemeral"
    }


def test_the_stream_helper(
    anthropic_client: anthropic.Anthropic,
    anthropic_server: Provider,
    compacter: Recording,
    blocks: list[Any],
    refusing: Any,
) -> None:
    anthropic_server.refuse = refusing
    manager = compacter.wrap(anthropic_client).messages.stream(
        messages=blocks, tools=TOOLS, **OPTIONS
    )
    assert isinstance(manager, MessageStreamManager)
    assert anthropic_server.bodies == []
    with manager as stream:
        assert isinstance(stream, MessageStream)
        seen = ""
        for event in stream:
            if event.type == "text":
                seen += event.text
                # The snapshot is never ahead of its reader, though the wrapper has looked further.
                assert event.snapshot == seen
                assert stream.current_message_snapshot.content[0].text == seen  # type: ignore[union-attr]
        assert stream.get_final_text() == WORDS
    assert stream.response.is_closed
    check(anthropic_server, blocks, compacter.events)


@pytest.mark.parametrize("reading", ["text_stream", "until_done", "get_final_message"])
def test_each_way_to_read_the_stream_helper(
    reading: str,
    anthropic_client: anthropic.Anthropic,
    anthropic_server: Provider,
    compacter: Recording,
    blocks: list[Any],
    refusing: Any,
) -> None:
    anthropic_server.refuse = refusing
    with compacter.wrap(anthropic_client).beta.messages.stream(
        messages=blocks, **OPTIONS
    ) as stream:
        if reading == "text_stream":
            assert "".join(stream.text_stream) == WORDS
        elif reading == "until_done":
            stream.until_done()
        assert stream.get_final_message().content[0].text == WORDS  # type: ignore[union-attr]
    check(anthropic_server, blocks, compacter.events)


def test_giving_up_raises_anthropics_own_exception(
    anthropic_client: anthropic.Anthropic,
    anthropic_server: Provider,
    blocks: list[Any],
    refusing: Any,
) -> None:
    anthropic_server.refuse = refusing
    wrapped = Compacter(max_retries=0).wrap(anthropic_client)
    with (
        pytest.raises(anthropic.APIStatusError, match="prompt is too long") as caught,
        wrapped.messages.stream(messages=blocks, **OPTIONS),
    ):
        pass
    assert "compacter gave up" in caught.value.__notes__[0]
    assert len(anthropic_server.bodies) == 1
