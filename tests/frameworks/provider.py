"""The provider of the frameworks' tests: the scripted server of `tests.kit`, with OpenAI's chat
completions and responses.

Where a request offers tools it calls the first one a few times, and then answers; every other
answer is the same few words, a summary's too.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.kit import Server
from tests.kit.responses import Responses

from compacter.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from compacter.testing.server import Body, Event

WORDS = "The harbour was painted blue last year."
STRUCTURED = '{"colour": "blue"}'
WINDOW = 2_000
"""Tokens, of four characters of JSON each; tool definitions count."""


def tokens(messages: Sequence[Any], options: Mapping[str, Any]) -> int:
    """Size of a request."""
    read = [messages, options.get("instructions"), options.get("tools")]
    return len(json.dumps(read, ensure_ascii=False)) // 4


class FlatErrors(Responses):
    """A stream is refused by a flat event, as some servers of responses have it."""

    def failed(self, body: Body, error: Body) -> Iterator[Event]:
        created, _ = super().failed(body, error)
        yield created
        yield "error", {**error["error"], "type": "error", "sequence_number": 1}


class Provider(Server):
    """One server, and what it was asked.

    Args:
        tool_calls: Times that it calls a tool, where one is offered, before it answers.
        in_stream: Whether a stream is refused inside HTTP 200; "flat" for a flat event (responses).
        window: Tokens.
    """

    def __init__(
        self, *, tool_calls: int = 0, in_stream: bool | str = False, window: int = WINDOW
    ) -> None:
        self.tool_calls = tool_calls
        self.accepted: list[Body] = []
        self._reply: Body = {}
        if in_stream == "flat":
            self.protocols = {**self.protocols, "/responses": FlatErrors()}
        model = ScriptedModel(
            window=window,
            count=tokens,
            replies=lambda _: self._reply,
            overflow_at="first_event" if in_stream else "open",
            chunk_size=14,
        )
        super().__init__(model)

    @property
    def refused(self) -> int:
        return self.model.rejected

    @property
    def invalid(self) -> list[str]:
        return [request.invalid for request in self.model.requests if request.invalid]

    def answer(self, path: str, text: bytes) -> tuple[int, Body | Iterable[Event]]:
        body: Body = json.loads(text)
        self._reply = self.reply(body)
        before = self.refused + len(self.invalid)
        answered = super().answer(path, text)
        if self.refused + len(self.invalid) == before:
            self.accepted.append(body)
            self.tool_calls -= "tool_calls" in self._reply
        return answered

    def reply(self, body: Body) -> Body:
        """The message that answers a request which fits. A request for a summary says "Call no
        tool.", and this model obeys.
        """
        if body.get("tools") and self.tool_calls and "Call no tool." not in json.dumps(body):
            tool = body["tools"][0]
            function = tool.get("function", tool)
            parameters = function.get("parameters") or {}
            given = {
                name: "blue" if parameters["properties"][name].get("type") == "string" else 1
                for name in parameters.get("required") or ()
            }
            called = {"name": function["name"], "arguments": json.dumps(given)}
            call = {"id": f"call_{self.tool_calls}", "type": "function", "function": called}
            return {"content": None, "tool_calls": [call], "finish_reason": "tool_calls"}
        return {"content": self.words(body), "finish_reason": "stop"}

    def words(self, body: Body) -> str:
        """Text of an answer."""
        structured = body.get("response_format") or "format" in (body.get("text") or {})
        return STRUCTURED if structured else WORDS
