"""The scripted server, asked by the vendors' own SDKs: what they read is what the script says."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from tests.kit import Server

from compacter import Compacter
from compacter.testing import Interrupted, ScriptedModel, ScriptedServer, rate_limit_error

if TYPE_CHECKING:
    from collections.abc import Iterator

openai = pytest.importorskip("openai", reason="the openai SDK is not installed")

LONG: Any = [
    {"role": "user", "content": f"Harbour {n} takes ships of {n} metres. " * 3} for n in range(40)
]
QUESTION: Any = [{"role": "user", "content": "How many ships?"}]


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(window=600, replies="Three ships lie there today.") as started:
        yield started


def scripted(**options: Any) -> Server:
    return Server(**options)


class TestChatCompletions:
    def test_it_answers(self, server: Server) -> None:
        reply = server.openai().chat.completions.create(model="gpt-4o", messages=QUESTION)
        assert reply.choices[0].message.content == "Three ships lie there today."
        assert reply.usage is not None
        assert reply.usage.prompt_tokens == server.model.requests[0].tokens

    def test_it_streams(self, server: Server) -> None:
        chunks: Any = server.openai().chat.completions.create(
            model="gpt-4o", messages=QUESTION, stream=True
        )
        said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        assert said == "Three ships lie there today."

    @pytest.mark.parametrize("stream", [False, True])
    def test_it_refuses_what_is_too_long_as_the_sdk_expects_it(
        self, server: Server, stream: bool
    ) -> None:
        with pytest.raises(openai.BadRequestError) as caught:
            server.openai().chat.completions.create(model="gpt-4o", messages=LONG, stream=stream)
        assert caught.value.code == "context_length_exceeded"
        assert server.model.rejected == 1

    def test_a_wrapped_client_gets_its_answer(self, server: Server) -> None:
        compacter = Compacter(summarizer="extractive")
        client = compacter.wrap(server.openai())
        assert client.chat.completions.create(model="gpt-4o", messages=LONG).choices
        assert (server.model.rejected, compacter.totals.rounds) == (1, 1)

    async def test_an_awaited_client_too(self, server: Server) -> None:
        async with server.async_openai() as plain:
            client = Compacter(summarizer="extractive").wrap(plain)
            reply = await client.chat.completions.create(model="gpt-4o", messages=LONG)
        assert reply.choices[0].message.content == "Three ships lie there today."

    def test_a_refusal_inside_an_open_stream_is_an_event(self) -> None:
        with scripted(window=600, overflow_at="after_role") as server:
            client = server.openai()
            with pytest.raises(openai.APIError, match="context window"):
                list(client.chat.completions.create(model="gpt-4o", messages=LONG, stream=True))
            wrapped = Compacter(summarizer="extractive").wrap(client)
            assert list(wrapped.chat.completions.create(model="gpt-4o", messages=LONG, stream=True))


class TestOtherAnswers:
    def test_a_rate_limit_has_its_own_status(self) -> None:
        with scripted(replies=rate_limit_error()) as server, pytest.raises(openai.RateLimitError):
            server.openai().chat.completions.create(model="gpt-4o", messages=QUESTION)

    def test_a_script_that_is_used_up_says_so(self) -> None:
        with (
            scripted(replies=[]) as server,
            pytest.raises(openai.InternalServerError, match="0 replies"),
        ):
            server.openai().chat.completions.create(model="gpt-4o", messages=QUESTION)

    def test_a_stream_breaks_where_the_script_says_so(self) -> None:
        with scripted(replies=Interrupted("Three ships lie there today.", after=2)) as server:
            stream = server.openai().chat.completions.create(
                model="gpt-4o", messages=QUESTION, stream=True
            )
            with pytest.raises(openai.APIError):
                list(stream)

    @pytest.mark.parametrize(
        ("path", "body", "status"),
        [("/v1/nothing", b"{}", 404), ("/v1/messages", b"[", 500), ("/responses", b"{}", 500)],
    )
    def test_what_cannot_be_read_is_refused(
        self, server: ScriptedServer, path: str, body: bytes, status: int
    ) -> None:
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(urllib.request.Request(server.url + path, body), timeout=300)
        with caught.value as answer:
            assert answer.code == status
            assert json.load(answer)["error"]["message"]

    def test_it_ends(self) -> None:
        server = ScriptedServer()
        server.close()
        server.close()
        with pytest.raises(urllib.error.URLError):
            urllib.request.urlopen(server.url, timeout=300)

    def test_a_model_and_options_are_too_much(self) -> None:
        with pytest.raises(TypeError, match="either a model or options"):
            ScriptedServer(ScriptedModel(), window=3)
