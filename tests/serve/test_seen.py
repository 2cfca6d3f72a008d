"""The operator's view: readiness, metrics, a log for programs, version and settings."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from compacter.gateway.metrics import COUNTERS, Metrics, Origin
from compacter.gateway.serve.app import GAUGES
from compacter.gateway.serve.server import Protocol
from compacter.memory import Memory
from compacter.serve import main

Serve = Callable[..., Any]
Talk = Callable[..., Any]


def ask(url: str, history: Any, model: str = "m") -> None:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
        client.chat.completions.create(model=model, messages=history)


def get(serving: Any, path: str) -> tuple[int, str]:
    got = serving.get(f"{path}").decode()
    head, _, body = got.partition("\r\n\r\n")
    return int(head.split()[1]), body


def figure(page: str, name: str, **labels: str) -> float:
    """The value of one line."""
    wanted = "".join(rf'(?=[^}}]*{key}="{re.escape(value)}")' for key, value in labels.items())
    found = re.search(rf"^{name}(?:\{{{wanted}[^}}]*\}})? (\S+)$", page, re.MULTILINE)
    return float(found[1]) if found else 0.0


class Broken(Memory):
    """A memory whose server is away."""

    def find(self, keys: Any) -> Any:
        raise ConnectionError

    def save(self, record: Any) -> None:
        raise ConnectionError

    def claim(self, key: str, seconds: float) -> Any:
        raise ConnectionError


def test_what_happens_is_counted_by_upstream_and_model(
    serve: Serve, openai_server: Any, talk: Talk
) -> None:
    serving = serve(f"one={openai_server.url}/v1")
    history = talk()
    for _ in range(3):
        ask(f"{serving.url}/one", history)
    _, page = get(serving, "/metrics")
    of = {"upstream": "one", "model_group": "m"}
    assert figure(page, "compacter_requests_total") == 3
    assert figure(page, "compacter_compactions_total", **of) == 1
    assert figure(page, "compacter_records_reused_total", **of) == 2
    assert figure(page, "compacter_tokens_saved_total", **of) > 100
    assert figure(page, "compacter_summary_seconds_count", **of) == 1
    assert figure(page, "compacter_summary_seconds_bucket", le="+Inf", **of) == 1
    assert figure(page, "compacter_requests_open") == 0
    _, report = get(serving, "/compacter")
    assert "Since the start 2 calls began from a summary: " in report


def test_the_page_is_in_the_form_of_prometheus_and_names_every_figure(
    serve: Serve, openai_server: Any, talk: Talk
) -> None:
    serving = serve(f"{openai_server.url}/v1")
    ask(serving.url, talk(), 'odd "model"\\\n')
    _, page = get(serving, "/metrics")
    assert list(text_string_to_metric_families(page))
    for name in COUNTERS:
        assert f"# TYPE compacter_{name}_total counter" in page
    for name in GAUGES:
        assert f"# TYPE compacter_{name} gauge" in page


def test_a_memory_that_fails_is_counted_and_calls_go_on(
    serve: Serve, openai_server: Any, talk: Talk
) -> None:
    serving = serve(f"{openai_server.url}/v1", memory=Broken())
    ask(serving.url, talk())
    _, page = get(serving, "/metrics")
    assert figure(page, "compacter_memory_failures_total") >= 1


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_a_server_that_takes_requests_says_so(serve: Serve, path: str) -> None:
    status, text = get(serve("http://127.0.0.1:9"), path)
    assert (status, json.loads(text)) == (200, {"status": "ok"})


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/v1/models"])
def test_a_request_of_http_1_0_without_a_host_is_answered(passing: Any, path: str) -> None:
    """As HAProxy and other balancers check a server's health."""
    assert passing[0].ask(f"GET {path} HTTP/1.0\n\n").startswith(b"HTTP/1.1 200 ")


def test_a_request_of_http_1_0_that_names_another_host_is_refused(passing: Any) -> None:
    got = passing[0].ask("GET /healthz HTTP/1.0\nHost: example.com\n\n")
    assert got.startswith(b"HTTP/1.1 400 ")


def test_no_answer_waits_for_an_acknowledgement(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = []
    made = Protocol.connection_made

    def connection_made(self: Protocol, transport: Any) -> None:
        made(self, transport)
        connection = transport.get_extra_info("socket")
        options.append(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    monkeypatch.setattr(Protocol, "connection_made", connection_made)
    get(serve("http://127.0.0.1:9"), "/healthz")
    assert options
    assert all(options)


def test_names_of_models_do_not_fill_the_memory() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    for number in range(1_000):
        metrics.add("compactions", origin=Origin(model=f"model-{number}"))
    (family,) = (one for one in registry.collect() if one.name == "compacter_compactions")
    amounts = {sample.labels["model_group"]: sample.value for sample in family.samples}
    assert len(amounts) < 300
    assert amounts["other"] > 700


LOUD = """
import asyncio, logging, sys, threading, warnings
from compacter.gateway.serve import command
from compacter.gateway.serve.app import Gateway

handle = Gateway.__call__

async def loud(self, scope, receive, send):
    logging.getLogger("other").warning("a library speaks")
    warnings.warn("something is old")
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
    asyncio.get_running_loop().call_exception_handler({"message": "a task was lost"})
    await handle(self, scope, receive, send)

Gateway.__call__ = loud
sys.exit(command.main(sys.argv[1:]))
"""


def test_a_log_for_programs_is_one_object_a_line_throughout(
    root: Path, openai_server: Any, talk: Talk
) -> None:
    environment = {**os.environ, "PYTHONPATH": str(root / "middleware")}
    said = ["--upstream", f"{openai_server.url}/v1", "--port=0", "--log=json"]
    command = [sys.executable, "-c", LOUD, *said, "--memory=redis://127.0.0.1:1/0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        lines = [json.loads(process.stderr.readline()) for _ in range(3)]
        found = re.search(r"report at (http://[\d.:]+)/", lines[-1]["message"])
        assert found is not None
        ask(found[1], talk())
        process.terminate()
        lines += map(json.loads, process.stderr)
    (compaction,) = [line for line in lines if line["event"] == "CompactionEvent"]
    assert compaction["trigger"] == "token_limit"
    assert "summary" not in compaction
    told = "".join(str(line.get("message")) for line in lines)
    for words in ("library speaks", "is old", "ZeroDivisionError", "a task was lost"):
        assert words in told


@pytest.mark.parametrize("arguments", [["--ratio=7"], ["--host=no such host"], ["--memory=x"]])
def test_a_mistake_is_an_object_too(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--upstream=http://127.0.0.1:9", "--log=json", *arguments]) == 2
    assert [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()]
