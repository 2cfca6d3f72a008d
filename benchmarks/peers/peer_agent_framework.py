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
    SummarizationStrategy,
    TokenBudgetComposedStrategy,
    apply_compaction,
)
from base import AsyncPeer, Message, Native, Settings

from compacter.frameworks.agent_framework import _read, _write


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
        return _write(messages)

    def write(self, native: Native) -> list[Message]:
        return [dict(mirror) for mirror in _read(native)]

    async def abefore(self, native: Native) -> Native:
        return await apply_compaction(native, strategy=self.strategy, tokenizer=self.tokenizer)
