"""The request for a summary that a compaction made ahead sends: the call's own messages, as the
provider's cache holds them, and the instruction behind them.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types
from pydantic import BaseModel
from tests.clients.loopback import WORDS
from tests.kit import strict_roles

from compacter import Compacter, CompactionEvent
from compacter.testing import ScriptedModel

if TYPE_CHECKING:
    from tests.clients.loopback import Body, Provider

boto3: Any = import_module("boto3")
Config: Any = import_module("botocore.config").Config

pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")

ASKED = "Call no tool."
TOOL = {
    "name": "look_up",
    "description": "The book.",
    "parameters": {"type": "object", "properties": {}},
}


class Colour(BaseModel):
    colour: str


@pytest.fixture(autouse=True)
def every_compaction_is_native(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused calls ask for the summary as a compaction that is made ahead does."""
    monkeypatch.setattr("compacter.compaction.summarize.is_native", lambda task: True)


class Ahead:
    """A Compacter whose refused calls ask for one summary, and what it made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.events: list[CompactionEvent] = []
        # Without room for quotes, so that little has to be compacted, and fits into one request.
        made = Compacter(max_summary_tokens=100, recall=None, on_compaction=self.events.append)
        self.wrap = made.wrap
        self._monkeypatch = monkeypatch

    def tight(self, history: list[Any]) -> list[Any]:
        """Make the servers' window a little too small for a history, so that all but a little fits
        into one request.
        """
        window = len(json.dumps(history)) // 4 - 10
        self._monkeypatch.setattr(sys.modules["tests.clients.loopback"], "WINDOW", window)
        return history

    def asked(self, server: Provider, key: str, *, same: tuple[str, ...]) -> Body:
        """The one request for a summary: the call's own beginning and options, the instruction
        behind it.
        """
        refused, asked, answered = server.bodies
        prefix = [message for message in asked[key] if ASKED not in json.dumps(message)]
        assert "Understood." not in json.dumps(prefix)
        assert len(prefix) > 4
        assert prefix == refused[key][: len(prefix)]
        assert ASKED in json.dumps(asked[key][-1])
        for name in same:
            assert asked[name] == refused[name] == answered[name]
        assert [(event.fallback, event.summarizer_calls) for event in self.events] == [(False, 1)]
        return asked


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> Ahead:
    return Ahead(monkeypatch)


def test_chat_completions(
    openai_client: openai.OpenAI, openai_server: Provider, ahead: Ahead, chat: Any
) -> None:
    tools: Any = [{"type": "function", "function": TOOL}]
    history = ahead.tight(chat)

    ahead.wrap(openai_client).chat.completions.create(
        model="m",
        messages=history,
        tools=tools,
        tool_choice="required",
        temperature=0.3,
        stop=["\n\n"],
    )

    asked = ahead.asked(openai_server, "messages", same=("model", "tools", "temperature"))
    assert not {"tool_choice", "stop", "stream"} & set(asked)
    assert asked["max_tokens"] == 100


@pytest.mark.parametrize("way", ["stream", "parse", "raw"])
def test_however_the_call_is_made_the_summary_is_asked_for_in_plain_words(
    way: str, openai_client: openai.OpenAI, openai_server: Provider, ahead: Ahead, chat: Any
) -> None:
    completions = ahead.wrap(openai_client).chat.completions
    history = ahead.tight(chat)
    if way == "stream":
        chunks = completions.create(model="m", messages=history, stream=True)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == WORDS
    elif way == "parse":
        assert completions.parse(model="m", messages=history, response_format=Colour).choices
    else:
        assert completions.with_raw_response.create(model="m", messages=history).parse().choices
    asked = ahead.asked(openai_server, "messages", same=("model",))
    assert not {"response_format", "stream"} & {name for name, value in asked.items() if value}


def test_responses(
    openai_client: openai.OpenAI, openai_server: Provider, ahead: Ahead, items: Any
) -> None:
    tools: Any = [{"type": "function", **TOOL}]
    ahead.wrap(openai_client).responses.create(
        model="m",
        input=ahead.tight(items),
        tools=tools,
        instructions="Be terse.",
        max_output_tokens=70,
    )
    asked = ahead.asked(openai_server, "input", same=("model", "tools", "instructions"))
    assert asked["max_output_tokens"] == 100


async def test_an_async_client(openai_server: Provider, ahead: Ahead, chat: Any) -> None:
    async with openai.AsyncOpenAI(
        base_url=openai_server.url, api_key="none", max_retries=0
    ) as client:
        await ahead.wrap(client).chat.completions.create(model="m", messages=ahead.tight(chat))
    ahead.asked(openai_server, "messages", same=("model",))


def test_anthropic(
    anthropic_client: anthropic.Anthropic, anthropic_server: Provider, ahead: Ahead, blocks: Any
) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    for _ in range(300):  # Deeper than Python's stack allows to follow it.
        schema = {"type": "object", "properties": {"inner": schema}}
    tools: Any = [{"name": "look_up", "input_schema": schema}]
    thinking: Any = {"type": "enabled", "budget_tokens": 1024}

    ahead.wrap(anthropic_client).messages.create(
        model="m",
        max_tokens=2000,
        messages=ahead.tight(blocks),
        tools=tools,
        system="Be terse.",
        thinking=thinking,
        stop_sequences=["END"],
    )

    asked = ahead.asked(anthropic_server, "messages", same=("model", "tools", "system", "thinking"))
    assert "stop_sequences" not in asked
    # The limit must be above what thinking may take, or Anthropic refuses the request.
    assert asked["max_tokens"] == 1024 + 100
    # The caller marks the newest message for the cache, which the prefix ends before: so the
    # instruction is marked.
    assert asked["messages"][-1]["content"][0]["cache_control"] == {"type": "ephemeral"}
    assert [message["role"] for message in asked["messages"][-2:]] == ["assistant", "user"]


@pytest.mark.parametrize("marks", [0, 4])
def test_anthropic_gets_no_mark_where_the_caller_uses_none_or_all(
    marks: int,
    anthropic_client: anthropic.Anthropic,
    anthropic_server: Provider,
    ahead: Ahead,
    blocks: Any,
) -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    system: Any = [{"type": "text", "text": f"Rule {number}.", **mark} for number in range(marks)]
    last = blocks[-1] if marks else {"role": "user", "content": "Which colour?"}

    ahead.wrap(anthropic_client).messages.create(
        model="m", max_tokens=100, messages=ahead.tight([*blocks[:-1], last]), system=system
    )

    asked = ahead.asked(anthropic_server, "messages", same=("system",))
    assert "cache_control" not in str(asked["messages"])


@pytest.mark.parametrize("kind", ["dict", "camel", "object"])
def test_gemini(kind: str, gemini_server: Provider, ahead: Ahead, contents: Any) -> None:
    given: dict[str, Any] = {
        "system_instruction": "Be terse.",
        "response_mime_type": "application/json",
        "response_schema": {"type": "OBJECT", "properties": {"colour": {"type": "STRING"}}},
        "stop_sequences": ["END"],
        "max_output_tokens": 70,
        "tool_config": {"function_calling_config": {"mode": "ANY"}},
    }
    if kind == "camel":
        del given["response_mime_type"]
        given["responseMimeType"] = "application/json"
    config: Any = types.GenerateContentConfig(**given) if kind == "object" else given
    with genai.Client(
        api_key="none", http_options=types.HttpOptions(base_url=gemini_server.url)
    ) as client:
        ahead.wrap(client).models.generate_content(
            model="m", contents=ahead.tight(contents), config=config
        )

    asked = ahead.asked(gemini_server, "contents", same=("systemInstruction",))
    # Only the limit, which is what the window leaves beside the conversation.
    assert asked["generationConfig"].keys() == {"maxOutputTokens"}
    assert 50 < asked["generationConfig"]["maxOutputTokens"] <= 100
    assert "toolConfig" not in asked
    assert gemini_server.bodies[-1]["generationConfig"]["responseMimeType"] == "application/json"


@pytest.mark.parametrize("stream", [False, True])
def test_bedrock(stream: bool, bedrock_server: Provider, ahead: Ahead, converse: Any) -> None:
    client = boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=bedrock_server.url,
        aws_access_key_id="a",
        aws_secret_access_key="b",
        config=Config(retries={"max_attempts": 0}),
    )
    schema = {"json": {"type": "object", "properties": {}}}
    options = {
        "modelId": "m",
        "system": [{"text": "Be terse."}],
        "messages": ahead.tight(converse),
        "inferenceConfig": {"maxTokens": 70, "stopSequences": ["END"], "temperature": 0.3},
        "toolConfig": {
            "tools": [{"toolSpec": {"name": "look_up", "inputSchema": schema}}],
            "toolChoice": {"any": {}},
        },
    }

    wrapped = ahead.wrap(client)
    (wrapped.converse_stream if stream else wrapped.converse)(**options)

    asked = ahead.asked(bedrock_server, "messages", same=("system",))
    assert asked["inferenceConfig"] == {"maxTokens": 100, "temperature": 0.3}
    assert asked["toolConfig"] == {"tools": bedrock_server.bodies[0]["toolConfig"]["tools"]}


@pytest.mark.parametrize("unusable", ["tool", "refusal", "error"])
def test_where_that_gives_no_summary_the_transcript_is_sent(
    unusable: str, events: list[CompactionEvent]
) -> None:
    asked: list[str] = []

    def speak(messages: Any) -> Any:
        last = str(messages[-1]["content"])
        if ASKED in last:
            asked.append("native")
            if unusable == "error":
                raise ConnectionError("gone")
            return {"content": None, "refusal": "I cannot help with that."}
        if "record of a conversation" in last:
            asked.append("transcript")
            return "They counted the ships of every pier."
        return "ok"

    history = [{"role": "user", "content": f"Part {n}: how many ships? " * 8} for n in range(60)]
    model = ScriptedModel(window=2950, replies=speak)

    def completion(model_name: str, messages: Any, **options: Any) -> Any:
        reply: Any = model.completion(model_name, messages, **options)
        if unusable == "tool" and ASKED in str(messages[-1]):
            call = {"id": "c", "type": "function", "function": {"name": "count", "arguments": "{}"}}
            reply["choices"][0]["message"] = {
                "role": "assistant",
                "content": None,
                "tool_calls": [call],
            }
        return reply

    compacter = Compacter(max_summary_tokens=60, on_compaction=events.append)
    compacter.wrap(completion)("m", history)

    assert asked == ["native", "transcript"]
    assert events[0].summary == "They counted the ships of every pier."
    assert not events[0].fallback


@pytest.mark.parametrize("cut", [10, 11])
def test_roles_alternate_where_they_must(cut: int) -> None:
    roles = ("user", "assistant")
    history = [{"role": roles[n % 2], "content": f"Part {n} of the story. " * 3} for n in range(31)]

    def reply(messages: Any) -> str:
        return (
            "They told one another a story in many parts." if ASKED in str(messages[-1]) else "ok"
        )

    model = ScriptedModel(window=10_000, check=strict_roles, replies=reply)
    native = Compacter(
        alternate_roles=True,
        trigger_tokens=200,
        before_compaction=lambda plan: replace(plan, cut=cut),
    )
    completion = native.wrap(model.completion)
    completion("m", history[:29])
    completion("m", history)
    (asked,) = (
        request.messages for request in model.requests if ASKED in str(request.messages[-1])
    )
    kept = cut // 2 * 2  # Then the instruction joins a message of the user's.
    assert list(asked[:kept]) == history[:kept]
    assert history[cut - 1]["content"] in str(asked[cut - 1])
    assert asked[-2]["role"] == "assistant"
    assert model.invalid == 0
