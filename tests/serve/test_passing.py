"""Bytes pass through unchanged, at once, and only while somebody reads them."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
from collections.abc import Callable
from http.client import HTTPConnection
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient, WebSocketDenialResponse

from compacter.serve import create_app

Serve = Callable[..., Any]
CHAT = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Hello"}]}


PATH = "/v1/chat/completions"
PATHS = [PATH, "/v1/audio/speech"]


def post(path: str, body: bytes = json.dumps(CHAT).encode()) -> tuple[str, bytes]:
    head = f"POST {path} HTTP/1.1\nHOST\nContent-Length: {len(body)}\nConnection: close\n\n"
    return head, body


def event(text: str) -> bytes:
    return b"data: " + json.dumps({"choices": [{"delta": {"content": text}}]}).encode() + b"\n\n"


def answer_with(server: Any, body: bytes) -> None:
    server.answer = lambda asked, write: write(body)


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "POST"])
def test_any_method_goes_through_with_its_path_query_and_body(
    passing: Any, wire: Any, method: str
) -> None:
    serving, server = passing
    answer_with(server, wire.plain(b"\0\xff", "207 Odd", "application/x-odd"))
    body = b"" if method == "GET" else b"\0 bytes \xff"
    target = "/v1/files/a%2Fb%20c;v=1?key=%20x&key=y&z"
    length = f"Content-Length: {len(body)}\n" * bool(body)
    got = serving.ask(f"{method} {target} HTTP/1.1\nHOST\n{length}Connection: close\n\n", body)
    (asked,) = server.asked
    assert (asked.method, asked.target, asked.body) == (method, target, body)
    assert got.startswith(b"HTTP/1.1 207 ")
    assert got.endswith(b"\0\xff")


def test_headers_of_one_connection_stay_there(passing: Any, wire: Any) -> None:
    serving, server = passing
    kept = "X-Kept: yes\r\nX-Kept: twice\r\nSet-Cookie: a=1\r\n"
    theirs = f"Keep-Alive: timeout=5\r\n{kept}X-Hop: 1\r\nTrailer: t\r\n"
    answer_with(server, wire.plain(b"{}", more=theirs).replace(b"close", b"close, X-Hop"))
    mine = "X-Mine: 1\nTE: trailers\nProxy-Authorization: x\nX-Kept: no\nUser-Agent: odd\n"
    got = serving.ask(f"GET /v1/models HTTP/1.1\nHOST\nConnection: close, X-Mine\n{mine}\n").lower()
    (asked,) = server.asked
    assert sorted(name.lower() for name, _ in asked.headers) == ["host", "user-agent", "x-kept"]
    assert asked.header("host") == [server.url.removeprefix("http://")]
    assert got.count(b"x-kept:") == 2
    assert b"set-cookie: a=1" in got
    for name in (b"x-hop", b"keep-alive", b"trailer", b"server:", b"date:"):
        assert name not in got


def test_a_cookie_of_one_caller_is_not_sent_for_another(passing: Any, wire: Any) -> None:
    serving, server = passing
    answer_with(server, wire.plain(b"{}", more="Set-Cookie: session=1; Path=/\r\n"))
    for _ in range(2):
        serving.get("/v1/models")
    assert [asked.header("cookie") for asked in server.asked] == [[], []]


def test_a_head_request_has_no_body(passing: Any, wire: Any) -> None:
    serving, server = passing
    answer_with(server, wire.plain(b"", more="X-Size: 7\r\n").replace(b"h: 0", b"h: 7"))
    got = serving.ask("HEAD /v1/files/1 HTTP/1.1\nHOST\nConnection: close\n\n").lower()
    assert b"content-length: 7" in got
    assert got.endswith(b"\r\n\r\n")


def test_an_upload_of_unknown_length_goes_through(passing: Any, wire: Any) -> None:
    """A chunked body arrives whole; a length beside the chunks smuggles nothing."""
    serving, server = passing
    body = wire.chunk(b"first ") + wire.chunk(b"second") + wire.chunk(b"")
    head = "POST /v1/files HTTP/1.1\nHOST\nTransfer-Encoding: chunked\nConnection: close\n"
    serving.ask(f"{head}\n", body)
    assert server.asked[0].body == b"first second"
    smuggled = b"abc GET /admin HTTP/1.1\r\n\r\n"
    body = wire.chunk(smuggled) + wire.chunk(b"")
    got = serving.ask(f"{head}Content-Length: 3\n\n", body)
    assert got.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 200 "))
    asked = [(one.target, one.body, one.header("content-length")) for one in server.asked[1:]]
    assert asked in ([], [("/v1/files", smuggled, [])])


def test_a_packed_answer_stays_packed(passing: Any, wire: Any) -> None:
    serving, server = passing
    answer_with(server, wire.plain(b"\x1f\x8b odd", more="Content-Encoding: br\r\n"))
    for path in ("/v1/models", PATH):
        got = serving.post(path, CHAT, "Accept-Encoding: br\n")
        assert got.endswith(b"\r\n\r\n\x1f\x8b odd")
    assert [asked.header("accept-encoding") for asked in server.asked] == [["br"], ["identity"]]


def test_a_body_that_is_too_large_to_look_into_goes_through(
    passing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compacter.gateway.serve.gateway._LARGEST_BODY", 100_000)
    serving, server = passing
    body = json.dumps({**CHAT, "user": "x" * 300_000}).encode()
    serving.post(PATH, body)
    assert server.asked[0].body == body
    assert serving.board.counts["passed_on"] == 1


def test_each_piece_of_a_stream_is_passed_on_when_it_comes(
    serve: Serve, upstream: Any, wire: Any
) -> None:
    seen = threading.Semaphore(0)

    def answer(asked: Any, write: Callable[[bytes], object]) -> None:
        write(wire.STREAM)
        for number in range(3):
            write(wire.chunk(event(f"piece {number}")))
            assert seen.acquire(timeout=300)  # Goes on when the caller has it.
        write(wire.chunk(b""))

    serving = serve(upstream(answer).url)
    with serving.send(*post(PATH)) as connection:
        got = b""
        for number in range(3):
            while f"piece {number}".encode() not in got:
                got += connection.recv(65_536)
            seen.release()
        while data := connection.recv(65_536):
            got += data
    assert got.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_read_faster_than_the_caller_takes_it(
    serve: Serve, upstream: Any, wire: Any, path: str
) -> None:
    size = 1 << 20
    written = [0]
    stuck = threading.Event()

    def answer(asked: Any, write: Callable[[bytes], object]) -> None:
        write(wire.STREAM + wire.chunk(event("begin")))
        for _ in range(64):
            write(wire.chunk(b": " + b"x" * size + b"\n\n"))
            written[0] += 1
        stuck.set()

    serving = serve(upstream(answer).url)
    with serving.send(*post(path)) as connection:
        connection.recv(10)
        assert not stuck.wait(1.5)  # Buffers take some megabytes; the rest waits for a reader.
        assert written[0] < 40
        while not stuck.is_set():
            connection.recv(size)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("begun", [False, True])
def test_a_caller_that_goes_away_is_seen_upstream(
    serve: Serve, upstream: Any, wire: Any, path: str, *, begun: bool
) -> None:
    reached = threading.Event()

    def answer(asked: Any, write: Callable[[bytes], object]) -> None:
        if begun:
            write(wire.STREAM + wire.chunk(event("begin")))
        reached.set()
        asked.closed.wait(300)

    server = upstream(answer)
    with serve(server.url).send(*post(path)) as connection:
        assert reached.wait(300)
        if begun:
            got = b""
            while b"begin" not in got:
                got += connection.recv(65_536)
        connection.shutdown(socket.SHUT_RDWR)
    (asked,) = server.asked
    assert asked.closed.wait(300)


def test_a_caller_that_goes_away_ends_the_summary(serve: Serve, upstream: Any, wire: Any) -> None:
    reached = threading.Event()
    refusal = {"error": {"code": "context_length_exceeded", "message": "too long"}}

    def answer(asked: Any, write: Callable[[bytes], object]) -> None:
        if len(server.asked) == 1:
            write(wire.plain(json.dumps(refusal).encode(), "400 Bad Request"))
        else:
            reached.set()
            asked.closed.wait(300)

    server = upstream(answer)
    words = [{"role": "user", "content": f"Question {number}. " * 40} for number in range(9)]
    body = json.dumps({"model": "m", "messages": words}).encode()
    with serve(server.url).send(*post("/v1/chat/completions", body)) as connection:
        assert reached.wait(300)
        connection.shutdown(socket.SHUT_RDWR)
    _, summary = server.asked
    assert summary.closed.wait(300)
    assert len(server.asked) == 2


def test_an_upstream_that_is_away_is_one_line_until_it_answers_again(
    serve: Serve, upstream: Any, wire: Any
) -> None:
    is_there = threading.Event()

    def answer(asked: Any, write: Callable[[bytes], object]) -> None:
        if is_there.is_set():
            write(wire.plain(b"{}"))

    serving = serve(upstream(answer).url)

    def ask(times: int) -> list[bytes]:
        return [serving.ask(*post("/v1/chat/completions", b"{}")) for _ in range(times)]

    for got in ask(3):
        assert got.startswith(b"HTTP/1.1 502 ")
        assert b"\r\nretry-after: 5\r\n" in got.lower()
    is_there.set()
    ask(2)
    is_there.clear()
    ask(2)
    told = [line.rpartition(" ")[2] for line in serving.lines]
    assert [re.sub(r".*Error", "away", word) for word in told] == ["away", "again", "away"]
    assert serving.board.counts["unreachable"] == 5


def test_an_answer_that_breaks_off_is_not_ended_as_if_it_were_whole(
    serve: Serve, upstream: Any, wire: Any
) -> None:
    server = upstream(lambda asked, write: write(wire.STREAM + wire.chunk(event("begin"))))
    serving = serve(server.url)
    for path in PATHS:
        got = serving.ask(*post(path))
        assert b"begin" in got
        assert not got.endswith(b"0\r\n\r\n")
    assert serving.board.counts["unreachable"] == 2


@pytest.mark.parametrize("status", ["200 OK", "400 Bad Request"])
def test_a_document_that_breaks_off_is_passed_on_as_far_as_it_came(
    passing: Any, wire: Any, status: str
) -> None:
    serving, server = passing
    whole = wire.plain(json.dumps({"error": {"code": "context_length_exceeded"}}).encode(), status)
    answer_with(server, whole[:-5])
    got = serving.post(PATH, CHAT)
    assert got.endswith(whole[:-5].partition(b"\r\n\r\n")[2])
    assert (len(server.asked), serving.board.counts["unreachable"]) == (1, 1)


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("text/plain", ""),
        ("text/event-stream", "Content-Encoding: br\r\n"),
        ("application/json", ""),
    ],
)
def test_what_cannot_be_read_goes_through(passing: Any, wire: Any, kind: str, more: str) -> None:
    serving, server = passing
    answer_with(server, wire.plain(b"context_length_exceeded", kind=kind, more=more))
    for body in (CHAT, {**CHAT, "messages": {"role": "user"}}):
        assert serving.post(PATH, body).endswith(b"\r\n\r\ncontext_length_exceeded")
    assert len(server.asked) == 2


def test_a_caller_that_goes_away_before_the_end_of_its_request_is_left_alone(
    serve: Serve, answering: Any
) -> None:
    server = answering()
    serving = serve(server.url)
    for path in ("/v1/chat/completions", "/v1/files"):
        head, body = post(path, b"x" * 1_000)
        with serving.send(head, body[:10]) as connection:
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b""
    assert serving.ask(*post(PATH)).endswith(b"{}")
    assert [json.loads(asked.body) for asked in server.asked] == [CHAT]


async def test_it_can_be_a_part_of_another_application(answering: Any) -> None:
    server = answering()
    part = create_app(server.url, hosts=lambda _: True)
    whole = Starlette(routes=[Mount("/llm", app=part)])  # It does not run the lifespan of a part.
    transport = httpx.ASGITransport(app=whole)
    async with httpx.AsyncClient(transport=transport, base_url="http://test/llm/v1/") as client:
        assert (await client.post("chat/completions", json=CHAT)).json() == {}
        assert (await client.get("models")).json() == {}
    async with part.router.lifespan_context(part):
        pass
    async with part.router.lifespan_context(part), httpx.AsyncClient(transport=transport) as client:
        assert (await client.get("http://test/llm/v1/models")).json() == {}
    assert [asked.target for asked in server.asked] == [
        "/v1/chat/completions",
        "/v1/models",
        "/v1/models",
    ]


def test_an_upstream_that_cannot_be_reached_is_a_502_that_says_so(serve: Serve) -> None:
    with socket.socket() as deaf:  # It has a port, and does not listen.
        deaf.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        serving = serve(address)
        for path in ("/v1/chat/completions", "/v1/models"):
            got = serving.ask(*post(path))
            assert got.startswith(b"HTTP/1.1 502 ")
            assert (
                json.loads(got.partition(b"\r\n\r\n")[2])["error"]["code"] == "upstream_unreachable"
            )
            assert address in serving.lines[-1]


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/realtime?model=m", "/healthz"])
@pytest.mark.parametrize("words", [("Upgrade", "websocket"), ("keep-alive, upgrade", "WebSocket")])
def test_a_websocket_is_refused_with_the_status_that_means_use_http(
    passing: Any, path: str, words: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    serving, server = passing
    headers = {
        **dict(zip(("Connection", "Upgrade"), words, strict=True)),
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": f"{'A' * 22}==",
    }
    with contextlib.closing(HTTPConnection("127.0.0.1", serving.port)) as connection:
        connection.request("GET", path, headers=headers)
        refusal = connection.getresponse()
        assert (refusal.status, refusal.headers["upgrade"]) == (426, "HTTP/1.1")
        assert json.loads(refusal.read())["error"]["code"] == "no_websockets"
        kept = connection.sock
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
        assert connection.sock is kept
    assert server.asked == []
    assert caplog.records == []  # uvicorn would advise to install a library.


def test_another_asgi_server_refuses_websockets_too() -> None:
    client = TestClient(create_app("http://127.0.0.1:9"), "http://127.0.0.1")
    with (
        pytest.raises(WebSocketDenialResponse) as refused,
        client.websocket_connect("ws://127.0.0.1/v1/responses"),
    ):
        pass
    assert refused.value.status_code == 426


def test_an_upgrade_to_another_http_is_ignored(passing: Any) -> None:
    """Java's client offers HTTP/2 so at each request."""
    serving, server = passing
    offer = "Connection: Upgrade, HTTP2-Settings\nUpgrade: h2c\nHTTP2-Settings: AAEAAEAA\n\n"
    with serving.send(f"GET /v1/models HTTP/1.1\nHOST\n{offer}") as connection:
        assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
    assert server.asked[0].header("upgrade") == []
