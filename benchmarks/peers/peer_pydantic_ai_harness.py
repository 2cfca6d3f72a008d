"""pydantic-ai-harness' ``SummarizingCompaction``, by ``compact_now`` when its threshold is passed
(https://github.com/pydantic/pydantic-ai-harness).

The threshold is 80 % of the window by its own estimate; ``keep_tokens`` is the share that is to
stay. An agent keeps what it returns.
"""

from __future__ import annotations

from typing import Any

from base import AsyncPeer, Message, Native, Settings
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai_harness.compaction import SummarizingCompaction, compact_now
from pydantic_ai_harness.compaction._shared import exceeds

from compacter.frameworks.pydantic_ai import _read, _write


class Adapter(AsyncPeer):
    package = "pydantic-ai-harness"
    imports = "from pydantic_ai_harness.compaction import SummarizingCompaction, compact_now"
    proactive = True

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)

        async def answer(messages: Any, _: Any) -> ModelResponse:
            said = "\n".join(str(part.content) for one in messages for part in one.parts)
            return ModelResponse([TextPart(await settings.asummarize(said))])

        self.model = FunctionModel(answer)
        keep = max(1, int(settings.window * 0.8 * (1 - settings.ratio)))
        self.most = int(settings.window * 0.8)
        self.strategy: Any = SummarizingCompaction(
            model=self.model, max_tokens=self.most, keep_tokens=keep
        )

    def read(self, messages: list[Message]) -> Native:
        return _write(messages)

    def write(self, native: Native) -> list[Message]:
        return [dict(mirror) for mirror in _read(native)]

    def before(self, native: Native) -> Native:
        return super().before(native) if exceeds(native, None, self.most, None) else native

    async def abefore(self, native: Native) -> Native:
        if not exceeds(native, None, self.most, None):
            return native
        return await compact_now(self.strategy, native, model=self.model)
