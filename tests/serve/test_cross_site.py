"""A web page of somebody else cannot make a browser use this server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Serve = Callable[..., Any]
PATH = "/v1/chat/completions"
BODY = {"messages": [{"role": "user", "content": "Hello"}]}
EVIL = "Origin: https://evil.example\n"
FOREIGN = [
    *(EVIL, f"{EVIL}Content-Type: text/plain\n", "Origin: null\n", "Origin: http://[::\n"),
    "Origin: http://evil.example:8484\nSec-Fetch-Site: cross-site\n",
    "Origin: https://localhost.evil.example\n",
    "Sec-Fetch-Site: cross-site\n",
    "Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: no-cors\n",
]
OWN = [
    *("", "Origin: http://127.0.0.1:5173\n", "Origin: vscode-file://vscode-app\n"),
    *("Origin: app://obsidian.md\n", "Sec-Fetch-Site: none\n", "Sec-Fetch-Site: same-origin\n"),
    "Origin: http://localhost:3000\nSec-Fetch-Site: cross-site\n",
]


@pytest.mark.parametrize("lines", FOREIGN)
def test_a_page_of_another_site_reaches_nothing(passing: Any, lines: str) -> None:
    """A request that another site's web page makes a browser send reaches neither the upstream nor
    the server's own pages.
    """
    serving, server = passing
    answers = [serving.post(path, BODY, lines) for path in (PATH, "/v1/files")]
    answers += [
        serving.get(path, lines) for path in ("/compacter", "/metrics", "/healthz", "/readyz")
    ]
    for got in answers:
        assert got.startswith(b"HTTP/1.1 403 ")
        assert b"cross_site" in got
    assert server.asked == []


@pytest.mark.parametrize("lines", OWN)
def test_programs_and_pages_of_this_machine_do(passing: Any, lines: str) -> None:
    assert passing[0].post(PATH, BODY, lines).endswith(b"{}")


def test_a_link_anywhere_may_lead_to_the_report(passing: Any) -> None:
    serving, _ = passing
    link = "Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate\nSec-Fetch-Dest: document\n"
    assert serving.get("/compacter", link).startswith(b"HTTP/1.1 200 ")
    assert serving.get("/v1/models", link).startswith(b"HTTP/1.1 403 ")


def test_another_site_may_where_the_operator_says_so(serve: Serve, answering: Any) -> None:
    serving = serve(answering().url, origins=["https://Chat.example.com/"])
    assert serving.post(PATH, BODY, "Origin: https://chat.example.com\n").endswith(b"{}")
    assert b"cross_site" in serving.post(PATH, BODY, "Origin: https://chat.example.org\n")


def test_a_page_may_where_it_came_from_this_server(serve: Serve, answering: Any) -> None:
    serving = serve(answering().url, hosts=lambda host: host == "llm.example.com")
    head = "Host: llm.example.com\nOrigin: https://llm.example.com\nConnection: close\n"
    assert serving.ask(f"GET /v1/models HTTP/1.1\n{head}\n").endswith(b"{}")


@pytest.mark.parametrize("target", ["example.com:443", PATH])
def test_connect_is_refused_whatever_it_names(passing: Any, target: str) -> None:
    serving, server = passing
    got = serving.ask(f"CONNECT {target} HTTP/1.1\nHOST\nConnection: close\n\n")
    assert got.startswith(b"HTTP/1.1 400 ")
    assert b"not_a_proxy" in got
    assert server.asked == []


@pytest.mark.parametrize("path", ["/v1/models", PATH])
@pytest.mark.parametrize("length", [1, 2, 900])
def test_an_answer_with_both_lengths_is_read_by_its_chunks(
    passing: Any, wire: Any, path: str, length: int, caplog: pytest.LogCaptureFixture
) -> None:
    serving, server = passing
    head = wire.STREAM.replace(b"text/event-stream", b"application/json")
    head = head.replace(b"\r\n\r\n", b"\r\nContent-Length: %d\r\n\r\n" % length)
    answer = head + wire.chunk(b'{"a":') + wire.chunk(b" 1}") + wire.chunk(b"")
    server.answer = lambda asked, write: write(answer)
    got = serving.post(path, BODY).lower()
    assert got.startswith(b"http/1.1 200 ")
    assert b"content-length" not in got
    assert b'{"a":' in got
    assert got.endswith(b"0\r\n\r\n")
    assert "Traceback" not in caplog.text
