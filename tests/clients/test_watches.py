"""Looking into the beginning of a body, in pieces of any size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from compacter.clients.raw import DocumentWatch, EventWatch

if TYPE_CHECKING:
    from tests.clients.loopback import Provider


@pytest.mark.parametrize("size", [1, 7, 64])
def test_bodies_in_pieces_of_any_size_are_read_alike(size: int, openai_server: Provider, chat: list[Any]) -> None:
    openai_server.refuse = "event"
    refused = openai_server.vendor(openai_server, "/v1/chat", {"model": "m", "messages": chat, "stream": True})
    body = refused.body.replace(b"\n", b"\r\n") if size == 7 else refused.body
    watch = EventWatch("")
    seen = [watch.read(body[at : at + size]) for at in range(0, len(body), size)]
    watch.end()
    assert any(seen)
    assert "maximum context length" in watch.refusal["message"]  # type: ignore[index]


@pytest.mark.parametrize("ending", [b"", b"\n", b"\r\n\r\n"])
def test_a_refusal_at_the_very_end_is_found_and_one_after_content_is_not(ending: bytes) -> None:
    refusal = b'data: {"error": {"message": "prompt is too long: 9 tokens > 5 maximum"}}' + ending
    content = b'data: {"choices": [{"delta": {"content": "The"}}]}\n\n'
    for body, found in ((refusal, True), (content + refusal, False)):
        watch = EventWatch("")
        watch.read(body)
        watch.end()
        assert (watch.refusal is not None) == found


def test_a_body_without_end_is_looked_into_no_further_than_a_megabyte() -> None:
    for watch in (EventWatch(""), EventWatch("gzip"), DocumentWatch(""), DocumentWatch("gzip")):
        chunk = b": keep waiting\n" * 1000
        assert any(watch.read(chunk) for _ in range(100))
        watch.end()
        assert watch.refusal is None
