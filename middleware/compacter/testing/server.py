"""A provider on a loopback port, for programs that use a vendor's SDK: a scripted model behind HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from compacter.testing.errors import ProviderError
from compacter.testing.model import ScriptedModel
from compacter.testing.protocols import Body, ChatCompletions, Event, Messages, Responses

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic
    from openai import AsyncOpenAI, OpenAI

C = TypeVar("C", bound="OpenAI | Anthropic")

_PROTOCOLS: Mapping[str, ChatCompletions] = {
    "/chat/completions": ChatCompletions(),
    "/responses": Responses(),
    "/messages": Messages(),
}
"""The end of a path -> who speaks there; ``/v1`` before it may be left out."""


class ScriptedServer:
    """OpenAI's and Anthropic's HTTP protocols on a port of this machine, with a scripted model behind them.

    ``POST /v1/chat/completions``, ``/v1/responses`` and ``/v1/messages``, plain and streamed. Whatever the protocol,
    `model` sees messages in the shape of chat completions: it counts them, refuses what is too long or broken, answers,
    and records each request. A refusal has the words of the model's ``style`` in the protocol's own envelope.

    Use it as a context manager, or end it with ``close()``.
    """

    def __init__(self, model: ScriptedModel | None = None, **options: Any) -> None:
        """A server that listens from now on.

        Args:
            model: What answers; ``None``: ``ScriptedModel(**options)``.
            **options: Those of `ScriptedModel`, ``window`` (tokens) and ``replies`` for example. ``replies`` cannot
                be an async function, and ``reply_type`` must stay "dict".

        Raises:
            TypeError: A model and options are both given, or an option is unknown.
        """
        if model is not None and options:
            raise TypeError("give either a model or options of a new one, not both")
        self.model = ScriptedModel(**options) if model is None else model
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.model = self.model
        self._clients: list[OpenAI | Anthropic] = []
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The address without a path: Anthropic's ``base_url``. OpenAI's is this and ``/v1``."""
        return f"http://127.0.0.1:{self._http.server_port}"

    def openai(self, **options: Any) -> OpenAI:
        """A client of OpenAI's SDK that talks to this server; ``options`` are those of `openai.OpenAI`.

        Raises:
            ImportError: The package ``openai`` is not installed.
        """
        from openai import OpenAI

        return self._closed_with_it(OpenAI(**self._openai(options)))

    def async_openai(self, **options: Any) -> AsyncOpenAI:
        """As `openai`, for ``await``; close it in your own event loop."""
        from openai import AsyncOpenAI

        return AsyncOpenAI(**self._openai(options))

    def anthropic(self, **options: Any) -> Anthropic:
        """A client of Anthropic's SDK that talks to this server; ``options`` are those of `anthropic.Anthropic`.

        Raises:
            ImportError: The package ``anthropic`` is not installed.
        """
        from anthropic import Anthropic

        return self._closed_with_it(Anthropic(**self._anthropic(options)))

    def async_anthropic(self, **options: Any) -> AsyncAnthropic:
        """As `anthropic`, for ``await``; close it in your own event loop."""
        from anthropic import AsyncAnthropic

        return AsyncAnthropic(**self._anthropic(options))

    def _openai(self, options: dict[str, Any]) -> dict[str, Any]:
        return {"base_url": f"{self.url}/v1", "api_key": "scripted", "max_retries": 0, **options}

    def _anthropic(self, options: dict[str, Any]) -> dict[str, Any]:
        return {"base_url": self.url, "api_key": "scripted", "max_retries": 0, **options}

    def _closed_with_it(self, client: C) -> C:
        self._clients.append(client)
        return client

    def close(self) -> None:
        """Stop listening, and close the clients that were made here. May be called twice."""
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
    model: ScriptedModel


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("?")[0]
        protocol = next((known for end, known in _PROTOCOLS.items() if path in {end, f"/v1{end}"}), None)
        if protocol is None:
            self._json(ChatCompletions().error(f"There is nothing at {path}.", "invalid_request_error", None), 404)
            return
        try:
            body = json.loads(text)
            reply = cast("_Server", self.server).model.completion(**self._arguments(protocol.read(body)))
        except ProviderError as error:
            self._json(protocol.error(error.message, error.type, error.code), error.status_code)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._json(protocol.error(f"The request cannot be read: {error!r}", "invalid_request_error", None), 400)
        except Exception as error:  # noqa: BLE001 - whatever the script raises; the test shall see it
            self._json(protocol.error(repr(error), "server_error", None), 500)
        else:
            if body.get("stream"):
                self._stream(protocol, body, reply)
            else:
                self._json(reply if "error" in reply else protocol.whole(body, reply), 200)

    def do_GET(self) -> None:
        self.do_POST()

    def _arguments(self, arguments: Body) -> Body:
        """A stream states its usage to whoever asks; Anthropic's and the responses' always do."""
        streamed = arguments.get("stream") and self.path.partition("?")[0].rpartition("/")[2] != "completions"
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
        with suppress(ConnectionError):  # The client has heard enough.
            for event in self._events(protocol, body, chunks):
                self._event(*event)
            if protocol is _PROTOCOLS["/chat/completions"]:
                self.wfile.write(b"data: [DONE]\n\n")

    def _events(self, protocol: ChatCompletions, body: Body, chunks: Iterator[Body]) -> Iterator[Event]:
        try:
            yield from protocol.events(body, chunks)
        except ProviderError as error:
            yield from protocol.failed(body, protocol.error(error.message, error.type, error.code))

    def _event(self, name: str | None, data: Body) -> None:
        line = f"event: {name}\n" if name else ""
        self.wfile.write(f"{line}data: {json.dumps(data)}\n\n".encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
        """Say nothing: the model records every request."""
