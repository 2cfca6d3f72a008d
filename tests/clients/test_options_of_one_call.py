"""``compacter_options`` of one call, on every method of a client that sends messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest
from anthropic import beta_tool
from google import genai
from tests.clients.conftest import Recording

from compacter import Compacter
from compacter.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.clients.loopback import Provider

pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")
OFF: Any = {"compacter_options": False}
MARKED: Any = {"compacter_options": {"conversation": "ticket-4711"}}


def look_up(pier: int) -> str:
    """Look a pier up.

    Args:
        pier: its number
    """
    return f"Pier {pier}."


def open_chat(client: Any, contents: list[Any]) -> Any:
    return client.chats.create(model="gemini-test", history=contents[:-1])


CALLS: dict[str, Callable[[Any, list[Any], Any], Any]] = {
    "openai create": lambda client, chat, options: client.chat.completions.create(
        model="m", messages=chat, **options
    ),
    "openai stream": lambda client, chat, options: _read(
        client.chat.completions.stream(model="m", messages=chat, **options)
    ),
    "openai raw": lambda client, chat, options: client.chat.completions.with_raw_response.create(
        model="m", messages=chat, **options
    ),
    "anthropic create": lambda client, turns, options: client.messages.create(
        model="m", max_tokens=9, messages=turns, **options
    ),
    "anthropic stream": lambda client, turns, options: _read(
        client.messages.stream(model="m", max_tokens=9, messages=turns, **options)
    ),
    "anthropic tool_runner": lambda client, turns, options: client.beta.messages.tool_runner(
        model="m", max_tokens=9, messages=turns, tools=[beta_tool(look_up)], **options
    ).until_done(),
    "gemini generate_content": lambda client, contents, options: client.models.generate_content(
        model="gemini-test", contents=contents, **options
    ),
    "gemini generate_content_stream": lambda client, contents, options: list(
        client.models.generate_content_stream(model="gemini-test", contents=contents, **options)
    ),
    "gemini send_message": lambda client, contents, options: open_chat(
        client, contents
    ).send_message("And now?", **options),
    "gemini send_message_stream": lambda client, contents, options: list(
        open_chat(client, contents).send_message_stream("And now?", **options)
    ),
}
EACH = pytest.mark.parametrize("call", CALLS)


def _read(manager: Any) -> None:
    with manager as stream:
        for _ in stream:
            pass


@pytest.fixture
def ready(
    call: str, request: pytest.FixtureRequest, chat: list[Any]
) -> Iterator[tuple[Any, list[Any], Provider]]:
    """A client whose server refuses the history, the history, and the server."""
    vendor = call.partition(" ")[0]
    server: Provider = request.getfixturevalue(f"{vendor}_server")
    client: Any
    if vendor == "openai":
        client = openai.OpenAI(base_url=server.url, api_key="none", max_retries=0)
        yield client, chat, server
    elif vendor == "anthropic":
        client = anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0)
        yield client, request.getfixturevalue("blocks"), server
    else:
        options = genai.types.HttpOptions(base_url=server.url)
        client = genai.Client(api_key="none", http_options=options)
        yield client, request.getfixturevalue("contents"), server
    client.close()


@EACH
def test_options_reach_the_compaction_of_this_call(
    call: str, ready: Any, compacter: Recording
) -> None:
    client, history, _ = ready
    CALLS[call](compacter.wrap(client), history, MARKED)
    assert {event.conversation for event in compacter.events} == {"ticket-4711"}


@EACH
def test_a_block_sets_them_for_programs_that_cannot_pass_any(
    call: str, ready: Any, compacter: Recording
) -> None:
    client, history, _ = ready
    wrapped = compacter.wrap(client)
    with compacter.using(conversation="ticket-4711"):
        CALLS[call](wrapped, history, {})
    assert {event.conversation for event in compacter.events} == {"ticket-4711"}


@EACH
def test_false_makes_this_call_as_if_nothing_were_wrapped(
    call: str, ready: Any, compacter: Recording
) -> None:
    client, history, server = ready
    with pytest.raises(Exception, match=r"(?i)token|too long|context"):
        CALLS[call](compacter.wrap(client), history, OFF)
    assert len(server.bodies) == 1
    assert not compacter.events


@EACH
def test_false_sends_nothing_that_is_remembered(
    call: str, ready: Any, compacter: Recording
) -> None:
    client, history, server = ready
    wrapped = compacter.wrap(client)
    CALLS[call](wrapped, history, {})
    assert compacter.events
    before = len(server.bodies)
    with pytest.raises(Exception, match=r"(?i)token|too long|context"):
        CALLS[call](wrapped, history, OFF)
    assert len(server.bodies) == before + 1


async def test_async_methods_take_them_too(
    gemini_server: Provider, contents: list[Any], compacter: Recording
) -> None:
    options = genai.types.HttpOptions(base_url=gemini_server.url)
    client = genai.Client(api_key="none", http_options=options)
    wrapped: Any = compacter.wrap(client)
    await wrapped.aio.models.generate_content(model="gemini-test", contents=contents, **MARKED)
    chat = wrapped.aio.chats.create(model="gemini-test", history=contents[:-1])
    await chat.send_message("And now?", **MARKED)
    assert {event.conversation for event in compacter.events} == {"ticket-4711"}
    await client.aio.aclose()


def test_anything_else_is_refused(compacter: Compacter) -> None:
    wrapped: Any = compacter.wrap(lambda messages: "done")
    with pytest.raises(ConfigurationError, match="or False"):
        wrapped([], compacter_options=True)
    assert wrapped([], compacter_options=False) == "done"
