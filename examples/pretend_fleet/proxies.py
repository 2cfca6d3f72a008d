"""Starting a LiteLLM proxy with the plug-in, and asking it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MASTER_KEY = "sk-fleet"
SOURCE = Path(__file__).parents[2] / "middleware"


@dataclass
class Answer:
    """What the proxy answered."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.text)

    @property
    def events(self) -> list[dict[str, Any]]:
        """The data of its server-sent events."""
        lines = (line[5:].strip() for line in self.text.splitlines() if line.startswith("data:"))
        return [json.loads(line) for line in lines if line and line != "[DONE]"]


@dataclass
class Proxy:
    """A running proxy."""

    port: int
    process: subprocess.Popen[bytes]
    log: Path
    key: str = MASTER_KEY
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def post(
        self, path: str, body: Mapping[str, Any], *, key: str | None = None, timeout: float = 60
    ) -> Answer:
        """Send a request.

        Args:
            path: Such as ``/v1/chat/completions``.
            body: What is sent, as JSON.
            key: The API key; the master key where none is given.
            timeout: Seconds.
        """
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        headers = {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {key or self.key}",
            **self.extra,
        }
        try:
            connection.request("POST", path, json.dumps(body), headers)
            response = connection.getresponse()
            text = response.read().decode()
            return Answer(
                response.status,
                {name.lower(): value for name, value in response.getheaders()},
                text,
            )
        finally:
            connection.close()

    def get(self, path: str) -> Answer:
        """Fetch a page."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.key}"})
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read().decode())
        finally:
            connection.close()


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def launched(
    python: Path,
    config: Mapping[str, Any],
    folder: Path,
    environment: Mapping[str, str] | None = None,
) -> Proxy:
    """A proxy that is starting; ``ready`` waits for it.

    Args:
        python: Interpreter that has ``litellm[proxy]``.
        config: What its config file says.
        folder: Where the config and the log are written.
        environment: More variables.
    """
    port = free_port()
    path = folder / f"config-{port}.yaml"
    log = folder / f"proxy-{port}.log"
    path.write_text(json.dumps(config))  # JSON is YAML.
    more = {
        "LITELLM_MASTER_KEY": MASTER_KEY,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_TELEMETRY": "False",
        "NO_DOCS": "True",
        "PYTHONPATH": os.pathsep.join([str(SOURCE), str(folder)]),
        **(environment or {}),
    }
    program = "from litellm import run_server; run_server()"
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - our own arguments
            [
                str(python),
                "-c",
                program,
                "--config",
                str(path),
                "--host",
                "127.0.0.1",
                "--port",
                str(port),
            ],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **more},
            cwd=folder,
        )
    return Proxy(port, process, log)


def ready(proxy: Proxy, seconds: float = 180) -> Proxy:
    """Wait until a proxy answers. Raises ``RuntimeError`` with the end of its log when it
    does not.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end and proxy.process.poll() is None:
        with contextlib.suppress(OSError):
            if proxy.get("/health/liveliness").status == 200:
                return proxy
        time.sleep(0.2)
    stopped(proxy)
    raise RuntimeError(f"the proxy did not start:\n{proxy.log.read_text()[-3_000:]}")


def stopped(proxy: Proxy) -> None:
    """End a proxy."""
    proxy.process.terminate()
    try:
        proxy.process.wait(10)
    except subprocess.TimeoutExpired:
        proxy.process.kill()
        proxy.process.wait(10)


@contextlib.contextmanager
def running(
    python: Path,
    config: Mapping[str, Any],
    folder: Path,
    environment: Mapping[str, str] | None = None,
) -> Generator[Proxy]:
    """A proxy that answers, ended on the way out."""
    proxy = launched(python, config, folder, environment)
    try:
        yield ready(proxy)
    finally:
        stopped(proxy)
