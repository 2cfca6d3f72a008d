"""A web page of somebody else cannot make a browser use this server."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

Serve = Callable[..., Any]
BODY = json.dumps({"messages": [{"role": "user", "content": "Hello"}]}).encode()


def ask(serving: Any, *lines: str, path: str = "/v1/chat/completions") -> bytes:
    head = "".join(f"{line}\n" for line in lines)
    length = f"Content-Length: {len(BODY)}\nConnection: close\n"
    got: bytes = serving.ask(f"POST {path} HTTP/1.1\nHOST\n{length}{head}\n", BODY)
    return got


@pytest.mark.parametrize(
    "lines",
    [
        ("Origin: https://evil.example",),
        ("Origin: https://evil.example", "Content-Type: text/plain"),
        ("Origin: http://evil.example:8484", "Sec-Fetch-Site: cross-site"),
        ("Origin: null",),
        ("Origin: https://localhost.evil.example",),
        ("Origin: http://[::",),
        ("Sec-Fetch-Site: cross-site",),
        ("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"),
    ],
)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/files"])
def test_a_form_of_another_site_does_not_reach_the_upstream(
    serve: Serve, answering: Any, lines: tuple[str, ...], path: str
) -> None:
    server = answering()
    got = ask(serve(server.url), *lines, path=path)
    assert got.startswith(b"HTTP/1.1 403 ")
    assert b"cross_site" in got
    assert server.asked == []


@pytest.mark.parametrize(
    "lines",
    [
        (),
        ("Origin: http://localhost:3000", "Sec-Fetch-Site: cross-site"),
        ("Origin: http://127.0.0.1:5173",),
        ("Origin: vscode-file://vscode-app",),
        ("Origin: app://obsidian.md",),
        ("Sec-Fetch-Site: none",),
        ("Sec-Fetch-Site: same-origin",),
    ],
)
def test_programs_and_pages_of_this_machine_do(
    serve: Serve, answering: Any, lines: tuple[str, ...]
) -> None:
    server = answering()
    assert ask(serve(server.url), *lines).endswith(b"{}")


PAGES = ["/compacter", "/metrics", "/healthz", "/readyz"]


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize(
    "line", ["Origin: https://evil.example", "Origin: null", "Sec-Fetch-Site: cross-site"]
)
def test_the_servers_own_pages_are_not_read_by_another_sites(
    serve: Serve, path: str, line: str
) -> None:
    head = f"GET {path} HTTP/1.1\nHOST\nConnection: close\n{line}\n\n"
    assert serve("http://127.0.0.1:9").ask(head).startswith(b"HTTP/1.1 403 ")


def test_a_link_anywhere_may_lead_to_the_report(serve: Serve) -> None:
    from_link = "Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate\nSec-Fetch-Dest: document\n"
    serving = serve("http://127.0.0.1:9")
    head = f" HTTP/1.1\nHOST\nConnection: close\n{from_link}\n"
    assert serving.ask(f"GET /compacter{head}").startswith(b"HTTP/1.1 200 ")
    assert serving.ask(f"GET /v1/models{head}").startswith(b"HTTP/1.1 403 ")


def test_another_site_may_where_the_operator_says_so(serve: Serve, answering: Any) -> None:
    server = answering()
    serving = serve(server.url, origins=["https://Chat.example.com/"])
    assert ask(serving, "Origin: https://chat.example.com").endswith(b"{}")
    assert b"cross_site" in ask(serving, "Origin: https://chat.example.org")


def test_a_page_may_where_it_came_from_this_server(serve: Serve, answering: Any) -> None:
    server = answering()
    serving = serve(server.url, hosts=lambda host: host == "llm.example.com")
    head = f"Host: llm.example.com\nContent-Length: {len(BODY)}\nConnection: close\n"
    head = f"POST /v1/messages HTTP/1.1\n{head}Origin: https://llm.example.com\n\n"
    assert serving.ask(head, BODY).endswith(b"{}")


@pytest.mark.parametrize("target", ["example.com:443", "/v1/chat/completions"])
def test_connect_is_refused_whatever_it_names(serve: Serve, answering: Any, target: str) -> None:
    server = answering()
    got = serve(server.url).ask(f"CONNECT {target} HTTP/1.1\nHOST\nConnection: close\n\n")
    assert got.startswith(b"HTTP/1.1 400 ")
    assert b"not_a_proxy" in got
    assert server.asked == []


@pytest.mark.parametrize("path", ["/v1/models", "/v1/chat/completions"])
@pytest.mark.parametrize("length", [1, 2, 900])
def test_an_answer_with_both_lengths_is_read_by_its_chunks(
    serve: Serve, upstream: Any, wire: Any, path: str, length: int, caplog: pytest.LogCaptureFixture
) -> None:
    head = wire.STREAM.replace(b"text/event-stream", b"application/json")
    head = head.replace(b"\r\n\r\n", b"\r\nContent-Length: %d\r\n\r\n" % length)
    answer = head + wire.chunk(b'{"a":') + wire.chunk(b" 1}") + wire.chunk(b"")
    serving = serve(upstream(lambda asked, write: write(answer)).url)
    got = ask(serving, path=path).lower()
    assert got.startswith(b"http/1.1 200 ")
    assert b"content-length" not in got
    assert b'{"a":' in got
    assert got.endswith(b"0\r\n\r\n")
    assert "Traceback" not in caplog.text
