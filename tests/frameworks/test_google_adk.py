"""Google's ADK, whose agents go on when the session is too long."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("google.adk")

from google import genai
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.events import Event
from google.adk.models import Gemini
from google.adk.runners import InMemoryRunner
from google.genai import types

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compacter import Compacter
    from tests.clients import loopback
else:
    _spec = importlib.util.spec_from_file_location(
        "loopback", Path(__file__).parents[1] / "clients" / "loopback.py"
    )
    loopback = importlib.util.module_from_spec(_spec)
    sys.modules[_spec.name] = loopback
    _spec.loader.exec_module(loopback)


@pytest.fixture
def server() -> Iterator[Any]:
    with loopback.serving(loopback.gemini) as running:
        yield running


def agent(server: Any, compacter: Compacter, **options: Any) -> LlmAgent:
    client = genai.Client(api_key="test", http_options=types.HttpOptions(base_url=server.url))
    return LlmAgent(name="harbour", model=Gemini(model="gemini-test", client=compacter.wrap(client)), **options)


async def asked(one: LlmAgent, talk: list[tuple[str, str]], **options: Any) -> str:
    """What the agent says at the end of a session."""
    runner = InMemoryRunner(one, app_name="test")
    session = await runner.session_service.create_session(app_name="test", user_id="user")
    for role, text in talk[:-1]:
        content = types.Content(role="user" if role == "user" else "model", parts=[types.Part(text=text)])
        author = "user" if role == "user" else "harbour"
        await runner.session_service.append_event(session, Event(author=author, content=content))
    question = types.Content(role="user", parts=[types.Part(text=talk[-1][1])])
    heard = [
        event
        async for event in runner.run_async(user_id="user", session_id=session.id, new_message=question, **options)
    ]
    return "".join(part.text or "" for part in heard[-1].content.parts)


async def test_plain(server: Any, compacter: Compacter, talk: list) -> None:
    assert await asked(agent(server, compacter), talk) == loopback.WORDS
    assert compacter.totals.rounds == 1


@pytest.mark.parametrize("refuse", ["status", "event"])
async def test_stream(server: Any, compacter: Compacter, talk: list, refuse: Any) -> None:
    server.refuse = refuse
    config = RunConfig(streaming_mode=StreamingMode.SSE)
    assert await asked(agent(server, compacter), talk, run_config=config) == loopback.WORDS
    assert compacter.totals.rounds == 1


async def test_tools(server: Any, compacter: Compacter, report: str) -> None:
    def count_ships() -> str:
        """Count the ships."""
        return report * 4

    talk = [("user", "How many ships? " * 40), ("assistant", "Many. " * 100), ("user", "And now?")]
    assert await asked(agent(server, compacter, tools=[count_ships]), talk) == ""
    assert compacter.totals.rounds == 0
