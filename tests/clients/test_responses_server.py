"""Responses with ``previous_response_id``: only the server can compact what came before."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import openai
import pytest
from tests.clients.conftest import Recording
from tests.clients.loopback import WORDS

from compacter import Compacter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.clients.loopback import Answer, Body, Provider

MODEL = "gpt-test"
CHAINED: dict[str, Any] = {"model": MODEL, "input": "And now?", "previous_response_id": "resp_0"}
OUTPUTS: list[Any] = [
    {"type": "function_call_output", "call_id": call, "output": "built in 1850"}
    for call in ("call_1", "call_2")
]


async def settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


@pytest.fixture(params=[openai.OpenAI, openai.AsyncOpenAI])
async def client(request: pytest.FixtureRequest, openai_server: Provider) -> AsyncIterator[Any]:
    made = request.param(base_url=openai_server.url + "/v1", api_key="none", max_retries=0)
    yield made
    await settled(made.close())


async def words_of(reply: Any) -> str:
    """The words of a reply or of a stream, sync or async."""
    if hasattr(reply, "__aiter__"):
        return "".join(
            [event.delta async for event in reply if event.type == "response.output_text.delta"]
        )
    if hasattr(reply, "__next__"):
        return "".join(event.delta for event in reply if event.type == "response.output_text.delta")
    text: str = reply.output_text
    return text


def paths(server: Provider) -> list[str]:
    return [path.rpartition("v1")[2] for path in server.paths]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("question", ["And now?", [{"role": "user", "content": "And now?"}]])
async def test_a_history_that_the_server_keeps_is_compacted_by_the_server(
    question: Any,
    stream: bool,
    client: Any,
    openai_server: Provider,
    compacter: Recording,
    refusing: Any,
) -> None:
    openai_server.refuse = refusing
    reply = await settled(
        compacter.wrap(client).responses.create(**{**CHAINED, "input": question, "stream": stream})
    )
    assert await words_of(reply) == WORDS
    assert paths(openai_server) == ["/responses", "/responses/compact", "/responses"]
    asked = openai_server.bodies[-1]
    assert "previous_response_id" not in asked
    assert [item.get("type", item.get("role")) for item in asked["input"]] == ["compaction", "user"]
    assert [(event.strategy, event.original_tokens) for event in compacter.events] == [
        ("responses.compact", 90)
    ]
    assert "the server compacted its history" in str(compacter.events[0])


@pytest.mark.parametrize("way", ["with_raw_response", "with_streaming_response"])
def test_so_does_a_stream_that_is_read_through_a_raw_response(
    way: str, openai_server: Provider, compacter: Recording, refusing: Any
) -> None:
    openai_server.refuse = refusing
    with openai.OpenAI(base_url=openai_server.url + "/v1", api_key="none", max_retries=0) as client:
        raw: Any = getattr(compacter.wrap(client).responses, way).create(**CHAINED, stream=True)
        if way == "with_streaming_response":
            with raw as response:
                kinds = [event.type for event in response.parse()]
        else:
            kinds = [event.type for event in raw.parse()]
    assert kinds[-1] == "response.completed"
    assert [event.strategy for event in compacter.events] == ["responses.compact"]


async def test_calls_that_wait_for_their_results_are_sent_along(
    client: Any, openai_server: Provider, compacter: Compacter
) -> None:
    reply = await settled(compacter.wrap(client).responses.create(**{**CHAINED, "input": OUTPUTS}))
    assert await words_of(reply) == WORDS
    assert paths(openai_server) == [
        "/responses",
        "/responses/compact",
        "/responses/resp_0",
        "/responses",
    ]
    sent = openai_server.bodies[-1]["input"]
    assert [item["type"] for item in sent] == [
        "compaction",
        "reasoning",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
    ]


async def test_a_call_that_is_sent_with_its_result_is_not_fetched(
    client: Any, openai_server: Provider, compacter: Compacter
) -> None:
    call = {"type": "function_call", "call_id": "call_1", "name": "look_up", "arguments": "{}"}
    await settled(
        compacter.wrap(client).responses.create(**{**CHAINED, "input": [call, OUTPUTS[0]]})
    )
    assert paths(openai_server) == ["/responses", "/responses/compact", "/responses"]


def failing(serve: Callable[..., Answer], at: int) -> Callable[..., Answer]:
    """A server whose request number ``at`` fails, the first being 0."""

    def vendor(server: Provider, path: str, body: Body) -> Answer:
        answer = serve(server, path, body)
        if len(server.bodies) - 1 == at:
            answer.body = b'{"error": {"message": "Down."}}'
            answer.kind = "application/json"
            answer.status = 500
        return answer

    return vendor


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("at", "note"),
    [
        (1, "responses.compact failed: InternalServerError"),
        (2, "went on from there failed"),
        (3, "went on from there"),
    ],
)
async def test_whatever_fails_later_the_first_refusal_is_raised_with_a_true_note(
    at: int, note: str, stream: bool, client: Any, openai_server: Provider, compacter: Compacter
) -> None:
    openai_server.vendor = failing(openai_server.vendor, at)
    create = compacter.wrap(client).responses.create
    with pytest.raises(openai.BadRequestError, match="context window") as caught:
        await settled(create(**{**CHAINED, "input": OUTPUTS, "stream": stream}))
    assert len(caught.value.__notes__) == 1
    assert note in caught.value.__notes__[0]
    assert len(openai_server.bodies) == at + 1


async def test_a_result_without_its_call_is_not_sent(
    client: Any, openai_server: Provider, compacter: Compacter
) -> None:
    lost = [{"type": "function_call_output", "call_id": "call_9", "output": "1850"}]
    with pytest.raises(openai.BadRequestError, match="context window") as caught:
        await settled(compacter.wrap(client).responses.create(**{**CHAINED, "input": lost}))
    (note,) = caught.value.__notes__
    assert "LookupError" in note
    assert paths(openai_server)[-1] == "/responses/resp_0"


async def test_a_past_that_stays_too_long_gives_the_first_refusal(
    client: Any, openai_server: Provider, compacter: Compacter, refusing: Any
) -> None:
    openai_server.refuse = refusing
    question = [{"role": "user", "content": "word " * 5_000}]
    create = compacter.wrap(client).responses.create
    if refusing == "status":
        with pytest.raises(openai.BadRequestError, match="context window") as caught:
            await settled(create(**{**CHAINED, "input": question, "stream": True}))
        assert "still too long" in caught.value.__notes__[0]
    else:
        stream = await settled(create(**{**CHAINED, "input": question, "stream": True}))
        kinds = (
            [event.type async for event in stream]
            if hasattr(stream, "__aiter__")
            else [e.type for e in stream]
        )
        assert kinds == ["response.created", "response.failed"]
    assert paths(openai_server) == ["/responses", "/responses/compact", "/responses"]


@pytest.mark.parametrize(
    ("held", "requests"),
    [({"previous_response_id": "resp_lost"}, 2), ({"conversation": "conv_1"}, 1)],
)
async def test_where_the_server_cannot_either_the_note_says_why(
    held: dict[str, Any], requests: int, client: Any, openai_server: Provider, compacter: Recording
) -> None:
    with pytest.raises(openai.BadRequestError, match="context window") as caught:
        await settled(
            compacter.wrap(client).responses.create(model=MODEL, input="And now?", **held)
        )
    (note,) = caught.value.__notes__
    assert next(iter(held)) in note
    assert (len(openai_server.bodies), compacter.events) == (requests, [])
