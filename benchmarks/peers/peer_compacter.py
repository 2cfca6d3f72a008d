"""compacter, with its defaults but the ratio. It wraps the call, so it is bound to it once, as a
program would do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from base import ASend, Native, Peer, Send, Settings

from compacter import Compacter, detect_token_limit


class Adapter(Peer):
    package = "llm-compacter"
    imports = "import compacter; compacter.Compacter()"
    keeps = False
    formats = ("openai", "anthropic", "responses", "gemini", "bedrock")
    recall: float | None = 0.15

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)

        def summarizer(messages: Any, **_: Any) -> str:
            return settings.summarize("\n".join(message["content"] for message in messages))

        async def asummarizer(messages: Any, **_: Any) -> str:
            return await settings.asummarize("\n".join(message["content"] for message in messages))

        options: Any = {
            "compact_ratio": settings.ratio,
            "timeout": settings.timeout,
            "recall": self.recall,
        }
        self.compacter = Compacter(summarizer=summarizer, **options)
        self.waiting = Compacter(summarizer=asummarizer, **options)

    def bound(self, send: Send, **options: Any) -> Callable[[Native], tuple[Native, Any]]:
        def completion(messages: Any, **_: Any) -> Any:
            return send(messages)

        wrapped = self.compacter.wrap(completion)
        return lambda native: (native, wrapped(messages=native, **options))

    def abound(self, send: ASend) -> Callable[[Native], Awaitable[tuple[Native, Any]]]:
        async def completion(messages: Any) -> Any:
            return await send(messages)

        wrapped = self.waiting.wrap(completion)

        async def call(native: Native) -> tuple[Native, Any]:
            return native, await wrapped(messages=native)

        return call

    def fold(self, native: Native) -> Native:
        return self.fold_as("openai", native)

    def fold_as(self, wire_format: Any, native: Native) -> Native:
        return self.compacter.compact(native, wire_format=wire_format).messages

    def plan(self, native: Native) -> int:
        return self.compacter.plan(native, wire_format="openai").cut

    def detects(self, error: Exception, text: str) -> bool:
        return detect_token_limit(error) is not None
