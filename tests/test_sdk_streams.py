"""Streams of the OpenAI SDK and of litellm, from a server that refuses at each place where
one can.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from tests.conversations import Chat, talk

from compacter import Compacter
from compacter.testing import ScriptedSummarizer

if TYPE_CHECKING:
    from collections.abc import Iterator

ANSWER = ("The ", "answer ", "in ", "pieces.")
PLACES = ("open", "first_event", "after_role")
WINDOW = 600
"""Tokens, of four characters each."""


class Provider(ThreadingHTTPServer):
    """Speaks ``/v1/chat/completions`` as server-sent events, and refuses where it is asked to."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[list[Chat]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Keep quiet."""

    def do_POST(self) -> None:
        assert isinstance(self.server, Provider)
        place = self.path.split("/")[1]
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.requests.append(body["messages"])
        tokens = sum(len(message["content"]) for message in body["messages"]) // 4
        error = {
            "message": f"This model's maximum context length is {WINDOW} tokens. However, your "
            f"messages "
            f"resulted in {tokens} tokens. Please reduce the length of the messages.",
            "type": "invalid_request_error",
            "param": "messages",
            "code": "context_length_exceeded",
        }
        if tokens > WINDOW and (place == "open" or not body.get("stream")):
            self._send(400, "application/json", json.dumps({"error": error}).encode())
            return
        if not body.get("stream"):
            self._send(
                200, "application/json", json.dumps(_completion("".join(ANSWER), tokens)).encode()
            )
            return
        events: list[Any] = (
            [] if place == "first_event" and tokens > WINDOW else [_chunk(role="assistant")]
        )
        if tokens > WINDOW:
            events.append({"error": error})
        else:
            events += [_chunk(content=piece) for piece in ANSWER]
            events.append(_chunk(finish="stop"))
        lines = [f"data: {json.dumps(event)}\n\n" for event in events]
        self._send(200, "text/event-stream", "".join([*lines, "data: [DONE]\n\n"]).encode())

    def _send(self, status: int, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _chunk(
    *, role: str | None = None, content: str | None = None, finish: str | None = None
) -> Chat:
    delta = {
        name: value for name, value in (("role", role), ("content", content)) if value is not None
    }
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


def _completion(content: str, tokens: int) -> Chat:
    message = {"role": "assistant", "content": content}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": tokens, "completion_tokens": 4, "total_tokens": tokens + 4},
    }


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    server = Provider()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def words(chunks: list[Any]) -> str:
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


def compacter() -> Compacter:
    return Compacter(summarizer=ScriptedSummarizer("They asked and answered."))


HOPELESS: list[Chat] = [{"role": "user", "content": "long " * 900}]


def client_options(provider: Provider, place: str) -> dict[str, Any]:
    return {"base_url": f"{provider.url}/{place}/v1", "api_key": "none", "max_retries": 0}


@pytest.mark.parametrize("place", PLACES)
def test_the_sdks_stream_is_its_own(place: str, provider: Provider) -> None:
    import openai

    with openai.OpenAI(**client_options(provider, place)) as client:
        create: Any = compacter().wrap(client.chat.completions.create)
        with create(model="scripted", messages=talk(), stream=True) as stream:
            assert isinstance(stream, openai.Stream)
            assert stream.response.status_code == 200
            assert words(list(stream)) == "".join(ANSWER)
        assert type(stream) is openai.Stream
        assert stream.response.is_closed
        asked = len(provider.requests)
        with pytest.raises(openai.APIError, match="maximum context length"):
            list(create(model="scripted", messages=HOPELESS, stream=True))

    assert len(provider.requests) == asked + 1


@pytest.mark.parametrize("place", PLACES)
async def test_so_is_its_async_one(place: str, provider: Provider) -> None:
    import openai

    async with openai.AsyncOpenAI(**client_options(provider, place)) as client:
        create: Any = compacter().wrap(client.chat.completions.create)
        async with await create(model="scripted", messages=talk(), stream=True) as stream:
            assert isinstance(stream, openai.AsyncStream)
            assert words([chunk async for chunk in stream]) == "".join(ANSWER)
        assert stream.response.is_closed


def litellm_options(provider: Provider, place: str) -> dict[str, Any]:
    return {
        "model": "openai/scripted",
        "api_base": f"{provider.url}/{place}/v1",
        "api_key": "none",
        "max_retries": 0,
    }


@pytest.mark.parametrize("place", PLACES)
def test_litellms_stream_is_its_own(place: str, provider: Provider) -> None:
    import litellm
    from litellm.exceptions import ContextWindowExceededError

    completion: Any = compacter().wrap(litellm.completion)
    options = litellm_options(provider, place)
    stream = completion(messages=talk(), stream=True, **options)

    assert isinstance(stream, litellm.CustomStreamWrapper)
    assert words(list(stream)) == "".join(ANSWER)
    assert type(stream) is litellm.CustomStreamWrapper
    with pytest.raises(ContextWindowExceededError) as caught:
        list(completion(messages=HOPELESS, stream=True, **options))
    assert "compacter gave up" in caught.value.__notes__[0]


def routed(provider: Provider, place: str) -> Any:
    """A litellm Router with one deployment."""
    from litellm.router import Router

    params = litellm_options(provider, place)
    return Router(model_list=[{"model_name": "mine", "litellm_params": params}], num_retries=0)


@pytest.mark.parametrize("place", PLACES)
async def test_a_routers_methods_survive_a_token_limit(place: str, provider: Provider) -> None:
    router = routed(provider, place)
    middle = compacter()
    completion = middle.wrap(router.completion)
    acompletion = middle.wrap(router.acompletion)

    whole = completion(model="mine", messages=talk())
    awaited = await acompletion(model="mine", messages=[*talk(), *talk()[1:]])
    stream = completion(model="mine", messages=[*talk()[1:], *talk()[1:]], stream=True)
    astream = await acompletion(model="mine", messages=[talk()[0], *talk()[3:]], stream=True)

    assert whole.choices[0].message.content == awaited.choices[0].message.content == "".join(ANSWER)
    assert words(list(stream)) == words([chunk async for chunk in astream]) == "".join(ANSWER)
    assert middle.totals.rounds >= 3
