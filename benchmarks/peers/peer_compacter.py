"""compacter, with its defaults but the ratio. It wraps the call, so it is bound to it once, as a program would do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from base import Native, Peer, Send, Settings

from compacter import Compacter, detect_token_limit


class Adapter(Peer):
    package = "llm-compacter"
    keeps = False

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)

        def summarizer(messages: Any, **_: Any) -> str:
            return settings.summarize("\n".join(message["content"] for message in messages))

        self.compacter = Compacter(compact_ratio=settings.ratio, summarizer=summarizer)

    def bound(self, send: Send, tries: int = 10) -> Callable[[Native], tuple[Native, Any]]:
        def completion(messages: Any) -> Any:
            return send(messages)

        wrapped = self.compacter.wrap(completion)
        return lambda native: (native, wrapped(messages=native))

    def fold(self, native: Native) -> Native:
        return self.compacter.compact(native, wire_format="openai").messages

    def plan(self, native: Native) -> int:
        return self.compacter.plan(native, wire_format="openai").cut

    def detects(self, error: Exception, text: str) -> bool:
        return detect_token_limit(error) is not None
