"""Types of wrapped clients: read by mypy and pyright, never run."""

from __future__ import annotations

from typing import assert_type

import anthropic
import openai
from anthropic.types import Message
from google import genai
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response

from compacter import Compacter

compacter = Compacter()

client = compacter.wrap(openai.OpenAI())
assert_type(client, openai.OpenAI)
assert_type(client.chat.completions.create(model="m", messages=[]), ChatCompletion)
assert_type(
    client.chat.completions.create(model="m", messages=[], stream=True),
    openai.Stream[ChatCompletionChunk],
)
assert_type(client.responses.create(model="m", input="hello"), Response)
assert_type(client.with_options(timeout=1), openai.OpenAI)
assert_type(compacter.wrap(openai.AsyncAzureOpenAI()), openai.AsyncAzureOpenAI)

claude = compacter.wrap(anthropic.Anthropic())
assert_type(claude, anthropic.Anthropic)
assert_type(claude.messages.create(model="m", max_tokens=1, messages=[]), Message)
assert_type(compacter.wrap(anthropic.AsyncAnthropic()), anthropic.AsyncAnthropic)

assert_type(compacter.wrap(genai.Client()), genai.Client)


async def asynchronously() -> None:
    """The same for the async clients."""
    reply = await compacter.wrap(openai.AsyncOpenAI()).chat.completions.create(
        model="m", messages=[]
    )
    assert_type(reply, ChatCompletion)


# A misspelt option is an error as it is on the client itself.
client.chat.completions.create(model="m", message=[])  # type: ignore[call-overload]
