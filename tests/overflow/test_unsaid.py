"""Refusals that do not say what is wrong."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anthropic
import httpx
import openai
import pytest

from compacter import detect_token_limit
from compacter.overflow.unsaid import sign_of

litellm: Any = pytest.importorskip("litellm")

if TYPE_CHECKING:
    from collections.abc import Callable

NGINX = (
    "<html><head><title>{0}</title></head><body><center><h1>{0}</h1></center><hr>"
    "<center>nginx</center></body></html>"
)


def message(text: str, **more: Any) -> str:
    return json.dumps({"error": {"message": text, "type": "invalid_request_error", **more}})


def by_openai(status: int, body: str) -> Exception:
    response = httpx.Response(status, text=body, request=httpx.Request("POST", "http://localhost"))
    return openai.OpenAI(api_key="none")._make_status_error_from_response(response)


def by_anthropic(status: int, body: str) -> Exception:
    response = httpx.Response(status, text=body, request=httpx.Request("POST", "http://localhost"))
    client: Any = anthropic.Anthropic(api_key="none")
    error: Exception = client._make_status_error_from_response(response)
    return error


def by_litellm(status: int, body: str) -> Exception:
    kind: Any = litellm.BadRequestError if status == 400 else litellm.APIError
    given: dict[str, Any] = {"message": f"OpenAIException - {body}", "model": "m"}
    given |= {"llm_provider": "openai"} | ({} if status == 400 else {"status_code": status})
    error: Exception = kind(**given)
    return error


def by_newest_openai(status: int, body: str) -> Exception:
    """OpenAI's SDK 3 puts the server's message into the text, where earlier ones put the body."""
    error = by_openai(status, body)
    with suppress(ValueError):
        stated = json.loads(body).get("error", {})
        error.args = (f"Error code: {status} - {stated.get('message', '')}",)
        vars(error)["message"] = error.args[0]
    return error


MAKERS = [by_openai, by_newest_openai, by_anthropic]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    ("status", "body", "sign"),
    [
        (400, "", "bare"),
        (400, NGINX.format("400 Bad Request"), "bare"),
        (400, json.dumps({"error": {"message": "Provider returned error", "code": 400}}), "bare"),
        (400, json.dumps({"error": {"message": "Bad Request"}}), "bare"),
        (413, "", "bytes"),
        (413, NGINX.format("413 Request Entity Too Large"), "bytes"),
        (413, message("Request exceeds the maximum size"), "bytes"),
        (413, message("Request too large (max 32MB). Try with a smaller file."), "bytes"),
        (400, message("total message size 10176584 exceeds limit 2097152"), "bytes"),
        (500, message("no user query found in messages"), "lost"),
        # These say what is wrong.
        (400, message("Unknown parameter: 'colour' of the request."), ""),
        (400, message("Image too small, 10x10 is the minimum."), ""),
        (400, message("Video too long"), ""),
        (400, message("请求参数错误，请检查后重试"), ""),
        (400, message("Invalid 'tools': expected at most 128 items, got 200."), ""),
        (413, message("Rate limit reached for m on requests per min. Try again in 2s."), ""),
        (400, message("prompt is too long: 9000 tokens > 8192 maximum"), ""),
        # Other statuses have other reasons.
        (500, "", ""),
        (404, "", ""),
        (429, "", ""),
    ],
)
def test_sign(make: Callable[[int, str], Exception], status: int, body: str, sign: str) -> None:
    assert sign_of(make(status, body)) == sign


def test_sign_of_litellms_errors() -> None:
    assert sign_of(by_litellm(400, "Provider returned error")) == "bare"
    assert sign_of(by_litellm(413, "Request Entity Too Large")) == "bytes"
    assert sign_of(by_litellm(400, "Image too small, 10x10 is the minimum.")) == ""


def test_sign_of_a_cause() -> None:
    error = RuntimeError("the model failed")
    error.__cause__ = by_openai(413, "")
    assert sign_of(error) == "bytes"


FALLBACK = (
    "litellm.RateLimitError: RateLimitError: OpenAIException - {0}\n\nLiteLLM: model group "
    "'big' failed with the error above. Fallback to small also failed: "
    "litellm.ContextWindowExceededError: OpenAIException - This model's maximum context length is "
    "8192 tokens. However, your messages resulted in 14138 tokens."
)


class RateLimitError(Exception):
    status_code = 429
    code = "rate_limit_exceeded"


@pytest.mark.parametrize(
    "why",
    [
        "Rate limit reached for gpt-big on requests per min. Please try again in 20s.",
        "You exceeded your current quota, please check your plan and billing details.",
        "Too many requests. Please slow down.",
    ],
)
def test_a_fallbacks_refusal_behind_the_first_models_rate_limit(why: str) -> None:
    limit = detect_token_limit(RateLimitError(FALLBACK.format(why)))
    assert limit is not None
    assert (limit.limit, limit.requested) == (8192, 14138)
