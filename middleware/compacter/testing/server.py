"""A scripted model as an HTTP server on a loopback port, for programs that use OpenAI's SDK."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

from compacter.errors import with_hints
from compacter.testing.errors import ProviderError
from compacter.testing.model import ScriptedModel

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

Body: TypeAlias = dict[str, Any]
Event: TypeAlias = tuple[str | None, Body | str]
"""Name and data of a server-sent event."""


@with_hints
class ScriptedServer:
    """HTTP server on a loopback port with OpenAI's chat completions, answered by a scripted model.

    ``POST /v1/chat/completions``, plain and streamed: `model` counts the messages, refuses a list
    that is too long or invalid, answers, and records each request. Use it as a context manager, or
    call ``close()`` at the end.
    """

    def __init__(self, model: ScriptedModel | None = None, **options: Any) -> None:
        """Start the server.

        Args:
            model: Model that answers; ``None`` for ``ScriptedModel(**options)``.
            **options: Options of `ScriptedModel`, such as ``window`` (tokens) and ``replies``.
                ``replies`` must not be an async function, and ``reply_type`` must be "dict".

        Raises:
            TypeError: A model and options are both given, or an option is unknown.
        """
        if model is not None and options:
            raise TypeError("pass either a model or options for a new one, not both")
        self.model = ScriptedModel(**options) if model is None else model
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.owner = self
        self._clients: list[Any] = []
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Address without a path: the ``base_url`` of Anthropic's SDK. OpenAI's needs ``/v1`` after
        it.
        """
        return f"http://127.0.0.1:{self._http.server_port}"

    def answer(self, path: str, text: bytes) -> tuple[int, Body | Iterable[Event]]:
        """Return the status of an answer, and its body or the events of its stream."""
        if path != "/chat/completions":
            return 404, _error(f"There is nothing at {path}.", "invalid_request_error")
        try:
            reply = self.model.completion(**json.loads(text))
        except ProviderError as error:
            return error.status_code, _error(error.message, error.type, error.code)
        except Exception as error:  # noqa: BLE001 - a failure here is shown to the test
            return 500, _error(repr(error), "server_error")
        return 200, reply if isinstance(reply, dict) else _events(reply)

    def openai(self, **options: Any) -> OpenAI:
        """Return a client of OpenAI's SDK for this server; ``options`` are those of
        `openai.OpenAI`.

        Raises:
            ImportError: The package ``openai`` is not installed.
        """
        from openai import OpenAI

        client = OpenAI(**self._openai(options))
        self._clients.append(client)
        return client

    def async_openai(self, **options: Any) -> AsyncOpenAI:
        """Like `openai`, but asynchronous; close the client in your own event loop."""
        from openai import AsyncOpenAI

        return AsyncOpenAI(**self._openai(options))

    def _openai(self, options: dict[str, Any]) -> dict[str, Any]:
        return {"base_url": f"{self.url}/v1", "api_key": "scripted", "max_retries": 0, **options}

    def close(self) -> None:
        """Stop the server, and close its synchronous clients. May be called twice."""
        for client in self._clients:
            client.close()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    owner: ScriptedServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("?")[0].removeprefix("/v1")
        status, answer = cast("_Server", self.server).owner.answer(path, text)
        if isinstance(answer, dict):
            data = json.dumps(answer).encode()
            self._begin(status, "application/json", "Content-Length", str(len(data)))
            self.wfile.write(data)
            return
        self._begin(status, "text/event-stream", "Connection", "close")
        with suppress(ConnectionError):  # The client has closed the stream.
            for name, body in answer:
                line = f"event: {name}\n" if name else ""
                content = body if isinstance(body, str) else json.dumps(body)
                self.wfile.write(f"{line}data: {content}\n\n".encode())

    def do_GET(self) -> None:
        self.do_POST()

    def _begin(self, status: int, kind: str, *header: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header(*header)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
        """Log nothing: the model records every request."""


def _error(message: str, kind: str | None, code: object = None) -> Body:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _events(chunks: Iterable[Body]) -> Iterator[Event]:
    try:
        for chunk in chunks:
            yield None, chunk
    except ProviderError as error:
        yield None, _error(error.message, error.type, error.code)
    yield None, "[DONE]"
