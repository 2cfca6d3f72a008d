"""The table of refusals inside HTTP 200."""

from __future__ import annotations

import pytest
from tests.kit import Refusal, refusals
from tests.overflow.phrases import detect_text

TABLE = refusals(limit=8192, requested=9000)


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
