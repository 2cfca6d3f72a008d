"""Strands' ``SummarizingConversationManager``, which acts on a refusal
(https://strandsagents.com/latest/documentation/docs/user-guide/concepts/agents/conversation-management/).

Its own agent would call it; here an object with the agent's ``messages`` stands for that.
``preserve_recent_messages`` stays at 10. Its summary ratio is held between .1 and .8. The agent
keeps the compacted list.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from base import Message, Native, Peer, Settings
from strands.agent.conversation_manager import SummarizingConversationManager
from strands.models._openai_errors import classify_openai_error
from strands.models.anthropic import AnthropicModel
from strands.models.bedrock import BEDROCK_CONTEXT_WINDOW_OVERFLOW_MESSAGES
from translations import blocks, from_blocks


class Adapter(Peer):
    package = "strands-agents"
    imports = "from strands.agent.conversation_manager import SummarizingConversationManager"
    formats = ("openai", "bedrock")

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.summarizer: Any = SimpleNamespace(
            system_prompt="", messages=[], tool_registry=None, tool_names=["none"]
        )
        self.manager = SummarizingConversationManager(settings.ratio, summarization_agent=self)
        self.system_prompt = ""
        self.messages = []
        self.tool_registry = None
        self.tool_names = ["none"]

    def __call__(self, prompt: str) -> Any:
        text = self.settings.summarize(prompt + json.dumps(self.messages, default=str))
        return SimpleNamespace(message={"role": "assistant", "content": [{"text": text}]})

    def refused(self, native: Native, error: Exception) -> Native:
        agent: Any = SimpleNamespace(messages=native)
        self.manager.reduce_context(agent, error)
        return agent.messages

    def fold_as(self, wire_format: str, native: Native) -> Native:
        return self.refused(native, ValueError()) if wire_format == "bedrock" else self.fold(native)

    def detects(self, error: Exception, text: str) -> bool:
        """What any of its models for OpenAI, Anthropic and Bedrock takes for an overflow."""
        lists = (*BEDROCK_CONTEXT_WINDOW_OVERFLOW_MESSAGES, *AnthropicModel.OVERFLOW_MESSAGES)
        return classify_openai_error(error) == "context_overflow" or any(
            phrase.lower() in text.lower() for phrase in lists
        )

    def read(self, messages: list[Message]) -> Native:
        # The agent holds that one.
        return [blocks(message) for message in messages if message["role"] != "system"]

    def write(self, native: Native) -> list[Message]:
        return [message for one in native for message in from_blocks(one)]
