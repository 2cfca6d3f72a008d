from __future__ import annotations

import pytest

from compacter.overflow import detect_token_limit
from compacter.testing import (
    STYLES,
    InvalidRequestError,
    ProviderError,
    RateLimitError,
    ScriptedModel,
    Style,
    TokenLimitError,
    invalid_request_error,
    rate_limit_error,
    server_error,
    token_limit_error,
)

styles = pytest.mark.parametrize("style", STYLES)
NUMBERLESS = {"bedrock"}


@pytest.mark.parametrize(
    ("style", "name", "status", "code"),
    [
        ("openai", "BadRequestError", 400, "context_length_exceeded"),
        ("anthropic", "BadRequestError", 400, None),
        ("gemini", "ClientError", 400, 400),
        ("bedrock", "ValidationException", 400, "ValidationException"),
        ("llama.cpp", "BadRequestError", 400, 400),
        ("vllm", "BadRequestError", 400, 400),
        ("litellm", "ContextWindowExceededError", 400, None),
    ],
)
def test_the_exception_looks_like_the_vendors(
    style: str, name: str, status: int, code: str | int | None
) -> None:
    error = token_limit_error(style, limit=10, input_tokens=11)
    assert (type(error).__name__, error.status_code, error.code) == (name, status, code)


@styles
def test_the_numbers_are_in_the_text_and_where_the_provider_puts_them(style: str) -> None:
    error = token_limit_error(style, limit=4321, input_tokens=5678)
    found = ("4321" in str(error), "5678" in str(error))
    assert found == ((False, False) if style in NUMBERLESS else (True, True))


@styles
def test_a_refusal_of_input_and_output_states_no_input_over_the_limit(style: str) -> None:
    error = token_limit_error(style, limit=1000, input_tokens=600, output_tokens=500)
    parts = "600" in str(error) and "500" in str(error)
    assert parts or "1100" in str(error) or style in NUMBERLESS


def test_other_errors_are_no_token_limits() -> None:
    others = (
        (invalid_request_error(message="a {broken} list"), InvalidRequestError, 400),
        (rate_limit_error(), RateLimitError, 429),
        (server_error(), ProviderError, 500),
    )
    for error, kind, status in others:
        assert isinstance(error, kind)
        assert not isinstance(error, TokenLimitError)
        assert error.status_code == status
        assert "context" not in f"{type(error).__name__} {error} {error.code} {error.type}".lower()


@styles
@pytest.mark.parametrize("output", [None, 500])
def test_compacter_knows_each_refusal_and_nothing_else(style: str, output: int | None) -> None:
    error = token_limit_error(style, limit=4321, input_tokens=5678, output_tokens=output)
    found = detect_token_limit(error)
    assert found is not None
    assert found.limit == (None if style in NUMBERLESS else 4321)
    for other in (
        invalid_request_error(message="messages[1]: the tool result 'a' answers no call"),
        rate_limit_error(),
        server_error(),
    ):
        assert detect_token_limit(other) is None


def test_the_bodies_are_the_providers() -> None:
    bodies = {
        style: token_limit_error(style, limit=10, input_tokens=11).body
        for style in ("openai", "anthropic", "gemini", "bedrock", "llama.cpp")
    }
    assert bodies["openai"]["code"] == "context_length_exceeded"
    assert bodies["anthropic"]["error"]["type"] == "invalid_request_error"
    assert bodies["gemini"]["error"]["status"] == "INVALID_ARGUMENT"
    assert bodies["bedrock"]["Error"]["Code"] == "ValidationException"
    assert (bodies["llama.cpp"]["n_prompt_tokens"], bodies["llama.cpp"]["n_ctx"]) == (11, 10)


def test_a_style_of_ones_own() -> None:
    style = Style(
        "mine", "TooBig", "{input} is more than {limit}", status=413, shown="{status}: {message}"
    )
    with pytest.raises(TokenLimitError, match="413: 2 is more than 1") as caught:
        ScriptedModel(window=1, style=style).completion("m", [{"role": "user", "content": "hello"}])
    assert type(caught.value).__name__ == "TooBig"


def test_an_unknown_style_is_told_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'nobody'.*anthropic"):
        token_limit_error("nobody", limit=1, input_tokens=2)
