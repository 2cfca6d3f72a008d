"""Behind the proxy nobody waits for a summary that could be made ahead."""

from __future__ import annotations

import time

import pytest
from tests.gateway.conftest import Start, config, deployment, new_mark, request

from compacter.gateway.litellm_proxy.settings import Settings
from pretend_fleet.provider import Provider
from pretend_fleet.proxies import Proxy

CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def proxy(start: Start, provider: Provider) -> Proxy:
    models = [
        deployment("plain", "openai/plain", provider),
        deployment("writer", "openai/writer-window-100000", provider),
    ]
    return start(config(models, {"prepare_tokens": 0.7}))


@pytest.mark.parametrize("stream", [False, True])
def test_a_growing_conversation_is_not_refused_once_the_window_is_known(
    proxy: Proxy, provider: Provider, stream: bool
) -> None:
    def say(count: int, mark: str) -> None:
        answer = proxy.post(CHAT, request("chat", "plain", mark, count=count, stream=stream))
        assert answer.status == 200, answer.text

    say(20, new_mark())  # Refused: from now on the window is known.
    mark = new_mark()
    for count in range(4, 24):
        say(count, mark)
        time.sleep(0.3)  # The user reads the answer.
    requests = [seen for seen in list(provider.seen) if mark in str(seen.body)]
    assert any("writer" in seen.model for seen in requests)
    assert [seen.tokens for seen in requests if seen.status != 200] == []


def test_it_is_on_unless_it_is_turned_off() -> None:
    def option(given: object) -> object:
        return Settings(given).of("plain", (None,), (None,))[1].options.prepare_tokens

    assert option({}) == 0.7
    assert option({"prepare_tokens": None}) is None
