"""A scripted model as an HTTP server on a loopback port, for programs that use a vendor's SDK."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from compacter.testing.errors import ProviderError
from compacter.testing.model import ScriptedModel
from compacter.testing.protocols import Body, ChatCompletions, Event, Messages

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic
    from openai import AsyncOpenAI, OpenAI

C = TypeVar("C", bound="OpenAI | Anthropic")


class ScriptedServer:
    """HTTP server on a loopback port with OpenAI's and Anthropic's protocols, answered by a
    scripted model.

    ``POST /v1/chat/completions`` and ``/v1/messages``, plain and streamed. With both protocols,
    `model` receives messages in the form of chat completions: it counts them, refuses what is too
    long or invalid, answers, and records each request. An error has the text of the model's
    ``style`` in the protocol's own envelope.

    Use it as a context manager, or call ``close()`` at the end.
    """

    protocols: Mapping[str, ChatCompletions] = {
        "/chat/completions": ChatCompletions(),
        "/messages": Messages(),
    }
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
        self._clients: list[OpenAI | Anthropic] = []
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

        return self._close_with_it(OpenAI(**self._openai(options)))

    def async_openai(self, **options: Any) -> AsyncOpenAI:
        """As `openai`, but asynchronous; close the client in your own event loop."""
        from openai import AsyncOpenAI

        return AsyncOpenAI(**self._openai(options))

    def anthropic(self, **options: Any) -> Anthropic:
        """Return a client of Anthropic's SDK for this server; ``options`` are those of
        `anthropic.Anthropic`.

        Raises:
            ImportError: The package ``anthropic`` is not installed.
        """
        from anthropic import Anthropic

        return self._close_with_it(Anthropic(**self._anthropic(options)))

    def async_anthropic(self, **options: Any) -> AsyncAnthropic:
        """As `anthropic`, but asynchronous; close the client in your own event loop."""
        from anthropic import AsyncAnthropic

        return AsyncAnthropic(**self._anthropic(options))

    def _openai(self, options: dict[str, Any]) -> dict[str, Any]:
        return {"base_url": f"{self.url}/v1", "api_key": "scripted", "max_retries": 0, **options}

    def _anthropic(self, options: dict[str, Any]) -> dict[str, Any]:
        return {"base_url": self.url, "api_key": "scripted", "max_retries": 0, **options}

    def _close_with_it(self, client: C) -> C:
        self._clients.append(client)
        return client

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
            reply = owner.model.completion(**self._arguments(protocol.read(body)))
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

    def _arguments(self, arguments: Body) -> Body:
        """Return the arguments, with usage for a stream of Anthropic's messages or OpenAI's
        responses.
        """
        streamed = (
            arguments.get("stream")
            and self.path.partition("?")[0].rpartition("/")[2] != "completions"
        )
        return {**arguments, "stream_options": {"include_usage": True}} if streamed else arguments

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
