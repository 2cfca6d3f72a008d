"""A fleet under load: two workers of the LiteLLM proxy, one Redis, a provider with a true window.
``make fleet-bench``.

Every figure is measured with real processes on loopback: 200 conversations at once, the same
history from several clients at once, a worker killed while it summarises, a Redis that stops and
one that gives a byte a second, and what the plug-in adds to a call on which nothing happens.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pretend_fleet.provider import Provider
from pretend_fleet.proxies import Answer, Proxy, free_port, launched, ready, stopped

ROOT = Path(__file__).parents[1]
CHAT = "/v1/chat/completions"
Json = dict[str, Any]
_LARGE = "plain-window-100000000"
# Seconds for a proxy to start, on a machine whose processors others use too.
_STARTING = 600


def main() -> None:
    """Run all parts, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="all where none is named")
    parser.add_argument(
        "--python",
        default=os.environ.get("COMPACTER_PROXY_PYTHON", ROOT / ".venv-proxy/bin/python"),
    )
    parser.add_argument("--conversations", type=int, default=200)
    options = parser.parse_args()
    failed = False
    for name in options.parts or PARTS:
        with (
            tempfile.TemporaryDirectory(prefix="compacter-fleet-") as folder,
            Provider() as provider,
        ):
            fleet = Fleet(Path(options.python).absolute(), Path(folder), provider)
            try:
                failed |= not PARTS[name](fleet, options)
            finally:
                fleet.end()
    sys.exit(failed)


class Fleet:
    """What runs: a provider, a Redis, and proxies."""

    def __init__(self, python: Path, folder: Path, provider: Provider) -> None:
        self.python = python
        self.folder = folder
        self.provider = provider
        self.redis_port = free_port()
        self._redis: subprocess.Popen[bytes] | None = None
        self._proxies: list[Proxy] = []

    def redis(self) -> str:
        """Start Redis; its URL."""
        program = shutil.which("redis-server")
        if program is None:
            sys.exit("fleet: no redis-server on this machine")
        self._redis = subprocess.Popen(
            [
                program,
                "--bind",
                "127.0.0.1",
                "--port",
                str(self.redis_port),
                "--save",
                "",
                "--dir",
                str(self.folder),
            ],
            stdout=subprocess.DEVNULL,
        )
        end = time.monotonic() + 20
        while time.monotonic() < end:
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self.redis_port), 1),
            ):
                return f"redis://127.0.0.1:{self.redis_port}/0"
            time.sleep(0.05)
        sys.exit("fleet: redis-server did not start")

    def stop_redis(self) -> None:
        """End Redis."""
        if self._redis is not None:
            self._redis.terminate()
            self._redis.wait(10)

    def proxies(
        self,
        count: int,
        settings: Json | None,
        *,
        writer: str = "writer-window-100000",
        metrics: bool = False,
    ) -> list[Proxy]:
        """Start proxies with one config; without the plug-in where ``settings`` is ``None``."""
        url = f"{self.provider.url}/v1"
        models = {"small": "plain", "large": _LARGE, "unknown": _LARGE, "writer": writer}
        windows = {
            "writer": {"max_input_tokens": 100_000},
            "large": {"max_input_tokens": 100_000_000},
        }
        config: Json = {
            "model_list": [
                {
                    "model_name": name,
                    "litellm_params": {
                        "model": f"openai/{model}",
                        "api_base": url,
                        "api_key": "none",
                    },
                    "model_info": windows.get(name, {}),
                }
                for name, model in models.items()
            ]
        }
        if settings is not None:
            callbacks = ["compacter.gateway.litellm_proxy.compacter"]
            more = ["prometheus"] if metrics else []
            config["litellm_settings"] = {"callbacks": [*callbacks, *more]}
            config["callback_settings"] = {"compacter": {"summarizer": "writer", **settings}}
        started = [launched(self.python, config, self.folder) for _ in range(count)]
        self._proxies.extend(started)
        for number, proxy in enumerate(started):
            # The first calls of a worker load what it needs: those seconds do not count as the
            # plug-in's.
            for turns in (1, 14) if settings is not None else (1,):
                ask(ready(proxy, _STARTING), history(f"mark-{number}w{turns}", turns))
        self.provider.seen.clear()
        return started

    def end(self) -> None:
        """End everything."""
        for proxy in self._proxies:
            if proxy.process.poll() is None:
                stopped(proxy)
        self.stop_redis()

    def summaries(self) -> list[str]:
        """What the summarizer was asked, request by request."""
        return [
            str(seen.body["messages"])
            for seen in list(self.provider.seen)
            if "writer" in seen.model
        ]


