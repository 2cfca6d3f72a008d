"""CrewAI: any LLM (https://docs.crewai.com/en/concepts/llms). Its messages are OpenAI's already."""

from __future__ import annotations

from compacter.frameworks.own_types import Adapter, back, each

ADAPTER = Adapter(
    methods={"call": "call", "acall": "acall"},
    positional=(
        "self",
        "messages",
        "tools",
        "callbacks",
        "available_functions",
        "from_task",
        "from_agent",
    ),
    read=each(dict),
    write=back(dict),
    answer=lambda reply: reply if isinstance(reply, str) else "",
    left_out=frozenset(
        {"callbacks", "available_functions", "from_task", "from_agent", "response_model"}
    ),
    output_param=None,
)
"""Adapter of LLMs, for agents, crews and flows."""
