"""Haystack's ``CompactionHook`` with its ``SummarizationCompactor``
(https://docs.haystack.deepset.ai/docs/compaction).

Compacts at 80 % of the window, down to the share that is kept; the approximate counter is its own.
The agent keeps it.
"""

from __future__ import annotations

from typing import Any

from base import Message, Native, Peer, Settings
from haystack.components.agents.state import State
from haystack.dataclasses import ChatMessage
from haystack.hooks.compaction import CompactionHook, SummarizationCompactor


class Model:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def run(self, messages: Any, **_: Any) -> Any:
        return {"replies": [ChatMessage.from_assistant(self.settings.summarize(_text(messages)))]}

    async def run_async(self, messages: Any, **_: Any) -> Any:
        return {
            "replies": [ChatMessage.from_assistant(await self.settings.asummarize(_text(messages)))]
        }


def _text(messages: Any) -> str:
    return "\n".join(message.text or str(message.tool_call_results) for message in messages)


class Adapter(Peer):
    package = "haystack-ai"
    imports = "from haystack.hooks.compaction import CompactionHook, SummarizationCompactor"
    proactive = True

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        compactor = SummarizationCompactor(Model(settings), approximate_summary_tokens=300)
        keep = max(0.05, 0.8 * (1 - settings.ratio))
        self.hook = CompactionHook(
            compactor, context_window=settings.window, compact_at=0.8, compact_to=keep
        )

    def read(self, messages: list[Message]) -> Native:
        return [ChatMessage.from_openai_dict_format(message) for message in messages]

    def write(self, native: Native) -> list[Message]:
        return [message.to_openai_dict_format() for message in native]

    def before(self, native: Native) -> Native:
        state = State(schema={"messages": {"type": list[ChatMessage]}}, data={"messages": native})
        self.hook.run(state)
        return state.data["messages"]

    async def abefore(self, native: Native) -> Native:
        state = State(schema={"messages": {"type": list[ChatMessage]}}, data={"messages": native})
        await self.hook.run_async(state)
        return state.data["messages"]
