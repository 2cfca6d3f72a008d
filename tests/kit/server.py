"""A scripted server that speaks Anthropic's messages and OpenAI's responses too.

Only tests of this repository need it: users' are served by ``compacter.testing.ScriptedServer``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.kit.messages import Messages
from tests.kit.responses import Responses

from compacter.testing import ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anthropic import Anthropic, AsyncAnthropic

    from compacter.testing.server import ChatCompletions


class Server(ScriptedServer):
    """Also ``POST /v1/messages`` and ``/v1/responses``, plain and streamed."""

    protocols: Mapping[str, ChatCompletions] = {
        **ScriptedServer.protocols,
        "/messages": Messages(),
        "/responses": Responses(),
    }

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
