"""Agent Framework's ``SummarizationStrategy`` under a token budget
(https://learn.microsoft.com/en-us/agent-framework/agents/conversations/compaction).

The budget is 80 % of the window, its own estimator counts, and the strategy keeps the share of the
messages that is to stay. It marks the messages of the list that it is given, which the session
keeps.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from agent_framework import (
    CharacterEstimatorTokenizer,
    Content,
    SummarizationStrategy,
    TokenBudgetComposedStrategy,
    apply_compaction,
)
from agent_framework import Message as OwnMessage
from base import AsyncPeer, Message, Native, Settings


def _own(message: Message) -> Any:
    """Return a message in the framework's form."""
    content = message.get("content") or ""
    if message["role"] == "tool":
        return OwnMessage(
            "tool", [Content.from_function_result(message["tool_call_id"], result=content)]
        )
    calls = [
        Content.from_function_call(
            call["id"], call["function"]["name"], arguments=call["function"]["arguments"]
        )
        for call in message.get("tool_calls") or ()
    ]
    return OwnMessage(message["role"], [*([content] if content else []), *calls])


def _read(message: Any) -> Message:
    """Return a message of the framework, each with at most one result, in OpenAI's form."""
    for one in message.contents:
        if one.type == "function_result":
            return {"role": "tool", "tool_call_id": one.call_id, "content": str(one.result)}
    calls = [
        {
            "id": one.call_id,
            "type": "function",
            "function": {"name": one.name, "arguments": one.arguments},
        }
        for one in message.contents
        if one.type == "function_call"
    ]
    read: Message = {"role": str(message.role), "content": message.text}
    return {**read, "tool_calls": calls} if calls else read


class Client:
    def __init__(self, summarize: Any) -> None:
        self.summarize = summarize

    async def get_response(self, messages: Any, **_: Any) -> Any:
        return SimpleNamespace(
            text=await self.summarize("\n".join(message.text for message in messages))
        )


class Adapter(AsyncPeer):
    package = "agent-framework-core"
    imports = "from agent_framework import SummarizationStrategy, TokenBudgetComposedStrategy"
    proactive = True
    average = 130
    """Tokens of a message in the histories here."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        tokenizer = CharacterEstimatorTokenizer()
        keep = max(1, int(settings.window * 0.8 / self.average * (1 - settings.ratio)))
        summarize = SummarizationStrategy(
            client=Client(settings.asummarize), target_count=keep, threshold=0
        )
        self.strategy = TokenBudgetComposedStrategy(
            token_budget=int(settings.window * 0.8), tokenizer=tokenizer, strategies=[summarize]
        )
        self.tokenizer = tokenizer

    def read(self, messages: list[Message]) -> Native:
        return list(map(_own, messages))

    def write(self, native: Native) -> list[Message]:
        return list(map(_read, native))

    async def abefore(self, native: Native) -> Native:
        return await apply_compaction(native, strategy=self.strategy, tokenizer=self.tokenizer)
