"""Every figure that is promised is counted, in the pass-through."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import openai
import pytest
from tests.clients import loopback
from tests.serve.test_seen import Broken, figure, get

from compacter import RedisMemory
from compacter.gateway.metrics import COUNTERS, SECONDS
from compacter.gateway.serve.app import GAUGES
from compacter.gateway.serve.board import OWN_COUNTERS

Serve = Callable[..., Any]
Talk = Callable[..., Any]
MODEL = "gpt-4o-mini"  # Its price is known.


def ask(serving: Any, history: Any, key: str = "k", **more: Any) -> None:
    """A call; what becomes of it is not looked at."""
    with (
        openai.OpenAI(base_url=f"{serving.url}/v1", api_key=key, max_retries=0) as client,
        contextlib.suppress(openai.APIError),
    ):
        client.chat.completions.create(model=MODEL, messages=history, **more)


def counted(serving: Any) -> set[str]:
    """The names of all series that are above zero."""
    _, page = get(serving, "/metrics")
    return {
        name.removesuffix("_total").removesuffix("_count").removeprefix("compacter_")
        for name, value in re.findall(r"^(compacter_\w+)(?:\{.*\})? (\S+)$", page, re.MULTILINE)
        if float(value) and not name.endswith(("_created", "_bucket", "_sum"))
    }


def refused(messages: object, **_: object) -> str:
    raise PermissionError


def counting_output(server: loopback.Provider, path: str, body: Any) -> loopback.Answer:
    """A provider whose window has the answer in it too."""
    asked = len(str(body["messages"])) // 4
    if asked + body.get("max_tokens", 0) > loopback.WINDOW:
        error = (
            f"This model's maximum context length is {loopback.WINDOW} tokens. However, you "
            f"requested {asked + body['max_tokens']} tokens ({asked} in the messages, "
            f"{body['max_tokens']} in the completion)."
        )
        return loopback.json_answer({"error": {"message": error}}, 400)
    return loopback.openai(server, path, body)


def until(what: Callable[[], Any]) -> Any:
    """A value from the background, as soon as it exists."""
    end = time.monotonic() + 60
    while not (there := what()) and time.monotonic() < end:
        time.sleep(0.02)
    return there


def prepared(serving: Any) -> int:
    """How many compactions were made ahead, or could not be."""
    return sum(
        one.kind == "PreparationFailed"
        or (one.kind == "CompactionEvent" and one.fields["trigger"] == "prepared")
        for one in list(serving.board.records)
    )


class Held:
    """A summarizer that waits until so many calls were refused."""

    def __init__(self, server: Any, calls: int) -> None:
        self._server = server
        self._calls = calls

    def __call__(self, messages: object, **_: object) -> str:
        while len(self._server.bodies) < self._calls:
            threading.Event().wait(0.01)
        return "Piers are built of oak."


@pytest.fixture
def away() -> str:
    """The address of an upstream that is not there."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    return f"http://127.0.0.1:{port}"


def test_every_counter_is_counted(serve: Serve, openai_server: Any, talk: Talk, away: str) -> None:
    url = f"{openai_server.url}/v1"
    found = set()

    usual = serve(url)
    ask(usual, talk())
    ask(usual, talk())
    past = talk(40, "piers")
    past[1]["content"] += " The telescope of Mrs. Okafor is hidden in the clock tower."
    ask(usual, [*past, {"role": "user", "content": "Where is the telescope of Mrs. Okafor?"}])
    ask(usual, talk(8), max_tokens=1_200)
    httpx.post(f"{usual.url}/v1/chat/completions/input_tokens", json={"messages": []})
    found |= counted(usual)

    failing = serve(url, summarizer=refused, memory=Broken())
    ask(failing, talk())
    ask(failing, [{"role": "user", "content": "x" * 9_000}])
    found |= counted(failing)

    watching = serve(url, dry_run=True)
    ask(watching, talk())
    found |= counted(watching)

    unreached = serve(f"{away}/v1")
    ask(unreached, talk(2))
    found |= counted(unreached)

    together = serve(url, summarizer=Held(openai_server, len(openai_server.bodies) + 2))
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: ask(together, talk()), range(2)))
    found |= counted(together)

    for summarizer in ("extractive", refused):
        ahead = serve(url, summarizer=summarizer, fallback=None, prepare_tokens=0.5)
        ask(ahead, talk(20, "masts"))  # From now on the window is known.
        for number, about in enumerate(("piers", "ropes"), 1):
            for turns in (8, 9):
                ask(ahead, talk(turns, about))
            assert until(lambda: prepared(ahead) == number)  # noqa: B023
        ask(ahead, talk(20, "piers"))
        ask(ahead, [*talk(2, "ropes")[:3], *talk(20, "sails")])  # Its history is another one now.
        found |= counted(ahead)

    with loopback.serving(counting_output) as server:
        lowering = serve(f"{server.url}/v1")
        ask(lowering, talk(2), max_tokens=1_400)
        found |= counted(lowering)

    promised = {*COUNTERS, *OWN_COUNTERS, *SECONDS}
    assert promised - found == set()


