"""Large bodies are parsed beside the event loop, message by message."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compacter.gateway.serve import bodies

Serve = Callable[..., Any]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=30,
)
PADDING = b" " * (bodies._LARGE + 1)


@given(st.dictionaries(st.text(max_size=5), VALUES))
def test_a_large_body_means_what_it_always_means(body: dict[str, Any]) -> None:
    assert bodies.parse(json.dumps(body).encode() + PADDING) == body
    assert bodies.dump(body) == json.dumps(body).encode()


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff",
        b'{"a": 1} x',
        b'{"a": 1,}',
        b'{"a" 1}',
        b'{"a": [1,]}',
        b'{"a": [1 2]}',
        b'{"a": ' + b"[" * 100_000,
        b"{" * 100_000,
        b'{"a": "\x00"}',
    ],
)
@pytest.mark.parametrize("padding", [b"", PADDING])
def test_what_is_no_object_is_none(raw: bytes, padding: bytes) -> None:
    assert bodies.parse(raw + padding) is None


def test_the_scanner_never_takes_more_than_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    longest = 0
    scan = bodies._SCAN

    def measured(text: str, at: int) -> tuple[Any, int]:
        nonlocal longest
        found, end = scan(text, at)
        longest = max(longest, end - at)
        return found, end

    monkeypatch.setattr(bodies, "_SCAN", measured)
    messages = [{"role": "user", "content": "x" * 1_000}] * 1_000
    assert bodies.parse(json.dumps({"messages": messages}).encode()) == {"messages": messages}
    assert 1_000 < longest < 1_100


def test_while_a_large_body_is_parsed_others_are_answered(
    serve: Serve, upstream: Any, wire: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsing = threading.Event()
    answered = threading.Event()
    parse = bodies.parse

    def slow(raw: bytes) -> dict[str, Any] | None:
        parsing.set()
        assert answered.wait(300)
        return parse(raw)

    monkeypatch.setattr(bodies, "parse", slow)
    serving = serve(upstream(lambda asked, write: write(wire.plain(b"{}"))).url)
    messages = [{"role": "user", "content": "word " * 100}] * 1_000
    body = json.dumps({"model": "m", "messages": messages}).encode()
    head = (
        f"POST /v1/chat/completions HTTP/1.1\nHOST\nContent-Length: {len(body)}\n"
        "Connection: close\n\n"
    )
    with serving.send(head, body) as connection:
        assert parsing.wait(300)
        got = serving.ask("GET /healthz HTTP/1.1\nHOST\nConnection: close\n\n")
        assert got.startswith(b"HTTP/1.1 200 ")
        answered.set()
        assert connection.makefile("rb").read().endswith(b"{}")
