"""LangChain's ``SummarizationMiddleware``
(https://docs.langchain.com/oss/python/langchain/middleware/built-in).

Triggered at 80 % of the window, as the manual's examples do, keeping the newest share by tokens;
its own approximate counter counts. LangGraph keeps what it returns as the state.
``trim_tokens_to_summarize`` is left at its default.
"""

from __future__ import annotations

from typing import Any

from base import Message, Native, Peer, Settings
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    RemoveMessage,
    convert_to_messages,
    convert_to_openai_messages,
)
from langchain_core.outputs import ChatGeneration, ChatResult


class Model(BaseChatModel):
    summarize: Any
    asummarize: Any

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        text = self.summarize("\n".join(message.text for message in messages))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])

    async def _agenerate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        text = await self.asummarize("\n".join(message.text for message in messages))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


class Adapter(Peer):
    package = "langchain"
    imports = "from langchain.agents.middleware import SummarizationMiddleware"
    proactive = True

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        keep = max(1, int(settings.window * 0.8 * (1 - settings.ratio)))
        self.middleware = SummarizationMiddleware(
            Model(summarize=settings.summarize, asummarize=settings.asummarize),
            trigger=("tokens", int(settings.window * 0.8)),
            keep=("tokens", keep),
        )

    def read(self, messages: list[Message]) -> Native:
        return list(convert_to_messages(messages))

    def write(self, native: Native) -> list[Message]:
        return list(convert_to_openai_messages(native))

    def before(self, native: Native) -> Native:
        return _kept(native, self.middleware.before_model({"messages": native}, None))

    async def abefore(self, native: Native) -> Native:
        return _kept(native, await self.middleware.abefore_model({"messages": native}, None))

    def detects(self, error: Exception, text: str) -> bool:
        """As ``langchain_openai`` raises its ``ContextOverflowError``."""
        phrases = (
            "context_length_exceeded",
            "Input tokens exceed the configured limit",
            "prompt is too long",
        )
        return any(phrase in text for phrase in phrases)


def _kept(native: Native, update: Any) -> Native:
    return (
        native
        if update is None
        else [one for one in update["messages"] if not isinstance(one, RemoveMessage)]
    )
