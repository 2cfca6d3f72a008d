"""context-guardian, a proxy: what it does to a request before it is sent on, called without a
socket in between (https://github.com/LuminariSoftwares/context-guardian).

The window is told to it, and a fifth of it left for the answer; of the rest the newest share stays.
It asks the backend for the summary, which here is a transport that answers at once and keeps the
proxy's own time limit. It archives on disk what it folds, and seals that, which is part of its
times. One proxy serves all conversations of a machine.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from typing import Any

from base import AsyncPeer, Native, Settings

for _name, _value in {
    "DATA_DIR": tempfile.mkdtemp(prefix="peers-"),
    "DETECT_CONTEXT": "0",
    "VERSION_CHECK": "0",
    "CALIBRATE": "0",
}.items():
    os.environ[f"GUARDIAN_{_name}"] = _value

import context_guardian  # noqa: E402 - it reads its settings when it is imported
import httpx  # noqa: E402


class Adapter(AsyncPeer):
    package = "context-guardian"
    imports = "import context_guardian"
    keeps = False
    proactive = True
    formats = ("openai", "anthropic")

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.client = httpx.AsyncClient(transport=httpx.MockTransport(self.answer))
        context_guardian._summary_memo.clear()  # noqa: SLF001 - as a proxy that was just started

    async def answer(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        asked = "\n".join(str(message["content"]) for message in body["messages"])
        try:
            text = await asyncio.wait_for(self.settings.asummarize(asked), self.settings.timeout)
        except TimeoutError:
            raise httpx.ReadTimeout("too slow") from None
        if request.url.path.endswith("/messages"):
            return httpx.Response(
                200, json={"content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}
            )
        return httpx.Response(
            200, json={"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}
        )

    async def abefore(self, native: Native) -> Native:
        return await self.rewritten(context_guardian.maybe_compact, native)

    async def rewritten(self, compact: Any, native: Native) -> Native:
        # Its settings are those of a process; each adapter here has its own.
        context_guardian.NUM_CTX = self.settings.window
        context_guardian.RESERVE_OUTPUT = self.settings.window // 5
        context_guardian.KEEP_RECENT_FRACTION = 1 - self.settings.ratio
        return (await compact(self.client, {"model": "any", "messages": list(native)}, {}))[
            "messages"
        ]

    def fold_as(self, wire_format: str, native: Native) -> Native:
        anthropic = wire_format == "anthropic"
        work = (
            context_guardian.maybe_compact_anthropic
            if anthropic
            else context_guardian.maybe_compact
        )
        return self._loop.run_until_complete(self.rewritten(work, native))
