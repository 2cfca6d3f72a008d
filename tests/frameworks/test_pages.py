"""The snippets of each framework's page of the manual, which end with an answer."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest
from tests.frameworks.provider import WORDS

if TYPE_CHECKING:
    from collections.abc import Callable

PAGES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "agent-framework": ("agent_framework", WORDS, {}),
    "autogen": ("autogen_agentchat", WORDS, {}),
    "crewai": ("crewai", WORDS, {}),
    "dspy": ("dspy", "blue", {}),
    "haystack": ("haystack", WORDS, {}),
    "instructor": ("instructor", "blue", {"tool_calls": 99}),
    "llama-index": ("llama_index", WORDS, {}),
    "openai-agents": ("agents", WORDS, {}),
    "pydantic-ai": ("pydantic_ai", WORDS, {}),
    "smolagents": ("smolagents", WORDS, {}),
    "strands": ("strands", WORDS, {}),
}
"""Page: the package, its answer, and options of the provider."""


@pytest.mark.parametrize("name", PAGES)
def test_the_page_runs(name: str, serve: Callable[..., Any], run_page: Callable[..., Any]) -> None:
    package, answer, options = PAGES[name]
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    serve(**options)
    assert run_page(name)["answer"] == answer
