"""Exceptions around exceptions: which one speaks for the chain."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any

import pytest
import tenacity

from compacter.overflow import TokenLimit, detect_token_limit

TEXT = "prompt is too long: 9000 tokens > 8192 maximum"


class ProviderError(Exception):
    """An SDK's error: text, status, code and body."""

    def __init__(
        self, message: str, status: int | None = None, code: str | None = None, body: object = None
    ) -> None:
        super().__init__(message)
        self.status_code = status
        self.code = code
        self.body = body


class RateLimitError(ProviderError):
    pass


class ContextWindowExceededError(ProviderError):
    pass


class LLMError(Exception):
    pass


class OrderNotFound(Exception):  # noqa: N818 - applications name them so
    pass


def raised(outer: Exception, inner: Exception | None, *, how: str) -> Exception:
    """``outer`` as it comes out of a handler of ``inner``."""
    before = inner or ProviderError(TEXT, 400)
    outer.__context__ = before  # what Python sets in the handler
    if how == "from":
        outer.__cause__ = before
    elif how == "from none":
        outer.__cause__ = None  # which also suppresses the context
    return outer


def test_a_cause_counts_whatever_wraps_it() -> None:
    found = detect_token_limit(raised(ValueError("no answer"), None, how="from"))

    assert found is not None
    assert (found.limit, found.requested) == (8192, 9000)


def test_a_cause_of_a_cause_counts() -> None:
    middle = raised(LLMError("call failed"), None, how="from")

    assert detect_token_limit(raised(RuntimeError("agent failed"), middle, how="from")) is not None


def app_error(text: str, base: type[Exception] = Exception) -> Exception:
    error: Exception = type("AppError", (base,), {})(text)
    return error


@pytest.mark.parametrize(
    "outer",
    [
        LLMError("the call failed"),
        LLMError(""),
        RuntimeError("LLM error"),
        RuntimeError("no completion could be had: unexpected error"),
        RuntimeError(TEXT),
        Exception(),
        Exception("it failed"),
        type("LLMValueError", (ValueError,), {})("anything"),
        app_error("the request failed"),
        app_error(""),
    ],
)
def test_the_context_counts_when_the_outer_error_only_wraps(outer: Exception) -> None:
    """An error that says no more than "it failed" wraps the one that was being handled."""
    assert detect_token_limit(raised(outer, None, how="context")) is not None


@pytest.mark.parametrize(
    "outer",
    [
        Exception("order 17 is gone"),
        ValueError("it failed"),
        KeyError("answer"),
        TypeError("'NoneType' object is not subscriptable"),
        AttributeError("no attribute"),
        ConnectionError("connection reset"),
        TimeoutError("timed out"),
        ZeroDivisionError("division by zero"),
        OrderNotFound("order 17 is gone"),
        app_error("it failed", ValueError),
        RateLimitError("Rate limit reached", 429),
        ProviderError("Invalid API key", 401),
        ProviderError("You exceeded your current quota", 400),
    ],
)
def test_an_old_error_in_the_context_does_not_count(outer: Exception) -> None:
    """An error with a meaning of its own only happened after the token limit."""
    assert detect_token_limit(raised(outer, None, how="context")) is None


class APIConnectionError(Exception):
    """The base class and its kin, as SDKs name them."""


class ReadTimeout(Exception):  # noqa: N818 - httpx names it so
    pass


class ConnectError(Exception):
    pass


class APITimeoutError(APIConnectionError):
    pass


class OwnError(APIConnectionError):
    """Its name says nothing of the network; its base does."""


class RemoteProtocolError(Exception):
    pass


class ServerDisconnectedError(Exception):
    pass


class ServiceUnavailableError(Exception):
    pass


@pytest.mark.parametrize(
    "outer",
    [
        APIConnectionError("Connection error."),
        APIConnectionError(""),
        ReadTimeout("The read operation timed out"),
        ReadTimeout(""),
        ConnectError("All connection attempts failed"),
        APITimeoutError("Request timed out."),
        OwnError("the request failed"),
        RemoteProtocolError("peer closed connection, LLM error"),
        ServerDisconnectedError("Server disconnected"),
        ServiceUnavailableError("the API call failed"),
        ProviderError("upstream error", 500),
        OSError("LLM call failed"),
    ],
)
def test_a_token_limit_that_was_only_interrupted_does_not_count(outer: Exception) -> None:
    assert detect_token_limit(raised(outer, None, how="context")) is None


def test_a_wrapper_of_a_network_error_is_one_too() -> None:
    network = raised(ReadTimeout(""), None, how="context")

    assert detect_token_limit(raised(LLMError("the call failed"), network, how="from")) is None
    assert detect_token_limit(raised(LLMError("the call failed"), network, how="context")) is None


def test_a_network_error_with_the_words_of_a_token_limit_is_one() -> None:
    assert detect_token_limit(APIConnectionError(f"OllamaException - {TEXT}")) is not None


def test_from_none_suppresses_the_context() -> None:
    assert detect_token_limit(raised(LLMError("the call failed"), None, how="from none")) is None


def test_a_clear_other_error_ends_the_walk_even_with_a_cause() -> None:
    assert detect_token_limit(raised(RateLimitError("slow down", 429), None, how="from")) is None


