"""Errors that only quote a token limit: of a message, a tool's log, an argument."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import openai
import pytest

from compacter import detect_token_limit

QUOTING: list[str] = [
    json.loads(line)
    for line in Path(__file__).with_name("quoting.jsonl").read_text("utf-8").splitlines()
]
STATING = [
    'Error: "prompt is too long: 210000 tokens > 200000 maximum"',
    "'messages' is too long: the context window of 'gpt-x' is 8192 tokens, got 9000",
    "Model 'foo' failed: 'context_length_exceeded'",
    "failed with message 'This model's maximum context length is 8192 tokens'",
    "Invalid value for 'n': 'a b'. This model's maximum context length is 8192 tokens.",
]


def from_sdk(text: str) -> Exception:
    """The SDK's error has the same text three times: its own, the body, and the response."""
    detail = {"message": text, "type": "invalid_request_error"}
    request = httpx.Request("POST", "https://api.example/v1/chat/completions")
    response = httpx.Response(400, request=request, json={"error": detail})
    return openai.BadRequestError(f"Error code: 400 - {detail}", response=response, body=detail)


@pytest.mark.parametrize("text", QUOTING, ids=range(len(QUOTING)))
def test_a_quoted_token_limit_is_none_however_often_the_error_has_it(text: str) -> None:
    assert detect_token_limit(ValueError(text)) is None
    assert detect_token_limit(from_sdk(text)) is None


@pytest.mark.parametrize("text", STATING, ids=range(len(STATING)))
def test_a_stated_one_is_found_beside_quotation_marks(text: str) -> None:
    assert detect_token_limit(ValueError(text)) is not None
    assert detect_token_limit(from_sdk(text)) is not None
