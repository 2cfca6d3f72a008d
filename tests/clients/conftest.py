"""A vendor's server for each test that asks for one, and the histories that are too long for it."""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest
from tests.clients import loopback
from tests.dialects import retold

from compacter import Compacter, CompactionEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TURNS = 40


class Recording(Compacter):
    """A ``Compacter`` with its compactions."""

    events: list[CompactionEvent]


@pytest.fixture
def events() -> list[CompactionEvent]:
    return []


@pytest.fixture
def compacter(events: list[CompactionEvent]) -> Recording:
    made = Recording(max_summary_tokens=150, on_compaction=events.append)
    made.events = events
    return made


@pytest.fixture
def gemini_server() -> Iterator[loopback.Provider]:
    with loopback.serving(loopback.gemini) as server:
        yield server


@pytest.fixture
def bedrock_server() -> Iterator[loopback.Provider]:
    with loopback.serving(loopback.bedrock) as server:
        yield server


@pytest.fixture
def openai_client(openai_server: loopback.Provider) -> Iterator[openai.OpenAI]:
    url = f"{openai_server.url}/v1"
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0) as made:
        yield made


@pytest.fixture
def anthropic_client(anthropic_server: loopback.Provider) -> Iterator[anthropic.Anthropic]:
    url = anthropic_server.url
    with anthropic.Anthropic(base_url=url, api_key="none", max_retries=0) as made:
        yield made


def said(number: int) -> tuple[str, str]:
    return (
        (
            f"Part {number}: what do you know about pier {number}? "
            "Look it up in the book of the harbour. "
        ),
        (
            f"Pier {number} was built in {1800 + number}. "
            "It has been painted many times since then. "
        ),
    )


@pytest.fixture
def chat() -> list[Any]:
    """A system prompt, turns with a tool call here and there, a question; for chat completions."""
    history: list[Any] = [{"role": "system", "content": "You answer questions about a harbour."}]
    for number in range(TURNS):
        question, answer = said(number)
        history.append({"role": "user", "content": question})
        if number % 5 == 0:
            function = {"name": "look_up", "arguments": f'{{"pier": {number}}}'}
            call = {"id": f"call_{number}", "type": "function", "function": function}
            history.append({"role": "assistant", "content": None, "tool_calls": [call]})
            history.append(
                {
                    "role": "tool",
                    "tool_call_id": f"call_{number}",
                    "content": f"built: {1800 + number}",
                }
            )
        history.append({"role": "assistant", "content": answer})
    return [*history, {"role": "user", "content": "Which colour has the harbour?"}]


@pytest.fixture
def items(chat: list[Any]) -> list[Any]:
    """The same, as items of the Responses API."""
    return retold("responses", chat)


@pytest.fixture
def blocks(chat: list[Any]) -> list[Any]:
    """The same, as Anthropic's messages, with thinking beside each call and a cache mark at the
    end.
    """
    history = retold("anthropic", chat)
    thought = {"type": "thinking", "thinking": "The book knows.", "signature": "c2lnbmVk"}
    for message in history:
        if message["role"] == "assistant" and isinstance(message["content"], list):
            message["content"].insert(0, thought)
    history[-1]["content"][0]["cache_control"] = {"type": "ephemeral"}
    return history


@pytest.fixture
def contents(chat: list[Any]) -> list[Any]:
    """The same, as Gemini's contents."""
    return retold("gemini", chat)


@pytest.fixture
def converse(chat: list[Any]) -> list[Any]:
    """The same, as Converse's messages."""
    return retold("bedrock", chat)


class Vendor:
    """One vendor's method, its server and the history that is too long for it."""

    def __init__(self, path: str, server: loopback.Provider, history: list[Any]) -> None:
        self.path = path
        self.server = server
        self.history = history
        self.param = "input" if path == "responses" else "messages"

    @property
    def is_anthropic(self) -> bool:
        return self.path.endswith("messages")

    def client(self, *, asynchronous: bool = False) -> Any:
        options: dict[str, Any] = {"base_url": self.server.url, "api_key": "none", "max_retries": 0}
        if self.is_anthropic:
            return (anthropic.AsyncAnthropic if asynchronous else anthropic.Anthropic)(**options)
        options["base_url"] += "/v1"
        return (openai.AsyncOpenAI if asynchronous else openai.OpenAI)(**options)

    def method(self, client: Any, name: str = "create") -> Callable[..., Any]:
        """The client's method; ``name`` may lead there by way of ``with_raw_response``."""
        found: Callable[..., Any] = functools.reduce(
            getattr, (*self.path.split("."), *name.split(".")), client
        )
        return found

    def options(self, history: list[Any] | None = None, **more: Any) -> dict[str, Any]:
        messages = copy.deepcopy(self.history) if history is None else history
        options = {"model": "m", self.param: messages, **more}
        return {**options, "max_tokens": 50} if self.is_anthropic else options

    def words(self, reply: Any) -> str:
        if self.path == "responses":
            return str(reply.output_text)
        return str(reply.content[0].text if self.is_anthropic else reply.choices[0].message.content)

    @staticmethod
    def text_of(event: Any) -> str:
        """The words of one event, which has a delta or choices that have one."""
        choices = getattr(event, "choices", None)
        delta = choices[0].delta if choices else getattr(event, "delta", None)
        found = (
            delta
            if isinstance(delta, str)
            else getattr(delta, "text", None) or getattr(delta, "content", None)
        )
        return found if isinstance(found, str) else ""


VENDORS = {
    "chat.completions": ("openai_server", "chat"),
    "responses": ("openai_server", "items"),
    "messages": ("anthropic_server", "blocks"),
    "beta.messages": ("anthropic_server", "blocks"),
}


@pytest.fixture(params=VENDORS)
def vendor(request: pytest.FixtureRequest) -> Vendor:
    server, history = VENDORS[request.param]
    return Vendor(request.param, request.getfixturevalue(server), request.getfixturevalue(history))
