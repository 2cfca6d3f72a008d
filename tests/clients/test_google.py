"""google-genai's clients, sync and aio, wrapped whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google import genai
from google.genai import errors, types
from tests.clients.conftest import Recording
from tests.clients.loopback import WORDS

from compacter import Compacter, CompactionEvent, History
from compacter.clients.google import Contents

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.clients.loopback import Provider

# The SDK's own, as it makes its first async session.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")

MODEL = "gemini-test"
CONFIGS: dict[str, Any] = {
    "dict": {
        "system_instruction": "Be terse.",
        "max_output_tokens": 50,
        "temperature": 0.5,
        "response_mime_type": "application/json",
    },
    "object": types.GenerateContentConfig(
        system_instruction="Be terse.",
        max_output_tokens=50,
        temperature=0.5,
        response_mime_type="application/json",
    ),
}


@pytest.fixture
def client(gemini_server: Provider) -> Iterator[genai.Client]:
    options = types.HttpOptions(base_url=gemini_server.url)
    with genai.Client(api_key="none", http_options=options) as made:
        yield made


def check(server: Provider, history: list[Any], events: list[CompactionEvent]) -> None:
    refused, *summaries, answered = server.bodies
    assert len(refused["contents"]) == len(history)
    assert answered["contents"][-1] == refused["contents"][-1]
    assert len(answered["contents"]) < len(history)
    assert answered["contents"][0]["role"] == "user"
    assert [event.trigger for event in events] == ["token_limit"]
    assert (events[0].fallback, events[0].summarizer_calls) == (False, len(summaries))
    assert not any("stream" in path for path in server.paths[1:-1])


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_generate_content(
    config: Any,
    client: genai.Client,
    gemini_server: Provider,
    compacter: Recording,
    contents: list[Any],
) -> None:
    reply = compacter.wrap(client).models.generate_content(
        model=MODEL, contents=contents, config=config
    )
    assert reply.text == WORDS
    check(gemini_server, contents, compacter.events)
    refused, summary, answered = (gemini_server.bodies[at] for at in (0, 1, -1))
    assert answered["generationConfig"] == refused["generationConfig"]
    assert answered["systemInstruction"] == refused["systemInstruction"]
    assert summary["generationConfig"] == {"temperature": 0.5, "maxOutputTokens": 150}
    assert "Be terse." not in str(summary)


@pytest.mark.parametrize(
    ("config", "sent"),
    [
        (
            {"maxOutputTokens": 900, "temperature": 0.5},
            {"max_output_tokens": 90, "temperature": 0.5},
        ),
        ({"max_output_tokens": 900}, {"max_output_tokens": 90}),
        (
            types.GenerateContentConfig(max_output_tokens=900, top_k=3),
            {"max_output_tokens": 90, "top_k": 3},
        ),
        (None, {"max_output_tokens": 90}),
    ],
)
def test_an_option_of_the_config_is_changed_however_it_is_spelt(config: Any, sent: Any) -> None:
    binding = Contents(
        messages_param="contents", wire_format="gemini", output_param="max_output_tokens"
    )
    _, changed = binding.replace(
        (), {"contents": [], "config": config}, [], {"max_output_tokens": 90}
    )
    assert changed["config"] == sent


def test_a_history_with_pins(
    client: genai.Client, gemini_server: Provider, compacter: Recording, contents: list[Any]
) -> None:
    history: Any = History(contents, wire_format="gemini")
    history.pin(2)
    assert (
        compacter.wrap(client).models.generate_content(model=MODEL, contents=history).text == WORDS
    )
    assert contents[2] in list(history)
    assert len(history) < len(contents)
    assert len(compacter.events) == 1


def test_streaming(
    client: genai.Client,
    gemini_server: Provider,
    compacter: Recording,
    contents: list[Any],
    refusing: Any,
) -> None:
    gemini_server.refuse = refusing
    stream = compacter.wrap(client).models.generate_content_stream(model=MODEL, contents=contents)
    assert gemini_server.bodies == []
    assert "".join(chunk.text or "" for chunk in stream) == WORDS
    check(gemini_server, contents, compacter.events)


async def test_aio(
    client: genai.Client, gemini_server: Provider, compacter: Recording, contents: list[Any]
) -> None:
    wrapped = compacter.wrap(client)
    reply = await wrapped.aio.models.generate_content(model=MODEL, contents=contents)
    assert reply.text == WORDS
    check(gemini_server, contents, compacter.events)
    alone = Compacter().wrap(client.aio)
    assert isinstance(alone, type(client.aio))
    assert (await alone.models.generate_content(model=MODEL, contents=contents)).text == WORDS
    await client.aio.aclose()


async def test_aio_streaming(
    client: genai.Client,
    gemini_server: Provider,
    compacter: Recording,
    contents: list[Any],
    refusing: Any,
) -> None:
    gemini_server.refuse = refusing
    wrapped = compacter.wrap(client)
    stream = await wrapped.aio.models.generate_content_stream(model=MODEL, contents=contents)
    assert "".join([chunk.text or "" async for chunk in stream]) == WORDS
    check(gemini_server, contents, compacter.events)
    await client.aio.aclose()


def test_chats_compact_and_keep_their_whole_history(
    client: genai.Client, gemini_server: Provider, compacter: Recording, contents: list[Any]
) -> None:
    past = contents[:-1]
    chat = compacter.wrap(client).chats.create(model=MODEL, history=past)
    assert chat.send_message("Which colour has the harbour?").text == WORDS
    check(gemini_server, contents, compacter.events)
    history = list(chat.get_history())
    assert len(history) == len(past) + 2
    sent = len(gemini_server.bodies)
    assert "".join(chunk.text or "" for chunk in chat.send_message_stream("Still?")) == WORDS
    assert chat.get_history()[: len(history)] == history
    # The chat sends its whole history again, and the summary replaces the old part of it.
    assert (len(gemini_server.bodies), len(compacter.events)) == (sent + 1, 1)


def test_functions_that_the_sdk_calls_are_called_once(
    client: genai.Client, gemini_server: Provider, compacter: Recording, contents: list[Any]
) -> None:
    calls: list[int] = []

    def count_ships() -> str:
        """How many ships are in the harbour."""
        calls.append(1)
        return "many ships and boats " * 150

    # The first request fits; with the function's result it does not.
    fitting = contents[-41:]
    config = types.GenerateContentConfig(tools=[count_ships])
    reply = compacter.wrap(client).models.generate_content(
        model=MODEL, contents=fitting, config=config
    )
    assert reply.text == WORDS
    assert (len(calls), len(compacter.events)) == (1, 1)
    assert "functionResponse" in str(gemini_server.bodies[-1]["contents"][-1])


PART = types.Part(text="What?")


@pytest.mark.parametrize(
    "contents", ["What?", [PART], ["What?", "And why?"], types.Content(role="user", parts=[PART])]
)
def test_contents_in_every_form(
    contents: Any, client: genai.Client, compacter: Compacter, gemini_server: Provider
) -> None:
    assert (
        compacter.wrap(client).models.generate_content(model=MODEL, contents=contents).text == WORDS
    )
    assert len(gemini_server.bodies) == 1


def test_retrieved_text_in_a_single_text_is_shortened(
    client: genai.Client, compacter: Compacter, gemini_server: Provider
) -> None:
    wrapped = compacter.replace(retrieved=("<context>", "</context>")).wrap(client)
    asked = f"<context>{'word ' * 5_000}</context> What is the word?"
    assert wrapped.models.generate_content(model=MODEL, contents=asked).text == WORDS
    assert "What is the word?" in str(gemini_server.bodies[-1]["contents"])


def test_a_single_text_that_is_too_long_is_refused_by_the_sdks_own_exception(
    client: genai.Client, compacter: Compacter, gemini_server: Provider
) -> None:
    with pytest.raises(errors.ClientError, match="exceeds the maximum number of tokens"):
        compacter.wrap(client).models.generate_content(model=MODEL, contents="word " * 5_000)
    assert len(gemini_server.bodies) == 1


def test_a_method_that_sends_no_messages_is_refused(
    client: genai.Client, compacter: Compacter
) -> None:
    with pytest.raises(TypeError, match="sends no messages"):
        compacter.wrap(client.models.list)


def test_a_wrapped_client_outlives_the_one_it_was_made_from(
    gemini_server: Provider, compacter: Compacter
) -> None:
    import gc

    options = types.HttpOptions(base_url=gemini_server.url)
    wrapped = compacter.wrap(genai.Client(api_key="none", http_options=options))
    gc.collect()
    assert wrapped.models.generate_content(model=MODEL, contents="What?").text == WORDS
    wrapped.close()


def test_a_wrapped_client_that_is_dropped_leaves_the_original_open(
    client: genai.Client, compacter: Compacter
) -> None:
    compacter.wrap(client)
    assert client.models.generate_content(model=MODEL, contents="What?").text == WORDS
