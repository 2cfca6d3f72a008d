"""Every protocol, every kind of stream, every vendor's way to refuse: the client gets an answer."""

from __future__ import annotations

import itertools

import pytest
from tests.gateway.conftest import PATHS, Start, config, deployment, new_mark, request, said

from pretend_fleet.provider import Provider, Seen
from pretend_fleet.proxies import Proxy

# Names of model groups: a comma in one would mean several models.
UPSTREAMS = {
    "openai": "openai/plain",
    "openai-new-words": "openai/new",
    "llama.cpp": "openai/llama",
    "anthropic": "anthropic/claude",
    "bedrock": "bedrock/converse/amazon.nova",
    "bedrock-new-words": "bedrock/converse/amazon.nova-new",
    "bedrock-claude": "bedrock/anthropic.claude",
    "openai-inside-200": "openai/plain-event",
    "openai-new-words-inside-200": "openai/new-event",
    "anthropic-inside-200": "anthropic/event",
    "bedrock-inside-200": "bedrock/converse/amazon.nova-event",
    "bedrock-new-words-inside-200": "bedrock/converse/amazon.nova-new-event",
    "bedrock-claude-inside-200": "bedrock/anthropic.claude-event",
}
# litellm reads a chat stream's first event itself, and neither retries Bedrock's exception there
# nor tells a plug-in.
UNREACHED = {("chat", "bedrock-new-words-inside-200")}
MODES = {"plain": (False, False), "streamed": (True, False), "inside-200": (True, True)}
CELLS = [
    pytest.param(protocol, upstream, stream, id=f"{protocol} {mode} {upstream}")
    for protocol, (mode, (stream, inside)), upstream in itertools.product(
        PATHS, MODES.items(), UPSTREAMS
    )
    if inside == upstream.endswith("inside-200") and (protocol, upstream) not in UNREACHED
]


@pytest.fixture(scope="module")
def proxy(start: Start, provider: Provider) -> Proxy:
    models = [deployment("writer", "openai/writer-window-100000", provider)]
    for name, model in UPSTREAMS.items():
        models.append(deployment(name, model, provider))
        models.extend([deployment(f"{name}-two", model, provider)] * 2)
        models.append(deployment(f"{name}-twice", f"{model}-bare-window-700", provider))
    return start(config(models))


@pytest.mark.parametrize(("protocol", "upstream", "stream"), CELLS)
def test_a_history_that_is_too_long_is_answered(
    proxy: Proxy, provider: Provider, protocol: str, upstream: str, stream: bool
) -> None:
    mark = new_mark()
    answer = proxy.post(PATHS[protocol], request(protocol, upstream, mark, stream=stream))
    assert answer.status == 200, answer.text
    assert mark in said(answer, stream=stream)
    assert [seen.status for seen in _seen(provider, mark)].count(400) == 1
    assert "compacter_" not in str([seen.body for seen in _seen(provider, mark)])


@pytest.mark.parametrize(("protocol", "upstream", "stream"), CELLS)
def test_with_tools_no_pair_is_torn_and_the_call_arrives(
    proxy: Proxy, provider: Provider, protocol: str, upstream: str, stream: bool
) -> None:
    mark = new_mark()
    answer = proxy.post(
        PATHS[protocol], request(protocol, upstream, mark, stream=stream, tools=True)
    )
    assert answer.status == 200, answer.text
    words = said(answer, stream=stream)
    assert "look_up" in words
    assert '"q"' in words
    assert "ERROR" not in words


@pytest.mark.parametrize(("protocol", "upstream", "stream"), CELLS)
def test_with_two_deployments_neither_is_cooled_down(
    proxy: Proxy, provider: Provider, protocol: str, upstream: str, stream: bool
) -> None:
    mark = new_mark()
    for _ in range(3):
        answer = proxy.post(
            PATHS[protocol], request(protocol, f"{upstream}-two", mark, stream=stream)
        )
        assert answer.status == 200, answer.text
        assert mark in said(answer, stream=stream)
    assert _summaries(provider, mark) == 1


@pytest.mark.parametrize(("protocol", "upstream", "stream"), CELLS)
def test_two_refusals_in_a_row_compact_deeper(
    proxy: Proxy, provider: Provider, protocol: str, upstream: str, stream: bool
) -> None:
    mark = new_mark()
    answer = proxy.post(
        PATHS[protocol], request(protocol, f"{upstream}-twice", mark, stream=stream, count=40)
    )
    assert answer.status == 200, answer.text
    assert mark in said(answer, stream=stream)
    assert [seen.status for seen in _seen(provider, mark)].count(400) >= 2


def _seen(provider: Provider, mark: str) -> list[Seen]:
    return [
        seen
        for seen in list(provider.seen)
        if mark in str(seen.body) and "writer" not in seen.model
    ]


def _summaries(provider: Provider, mark: str) -> int:
    return sum("writer" in seen.model and mark in str(seen.body) for seen in list(provider.seen))
