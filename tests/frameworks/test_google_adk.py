"""Google's ADK, whose agents go on when the session is too long."""

from __future__ import annotations

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
from tests.clients import loopback

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compacter import Compacter


@pytest.fixture
def server() -> Iterator[Any]:
    with loopback.serving(loopback.gemini) as running:
        yield running


def agent(server: Any, compacter: Compacter, **options: Any) -> LlmAgent:
    client = genai.Client(api_key="test", http_options=types.HttpOptions(base_url=server.url))
    return LlmAgent(
        name="harbour", model=Gemini(model="gemini-test", client=compacter.wrap(client)), **options
    )


async def asked(one: LlmAgent, talk: list[tuple[str, str]], **options: Any) -> str:
    """The agent's answer at the end of a session."""
    runner = InMemoryRunner(one, app_name="test")
    session = await runner.session_service.create_session(app_name="test", user_id="user")
    for role, text in talk[:-1]:
        content = types.Content(
            role="user" if role == "user" else "model", parts=[types.Part(text=text)]
        )
        author = "user" if role == "user" else "harbour"
        await runner.session_service.append_event(session, Event(author=author, content=content))
    question = types.Content(role="user", parts=[types.Part(text=talk[-1][1])])
    heard = [
        event
        async for event in runner.run_async(
            user_id="user", session_id=session.id, new_message=question, **options
        )
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


async def test_tools(compacter: Compacter, report: str) -> None:
    left = iter(range(6))

    def vendor(running: Any, path: str, body: Any) -> Any:
        if (
            body.get("tools")
            and not running.too_long(body["contents"])
            and next(left, None) is not None
        ):
            call = {
                "role": "model",
                "parts": [{"functionCall": {"name": "count_ships", "args": {}}}],
            }
            return loopback.json_answer(
                {"candidates": [{"content": call, "index": 0, "finishReason": "STOP"}]}
            )
        return loopback.gemini(running, path, {**body, "tools": None})

    def count_ships() -> str:
        """Count the ships."""
        return report

    with loopback.serving(vendor) as running:
        assert (
            await asked(agent(running, compacter, tools=[count_ships]), [("user", "How many?")])
            == loopback.WORDS
        )
    assert compacter.totals.rounds > 0
    for body in running.bodies:
        calls = [
            part
            for content in body["contents"]
            for part in content["parts"]
            if "functionCall" in part
        ]
        results = [
            part
            for content in body["contents"]
            for part in content["parts"]
            if "functionResponse" in part
        ]
        assert len(calls) == len(results)


def test_page(run_page: Any) -> None:
    agent = run_page("google-adk")["agent"]
    assert isinstance(agent.model.client, genai.Client)
