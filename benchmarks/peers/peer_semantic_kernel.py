"""Semantic Kernel's ``ChatHistorySummarizationReducer``
(https://learn.microsoft.com/en-us/semantic-kernel/concepts/ai-services/chat-completion/chat-history).

It counts messages and not tokens: the target is the share of the messages that fills 80 % of the
window, which a program would have to guess. Function content goes into the summary. The history is
reduced in place.
"""

from __future__ import annotations

from typing import Any

from base import AsyncPeer, Message, Native
from semantic_kernel.connectors.ai.chat_completion_client_base import ChatCompletionClientBase
from semantic_kernel.contents import ChatHistorySummarizationReducer, ChatMessageContent
from translations import content, from_content


class Service(ChatCompletionClientBase):
    summarize: Any

    async def get_chat_message_content(self, chat_history: Any, settings: Any, **_: Any) -> Any:
        text = await self.summarize(
            "\n".join(str(message) or str(message.items) for message in chat_history.messages)
        )
        return ChatMessageContent(role="assistant", content=text)


class Adapter(AsyncPeer):
    package = "semantic-kernel"
    imports = "from semantic_kernel.contents import ChatHistorySummarizationReducer"
    proactive = True
    average = 130
    """Tokens of a message in the histories here."""

    async def abefore(self, native: Native) -> Native:
        target = max(2, int(self.settings.window * 0.8 / self.average * (1 - self.settings.ratio)))
        most = max(2, int(self.settings.window * 0.8 / self.average))
        reducer = ChatHistorySummarizationReducer(
            service=Service(ai_model_id="any", summarize=self.settings.asummarize),
            target_count=target,
            threshold_count=most - target,
            include_function_content_in_summary=True,
        )
        reducer.messages = native
        await reducer.reduce()
        return reducer.messages

    def read(self, messages: list[Message]) -> Native:
        return [content(message) for message in messages]

    def write(self, native: Native) -> list[Message]:
        return [message for one in native for message in from_content(one)]
