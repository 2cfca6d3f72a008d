"""OpenAI's clients, wrapped whole: each way to call them survives a token limit."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import openai
import pytest
from tests.clients.conftest import Recording
from tests.clients.loopback import WORDS

from compacter import Compacter, CompactionEvent

if TYPE_CHECKING:
    from tests.clients.loopback import Provider

MODEL = "gpt-test"


def check(
    server: Provider, history: list[Any], events: list[CompactionEvent], param: str = "messages"
) -> None:
    """Refused, summarised by the same model, sent again with the same end."""
    refused, *summaries, answered = server.bodies
    assert len(refused[param]) == len(history)
    assert answered[param][-1] == refused[param][-1]
    assert len(answered[param]) < len(history)
    assert [event.trigger for event in events] == ["token_limit"]
    assert (events[0].fallback, events[0].summarizer_calls) == (False, len(summaries))
    assert all("stream" not in body or not body["stream"] for body in summaries)
    assert not any(body.get("tools") or body.get("response_format") for body in summaries)


def test_the_stream_helper(
    openai_client: openai.OpenAI,
    openai_server: Provider,
    compacter: Recording,
    chat: list[Any],
    refusing: Any,
) -> None:
    openai_server.refuse = refusing
    with compacter.wrap(openai_client).chat.completions.stream(
        model=MODEL, messages=chat
    ) as stream:
        seen = ""
        for event in stream:
            if event.type == "content.delta":
                seen += event.delta
                assert event.snapshot == seen
        assert stream.get_final_completion().choices[0].message.content == WORDS == seen
    check(openai_server, chat, compacter.events)


def test_a_method_that_a_tracing_tool_has_replaced_is_wrapped_with_its_replacement(
    openai_client: openai.OpenAI,
    openai_server: Provider,
    compacter: Recording,
    chat: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    traced: list[int] = []
    completions: Any = openai_client.chat.completions
    create = completions.create

    def tracing(**options: Any) -> Any:
        traced.append(len(options["messages"]))
        return create(**options)

    monkeypatch.setattr(completions, "create", functools.wraps(create)(tracing))
    reply = compacter.wrap(openai_client).chat.completions.create(model=MODEL, messages=chat)
    assert reply.choices[0].message.content == WORDS
    check(openai_server, chat, compacter.events)
    assert len(traced) == len(openai_server.bodies)


def test_a_client_without_any_method_that_is_known_is_refused(compacter: Compacter) -> None:
    class Bare(openai.OpenAI):
        chat: Any = None
        responses: Any = None
        beta: Any = None

    with (
        Bare(base_url="http://127.0.0.1:9", api_key="none") as bare,
        pytest.raises(TypeError, match="cannot wrap"),
    ):
        compacter.wrap(bare)


def test_two_compacters_may_wrap_one_client(
    openai_client: openai.OpenAI, openai_server: Provider, compacter: Recording, chat: list[Any]
) -> None:
    outer: list[CompactionEvent] = []
    wrapped = Compacter(on_compaction=outer.append).wrap(compacter.wrap(openai_client))
    assert (
        wrapped.chat.completions.create(model=MODEL, messages=chat).choices[0].message.content
        == WORDS
    )
    assert (len(compacter.events), outer) == (1, [])


def test_openais_own_models_get_the_output_limit_by_its_new_name(
    compacter: Compacter, openai_server: Provider
) -> None:
    from compacter.clients.openai import output_param

    azure = openai.AzureOpenAI(
        azure_endpoint="https://here.openai.azure.com", api_key="none", api_version="2025-01-01"
    )
    assert (
        output_param(openai.OpenAI(api_key="none"))
        == output_param(azure)
        == "max_completion_tokens"
    )
    assert output_param(openai.OpenAI(api_key="none", base_url=openai_server.url)) == "max_tokens"
    assert type(compacter.wrap(azure)) is openai.AzureOpenAI
