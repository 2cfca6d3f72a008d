"""Looking into the beginning of a body, in pieces of any size."""

from __future__ import annotations

import pytest
from tests.kit import Refusal, refusals

from compacter.messages.bodies import DocumentWatch, EventWatch


def test_a_body_without_end_is_looked_into_no_further_than_a_megabyte() -> None:
    for watch in (EventWatch(""), EventWatch("gzip"), DocumentWatch(""), DocumentWatch("gzip")):
        chunk = b": keep waiting\n" * 1000
        assert any(watch.read(chunk) for _ in range(100))
        watch.end()
        assert watch.found is None


BODIES = [
    each
    for each in refusals(limit=8192, requested=9000)
    if each.content_type in ("application/json", "text/event-stream")
]


@pytest.mark.parametrize("refusal", BODIES, ids=str)
def test_every_form_of_refusal_is_read_in_pieces_of_any_size(refusal: Refusal) -> None:
    for size in (1, 50, 10_000):
        watch = EventWatch() if "event-stream" in refusal.content_type else DocumentWatch()

        for at in range(0, len(refusal.body), size):
            if watch.read(refusal.body[at : at + size]):
                break
        watch.end()

        assert watch.found is not None, size
        if refusal.states_numbers:
            assert (watch.found.limit, watch.found.requested) == (8192, 9000), size


@pytest.mark.parametrize("text", ["prompt is too long: 9 tokens > 5 maximum", "[]", "null", "7"])
def test_an_event_named_error_may_have_any_data(text: str) -> None:
    watch = EventWatch()

    enough = watch.read(f"event: error\ndata: {text}\n\n".encode())

    assert enough
    assert (watch.found is not None) == text.startswith("prompt")


def test_content_that_speaks_of_a_limit_is_no_refusal() -> None:
    said = "maximum context length is 5 tokens, however you requested 9 tokens"
    watch = EventWatch()

    watch.read(b'data: {"choices": [{"delta": {"content": "%b"}}]}\n\n' % said.encode())
    watch.end()

    assert watch.found is None
