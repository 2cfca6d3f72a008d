"""The server as a program of its own."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

BODY = json.dumps({"stream": True, "messages": [{"role": "user", "content": "Hello"}]}).encode()
POST = f"POST /v1/chat/completions HTTP/1.1\nHost: localhost\nContent-Length: {len(BODY)}\n\n"


class Program:
    """The server as a program, and the lines that it says."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.port = int(self.line(r"http://127\.0\.0\.1:(\d+)/ -> ")[1])
        self.url = f"http://127.0.0.1:{self.port}"

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)

    def line(self, pattern: str) -> re.Match[str]:
        """The first line that fits, as soon as there is one."""
        until = time.monotonic() + 300
        while time.monotonic() < until:
            for line in list(self.lines):
                found = re.search(pattern, line)
                if found:
                    return found
            time.sleep(0.01)
        raise AssertionError(f"no line {pattern!r} in {self.lines}")

    def send(self, head: str = POST, body: bytes = BODY) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=300)
        connection.sendall(head.replace("\n", "\r\n").encode() + body)
        return connection

    def status(self, path: str = "/v1/models") -> bytes:
        """The answer to a new request, read completely."""
        head = f"GET {path} HTTP/1.1\nHost: localhost\nConnection: close\n\n"
        with self.send(head, b"") as connection, connection.makefile("rb") as read:
            return read.read()


@contextmanager
def program(root: Path, *arguments: str) -> Generator[Program]:
    environment = {**os.environ, "PYTHONPATH": str(root / "middleware")}
    command = [sys.executable, "-m", "compacter.serve", "--port=0", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield Program(process)
        finally:
            process.kill()
