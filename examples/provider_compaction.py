"""``summarizer="provider"``: Anthropic compacts; rules and quoted lines stand behind its block."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import anthropic

from compacter import Compacter

WINDOW = 1_000
BLOCK = {
    "type": "compaction",
    "content": "Piers were looked up; the oldest so far is pier 0, of 1800.",
    "signature": "EuYBCkQY",
}


class Provider(BaseHTTPRequestHandler):
    """Answers as Anthropic does: refuses what is too long, compacts where that is asked for."""

    def do_POST(self) -> None:
        """Answer one request, and print it."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        tokens = len(json.dumps(body["messages"])) // 4
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"]}
        usage = {"usage": {"input_tokens": tokens, "output_tokens": 20}}
        print(f"{len(body['messages'])} messages, beta: {self.headers['anthropic-beta']}")
        if "compaction" in body:
            return self.send(200, {**message, "content": [BLOCK], "stop_reason": "compaction"})
        if tokens > WINDOW:
            text = f"prompt is too long: {tokens} tokens > {WINDOW} maximum"
            error = {"type": "invalid_request_error", "message": text}
            return self.send(400, {"type": "error", "error": error})
        for sent in body["messages"][:2]:
            print(f"  {sent['role']}: {json.dumps(sent['content'])[:300]}")
        content = [{"type": "text", "text": "Pier 0."}]
        return self.send(200, {**message, **usage, "content": content, "stop_reason": "end_turn"})

    def send(self, status: int, body: dict[str, Any]) -> None:
        """Send JSON."""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing."""


def main() -> None:
    """Ask about forty piers, more than fit."""
    server = HTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    compacter = Compacter(summarizer="provider", rules=["Answer in one line."], recall=None)
    with anthropic.Anthropic(
        api_key="none", base_url=f"http://127.0.0.1:{server.server_port}", max_retries=0
    ) as client:
        messages: list[Any] = []
        for pier in range(40):
            messages.append({"role": "user", "content": f"When was pier {pier} built?"})
            words = f"Pier {pier} was built in {1800 + pier}, of oak and stone, and painted since."
            messages.append({"role": "assistant", "content": words})
        messages.append({"role": "user", "content": "Which is the oldest?"})
        wrapped = compacter.wrap(client)
        wrapped.messages.create(model="claude", max_tokens=100, messages=messages)
    server.shutdown()
    server.server_close()


if __name__ == "__main__":
    main()
