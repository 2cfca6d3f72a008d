"""The table of refusals inside HTTP 200."""

from __future__ import annotations

import json

import pytest
from tests.kit import Refusal, refusals
from tests.overflow.phrases import detect_text

TABLE = refusals(limit=8192, requested=9000)


def test_each_refusal_has_a_name_of_its_own() -> None:
    names = [str(refusal) for refusal in TABLE]

    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    "protocol", ["chat completions", "responses", "messages", "gemini", "bedrock", "ollama"]
)
@pytest.mark.parametrize("streamed", [False, True])
def test_each_protocol_refuses_plain_calls_and_streams(protocol: str, *, streamed: bool) -> None:
    forms = [each for each in TABLE if (each.protocol, each.streamed) == (protocol, streamed)]

    assert forms


def text_in(refusal: Refusal) -> str:
    """The sentence for people in a refusal."""
    _, _, rest = refusal.body.decode("utf-8", "replace").partition('"message": "')
    return rest.partition('"')[0]


def test_their_texts_state_both_numbers() -> None:
    """Those of Bedrock and of stop reasons have none, and say so."""
    for refusal in TABLE:
        text = text_in(refusal)
        if refusal.states_numbers and text:
            stated = detect_text(text)
            assert stated is not None, refusal
            assert (stated.limit, stated.requested) == (8192, 9000), refusal


def test_the_numbers_are_those_asked_for() -> None:
    text = next(text_in(each) for each in refusals(limit=5_000, requested=7_000))

    assert "5000" in text
    assert "7000" in text


def test_documents_are_json_and_events_are_server_sent() -> None:
    for refusal in TABLE:
        text = refusal.body.decode("utf-8", "replace")
        if refusal.content_type == "application/json" or "as JSON" in refusal.name:
            assert json.loads(text)
        elif refusal.content_type == "text/event-stream":
            assert text.endswith("\n\n")
            assert all(
                line.startswith(("data: {", "event: ")) for line in text.splitlines() if line
            )
