"""What is read from one text: the kind, the role of each number, what status and code add (G15, P14)."""

from __future__ import annotations

import pytest

from compacter.overflow import TokenLimit, detect_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "the context length is 100 tokens. You asked for 120 (90 in the messages, 30 in the completion)",
            TokenLimit(100, 120, "input_plus_output", 90, 30),
        ),
        (
            "the context length is 8192 tokens. You sent 9000 tokens (9000 in your prompt; 0 for the output)",
            TokenLimit(8192, 9000, "input", 9000, 0),
        ),
        (
            "The length of the messages 4000 and max_tokens 5000 exceed the context length of 8192",
            TokenLimit(8192, 9000, "input_plus_output", 4000, 5000),
        ),
        (
            "max_tokens and input length exceed context limit: 5000 + 4000 > 8192",
            TokenLimit(8192, 9000, "input_plus_output", 4000, 5000),
        ),
        ("the prompt is too long: 9000 tokens > 8192 maximum", TokenLimit(8192, 9000, "input")),
        ("max_tokens would exceed the context window", TokenLimit(None, None, "input_plus_output")),
        ("Please reduce the length of the messages or completion.", TokenLimit(None, None, "input")),
        (
            "max_tokens is too large: 3000. Context length: 5000, input tokens: 2504 (3000 > 5000 - 2504).",
            TokenLimit(5000, 5504, "input_plus_output", 2504, 3000),
        ),
    ],
)
def test_the_kind_says_whether_the_completion_is_counted(text: str, expected: TokenLimit) -> None:  # P14
    found = detect_text(text)

    assert found is not None
    assert (found.limit, found.requested, found.kind) == (expected.limit, expected.requested, expected.kind)
    assert (found.input_tokens, found.output_tokens) == (expected.input_tokens, expected.output_tokens)


@pytest.mark.parametrize(
    "decoy",
    [
        "Error code: 400 - {}",
        "(HTTP 413) {}",
        "2026-01-02 03:04:05,678 ERROR [server.py:91] {}",
        "model big-model-4096-v2: {}",
        "{} (request id: 20260102030405678)",
        "{} Retry in 30 seconds.",
        "attempt 3: {}",
        "{} The prompt is over by 808 tokens.",
        "{} See https://example.com/errors/4096/limit?max=1024",
    ],
)
def test_a_number_with_another_meaning_is_left_alone(decoy: str) -> None:
    found = detect_text(decoy.format("the prompt has 9000 tokens, the context window is 8192 tokens: too long."))

    assert found is not None
    assert (found.limit, found.requested) == (8192, 9000)


def test_the_code_of_an_error_is_not_its_limit() -> None:
    found = detect_text("invalid parameter, context window exceeds limit (3517)", code="3517")

    assert found is not None
    assert found.limit is None


def test_a_clear_code_needs_no_words() -> None:
    found = detect_text("Bad Request", status=400, code="context_length_exceeded")

    assert found is not None


@pytest.mark.parametrize("status", [401, 402, 403, 404, 429, 503])
def test_the_right_text_with_a_wrong_kind_of_error_is_none(status: int) -> None:  # G15
    assert detect_text("prompt is too long: 9000 tokens > 8192 maximum", status=status) is None


@pytest.mark.parametrize("status", [None, 200, 400, 413, 422, 500])
def test_the_status_of_a_bad_request_does_not_matter(status: int | None) -> None:
    assert detect_text("prompt is too long: 9000 tokens > 8192 maximum", status=status) is not None


def test_the_source_names_a_rule_and_holds_no_text() -> None:
    found = detect_text("the zebra prompt is too long: 9000 tokens > 8192 maximum")

    assert found is not None
    assert found.source
    assert "zebra" not in found.source
    assert not any(char.isdigit() for char in found.source)
