"""A scripted server that speaks Anthropic's messages and OpenAI's responses too.

Only tests of this repository need it: users' are served by ``compacter.testing.ScriptedServer``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.kit.messages import Messages
from tests.kit.responses import Responses

from compacter.testing import ProviderError, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from anthropic import Anthropic, AsyncAnthropic
    from tests.kit.protocol import Protocol

    from compacter.testing.server import Body, Event


class Server(ScriptedServer):
    """Also ``POST /v1/messages`` and ``/v1/responses``, plain and streamed."""

    protocols: Mapping[str, Protocol] = {"/messages": Messages(), "/responses": Responses()}

    def answer(self, path: str, text: bytes) -> tuple[int, Body | Iterable[Event]]:
        protocol = self.protocols.get(path)
        if protocol is None:
            return super().answer(path, text)
        try:
            body = json.loads(text)
            reply = self.model.completion(**protocol.read(body))
        except ProviderError as error:
            return error.status_code, protocol.error(error.message, error.type, error.code)
        except Exception as error:  # noqa: BLE001 - as the base class does
            return 500, protocol.error(repr(error), "server_error", None)
        if body.get("stream"):
            return 200, events(protocol, body, reply)
        return 200, reply if "error" in reply else protocol.whole(body, reply)

    def anthropic(self, **options: Any) -> Anthropic:
        """A client of Anthropic's SDK for this server."""
        from anthropic import Anthropic

        client = Anthropic(base_url=self.url, api_key="scripted", max_retries=0, **options)
        self._clients.append(client)
        return client

    def async_anthropic(self, **options: Any) -> AsyncAnthropic:
        """The same, asynchronous; it is closed in the test's own event loop."""
        from anthropic import AsyncAnthropic

        return AsyncAnthropic(base_url=self.url, api_key="scripted", max_retries=0, **options)


def events(protocol: Protocol, body: Body, chunks: Iterable[Body]) -> Iterator[Event]:
    try:
        yield from protocol.events(body, chunks)
    except ProviderError as error:
        yield from protocol.failed(body, protocol.error(error.message, error.type, error.code))
