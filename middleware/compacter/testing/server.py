"""A scripted model as an HTTP server on a loopback port, for programs that use OpenAI's SDK."""

# ruff: noqa: ARG002 - protocols of other shapes read the body

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

from compacter.testing.errors import ProviderError
from compacter.testing.model import ScriptedModel

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

Body: TypeAlias = dict[str, Any]
Event: TypeAlias = tuple[str | None, Body]
"""Name and data of a server-sent event."""


class ChatCompletions:
    """The protocol of OpenAI's chat completions: how a request is read, and an answer written.

    https://platform.openai.com/docs/api-reference/chat. Base class of other protocols, which
    convert a request to chat completions, and the model's answer to their own JSON or events.
    """

    def read(self, body: Body) -> Body:
        """Return the arguments of ``ScriptedModel.completion`` for a request."""
        return body

    def whole(self, body: Body, completion: Body) -> Body:
        """Return the answer to a request without ``stream``."""
        return completion

    def events(self, body: Body, chunks: Iterable[Body]) -> Iterator[Event]:
        """Return the answer as a stream of events."""
        return ((None, chunk) for chunk in chunks)

    def error(self, message: str, kind: str | None, code: object) -> Body:
        """Return the body of an error with an HTTP status."""
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}

    def failed(self, body: Body, error: Body) -> Iterator[Event]:
        """Yield an error inside a stream that has begun with HTTP 200."""
        yield None, error


class ScriptedServer:
    """HTTP server on a loopback port with OpenAI's chat completions, answered by a scripted model.

    ``POST /v1/chat/completions``, plain and streamed: `model` counts the messages, refuses what is
    too long or invalid, answers, and records each request. Use it as a context manager, or call
    ``close()`` at the end.
    """

    protocols: Mapping[str, ChatCompletions] = {"/chat/completions": ChatCompletions()}
    """End of a path -> its protocol; ``/v1`` before it may be left out."""

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
        """As `openai`, but asynchronous; close the client in your own event loop."""
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
        owner = cast("_Server", self.server).owner
        path = self.path.partition("?")[0].removeprefix("/v1")
        protocol = owner.protocols.get(path)
        if protocol is None:
            self._json(
                ChatCompletions().error(
                    f"There is nothing at {path}.", "invalid_request_error", None
                ),
                404,
            )
            return
        try:
            body = json.loads(text)
            reply = owner.model.completion(**protocol.read(body))
        except ProviderError as error:
            self._json(protocol.error(error.message, error.type, error.code), error.status_code)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._json(
                protocol.error(
                    f"The request cannot be read: {error!r}", "invalid_request_error", None
                ),
                400,
            )
        except Exception as error:  # noqa: BLE001 - whatever the script raises is shown to the test
            self._json(protocol.error(repr(error), "server_error", None), 500)
        else:
            if body.get("stream"):
                self._stream(protocol, body, reply)
            else:
                self._json(reply if "error" in reply else protocol.whole(body, reply), 200)

    def do_GET(self) -> None:
        self.do_POST()

    def _json(self, body: object, status: int) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, protocol: ChatCompletions, body: Body, chunks: Iterator[Body]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        with suppress(ConnectionError):  # The client has closed the stream.
            for event in self._events(protocol, body, chunks):
                self._event(*event)
            if type(protocol) is ChatCompletions:
                self.wfile.write(b"data: [DONE]\n\n")

    def _events(
        self, protocol: ChatCompletions, body: Body, chunks: Iterator[Body]
    ) -> Iterator[Event]:
        try:
            yield from protocol.events(body, chunks)
        except ProviderError as error:
            yield from protocol.failed(body, protocol.error(error.message, error.type, error.code))

    def _event(self, name: str | None, data: Body) -> None:
        line = f"event: {name}\n" if name else ""
        self.wfile.write(f"{line}data: {json.dumps(data)}\n\n".encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
        """Log nothing: the model records every request."""
