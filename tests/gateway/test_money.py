"""A summary is paid by the key whose history is compacted, and a key that is spent is refused."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import pytest
from tests.gateway.conftest import Start, config, deployment, new_mark, request

from pretend_fleet.provider import Provider
from pretend_fleet.proxies import Proxy

CHAT = "/v1/chat/completions"
PRICED = {"input_cost_per_token": 0.001, "output_cost_per_token": 0.002}


@pytest.fixture(scope="module")
def proxy(start: Start, provider: Provider) -> Proxy:
    models = [
        deployment("plain", "openai/plain", provider, **PRICED),
        deployment("writer", "openai/writer-window-100000", provider, **PRICED),
    ]
    said = config(
        models,
        general_settings={
            "custom_auth": "gateway_budget.user_api_key_auth",
            "custom_auth_run_common_checks": True,
        },
    )
    said["litellm_settings"]["callbacks"].append("gateway_budget.logger")
    return start(said)


def lines(proxy: Proxy, name: str) -> list[dict[str, Any]]:
    path = proxy.log.with_name(name)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def spent(proxy: Proxy, name: str, least: int) -> tuple[float, float]:
    """The key's counter, and the costs of its calls, as soon as this many are logged."""
    end = time.monotonic() + 60
    counted = cost = 0.0
    while time.monotonic() < end:
        replace(proxy, key=f"sk-{name}").get("/v1/models")
        counted = [line["spent"] for line in lines(proxy, "spent.jsonl") if line["key"] == name][-1]
        calls = [line["cost"] for line in lines(proxy, "record.jsonl") if line["key"] == name]
        cost = sum(calls)
        if len(calls) >= least and counted == pytest.approx(cost):
            break
        time.sleep(0.05)
    return counted, cost


def test_the_counter_of_a_key_rises_by_answer_and_summary(proxy: Proxy) -> None:
    name = f"payer{time.monotonic_ns()}"
    answer = proxy.post(CHAT, request("chat", "plain", new_mark()), key=f"sk-{name}")
    assert answer.status == 200, answer.text
    counted, cost = spent(proxy, name, 2)
    groups = {line["model_group"] for line in lines(proxy, "record.jsonl") if line["key"] == name}
    assert groups == {"plain", "writer"}
    assert counted == pytest.approx(cost)
    assert cost > 1


def test_a_key_that_is_spent_is_refused(proxy: Proxy, provider: Provider) -> None:
    name = f"spender{time.monotonic_ns()}"
    assert proxy.post(CHAT, request("chat", "plain", new_mark()), key=f"sk-{name}").status == 200
    counted, _ = spent(proxy, name, 2)
    mark = new_mark()
    key = f"sk-{name}-upto-{counted / 2}"
    answer = proxy.post(CHAT, request("chat", "plain", mark, count=1), key=key)
    assert answer.status in (400, 422, 429)
    assert "budget_exceeded" in answer.text
    assert not any(mark in str(seen.body) for seen in list(provider.seen))
