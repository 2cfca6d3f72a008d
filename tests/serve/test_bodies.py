"""Large bodies are parsed beside the event loop."""

from __future__ import annotations

import json

import pytest

from compacter.gateway.serve import answers as bodies

PADDING = b" " * (bodies._LARGE + 1)


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b"null", b"\xff", b'{"a": 1} x', b'{"a": ' + b"[" * 100_000]
)
@pytest.mark.parametrize("padding", [b"", PADDING])
async def test_what_is_no_object_is_none(raw: bytes, padding: bytes) -> None:
    assert await bodies.read(raw + padding) is None


@pytest.mark.parametrize("padding", ["", "x" * len(PADDING)])
async def test_a_body_means_what_it_always_means(padding: str) -> None:
    body = {"messages": [{"role": "user", "content": f"\ud83d{padding}"}], "n": 1.5, "x": None}
    raw = await bodies.write(body, len(padding))
    assert raw == json.dumps(body).encode()
    assert await bodies.read(raw) == body
