"""Requests go to the upstreams that were named, whatever they say of themselves."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest

from compacter.errors import ConfigurationError
from compacter.gateway.serve.upstream import Upstream, climbs, is_loopback, parse_upstreams
from compacter.serve import create_app

Serve = Callable[..., Any]
OWN = ("/v1/models", "/compacter", "/healthz")
UPWARDS = """
/v1/../admin /v1/%2e%2e/admin /v1/..;/admin /v1/..;a=b/admin /v1/.;/admin /v1/%2e%2e%3bx/admin
/v1/%252e%252e/admin /v1/..%252fadmin /v1/%c0%ae%c0%ae/admin /v1/..%c0%afadmin /v1/..%20/admin
/v1/..%00/admin /v1/..%2fadmin /v1/.%2E/ /.. /v1/a%5c..%5cb /.
"""
ELSEWHERE = """
GET http://169.254.169.254/latest
GET https://example.com/
CONNECT example.com:443
OPTIONS *
GET file:///etc/passwd
""".strip().splitlines()
OTHER_HOSTS = ("example.com", "169.254.169.254", "localhost.example.com", "a.nip.io", "[::", "")
REFUSED = [
    *((line, "HOST") for line in ELSEWHERE),
    *((f"GET {path}", "HOST") for path in UPWARDS.split()),
    *((f"GET {path}", f"Host: {host}") for host in OTHER_HOSTS for path in OWN),
]


def code(got: bytes) -> str:
    found: str = json.loads(got.partition(b"\r\n\r\n")[2])["error"]["code"]
    return found


@pytest.mark.parametrize(("line", "host"), REFUSED)
def test_a_request_for_another_server_is_refused(passing: Any, line: str, host: str) -> None:
    """A request that names another server, by URL, host or a path upwards, reaches nobody."""
    serving, server = passing
    got = serving.ask(f"{line} HTTP/1.1\n{host}\nConnection: close\n\n")
    assert got.startswith(b"HTTP/1.1 400 ")
    assert code(got) == "not_a_proxy"
    assert server.asked == []


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:80", "127.0.0.1", "127.1.2.3:8484", "[::1]:8484", "[::1]"]
)
def test_a_host_that_is_this_machine_will_do(passing: Any, host: str) -> None:
    got = passing[0].ask(f"GET /v1/models HTTP/1.1\nHost: {host}\nConnection: close\n\n")
    assert got.endswith(b"{}")


@pytest.mark.parametrize(
    "path", ["//example.com/x", "/@example.com/", "/\\example.com", "/http://example.com/"]
)
def test_a_path_that_looks_like_a_host_is_a_path(passing: Any, path: str) -> None:
    serving, server = passing
    serving.get(path)
    (asked,) = server.asked
    assert asked.header("host") == [server.url.removeprefix("http://")]
    assert asked.target.endswith(path)


def test_a_redirect_is_the_callers_to_follow(serve: Serve, answering: Any) -> None:
    server = answering(b"", "307 Elsewhere", more="Location: http://x/\r\n")
    serving = serve(server.url)
    for path in ("/v1/messages", "/v1/models"):
        got = serving.post(path, {"messages": [{"role": "user", "content": "Hello"}]})
        assert b"location: http://x/" in got.lower()
    assert len(server.asked) == 2


def test_several_upstreams_are_reached_by_name_alone(serve: Serve, answering: Any) -> None:
    one, two = answering(b"1"), answering(b"2")
    serving = serve([f"one={one.url}/v1", f"two={two.url}"])
    for path, answer in (("/one/v1/models", b"1"), ("/two/v1/models", b"2"), ("/one/models", b"1")):
        assert serving.get(path).endswith(answer)
    assert [asked.target for asked in (*one.asked, *two.asked)] == ["/v1/models"] * 3
    got = serving.get("/three/v1/models")
    assert (code(got), b"/one, /two" in got) == ("unknown_upstream", True)


@pytest.mark.parametrize(
    ("base", "path", "found"),
    [
        ("https://a.test/v1", "/v1/chat/completions", "https://a.test/v1/chat/completions"),
        ("https://a.test/v1/", "/chat/completions", "https://a.test/v1/chat/completions"),
        ("https://openrouter.ai/api/v1", "/v1/models", "https://openrouter.ai/api/v1/models"),
        ("https://openrouter.ai/api/v1", "/api/v1/models", "https://openrouter.ai/api/v1/models"),
        ("https://api.anthropic.com", "/v1/messages", "https://api.anthropic.com/v1/messages"),
        ("https://api.anthropic.com", "/", "https://api.anthropic.com/"),
        ("https://h/v1", "/v1", "https://h/v1"),
        ("https://h/v1", "/v10/x", "https://h/v1/v10/x"),
        ("http://[::1]:9/v1", "/v1/x", "http://[::1]:9/v1/x"),
        ("https://köln.test/ü v1", "/models", "https://xn--kln-sna.test/%C3%BC%20v1/models"),
        ("https://h/ü", "/%C3%BC/models", "https://h/%C3%BC/models"),
    ],
)
def test_paths_are_the_upstreams(base: str, path: str, found: str) -> None:
    upstream = Upstream.parse(base)
    assert str(upstream.url(upstream.tail(path))) == found


BAD = [
    *("", "api.openai.com/v1", "ftp://host/", "https://", "https://host:port/", "https://host/\1"),
    *("https://user:pass@host/", "https://host/?key=1", "https://host/#x", "https://my host/v1"),
    *(7, None, [], ["https://a", "https://b"], ["a=https://a", "A=https://b"]),
]


@pytest.mark.parametrize("given", BAD)
def test_an_upstream_that_is_none_is_refused_by_name(given: Any) -> None:
    with pytest.raises(ConfigurationError, match="upstream") as caught:
        parse_upstreams(given)
    assert "pass@" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ALL_PROXY", "ftp://me:hunter2@proxy.test:21"),
        ("HTTPS_PROXY", "none://proxy"),
        ("SSL_CERT_FILE", "/no/such/file"),
    ],
)
def test_an_environment_that_no_request_can_be_made_in_is_named_at_once(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=name) as caught:
        create_app("https://api.openai.com/v1")
    assert "hunter2" not in str(caught.value)


def test_what_looks_upwards_is_seen_and_nothing_else() -> None:
    paths = ["/v1/a..b", "/...", "/v1/%2e%2e%2e", "/v1/a;..", "/v1/..a;", "/.well-known/x", "/"]
    assert not any(map(climbs, paths))


def test_this_machine_is_known_by_its_names() -> None:
    assert all(map(is_loopback, ("localhost", "127.9.9.9", "[::1]", "::1")))
    assert not any(map(is_loopback, ("", "example.com", "10.0.0.1", "0.0.0.0", "::", "127.1")))  # noqa: S104


def test_an_environments_proxy_does_not_stand_before_this_machine(
    serve: Serve, answering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{listener.getsockname()[1]}")
        assert serve(answering().url).get("/v1/models").endswith(b"{}")
