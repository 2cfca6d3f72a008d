"""A provider that costs nothing: chat completions served on this machine, answered by a scripted model.

It has a real context window, and refuses what does not fit with the HTTP error that a real provider sends.
Other examples point litellm at it where you would have a key and a model's name.

Run as a program it asks itself one question: ``python examples/pretend_provider.py``.
"""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from compacter.testing import ProviderError, ScriptedModel

MODEL = "pretend-1"


def answer(messages: Sequence[Any]) -> str:
    """One long message alone is a request for a summary; anything else is a question."""
    if len(messages) == 1 and len(messages[0]["content"]) > 500:
        return "They plan a week in Lisbon for two, for 1,200 euros, with no hotel above the fourth floor."
    questions = sum(message["role"] == "user" for message in messages)
    return f"That is a good question. I have {questions} of yours before me. " + "Here is what I think of it. " * 4


@contextmanager
def pretend_provider(window: int = 1_000) -> Generator[tuple[str, ScriptedModel]]:
    """Its base address (OpenAI's ``base_url``, litellm's ``api_base``), and the model behind it."""
    model = ScriptedModel(window=window, replies=answer)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            try:
                status, reply = 200, model.completion(**body)
            except ProviderError as error:
                status, reply = error.status_code or 500, error.body
            encoded = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(encoded)))
            self.end_headers()
            self.wfile.write(encoded)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", model
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def main() -> None:
    """Ask one question."""
    with pretend_provider() as (address, model):
        question = {"model": MODEL, "messages": [{"role": "user", "content": "Where should we go?"}]}
        request = urllib.request.Request(  # noqa: S310 - our own server's address
            f"{address}/chat/completions", json.dumps(question).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310 - as above
            print(json.load(reply)["choices"][0]["message"]["content"])
        print(f"{model.tokens_sent} tokens asked, window {model.window}")


if __name__ == "__main__":
    main()
