"""A fleet on this machine: Redis, two workers of the LiteLLM proxy, a pretend provider, and three
kinds of client.

One conversation goes on past its 1,500-token window, by turns with curl, the OpenAI SDK and the
Anthropic SDK, and by turns through either worker. Each compaction is shown as it happens. It all
ends by itself. ``make fleet`` runs it.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pretend_fleet.provider import Provider
from pretend_fleet.proxies import MASTER_KEY, Proxy, free_port, launched, ready, stopped

Chat = list[dict[str, Any]]
TURNS = 18


def main() -> None:
    """Start everything, talk, and end everything."""
    with (
        tempfile.TemporaryDirectory(prefix="compacter-fleet-") as name,
        contextlib.ExitStack() as stack,
    ):
        folder = Path(name)
        provider = stack.enter_context(Provider())
        memory = _redis(folder, stack)
        config = {
            "model_list": [
                _deployment("chat", "openai/plain", f"{provider.url}/v1"),
                _deployment("claude", "anthropic/claude", provider.url),
                _deployment("writer", "openai/writer-window-100000", f"{provider.url}/v1"),
            ],
            "litellm_settings": {"callbacks": ["compacter.gateway.litellm_proxy.compacter"]},
            "callback_settings": {"compacter": {"summarizer": "writer", "memory": memory}},
        }
        print("starting two workers of the LiteLLM proxy ...", flush=True)
        workers = [launched(Path(sys.executable), config, folder) for _ in range(2)]
        for worker in workers:
            stack.callback(stopped, worker)
        for worker in workers:
            ready(worker)
        talk(workers, provider)


def talk(workers: list[Proxy], provider: Provider) -> None:
    """One conversation with each protocol, told line by line."""
    clients: dict[str, tuple[str, Callable[[Proxy, Chat], str]]] = {
        "curl": ("/v1/chat/completions", by_curl),
        "OpenAI SDK": ("/v1/responses", by_openai),
        "Anthropic SDK": ("/v1/messages", by_anthropic),
    }
    for client, (path, ask) in clients.items():
        mark = f"mark-{client.split()[0].lower()}"
        print(f"\n{client}, {path}, a window of 1,500 tokens")
        messages: Chat = []
        for turn in range(1, TURNS + 1):
            messages.append(
                {
                    "role": "user",
                    "content": f"{mark}, question {turn}: " + "what of the garden wall? " * 12,
                }
            )
            before = len(provider.seen)
            started = time.monotonic()
            answer = ask(workers[turn % 2], messages)
            assert mark in answer, answer
            messages.append(
                {"role": "assistant", "content": answer + " The wall still stands." * 6}
            )
            _tell(turn, workers[turn % 2], provider, before, time.monotonic() - started)
    print("\nevery call was answered")


def by_curl(worker: Proxy, messages: Chat) -> str:
    """Chat completions, plain."""
    body = json.dumps({"model": "chat", "messages": messages})
    program = shutil.which("curl")
    if program is None:  # The same bytes, where there is no curl.
        answer = worker.post("/v1/chat/completions", json.loads(body)).text
    else:
        answer = subprocess.run(  # noqa: S603 - our own arguments
            [
                program,
                "-s",
                f"{worker.url}/v1/chat/completions",
                "-H",
                ("Content-Type: application/json"),
                "-H",
                f"Authorization: Bearer {MASTER_KEY}",
                "--data-binary",
                "@-",
            ],
            input=body,
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout
    return str(json.loads(answer)["choices"][0]["message"]["content"])


def by_openai(worker: Proxy, messages: Chat) -> str:
    """Responses, streamed."""
    from openai import OpenAI

    given: Any = messages
    client = OpenAI(base_url=f"{worker.url}/v1", api_key=MASTER_KEY, max_retries=0)
    with client, client.responses.stream(model="chat", input=given) as stream:
        stream.until_done()
        return stream.get_final_response().output_text


def by_anthropic(worker: Proxy, messages: Chat) -> str:
    """Messages, streamed."""
    from anthropic import Anthropic

    given: Any = messages
    client = Anthropic(base_url=worker.url, api_key=MASTER_KEY, max_retries=0)
    with client, client.messages.stream(model="claude", max_tokens=200, messages=given) as stream:
        return stream.get_final_text()


def _tell(turn: int, worker: Proxy, provider: Provider, before: int, seconds: float) -> None:
    said = []
    for seen in provider.seen[before:]:
        what = (
            "summary of"
            if "writer" in seen.model
            else "refused"
            if seen.status == 400
            else "answered"
        )
        said.append(f"{what} {seen.tokens:,}")
    print(
        (
            f"  turn {turn:>2}  worker :{worker.port}  {seconds:5.2f} s  "
            f"{'  ->  '.join(said)} tokens"
        ),
        flush=True,
    )


def _deployment(name: str, model: str, base: str) -> dict[str, Any]:
    window = 100_000 if "writer" in model else 1_500
    return {
        "model_name": name,
        "litellm_params": {"model": model, "api_base": base, "api_key": "none"},
        "model_info": {"max_input_tokens": window},
    }


def _redis(folder: Path, stack: contextlib.ExitStack) -> dict[str, str]:
    """The memory that both workers share: Redis, or a file where there is no Redis."""
    program = shutil.which("redis-server")
    if program is None:
        print("no redis-server on this machine: the workers share a SQLite file")
        return {"address": f"sqlite:{folder / 'memory.db'}"}
    port = free_port()
    server = subprocess.Popen(  # noqa: S603 - our own arguments
        [program, "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--dir", str(folder)],
        stdout=subprocess.DEVNULL,
    )
    stack.callback(server.wait)
    stack.callback(server.terminate)
    return {"address": f"redis://127.0.0.1:{port}/0"}


if __name__ == "__main__":
    main()
