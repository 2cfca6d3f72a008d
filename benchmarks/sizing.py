"""How large a machine ``compacter serve`` needs: calls a second, and bytes a conversation.

Real processes on loopback: a provider with a true window, the server, and Redis where it is
installed. *Beside the provider alone* is the time of the same calls without the server between;
both share one machine here, so the ratio is worse than where the provider is elsewhere.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

from pretend_fleet.provider import Provider

CONVERSATIONS = 200
CALLERS = 8
CALLS = 400
TURN = "The harbour of number {0} takes ships of {1} metres and asks {2} crowns a night. " * 6


def history(number: int, turns: int) -> list[dict[str, str]]:
    """Return a conversation that begins like no other."""
    said = [{"role": "system", "content": f"You are clerk {number}."}]
    for turn in range(turns):
        text = TURN.format(turn, number + turn, turn * 7)
        said.append({"role": "user", "content": text})
        said.append({"role": "assistant", "content": text})
    return [*said, {"role": "user", "content": "Which harbour was the first?"}]


@contextlib.contextmanager
def redis() -> Generator[int]:
    """A Redis of its own; yields its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = int(listener.getsockname()[1])
    with tempfile.TemporaryDirectory() as folder:
        command = ["redis-server", "--port", str(port), "--save", "", "--dir", folder]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            _ask_redis(port, "PING")
            yield port
        finally:
            process.terminate()
            process.wait()


def _ask_redis(port: int, command: str) -> str:
    until = time.monotonic() + 30
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
                connection.sendall(f"{command}\r\n".encode())
                return connection.recv(65_536).decode()
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


@contextlib.contextmanager
def serving(upstream: str, *options: str) -> Generator[tuple[str, int]]:
    """The server as a program; yields its address and its process number."""
    command = [sys.executable, "-m", "compacter", "serve", "--upstream", upstream, "--port", "0"]
    process = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            address = re.search(r"http://127\.0\.0\.1:\d+(?=/ -> )", line)
            if address:
                break
        else:
            raise RuntimeError("the server did not start")
        threaded = ThreadPoolExecutor(1)
        threaded.submit(lambda: [None for _ in process.stderr or ()])
        yield address[0], process.pid
    finally:
        process.terminate()
        process.wait()


def resident(pid: int) -> int:
    """Return the resident memory of a process, in bytes."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.findall(r"VmRSS:\s+(\d+) kB", text)[0]) * 1024


def calls_a_second(url: str, messages: list[Any]) -> float:
    """Return the median of three runs of many calls by several callers at once."""
    body = json.dumps({"model": "window-100000000", "messages": messages})
    rates = []
    with httpx.Client(timeout=120, limits=httpx.Limits(max_connections=CALLERS)) as client:

        def call(_: int) -> None:
            client.post(f"{url}/v1/chat/completions", content=body).raise_for_status()

        for _ in range(3):
            began = time.perf_counter()
            with ThreadPoolExecutor(CALLERS) as pool:
                list(pool.map(call, range(CALLS)))
            rates.append(CALLS / (time.perf_counter() - began))
    return statistics.median(rates)


def waiting_times(url: str, messages: list[Any], callers: int) -> list[float]:
    """Return the seconds of each of many calls by so many callers at once, in order of size."""
    body = json.dumps({"model": "window-100000000", "messages": messages})
    with httpx.Client(timeout=120, limits=httpx.Limits(max_connections=callers)) as client:

        def call(_: int) -> float:
            began = time.perf_counter()
            client.post(f"{url}/v1/chat/completions", content=body).raise_for_status()
            return time.perf_counter() - began

        with ThreadPoolExecutor(callers) as pool:
            list(pool.map(call, range(callers)))  # Connections are made.
            return sorted(pool.map(call, range(max(CALLS, 4 * callers))))


def compact_all(url: str, turns: int) -> int:
    """Have every conversation compacted once; return the bytes of their messages."""
    sent = 0
    with httpx.Client(timeout=120, headers={"authorization": "Bearer sk-one"}) as client:
        for number in range(CONVERSATIONS):
            messages = history(number, turns)
            sent += len(json.dumps(messages))
            body = {"model": "window-8000", "messages": messages}
            client.post(f"{url}/v1/chat/completions", json=body).raise_for_status()
    return sent


def main() -> None:
    """Print both tables."""
    with Provider() as provider, serving(provider.url, "--summarizer", "extractive") as (url, pid):
        print("| body of a call that fits | calls a second | beside the provider alone |")
        print("|---|---|---|")
        for turns in (1, 40, 400):
            messages = history(0, turns)
            alone = calls_a_second(provider.url, messages)
            through = calls_a_second(url, messages)
            size = len(json.dumps(messages)) / 1000
            print(f"| {size:,.0f} kB | {through:,.0f} | {through / alone:.2f} |")

        print("\n| callers at once | calls a second | half within | 99 of 100 within | memory |")
        print("|---|---|---|---|---|")
        before = resident(pid)
        for callers in (1, 8, 32, 128):
            times = waiting_times(url, history(0, 40), callers)
            rate = callers * len(times) / sum(times)
            half, most = times[len(times) // 2], times[-len(times) // 100]
            grown = (resident(pid) - before) / 1e6
            print(
                f"| {callers} | {rate:,.0f} | {half * 1000:,.0f} ms | {most * 1000:,.0f} ms "
                f"| {grown:+,.0f} MB |"
            )

    print(f"\n| {CONVERSATIONS} conversations | each | in the server | in the memory |")
    print("|---|---|---|---|")
    for turns in (60, 240):
        _print_sizes(turns)


def _print_sizes(turns: int) -> None:
    with contextlib.ExitStack() as stack:
        options = ["--summarizer", "extractive"]
        used: Callable[[], int] = int
        if shutil.which("redis-server"):
            port = stack.enter_context(redis())
            options += ["--memory", f"redis://127.0.0.1:{port}/0"]

            def used() -> int:
                return int(re.findall(r"used_memory:(\d+)", _ask_redis(port, "INFO memory"))[0])

        provider = stack.enter_context(Provider())
        url, pid = stack.enter_context(serving(provider.url, *options))
        httpx.get(f"{url}/readyz")
        before = resident(pid)
        stored = used()
        sent = compact_all(url, turns)
        grown = (resident(pid) - before) / CONVERSATIONS / 1000
        kept = (used() - stored) / CONVERSATIONS / 1000
        each = sent / CONVERSATIONS / 1000
        stored_text = f"{kept:,.1f} kB" if kept else "no Redis here"
        print(f"| {turns * 2} messages | {each:,.0f} kB | {grown:,.0f} kB | {stored_text} |")


if __name__ == "__main__":
    main()
