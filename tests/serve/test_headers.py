"""The answer to a compacted request has a header, for any protocol and any place of the refusal."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from tests.clients import loopback
from tests.dialects import retold
from tests.effort import every
from tests.serve.test_other_protocols import GeminiArray, ollama

from compacter.gateway.serve import gateway

Serve = Callable[..., Any]
Talk = Callable[..., Any]


CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
MESSAGES = "/v1/messages"
OLLAMA = "/api/chat"
GEMINI = "/v1beta/models/gemini-test:"
BEDROCK = "/model/amazon.nova-pro-v1%3A0/"
ANTHROPIC = {"model": "m", "max_tokens": 100}
VERSION = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 100}
# Protocol -> its server, the paths of a plain call and of a streamed one, the member with the
# messages, and the rest of a body.
PROTOCOLS: dict[str, tuple[Any, str, str, str, dict[str, Any]]] = {
    "chat": (loopback.openai, CHAT, CHAT, "messages", {"model": "m"}),
    "responses": (loopback.openai, RESPONSES, RESPONSES, "input", {"model": "m"}),
    "messages": (loopback.anthropic, MESSAGES, MESSAGES, "messages", ANTHROPIC),
    "gemini": (
        loopback.gemini,
        f"{GEMINI}generateContent",
        f"{GEMINI}streamGenerateContent?alt=sse",
        "contents",
        {},
    ),
    "gemini as an array": (
        GeminiArray(),
        f"{GEMINI}generateContent",
        f"{GEMINI}streamGenerateContent",
        "contents",
        {},
    ),
    "ollama": (ollama, OLLAMA, OLLAMA, "messages", {"model": "m"}),
    "converse": (
        loopback.bedrock,
        f"{BEDROCK}converse",
        f"{BEDROCK}converse-stream",
        "messages",
        {},
    ),
    "invoke": (
        loopback.bedrock,
        "/model/anthropic.claude/invoke",
        "/model/anthropic.claude/invoke-with-response-stream",
        "messages",
        VERSION,
    ),
}
WRITTEN = {**dict.fromkeys(("gemini", "gemini as an array"), "gemini"), "converse": "bedrock"}
MODES = {"plain": (False, "status"), "streamed": (True, "status"), "inside 200": (True, "event")}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams are held for as long as they take: a head that is sent before has no such headers."""
    monkeypatch.setattr(gateway, "SILENCE", 300)


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> Iterator[tuple[str, loopback.Provider]]:
    with loopback.serving(PROTOCOLS[request.param][0]) as server:
        yield request.param, server


def post(serving: Any, name: str, history: list[dict[str, Any]], *, stream: bool) -> httpx.Response:
    _, plain, streamed, param, rest = PROTOCOLS[name]
    body = {**rest, param: retold(WRITTEN[name], history) if name in WRITTEN else history}
    if plain == streamed:
        body["stream"] = stream
    return httpx.post(
        f"{serving.url}{streamed if stream else plain}",
        content=json.dumps(body),
        headers={"authorization": "Bearer k", "content-type": "application/json"},
        timeout=300,
    )


@pytest.mark.parametrize(
    ("protocol", "mode"),
    [
        *(("chat", mode) for mode in MODES),
        *((name, mode) for name in PROTOCOLS if name != "chat" for mode in every(2, MODES)),
    ],
    indirect=["protocol"],
)
def test_it_tells_its_rounds_also_from_a_record(
    serve: Serve, protocol: Any, talk: Talk, mode: str
) -> None:
    name, server = protocol
    stream, server.refuse = MODES[mode]
    serving = serve(server.url)
    answers = []
    counted = [0]
    for history in (talk(2), talk(20), talk(60), talk(60)):
        answers.append(post(serving, name, history, stream=stream))
        counted.append(serving.board.numbers()["rounds"])
    assert [answer.status_code for answer in answers] == [200] * 4
    short, *answers = answers
    assert "x-compacter-rounds" not in short.headers
    rounds = [int(answer.headers["x-compacter-rounds"]) for answer in answers]
    assert rounds == [after - before for before, after in itertools.pairwise(counted[1:])]
    assert [bool(each) for each in rounds] == [True, True, False]
    saved = [int(answer.headers["x-compacter-tokens-saved"]) for answer in answers]
    assert 500 < saved[0] < saved[1] == saved[2]


def test_a_refusal_that_comes_back_is_the_upstreams_own(serve: Serve, talk: Talk) -> None:
    with loopback.serving(loopback.openai) as server:
        huge = [{"role": "user", "content": "x" * 9_000}]
        answer = post(serve(server.url), "chat", huge, stream=False)
    assert answer.status_code == 400
    assert not [header for header in answer.headers if header.startswith("x-compacter")]
