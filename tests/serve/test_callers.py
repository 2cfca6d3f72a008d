"""Every header and parameter with a key identifies a caller, and so does the body's user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from compacter.errors import ConfigurationError
from compacter.gateway.serve.callers import CONNECTION, Callers
from compacter.serve import create_app

Serve = Callable[..., Any]
digest = Callers().digest
KEYED = """
authorization api-key x-api-key apikey x-goog-api-key ocp-apim-subscription-key x-litellm-api-key
x-portkey-api-key x-portkey-virtual-key x-amz-security-token helicone-auth cf-aig-authorization
x-auth-token x-access-token x-company-apikey cookie openai-organization openai-project
anthropic-workspace-id x-openwebui-user-id x-tenant x-forwarded-user x-ssl-client-cert
"""
OTHERS = "idempotency-key x-request-id user-agent x-max-tokens traceparent"


@pytest.mark.parametrize("name", KEYED.split())
def test_a_header_that_carries_a_key_or_an_account_identifies(name: str) -> None:
    assert digest([(name.encode(), b"one")]) != digest([(name.encode(), b"two")])


@pytest.mark.parametrize("query", ["key={}", "api_key={}", "apiKey={}&alt=sse", "access_token={}"])
def test_so_does_a_query_parameter(query: str) -> None:
    assert digest([], query.format("one")) != digest([], query.format("two"))
    assert digest([], query.format("one")) == digest([], query.format("one"))


@pytest.mark.parametrize("name", ["user", "safety_identifier", "metadata"])
def test_so_does_the_user_that_the_body_names(name: str) -> None:
    key = [(b"authorization", b"Bearer team")]
    bodies = [{name: {"user_id": user} if name == "metadata" else user} for user in ("ann", "bob")]
    assert digest(key, "", bodies[0]) != digest(key, "", bodies[1])


@pytest.mark.parametrize("name", OTHERS.split())
def test_what_differs_from_request_to_request_does_not(name: str) -> None:
    key = (b"authorization", b"Bearer one")
    assert digest([key, (name.encode(), b"1")]) == digest([key, (name.encode(), b"2")])


def test_of_a_signature_only_the_id_of_its_key_counts() -> None:
    def signed(key: str, signature: str) -> bytes:
        scope = f"Credential={key}/20261123/us-east-1/bedrock/aws4_request"
        return f"AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature={signature}".encode()

    pairs = (("A", "1"), ("A", "2"), ("B", "1"))
    one, same, other = (digest([(b"authorization", signed(*pair))]) for pair in pairs)
    assert one == same != other


def test_a_name_that_the_operator_gives_counts_too() -> None:
    named = Callers(frozenset({"x-seat"}))
    assert named.digest([(b"X-Seat", b"1")]) != named.digest([(b"x-seat", b"2")])


def test_without_a_key_nothing_is_shared_beyond_a_connection() -> None:
    """Callers without a key share within a connection; nothing if connections have no names."""
    one, other = ({"state": {CONNECTION: name}} for name in "ab")
    assert digest([], scope=one) == digest([], scope=one) != digest([], scope=other)
    forwarded = [digest([(b"x-forwarded-for", ip)], scope=one) for ip in (b"1.1", b"2.2")]
    assert forwarded[0] != forwarded[1]
    nameless = {"client": ("127.0.0.1", 4000)}
    assert digest([], scope=nameless) != digest([], scope=nameless)


def test_on_a_machine_with_one_user_all_may_be_shared() -> None:
    shared = Callers(keyless="shared").digest
    assert shared([], scope={"state": {CONNECTION: "a"}}) == shared([])
    assert shared([(b"authorization", b"Bearer one")]) != shared([])
    with pytest.raises(ConfigurationError, match="keyless"):
        create_app("https://api.openai.com/v1", keyless="never")


def test_a_digest_of_credentials_cannot_be_shifted_from_one_header_to_the_next() -> None:
    keys = {
        digest([(b"authorization", b"ab"), (b"cookie", b"c")]),
        digest([(b"authorization", b"a"), (b"cookie", b"bc")]),
        digest([(b"authorization", b"abcookiec")]),
        Callers(keyless="shared").digest([]),
    }
    assert len(keys) == 4


@pytest.mark.parametrize("same", [True, False])
def test_a_keyless_conversation_goes_on_in_its_connection_alone(
    serve: Serve, openai_server: Any, talk: Callable[..., Any], *, same: bool
) -> None:
    serving = serve(f"{openai_server.url}/v1")
    url = f"{serving.url}/v1/chat/completions"
    with httpx.Client(timeout=300) as first, httpx.Client(timeout=300) as second:
        for client in (first, first if same else second):
            assert client.post(url, json={"model": "m", "messages": talk()}).status_code == 200
    assert serving.board.numbers()["rounds"] == (1 if same else 2)
