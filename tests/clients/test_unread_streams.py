"""After ``create(stream=True)`` the response behind the stream is as unread as the SDK's own."""

from __future__ import annotations

import gc
import json
import warnings
from typing import TYPE_CHECKING, Any

import anthropic
import httpx
import openai
import pytest
import trio
from tests.clients.conftest import Recording
from tests.clients.loopback import WORDS

from compacter import Compacter, History

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.clients.loopback import Provider

READERS: dict[str, Any] = {
    "read": lambda response: response.read(),
    "iter_bytes": lambda response: b"".join(response.iter_bytes()),
    "iter_raw": lambda response: b"".join(response.iter_raw()),
    "iter_lines": lambda response: "\n".join(response.iter_lines()).encode(),
}
ASKED: list[Any] = [{"role": "user", "content": "Which colour has the harbour?"}]

CLIENTS: list[Any] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while CLIENTS:
        CLIENTS.pop().close()


def opened(
    vendor: str, server: Provider, compacter: Compacter | None, messages: Any = ASKED
) -> Any:
    if vendor == "openai":
        client: Any = openai.OpenAI(base_url=server.url, api_key="none", max_retries=0)
    else:
        client = anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0)
    CLIENTS.append(client)
    client = client if compacter is None else compacter.wrap(client)
    if vendor == "openai":
        return client.chat.completions.create(model="m", messages=messages, stream=True)
    return client.messages.create(model="m", max_tokens=9, messages=messages, stream=True)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
def test_every_byte_can_be_read_there(
    vendor: str, reader: str, request: pytest.FixtureRequest, compacter: Compacter
) -> None:
    server = request.getfixturevalue(f"{vendor}_server")
    theirs = opened(vendor, server, None).response.read()
    mine = READERS[reader](opened(vendor, server, compacter).response)
    assert mine.split() == theirs.split()


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
def test_so_it_can_after_a_compaction(
    vendor: str, request: pytest.FixtureRequest, compacter: Recording
) -> None:
    server = request.getfixturevalue(f"{vendor}_server")
    history = request.getfixturevalue("chat" if vendor == "openai" else "blocks")
    stream = opened(vendor, server, compacter, history)
    assert compacter.events
    assert b"harbour" in stream.response.read()


def test_a_history_is_installed_once_the_stream_has_begun(
    openai_server: Provider, chat: list[Any], compacter: Compacter
) -> None:
    history = History(chat)
    stream = opened("openai", openai_server, compacter, history)
    assert len(history) < len(chat)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == WORDS


def test_a_refusal_behind_the_first_words_is_met_before_the_next_call(chat: list[Any]) -> None:
    said = "This model's maximum context length is 500 tokens, you sent 900 tokens."
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    choice = {"index": 0, "delta": {"content": "The "}, "finish_reason": None}
    events = ({**chunk, "choices": [choice]}, {"error": {"message": said}})
    body = [f"data: {json.dumps(event)}\n\n".encode() for event in events]
    sent: list[int] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(len(json.loads(request.content)["messages"]))
        return httpx.Response(
            200, content=iter(body), headers={"content-type": "text/event-stream"}
        )

    http = httpx.Client(transport=httpx.MockTransport(answer))
    client = openai.OpenAI(api_key="none", max_retries=0, http_client=http)
    create = Compacter(summarizer="extractive").wrap(client).chat.completions.create
    for _ in range(2):
        with pytest.raises(openai.APIError, match="maximum context"):
            list(create(model="m", messages=chat, stream=True))
    assert sent[1] < sent[0] == len(chat)


def test_trio_warns_of_no_generator_that_is_left_open(
    openai_server: Provider, compacter: Compacter
) -> None:
    async def main() -> None:
        client = openai.AsyncOpenAI(base_url=openai_server.url, api_key="none", max_retries=0)
        raw: Any = compacter.wrap(client).chat.completions.with_raw_response
        reply = await raw.create(model="m", messages=ASKED, stream=True)
        async for _ in reply.http_response.aiter_raw():
            break
        await client.close()

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        trio.run(main)
        gc.collect()
    assert not [one for one in seen if "_aiterate" in str(one.message)]