def test_the_last_of_several_tries_decides() -> None:
    error = LLMError("Failed after 2 attempts.")
    limit = ProviderError(TEXT, 400)
    rate = RateLimitError("Rate limit reached", 429)

    error.errors = [rate, limit]  # type: ignore[attr-defined]
    assert detect_token_limit(error) is not None
    error.errors = [limit, rate]  # type: ignore[attr-defined]
    assert detect_token_limit(error) is None
    error.errors = [limit, ReadTimeout("")]  # type: ignore[attr-defined]
    assert detect_token_limit(error) is None
    error.errors = [limit, KeyError("answer")]  # type: ignore[attr-defined]
    assert detect_token_limit(error) is None


def test_any_member_of_an_exception_group_may_speak() -> None:
    group = ExceptionGroup(
        "unhandled errors in a TaskGroup",
        [KeyError("x"), ExceptionGroup("", [ProviderError(TEXT)])],
    )

    found = detect_token_limit(group)

    assert found is not None
    assert found.requested == 9000


def test_a_group_without_a_token_limit_is_none() -> None:
    assert detect_token_limit(ExceptionGroup("two", [KeyError("x"), ValueError("y")])) is None


def test_the_last_attempt_of_tenacity_is_read() -> None:
    def call() -> None:
        raise ProviderError(TEXT, 400)

    with pytest.raises(tenacity.RetryError) as caught:
        tenacity.Retrying(stop=tenacity.stop_after_attempt(2))(call)
    caught.value.__cause__ = None

    assert detect_token_limit(caught.value) is not None


def test_an_attempt_without_an_exception_is_no_reason() -> None:
    """An attempt that is unfinished, cancelled or successful is not waited for."""
    done = Future[int]()
    done.set_result(1)
    cancelled = Future[int]()
    cancelled.cancel()

    for attempt in (Future[int](), done, cancelled):
        error = LLMError("retry")
        error.last_attempt = attempt  # type: ignore[attr-defined]
        assert detect_token_limit(error) is None


def test_an_exception_among_the_arguments_is_read() -> None:
    assert detect_token_limit(LLMError("call failed", ProviderError(TEXT))) is not None


def test_a_cycle_of_causes_ends() -> None:
    first = LLMError("call failed")
    second = LLMError("call failed")
    first.__cause__ = second
    second.__cause__ = first

    assert detect_token_limit(first) is None


def test_a_very_long_chain_ends() -> None:
    error: Exception = LLMError("call failed")
    for _ in range(5_000):
        outer = LLMError("call failed")
        outer.__cause__ = error
        error = outer

    assert detect_token_limit(error) is None


@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt(TEXT), SystemExit(TEXT), asyncio.CancelledError(TEXT), GeneratorExit(TEXT)],
)
def test_cancellation_is_never_a_token_limit(error: BaseException) -> None:
    assert detect_token_limit(error) is None


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": TEXT}},
        {"error": TEXT},
        {"message": TEXT, "code": 400},
        {"detail": [{"msg": TEXT}]},
        {"error": {"message": '{"error": {"message": "' + TEXT + '"}}'}},
        [{"error": {"message": TEXT, "status": "INVALID_ARGUMENT"}}],
        '{"error": "' + TEXT + '"}',
        ('{"error": "' + TEXT + '"}').encode(),
        {"error": {"type": "exceed_context_size_error", "n_prompt_tokens": 9000, "n_ctx": 8192}},
    ],
)
def test_a_body_of_any_shape_is_read(body: object) -> None:
    found = detect_token_limit(ProviderError("Bad request", 400, body=body))

    assert found is not None
    assert (found.limit, found.requested) == (8192, 9000)


def test_the_shape_of_botocore_is_read() -> None:
    error = LLMError("An error occurred")
    error.response = {  # type: ignore[attr-defined]
        "Error": {
            "Code": "ValidationException",
            "Message": ("Input is too long for requested model."),
        },
        "ResponseMetadata": {"HTTPStatusCode": 400},
    }
    assert detect_token_limit(error) is not None

    error.response = {  # type: ignore[attr-defined]
        "Error": {"Code": "ThrottlingException", "Message": "Too many tokens."},
        "ResponseMetadata": {"HTTPStatusCode": 429},
    }
    assert detect_token_limit(error) is None


def test_a_response_that_is_not_read_yet_is_not_fetched() -> None:
    class Response:
        status_code = 400

        def __init__(self) -> None:
            self.headers: dict[str, str] = {}
            self._content = False

        @property
        def text(self) -> str:
            raise AssertionError("this would read from the network")

    error = ProviderError("Bad request")
    error.response = Response()  # type: ignore[attr-defined]

    assert detect_token_limit(error) is None


def test_the_callers_own_words_in_a_body_prove_nothing() -> None:
    body = {
        "error": {"message": "unsupported role"},
        "messages": [{"role": "user", "content": TEXT}],
    }

    assert detect_token_limit(ProviderError("Bad request", 400, body=body)) is None


class HostileError(Exception):
    """Everything that can go wrong in a class does."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    def __getattr__(self, name: str) -> Any:
        raise MemoryError(name)


def test_a_hostile_object_is_no_token_limit_and_no_crash() -> None:
    assert detect_token_limit(HostileError()) is None
    assert detect_token_limit(raised(HostileError(), None, how="from")) == TokenLimit(
        8192, 9000, source="too long in tokens"
    )