def question(mark: str, number: int, length: int = 60) -> str:
    """A user's message of about that many words."""
    words = random.Random(f"{mark} {number}").choices(WORDS, k=length)
    return f"{mark} asks for the {number}th time: {' '.join(words)}?"


WORDS = [
    "roof",
    "wall",
    "window",
    "door",
    "garden",
    "cellar",
    "paint",
    "brick",
    "tile",
    "lamp",
    "stair",
    "floor",
    "kitchen",
    "shed",
    "fence",
    "gate",
    "path",
    "well",
]


def ask(proxy: Proxy, messages: list[Json], model: str = "small", timeout: float = 120) -> Answer:
    """One call."""
    return proxy.post(CHAT, {"model": model, "messages": messages}, timeout=timeout)


def report(part: str, **figures: object) -> None:
    """Print figures."""
    told = ", ".join(f"{name.replace('_', ' ')}: {value}" for name, value in figures.items())
    print(f"{part:<10} {told}", flush=True)


# -- 200 conversations -----------------------------------------------------------------------------


def load(fleet: Fleet, options: argparse.Namespace) -> bool:
    """Conversations at once through two workers; each is compacted three times or more."""
    workers = fleet.proxies(2, {"memory": {"address": fleet.redis()}}, metrics=True)
    turns = 16
    bad = Counter[str]()
    compacted = Counter[str]()

    def converse(number: int) -> None:
        mark = f"mark-{number:x}z"
        messages: list[Json] = [
            {"role": "system", "content": ("You answer questions about a house.")}
        ]
        for turn in range(turns):
            messages.append({"role": "user", "content": question(mark, turn, 120)})
            answer = ask(workers[(number + turn) % 2], messages)
            if answer.status != 200:
                bad["not answered"] += 1
                print(answer.text[:300])
                return
            content = answer.json["choices"][0]["message"]["content"]
            if {word for word in content.split() if word.startswith("mark-")} != {mark}:
                bad["another conversation's answer"] += 1
            messages.append(
                {"role": "assistant", "content": content + " " + question("It", turn, 60)}
            )

    started = time.monotonic()
    with ThreadPoolExecutor(options.conversations) as pool:
        list(pool.map(converse, range(options.conversations)))
    seconds = time.monotonic() - started
    asked = fleet.summaries()
    for request in asked:
        compacted.update(set(re.findall(r"mark-[0-9a-f]+z", request)))
    twice = len(asked) - len(set(asked))
    fewest = min(compacted.values(), default=0)
    failures = sum(memory_failures(worker) for worker in workers)
    report(
        "load",
        conversations=options.conversations,
        calls=options.conversations * turns,
        not_answered=bad["not answered"],
        foreign_marks=bad["another conversation's answer"],
        refusals=sum(seen.status == 400 for seen in fleet.provider.seen),
        summaries=len(asked),
        fewest_summaries_of_one=fewest,
        summaries_made_twice=twice,
        memory_failures=failures,
        seconds=round(seconds, 1),
        calls_per_second=round(options.conversations * turns / seconds, 1),
    )
    fine = not bad and not twice and not failures
    return fine and fewest >= 3 and len(compacted) == options.conversations


