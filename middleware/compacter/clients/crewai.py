"""CrewAI: any LLM (https://docs.crewai.com/en/concepts/llms). Its messages are OpenAI's already."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compacter.clients.own_types import Adapter, each, each_back


def _read(message: Any) -> Mapping[str, Any]:
    return dict(message)


def _write(message: Mapping[str, Any]) -> Any:
    return dict(message)


_ADAPTER = Adapter(
    methods={"call": "call", "acall": "acall"},
    positional=("self", "messages", "tools", "callbacks", "available_functions", "from_task", "from_agent"),
    read=each(_read),
    write=each_back(_write),
    answer=lambda reply: reply if isinstance(reply, str) else "",
    model=lambda llm: str(llm.model),
    server=lambda llm: str(llm.base_url or ""),
    left_out=frozenset({"callbacks", "available_functions", "from_task", "from_agent", "response_model"}),
    output_param=None,
)


def adapter_of(kind: type[Any]) -> Adapter:  # noqa: ARG001 - one for all
    """The adapter for an LLM; agents, crews and flows that get it compact."""
    return _ADAPTER
