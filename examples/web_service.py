"""A web service without state: the browser sends the whole conversation with each request.

With the Compacter's memory a conversation pays for each compaction once; without it, again and
again.
"""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from compacter import Compacter, InProcessMemory
from compacter.testing import ScriptedModel, ScriptedSummarizer

TURNS = 60


def service(completion: Callable[..., Any]) -> ThreadingHTTPServer:
    """POST a list of messages, get the assistant's next one."""

    class Chat(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            messages = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            reply = completion(model="any-model", messages=messages)["choices"][0]["message"]
            body = json.dumps(reply).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
            """Say nothing."""

    return ThreadingHTTPServer(("127.0.0.1", 0), Chat)


def browse(address: str) -> int:
    """What a browser does: keep the conversation, send all of it. Returns its length in the end."""
    messages: list[Any] = [{"role": "system", "content": "You help in a library."}]
    for turn in range(TURNS):
        messages.append(
            {
                "role": "user",
                "content": (f"Do you have volume {turn} of the encyclopedia on the shelf?"),
            }
        )
        request = urllib.request.Request(address, json.dumps(messages).encode())  # noqa: S310 - our own server
        with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310 - as above
            messages.append(json.load(reply))
    return len(messages)


def main() -> None:
    """The same conversation, with and without a memory."""
    print(f"{TURNS} turns, all of them sent each time")
    for name, memory in (("with memory", InProcessMemory()), ("without", None)):
        model = ScriptedModel(window=700, replies="Yes, it is on the second shelf. " * 3)
        compacter = Compacter(
            summarizer=ScriptedSummarizer("They asked for volumes; all were there."),
            memory=memory,
        )
        with service(compacter.wrap(model.completion)) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            held = browse(f"http://127.0.0.1:{server.server_port}/")
            server.shutdown()
        print(
            f"{name:>12}: {held} messages, {model.rejected:>2} refused, "
            f"{compacter.totals.rounds:>2} compactions, "
            f"{compacter.totals.summarizer_calls:>3} requests for summaries"
        )


if __name__ == "__main__":
    main()
