"""CrewAI, whose agents go on when the history is too long."""

from __future__ import annotations

import copy
import importlib.util
import os
from typing import TYPE_CHECKING, Any

import pytest

if importlib.util.find_spec("crewai") is None:
    pytest.skip("crewai is not installed", allow_module_level=True)
os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")
os.environ.setdefault("OTEL_SDK_DISABLED", "true")
os.environ.setdefault("CREWAI_TRACING_ENABLED", "false")

from crewai import LLM, Agent
from crewai.tools import tool
from tests.frameworks.provider import WORDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from compacter import Compacter

QUESTION = "What colour is the harbour?"


def llm(compacter: Compacter, url: str, **options: Any) -> Any:
    return compacter.wrap(
        LLM(model="openai/gpt-4o", base_url=url, api_key="sk-test", max_retries=0, **options)
    )


@pytest.mark.parametrize("stream", [False, True])
def test_plain(serve: Callable, compacter: Compacter, history: list[Any], stream: bool) -> None:
    served = serve()
    assert llm(compacter, served.url, stream=stream).call(history) == WORDS


@pytest.mark.parametrize("stream", [False, True])
async def test_async(
    serve: Callable, compacter: Compacter, history: list[Any], stream: bool
) -> None:
    served = serve()
    assert await llm(compacter, served.url, stream=stream).acall(history) == WORDS


def test_refused_inside_a_stream(serve: Callable, compacter: Compacter, history: list[Any]) -> None:
    served = serve(in_stream=True)
    assert llm(compacter, served.url, stream=True).call(history) == WORDS


def test_agent_with_tools(serve: Callable, compacter: Compacter, report: str) -> None:
    asked: list[int] = []

    @tool
    def look_up(name: str) -> str:
        """Look something up."""
        asked.append(1)
        return f"{len(asked)}. {report}"

    served = serve(tool_calls=8, window=2_500)
    agent = Agent(
        role="Harbour master",
        goal="Know the harbour",
        backstory="You live there.",
        tools=[look_up],
        llm=llm(compacter, served.url),
        respect_context_window=False,
        max_iter=20,
    )
    assert agent.kickoff(QUESTION).raw == WORDS


def test_copy(serve: Callable, compacter: Compacter, history: list[Any]) -> None:
    served = serve()
    assert copy.copy(llm(compacter, served.url)).call(history) == WORDS
