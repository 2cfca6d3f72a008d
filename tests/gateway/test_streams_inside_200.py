"""A stream that the router has opened is read up to its first content, whatever its chunks are."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from compacter import detect_token_limit
from compacter.gateway.litellm_proxy.calls import read_until_content

SAID = "This model's maximum context length is 900 tokens. However, you requested 5000 tokens."
NESTED = {"message": SAID, "type": "invalid_request_error", "code": "context_length_exceeded"}
FLAT = {"type": "error", "code": "context_length_exceeded", "message": SAID, "param": None}
FAILED = {"type": "response.failed", "response": {"status": "failed", "error": NESTED}}
BEFORE = [
    {"type": "response.created", "response": {}},
    {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
    {"type": "message_start", "message": {"content": []}},
]


def as_dict(event: dict[str, Any]) -> object:
    return event


def as_object(event: dict[str, Any]) -> object:
    return json.loads(json.dumps(event), object_hook=lambda members: SimpleNamespace(**members))


def as_bytes(event: dict[str, Any]) -> object:
    return f"data: {json.dumps(event)}\n\n".encode()


def as_text(event: dict[str, Any]) -> object:
    return f"event: {event.get('type', '')}\ndata: {json.dumps(event)}\n\n"


@pytest.mark.parametrize("written", [as_dict, as_object, as_bytes, as_text])
@pytest.mark.parametrize("held", [0, 1, 3])
@pytest.mark.parametrize("refusal", [{"error": NESTED}, FLAT, FAILED])
async def test_a_refusal_is_recognised_in_every_form(
    refusal: dict[str, Any], held: int, written: Any
) -> None:
    async def stream() -> AsyncIterator[object]:
        for event in (*BEFORE[:held], refusal):
            yield written(event)

    chunks, error, found = await read_until_content(stream(), detect_token_limit)
    assert found is not None
    assert (found.limit, found.requested) == (900, 5000)
    assert (len(chunks), error) == (held + 1, None)
