"""Every header and parameter with a key tells callers apart, and so does the body's user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from compacter.errors import ConfigurationError
from compacter.gateway.serve.callers import CONNECTION, Callers
from compacter.serve import create_app

Serve = Callable[..., Any]
Talk = Callable[..., Any]
tell = Callers().digest


@pytest.mark.parametrize(
    "name",
    [
        "authorization",
        "api-key",
        "x-api-key",
        "apikey",
        "x-goog-api-key",
        "ocp-apim-subscription-key",
        "x-litellm-api-key",
        "x-portkey-api-key",
        "x-portkey-virtual-key",
        "x-amz-security-token",
        "helicone-auth",
        "cf-aig-authorization",
        "x-auth-token",
        "x-access-token",
        "x-company-apikey",
        "cookie",
        "openai-organization",
        "openai-project",
        "anthropic-workspace-id",
        "x-openwebui-user-id",
        "x-tenant",
        "x-forwarded-user",
        "x-ssl-client-cert",
    ],
)
def test_a_header_that_carries_a_key_or_an_account_tells_callers_apart(name: str) -> None:
    assert tell([(name.encode(), b"one")]) != tell([(name.encode(), b"two")])


@pytest.mark.parametrize("query", ["key={}", "api_key={}", "apiKey={}&alt=sse", "access_token={}"])
def test_so_does_a_query_parameter(query: str) -> None:
    assert tell([], query.format("one")) != tell([], query.format("two"))
    assert tell([], query.format("one")) == tell([], query.format("one"))


@pytest.mark.parametrize(
    "body_of",
    [
        lambda name: {"user": name},
        lambda name: {"safety_identifier": name},
        lambda name: {"metadata": {"user_id": name}},
    ],
)
def test_so_does_the_user_that_the_body_names(body_of: Callable[[str], dict[str, Any]]) -> None:
    key = [(b"authorization", b"Bearer team")]
    assert tell(key, "", body_of("anna")) != tell(key, "", body_of("bert"))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("idempotency-key", ("1", "2")),
        ("x-request-id", ("1", "2")),
        ("user-agent", ("a", "b")),
        ("x-max-tokens", ("1", "2")),
        ("traceparent", ("1", "2")),
    ],
)
def test_what_differs_from_request_to_request_does_not(name: str, values: tuple[str, str]) -> None:
    key = (b"authorization", b"Bearer one")
    digests = {tell([key, (name.encode(), value.encode())]) for value in values}
    assert len(digests) == 1


def test_of_a_signature_only_the_id_of_its_key_counts() -> None:
    def signed(key: str, signature: str) -> bytes:
        scope = f"Credential={key}/20261123/us-east-1/bedrock/aws4_request"
        return f"AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature={signature}".encode()

    digests = [
        tell([(b"authorization", signed(*pair))]) for pair in (("A", "1"), ("A", "2"), ("B", "1"))
    ]
    assert digests[0] == digests[1] != digests[2]


def test_a_name_that_the_operator_gives_counts_too() -> None:
    named = Callers(frozenset({"x-seat"}))
    assert named.digest([(b"X-Seat", b"1")]) != named.digest([(b"x-seat", b"2")])


def test_without_a_key_nothing_is_shared_beyond_a_connection() -> None:
    scopes = [{"state": {CONNECTION: name}} for name in "ab"]
    digests = [tell([], scope=scope) for scope in (scopes[0], scopes[0], scopes[1])]
    assert digests[0] == digests[1] != digests[2]
    forwarded = [tell([(b"x-forwarded-for", ip)], scope=scopes[0]) for ip in (b"1.1", b"2.2")]
    assert forwarded[0] != forwarded[1]


def test_where_connections_are_not_told_apart_nothing_is_shared_at_all() -> None:
    assert tell([], scope={"client": ("127.0.0.1", 4000)}) != tell(
        [], scope={"client": ("127.0.0.1", 4000)}
    )


def test_on_a_machine_with_one_user_all_may_be_shared() -> None:
    shared = Callers(keyless="shared").digest
    assert shared([], scope={"state": {CONNECTION: "a"}}) == shared([])
    assert shared([(b"authorization", b"Bearer one")]) != shared([])


def test_keyless_takes_one_of_two_words() -> None:
    with pytest.raises(ConfigurationError, match="keyless"):
        create_app("https://api.openai.com/v1", keyless="never")


@pytest.mark.parametrize("same", [True, False])
def test_a_keyless_conversation_goes_on_in_its_connection_alone(
    serve: Serve, openai_server: Any, talk: Talk, *, same: bool
) -> None:
    serving = serve(f"{openai_server.url}/v1")
    body = {"model": "m", "messages": talk()}
    url = f"{serving.url}/v1/chat/completions"
    with httpx.Client(timeout=300) as first, httpx.Client(timeout=300) as second:
        for client in (first, first if same else second):
            assert client.post(url, json=body).status_code == 200
    assert serving.board.numbers()["rounds"] == (1 if same else 2)
