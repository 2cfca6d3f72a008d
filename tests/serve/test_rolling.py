"""Two servers behind a balancer are restarted one after the other, and no caller notices."""

from __future__ import annotations

import itertools
import json
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.clients import loopback
from tests.serve.programs import program

CALLERS = 4
ENDS = {"stream": "[DONE]", "plain": loopback.WORDS}
HELD = 3
"""Streams that are open at a server when it gets the signal to end."""
SEVERAL = 12
"""Calls after which traffic has met a state of the servers: more than one for each caller."""


class Upstream:
    """Answers at once what fits; a stream whose user writes "hold" goes on at a signal."""

    def __init__(self, wire: Any, vendor: loopback.Provider) -> None:
        self.begun = threading.Semaphore(0)
        self.go_on = threading.Event()
        self._wire = wire
        self._vendor = vendor

    def __call__(self, asked: Any, write: Callable[[bytes], object]) -> None:
        body = json.loads(asked.body)
        answer = self._vendor.vendor(self._vendor, asked.target, body)
        if body["messages"][-1]["content"] != "hold":
            status = "200 OK" if answer.status == 200 else f"{answer.status} Refused"
            write(self._wire.plain(answer.body, status, answer.kind))
            return
        begin, end = answer.body[:-20], answer.body[-20:]
        write(self._wire.STREAM + self._wire.chunk(begin))
        self.begun.release()
        assert self.go_on.wait(300)
        write(self._wire.chunk(end) + self._wire.chunk(b""))


class Balancer:
    """Calls go round the servers. One that refuses a connection is passed over: the next one is
    asked. Anything else is what the caller gets.

    A connection that is reset before any answer counts as refused, as it does for balancers: the
    kernel had taken it for a server that stopped listening before it accepted it. One that a server
    has accepted and closes without an answer is not reset, and fails.
    """

    def __init__(self, ports: list[int], client: httpx.Client) -> None:
        self.passed_over = 0
        self.answered = threading.Semaphore(0)
        self._ports = ports
        self._client = client
        self._calls = itertools.count()

    def ask(self, body: dict[str, Any]) -> httpx.Response:
        """The answer; the last refusal where every server was passed over."""
        response = httpx.Response(599)
        first = next(self._calls)
        for step in range(len(self._ports)):
            port = self._ports[(first + step) % len(self._ports)]
            request = self._client.build_request(
                "POST",
                f"http://127.0.0.1:{port}/v1/chat/completions",
                json=body,
                headers={"authorization": "Bearer k"},
            )
            try:
                response = self._client.send(request, stream=True)
            except (httpx.ConnectError, httpx.ReadError, httpx.WriteError):
                self.passed_over += 1
                continue
            response.read()
            break
        self.answered.release()
        return response


@pytest.fixture
def held_upstream(upstream: Any, wire: Any) -> Iterator[tuple[Upstream, str]]:
    with loopback.serving(loopback.openai) as vendor:
        held = Upstream(wire, vendor)
        yield held, upstream(held).url
        held.go_on.set()


class Traffic:
    """Callers that call until it is over, and what they got."""

    def __init__(self, balancer: Balancer, talk: Callable[..., Any]) -> None:
        self.over = threading.Event()
        self.failed: list[str] = []
        self.whole: Counter[str] = Counter()
        self._balancer = balancer
        self._talk = talk

    def call(self, number: int) -> None:
        turn = 0
        while not self.over.is_set():
            turn += 1
            kind = "stream" if turn % 2 else "plain"
            history = self._talk(20, f"town {number}")
            # Every third one is too long, and is compacted.
            messages = history[-1:] if turn % 3 else history
            body = {"model": "m", "stream": kind == "stream", "messages": messages}
            try:
                response = self._balancer.ask(body)
            except httpx.HTTPError as error:
                self.failed.append(repr(error))
                continue
            if response.status_code == 200 and ENDS[kind] in response.text:
                self.whole[kind] += 1
            else:
                self.failed.append(f"{response.status_code} {response.text[:200]}")

    def wait_for_calls(self) -> None:
        """Wait until each caller is likely to have met the servers as they are now."""
        while self._balancer.answered.acquire(blocking=False):
            pass  # Calls of before.
        for _ in range(SEVERAL):
            assert self._balancer.answered.acquire(timeout=300)


def hold(client: httpx.Client, port: int) -> str:
    """The stream that is open at a server while it ends."""
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hold"}]}
    return Balancer([port], client).ask(body).text


def test_a_rolling_restart_under_traffic_loses_no_call_and_cuts_no_stream(
    root: Path, held_upstream: Any, talk: Callable[..., Any], tmp_path: Path
) -> None:
    upstream, url = held_upstream
    ports = [loopback.free_port(), loopback.free_port()]
    options = ["--upstream", f"{url}/v1", "--memory", f"sqlite:{tmp_path / 'memory.db'}"]
    with (
        httpx.Client(timeout=300) as client,
        ExitStack() as stack,
        ThreadPoolExecutor(CALLERS + HELD) as pool,
    ):
        balancer = Balancer(ports, client)
        traffic = Traffic(balancer, talk)
        servers = [stack.enter_context(program(root, *options, f"--port={port}")) for port in ports]
        callers = [pool.submit(traffic.call, number) for number in range(CALLERS)]
        stack.callback(traffic.over.set)
        for port, server in zip(ports, servers, strict=True):
            upstream.go_on.clear()
            streams = [pool.submit(hold, client, port) for _ in range(HELD)]
            for _ in streams:
                assert upstream.begun.acquire(timeout=300)
            server.process.send_signal(signal.SIGTERM)
            server.line("ending: ")
            traffic.wait_for_calls()
            upstream.go_on.set()
            assert all(ENDS["stream"] in stream.result(300) for stream in streams)
            assert server.process.wait(300) == 0
            traffic.wait_for_calls()
            stack.enter_context(program(root, *options, f"--port={port}"))
            traffic.wait_for_calls()
        traffic.over.set()
        for caller in callers:
            caller.result(300)
    assert traffic.failed == []
    assert balancer.passed_over >= 2
    assert min(traffic.whole.values()) >= SEVERAL