def memory_failures(worker: Proxy) -> int:
    """Operations of the memory that failed, by the proxy's own count."""
    page = worker.get("/metrics/").text
    found = re.findall(r"^compacter_memory_failures_total(?:\{[^}]*\})? (\S+)$", page, re.MULTILINE)
    assert "compacter_records_reused_total" in page, page[:300]
    return int(sum(map(float, found)))


def together(fleet: Fleet, options: argparse.Namespace) -> bool:  # noqa: ARG001 - one signature for all
    """The same history from eight clients at once, through both workers: one summary."""
    workers = fleet.proxies(
        2, {"memory": {"address": fleet.redis()}}, writer="writer-window-100000-slow-0.5"
    )
    histories = 12
    clients = 8
    bad = 0
    for number in range(histories):
        messages = history(f"mark-{number}t", 14)
        with ThreadPoolExecutor(clients) as pool:
            answers = list(pool.map(lambda n, m=messages: ask(workers[n % 2], m), range(clients)))
        bad += sum(answer.status != 200 for answer in answers)
    asked = fleet.summaries()
    report(
        "together",
        histories=histories,
        clients_each=clients,
        not_answered=bad,
        summaries=len(asked),
    )
    return not bad and len(asked) == histories


def history(mark: str, turns: int) -> list[Json]:
    """A conversation that ends with a question."""
    messages: list[Json] = []
    for turn in range(turns):
        messages.append({"role": "user", "content": question(mark, turn)})
        messages.append({"role": "assistant", "content": question("It", turn, 30)})
    return [*messages, {"role": "user", "content": "And what did I ask first?"}]


# -- what fails ------------------------------------------------------------------------------------


def killed(fleet: Fleet, options: argparse.Namespace) -> bool:  # noqa: ARG001 - as above
    """A worker is killed while it summarises: its clients go to the other one, as behind a load
    balancer.
    """
    summary = 1.5
    workers = fleet.proxies(
        2, {"memory": {"address": fleet.redis()}}, writer=f"writer-window-100000-slow-{summary}"
    )
    took: list[float] = []
    lost = 0

    def call(number: int) -> int:
        messages = history(f"mark-{number}k", 14)
        try:
            return ask(workers[0], messages).status
        except OSError:
            started = time.monotonic()
            status = ask(workers[1], messages).status
            took.append(time.monotonic() - started)
            return status

    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(call, number) for number in range(8)]
        while len(fleet.summaries()) < 4:
            time.sleep(0.01)
        workers[0].process.kill()
        lost = sum(one.result() != 200 for one in calls)
    report(
        "killed",
        calls=8,
        lost=lost,
        went_to_the_other_worker=len(took),
        longest_seconds=round(max(took, default=0), 2),
        of_which_summary=summary,
    )
    return not lost and bool(took) and max(took) <= summary + 2


def redis_away(fleet: Fleet, options: argparse.Namespace) -> bool:  # noqa: ARG001 - as above
    """Redis stops, starts again, and is slow: a byte a second."""
    summary = 0.5
    fine = True
    writer = f"writer-window-100000-slow-{summary}"
    url = fleet.redis()
    (worker,) = fleet.proxies(1, {"memory": {"address": url}}, writer=writer)
    phases: dict[str, Callable[[], object]] = {
        "up": lambda: None,
        "stopped": fleet.stop_redis,
        "started": fleet.redis,
    }
    for phase, change in phases.items():
        change()
        if phase == "started":
            time.sleep(5.5)  # For five seconds the memory is left alone after it failed.
        fine &= _timed(fleet, worker, f"redis {phase}", summary)
    with relay(fleet.redis_port, seconds_a_byte=1.0) as port:
        (worker,) = fleet.proxies(
            1, {"memory": {"address": f"redis://127.0.0.1:{port}/0"}}, writer=writer
        )
        fine &= _timed(fleet, worker, "redis slow", summary)
    return fine