def test_every_gauge_shows_what_is_going_on(serve: Serve, talk: Talk) -> None:
    refused = threading.Barrier(3)
    go_on = threading.Event()

    def waiting(server: loopback.Provider, path: str, body: Any) -> loopback.Answer:
        answer = loopback.openai(server, path, body)
        if answer.status == 200:  # A summary.
            assert go_on.wait(300)
        else:
            refused.wait(300)
        return answer

    memory = RedisMemory("redis://127.0.0.1:1/0")
    with loopback.serving(waiting) as server, ThreadPoolExecutor(2) as pool:
        serving = serve(f"{server.url}/v1", memory=memory)
        for about in ("piers", "locks"):
            pool.submit(ask, serving, talk(20, about))
        refused.wait(300)
        shown = until(lambda: (found := counted(serving)) >= GAUGES.keys() and found)
        go_on.set()
    assert shown


def test_tokens_are_saved_by_each_request_that_was_smaller_and_not_by_what_was_made_ahead(
    serve: Serve, openai_server: Any, talk: Talk
) -> None:
    serving = serve(f"{openai_server.url}/v1", prepare_tokens=0.5, summarizer="extractive")

    def saved() -> float:
        return figure(get(serving, "/metrics")[1], "compacter_tokens_saved_total")

    ask(serving, talk(20, "masts"))
    first = saved()
    assert first > 100
    for turns in (8, 9):
        ask(serving, talk(turns, "piers"))
    assert until(lambda: prepared(serving) == 1)
    assert saved() == first
    ask(serving, talk(20, "masts"))
    assert saved() == pytest.approx(2 * first)  # From its record.


def test_a_summary_that_fails_and_its_fallback_cost_the_same_tokens_once(
    serve: Serve, openai_server: Any, talk: Talk
) -> None:
    def empty(messages: object, **_: object) -> dict[str, Any]:
        choice = {"message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}
        return {"choices": [choice], "usage": {"prompt_tokens": 100, "completion_tokens": 7}}

    serving = serve(f"{openai_server.url}/v1", summarizer=empty)
    ask(serving, talk())
    numbers = serving.board.numbers()
    assert numbers["input_tokens"] >= 100
    spent = figure(get(serving, "/metrics")[1], "compacter_summary_tokens_total")
    assert spent == numbers["input_tokens"] + numbers["output_tokens"]


def test_figures_are_counted_for_the_class_that_the_operators_header_names(
    serve: Serve, openai_server: Any, talk: Talk
) -> None:
    serving = serve(f"{openai_server.url}/v1", class_header="X-Class")
    ask(serving, talk(), extra_headers={"x-class": "research"})
    ask(serving, talk(), extra_headers={"x-class": "sales"})
    ask(serving, talk(), key="another")
    _, page = get(serving, "/metrics")
    by_class = {
        name: figure(page, "compacter_refusals_total", tenant_class=name)
        for name in ("research", "sales", "other")
    }
    assert by_class["research"] == by_class["other"] == 1
    assert figure(page, "compacter_records_reused_total", tenant_class="sales") == 1
