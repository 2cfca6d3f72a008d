"""Facts read from one text: the kind, the role of each number, what status and code add ."""

from __future__ import annotations

import pytest
from tests.overflow.phrases import detect_text

from compacter.overflow import TokenLimit, explain


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            (
                "the context length is 100 tokens. You asked for 120 (90 in the messages, 30 "
                "in the completion)"
            ),
            TokenLimit(100, 120, "input_plus_output", 90, 30),
        ),
        (
            (
                "the context length is 8192 tokens. You sent 9000 tokens (9000 in your prompt; "
                "0 for the output)"
            ),
            TokenLimit(8192, 9000, "input", 9000, 0),
        ),
        (
            "The length of the messages 4000 and max_tokens 5000 exceed the context length of 8192",
            TokenLimit(8192, 9000, "input_plus_output", 4000, 5000),
        ),
        ("the prompt is too long: 9000 tokens > 8192 maximum", TokenLimit(8192, 9000, "input")),
        ("max_tokens would exceed the context window", TokenLimit(None, None, "input_plus_output")),
        (
            "Please reduce the length of the messages or completion.",
            TokenLimit(None, None, "input"),
        ),
        (
            (
                "max_tokens is too large: 3000. Context length: 5000, input tokens: 2504 (3000 "
                "> 5000 - 2504)."
            ),
            TokenLimit(5000, 5504, "input_plus_output", 2504, 3000),
        ),
    ],
)
def test_the_kind_says_whether_the_completion_is_counted(text: str, expected: TokenLimit) -> None:
    found = detect_text(text)

    assert found is not None
    assert (found.limit, found.requested, found.kind) == (
        expected.limit,
        expected.requested,
        expected.kind,
    )
    assert (found.input_tokens, found.output_tokens) == (
        expected.input_tokens,
        expected.output_tokens,
    )


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
    found = detect_text(
        decoy.format("the prompt has 9000 tokens, the context window is 8192 tokens: too long.")
    )

    assert found is not None
    assert (found.limit, found.requested) == (8192, 9000)


def test_the_code_of_an_error_is_not_its_limit() -> None:
    found = detect_text("invalid parameter, context window exceeds limit (3517)", code="3517")

    assert found is not None
    assert found.limit is None


@pytest.mark.parametrize(
    "text",
    [
        "prompt is too long",
        "the request exceeds the model's maximum context length",
        "prompt is too long: 8192 tokens are the limit",
        "prompt is too long: you sent 9000 tokens",
        "Request too large for the model: limit 8192, requested 9000",
        "Tokens: limit 8192, requested 9000",
        "the context length is 9000 tokens, your prompt is too long with 8192 tokens",
    ],
)
def test_in_doubt_a_busy_servers_status_is_believed(text: str) -> None:
    assert detect_text(text, status=429) is None


def test_the_source_names_a_rule_and_holds_no_text() -> None:
    found = detect_text("the zebra prompt is too long: 9000 tokens > 8192 maximum")

    assert found is not None
    assert found.source
    assert "zebra" not in found.source
    assert not any(char.isdigit() for char in found.source)


@pytest.mark.parametrize(
    ("text", "kind", "rule"),
    [
        ("The prompt exceeds the context window", "token limit", "context exceeded"),
        ("The prompt exceeds the token quota", "other error", "other error"),
        ("String too long in the field", "nothing", "other thing"),
        ("Good morning", "nothing", ""),
    ],
)
def test_an_explanation_names_what_decided(text: str, kind: str, rule: str) -> None:
    verdict = explain(text)

    assert (verdict.kind, verdict.rule) == (kind, rule)
    assert bool(verdict.rows) == bool(rule)
    assert (verdict.limit is not None) == (kind == "token limit")


def test_an_explanation_names_the_rows_that_matched() -> None:
    assert explain("Der Prompt überschreitet das Kontextfenster").rows == (
        "context: German",
        "subject: German",
        "exceed: German",
        "subject: prompt",
    )
    assert explain("The prompt was not taken by the model").rows == (
        "subject: prompt",
        "model: model",
    )