def _timed(fleet: Fleet, worker: Proxy, what: str, summary: float) -> bool:
    took = []
    lost = 0
    before = len(fleet.summaries())
    for number in range(5):
        messages = history(f"mark-{what.replace(' ', '')}{number}", 14)
        for _ in range(2):
            started = time.monotonic()
            lost += ask(worker, messages).status != 200
            took.append(time.monotonic() - started)
    summaries = len(fleet.summaries()) - before
    report(
        what, calls=len(took), lost=lost, summaries=summaries, longest_seconds=round(max(took), 2)
    )
    return not lost and max(took) <= summary + 2


@contextlib.contextmanager
def relay(to: int, *, seconds_a_byte: float) -> Generator[int]:
    """A port that passes on to another one and lets answers through a byte at a time."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = server.accept()
                    upstream = socket.create_connection(("127.0.0.1", to))
                    threading.Thread(target=copy, args=(client, upstream, 0.0), daemon=True).start()
                    threading.Thread(
                        target=copy, args=(upstream, client, seconds_a_byte), daemon=True
                    ).start()

        def copy(source: socket.socket, target: socket.socket, pause: float) -> None:
            with contextlib.suppress(OSError):
                while data := source.recv(65_536 if not pause else 1):
                    time.sleep(pause)
                    target.sendall(data)
                target.close()

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


# -- what it costs ---------------------------------------------------------------------------------


def latency(fleet: Fleet, options: argparse.Namespace) -> bool:  # noqa: ARG001 - as above
    """What the plug-in adds to a call on which nothing happens, while Redis holds a record of
    another conversation.
    """
    (without,) = fleet.proxies(1, None)
    (with_it,) = fleet.proxies(1, {"memory": {"address": fleet.redis()}})
    assert ask(with_it, history("mark-0l", 14)).status == 200
    fine = True
    for model, count, rounds, most in (
        ("large", 100, 150, 1.0),
        ("large", 10_000, 20, 5.0),
        ("unknown", 100, 100, 1.0),
        ("unknown", 10_000, 20, 5.0),
    ):
        messages = history(f"mark-{count}l", count // 2)
        times: dict[str, list[float]] = {"without": [], "with": []}
        worked: dict[str, list[float]] = {"without": [], "with": []}
        pair = [("without", without), ("with", with_it)]
        for number in range(rounds + 5):
            for name, proxy in pair if number % 2 else reversed(pair):
                before = cpu_ms(proxy)
                started = time.perf_counter()
                answer = ask(proxy, messages, model)
                took = (time.perf_counter() - started) * 1_000
                assert answer.status == 200, answer.text
                if number >= 5:
                    times[name].append(took)
                    worked[name].append(cpu_ms(proxy) - before)
        medians = {name: statistics.median(values) for name, values in times.items()}
        added = medians["with"] - medians["without"]
        cpu = statistics.mean(worked["with"]) - statistics.mean(worked["without"])
        report(
            "latency",
            window=model,
            messages=count,
            median_ms_without=round(medians["without"], 2),
            median_ms_with=round(medians["with"], 2),
            added_ms=round(added, 2),
            allowed_ms=most,
            added_cpu_ms=round(cpu, 2),
            of_cpu_ms=round(statistics.mean(worked["without"]), 2),
        )
        fine &= added <= most
    return fine


def cpu_ms(proxy: Proxy) -> float:
    """What a proxy has worked so far, in milliseconds: unlike the time of the clock, no matter what
    else runs.
    """
    fields = Path(f"/proc/{proxy.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1_000 / os.sysconf("SC_CLK_TCK")


PARTS: dict[str, Callable[[Fleet, argparse.Namespace], bool]] = {
    "load": load,
    "together": together,
    "killed": killed,
    "redis": redis_away,
    "latency": latency,
}

if __name__ == "__main__":
    main()
