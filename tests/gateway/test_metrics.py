"""Every figure that is promised is counted, in a real proxy."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.gateway.conftest import Json, Start, config, deployment, new_mark, request

from compacter.gateway.metrics import COUNTERS, MEMORY_OPEN, SECONDS
from pretend_fleet.provider import Provider
from pretend_fleet.proxies import Proxy

CHAT = "/v1/chat/completions"
AHEAD = {"prepare_tokens": 0.5, "fallback": None}


def settings(memory: Json) -> Json:
    return {
        "memory": memory,
        "model_groups": {
            "lost": {"summarizer": "mute"},
            "shadow": {"dry_run": True},
            "ahead": AHEAD,
            "behind": {**AHEAD, "summarizer": "mute"},
        },
    }


@pytest.fixture
def begin(start: Start, provider: Provider) -> Callable[[Json], Proxy]:
    groups = {
        **dict.fromkeys(("plain", "lost", "shadow", "ahead", "behind"), "openai/plain"),
        "output": "openai/output",
        "mute": "openai/broken",
        "writer": "openai/writer-window-100000-slow-0.5",
    }
    priced = {"writer": {"input_cost_per_token": 0.001, "output_cost_per_token": 0.001}}
    models = [
        deployment(name, model, provider, **priced.get(name, {})) for name, model in groups.items()
    ]

    def begin(memory: Json) -> Proxy:
        made = config(models, settings(memory), litellm_settings={"num_retries": 0})
        made["litellm_settings"]["callbacks"].append("prometheus")
        return start(made)

    return begin


def counted(proxy: Proxy) -> dict[str, float]:
    """All that is above zero, summed over its labels."""
    sums: dict[str, float] = {}
    page = proxy.get("/metrics/").text
    for name, value in re.findall(r"^compacter_(\w+)(?:\{.*\})? (\S+)$", page, re.MULTILINE):
        if not name.endswith(("_created", "_bucket", "_sum")):
            short = name.removesuffix("_total").removesuffix("_count")
            sums[short] = sums.get(short, 0) + float(value)
    return {name: amount for name, amount in sums.items() if amount}


def ask(proxy: Proxy, group: str, mark: str, count: int = 20, **more: object) -> None:
    """A call; what becomes of it is not looked at."""
    proxy.post(CHAT, {**request("chat", group, mark, count=count), **more})


def reach(proxy: Proxy, name: str, amount: float) -> None:
    """Wait until what happens in the background is counted."""
    end = time.monotonic() + 60
    while counted(proxy).get(name, 0) < amount:
        assert time.monotonic() < end, (name, counted(proxy))
        time.sleep(0.1)


def test_every_counter_is_counted(begin: Callable[[Json], Proxy], tmp_path: Path) -> None:
    proxy = begin({"address": f"sqlite:{tmp_path / 'memory.db'}"})
    mark = new_mark()
    ask(proxy, "plain", mark)
    ask(proxy, "plain", mark)
    asking = request("chat", "plain", mark, count=40)
    asking["messages"][-1]["content"] = "What stands between the windows of garden number 3?"
    proxy.post(CHAT, asking)
    mark = new_mark()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: ask(proxy, "plain", mark), range(2)))
    ask(proxy, "lost", new_mark())
    ask(proxy, "shadow", new_mark())
    huge = {"model": "plain", "messages": [{"role": "user", "content": "x" * 9_000}]}
    proxy.post(CHAT, huge)
    ask(proxy, "output", new_mark(), 2, max_tokens=1_400)
    for group, done in (("ahead", "prepared"), ("behind", "preparations_failed")):
        ask(proxy, group, new_mark())  # From now on the window is known.
        marks = [new_mark(), new_mark()]
        for number, mark in enumerate(marks, 1):
            for count in (9, 10):
                ask(proxy, group, mark, count)
            reach(proxy, done, number)
        ask(proxy, group, marks[0])
        another = request("chat", group, marks[1])
        another["messages"][3:] = request("chat", group, new_mark())["messages"][3:]
        proxy.post(CHAT, another)
    found = {*counted(proxy)}

    away = begin({"address": "redis://127.0.0.1:1/0"})
    ask(away, "plain", new_mark())
    assert counted(away)[MEMORY_OPEN] == 1
    found |= {*counted(away)}
    # These models have no price.
    assert {*COUNTERS, *SECONDS} - found == {"saved_usd"}
