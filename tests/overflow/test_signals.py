"""Signals read from an exception: texts, codes, status and types, wherever an SDK puts them."""

from __future__ import annotations

from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest

from compacter.overflow import explain
from compacter.overflow.signals import signals_of


class ProviderError(Exception):
    def __init__(self, text: str = "", /, **attributes: Any) -> None:
        super().__init__(text)
        self.__dict__.update(attributes)


class Code(Enum):
    BAD = "bad_code"


class HTTPResponse:
    """A response that keeps its body, as requests and httpx do; its other attributes are not
    texts.
    """

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


@pytest.mark.parametrize(
    "name", ["message", "msg", "detail", "description", "error_message", "errorMessage", "reason"]
)
@pytest.mark.parametrize("value", ["too long", b"too long"])
def test_a_text_is_read_under_each_name(name: str, value: object) -> None:
    assert "too long" in signals_of(ProviderError(**{name: value})).text


@pytest.mark.parametrize("name", ["body", "error", "response", "data", "payload", "raw", "content"])
@pytest.mark.parametrize(
    "body", ["too long", {"a": ["too long"]}, ("too long",), SimpleNamespace(a="too long")]
)
def test_a_body_is_read_under_each_name_and_in_each_shape(name: str, body: object) -> None:
    assert "too long" in signals_of(ProviderError(**{name: body})).text


def test_each_text_is_read_once() -> None:
    assert (
        signals_of(ProviderError("too long", message="too long", body={"message": "too long"})).text
        == "too long"
    )


def test_texts_do_not_run_into_one_sentence() -> None:
    assert signals_of(ProviderError("one", message="two")).text == "one \x1e two"


@pytest.mark.parametrize(
    "body", [{"messages": [{"content": "too long"}]}, {"request": {"a": "too long"}}]
)
def test_what_repeats_the_request_is_left_out(body: object) -> None:
    assert "too long" not in signals_of(body).text


def test_a_number_is_told_with_its_name_unless_it_is_a_code() -> None:
    body = {"n_prompt": 9000, "a": {"b": "c"}, "n_ctx": 8192, "code": 7, "ok": True}

    assert signals_of(body).text == "n_prompt: 9000 \x1e b: c \x1e n_ctx: 8192"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"limit": ["a", 5]}, "limit: a \x1e limit: 5"),
        ({"error": "short"}, "error: short"),
        ({"error": "two words"}, "two words"),
        ({"error": "x" * 60}, "x" * 60),
        ([None, True, "a"], "a"),
        ({"a": print}, ""),
        (b"caf\xc3\xa9 \xff", "café �"),
    ],
)
def test_leaves_are_told_with_their_names(body: object, text: str) -> None:
    assert signals_of(body).text == text


def test_a_body_is_read_within_bounds() -> None:
    deep: object = "too long"
    for _ in range(20):
        deep = [deep]

    assert signals_of(deep).text == ""
    assert signals_of([["x"] * 60] * 60).text == "x"
    assert "y" not in signals_of(["x"] * 60 + ["y"]).text
    assert len(signals_of(["x" * 20_000, "y" * 20_000, "z" * 20_000]).text) < 32_768 + 20_000


@pytest.mark.parametrize(
    ("attributes", "status"),
    [
        ({"status_code": 400}, 400),
        ({"status": "413"}, 413),
        ({"http_status": 422}, 422),
        ({"code": 429}, 429),
        ({"response": SimpleNamespace(status_code=503)}, 503),
        ({"body": {"statusCode": 404}}, 404),
        ({"body": {"error": {"status": 400}, "code": 500}}, 400),
        ({"status_code": 100}, 100),
        ({"status_code": 599}, 599),
        ({"status_code": 99}, None),
        ({"status_code": 600}, None),
        ({"status_code": True}, None),
        ({"status_code": "four hundred"}, None),
        ({"status_code": 400, "body": {"status": 500}}, 400),
        ({}, None),
    ],
)
def test_a_status_is_read_wherever_it_is(attributes: dict[str, Any], status: int | None) -> None:
    assert signals_of(ProviderError(**attributes)).status == status


@pytest.mark.parametrize(
    ("attributes", "codes"),
    [
        ({"code": "Too_Long"}, {"too_long"}),
        ({"type": "a", "error_code": 17}, {"a", "17"}),
        ({"code": Code.BAD}, {"bad_code"}),
        ({"body": {"error": {"code": "x", "type": "y"}}}, {"x", "y"}),
        ({"body": {"code": 20012}}, {"20012"}),
        ({"code": "two words"}, set()),
        ({"code": ""}, set()),
        ({"code": "x" * 100}, {"x" * 100}),
        ({"code": "x" * 101}, set()),
        ({"code": -1}, set()),
        ({"code": 0}, {"0"}),
    ],
)
def test_codes_are_read_wherever_they_are(attributes: dict[str, Any], codes: set[str]) -> None:
    assert signals_of(ProviderError(**attributes)).codes == codes


def test_the_classes_of_an_exception_and_those_in_its_text_are_its_types() -> None:
    found = signals_of(ProviderError("openai.BadRequestError: no"))

    assert [name.rpartition(".")[2] for name in found.types] == [
        "ProviderError",
        "Exception",
        "BaseException",
        "BadRequestError",
    ]
    assert found.text.split() == [":", "no"]
    assert signals_of("no").types == ()


@pytest.mark.parametrize("name", ["_content", "_body", "_text"])
def test_a_response_in_memory_is_read(name: str) -> None:
    response = HTTPResponse(headers={"x": "secret"}, **{name: b"too long"})

    assert signals_of(ProviderError(response=response)).text == "too long"


@pytest.mark.parametrize("name", ["headers", "_headers", "_request", "request"])
def test_of_a_response_that_is_not_read_nothing_is_taken(name: str) -> None:
    assert (
        signals_of(ProviderError(response=HTTPResponse(**{name: "x"}, note="too long"))).text == ""
    )


@pytest.mark.parametrize(
    ("name", "network"),
    [
        ("ReadTimeout", True),
        ("APITimeoutError", True),
        ("TimedOut", True),
        ("ConnectError", True),
        ("ConnectionResetError", True),
        ("ClientConnectorError", True),
        ("ServerDisconnectedError", True),
        ("RemoteProtocolError", True),
        ("IncompleteRead", True),
        ("BadRequestError", False),
        ("ConnectedAppError", False),
        ("ReaderError", False),
    ],
)
def test_errors_of_the_network_are_known_by_their_class(name: str, *, network: bool) -> None:
    error = type(name, (Exception,), {"__module__": "some.sdk.Connect.Timeout"})()

    assert (explain(error).rule == "network") is network
