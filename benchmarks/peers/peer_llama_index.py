"""LlamaIndex' ``ChatSummaryMemoryBuffer``
(https://developers.llamaindex.ai/python/examples/agent/memory/summary_memory_buffer/).

The limit is 60 % of the window, as it does not count the summary that stands before what it keeps.
Its tokenizer is the scripted model's (four characters), which costs less than its default. It keeps
what ``get`` has made.
"""

from __future__ import annotations

from typing import Any

from base import Message, Native, Peer, Settings
from llama_index.core.llms import ChatMessage, ChatResponse, MockLLM
from llama_index.core.memory import ChatSummaryMemoryBuffer

from compacter.frameworks.llama_index import _read, _write


class Model(MockLLM):
    def __init__(self, summarize: Any) -> None:
        super().__init__()
        self._summarize = summarize

    def chat(self, messages: Any, **kwargs: Any) -> ChatResponse:
        text = self._summarize("\n".join(str(message.content) for message in messages))
        return ChatResponse(message=ChatMessage(role="assistant", content=text))


class Adapter(Peer):
    package = "llama-index-core"
    imports = "from llama_index.core.memory import ChatSummaryMemoryBuffer"
    alone = True
    proactive = True

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.model = Model(settings.summarize)
        self.memory = ChatSummaryMemoryBuffer.from_defaults(
            llm=self.model,
            token_limit=int(settings.window * 0.6 * min(1, 2 * (1 - settings.ratio) + 0.4)),
            tokenizer_fn=lambda text: range(len(text) // 4),
            count_initial_tokens=True,
        )

    def read(self, messages: list[Message]) -> Native:
        return [_write(message) for message in messages]

    def write(self, native: Native) -> list[Message]:
        return [dict(_read(message)) for message in native]

    def before(self, native: Native) -> Native:
        self.memory.set(list(native))  # It takes the list apart.
        return self.memory.get()

    async def abefore(self, native: Native) -> Native:
        await self.memory.aset(list(native))
        return await self.memory.aget()  # In a thread of its own.
