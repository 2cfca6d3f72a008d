"""Which format a list of messages is of, and when that cannot be said."""

from __future__ import annotations

from collections import UserDict
from dataclasses import dataclass, field
from enum import StrEnum
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from compacter import Compacter
from compacter.compaction.conversation import Conversation
from compacter.errors import ConfigurationError
from compacter.messages.format import get_format
from compacter.messages.parts import Kind
from compacter.messages.recognise import UnknownFormatError, recognise

DEVELOPER = {"role": "developer", "content": "Be brief."}
ASK = {"role": "user", "content": "Look at the sky."}
CALLS = [
    {"type": "function_call", "call_id": name, "name": "look", "arguments": "{}"} for name in "ab"
]
OUTPUTS = [{"type": "function_call_output", "call_id": name, "output": "blue"} for name in "ab"]
TOOL_CALL = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
CHAT_CALL = {"role": "assistant", "content": None, "tool_calls": [TOOL_CALL]}
MISTRALS = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
PLAIN = [{"role": role, "content": "words"} for _ in range(60) for role in ("user", "assistant")]


class Role(StrEnum):
    """Roles as smolagents has them."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL_CALL = "tool-call"


@pytest.mark.parametrize(
    ("messages", "name"),
    [
        ([DEVELOPER, ASK, *CALLS, *OUTPUTS], "responses"),
        ([DEVELOPER, ASK], "openai"),
        ([DEVELOPER, ASK, CHAT_CALL], "openai"),
        ([*PLAIN, *CALLS, *OUTPUTS, *PLAIN], "responses"),
        ([*PLAIN, CHAT_CALL, *PLAIN], "openai"),
        (
            [*PLAIN, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}],
            "anthropic",
        ),
        ([*PLAIN, {"role": "user", "content": [{"toolResult": {"toolUseId": "a"}}]}], "bedrock"),
        ([{"role": "user", "content": [{"text": "hello"}]}], "bedrock"),
        ([{"role": "user", "parts": [{"text": "hello"}]}], "gemini"),
        (
            [{"role": "assistant", "content": [{"type": "compaction", "content": "They spoke."}]}],
            "anthropic",
        ),
        ([{"type": "compaction", "encrypted_content": "x"}, ASK], "responses"),
        # Mistral's thinking, in OpenAI's messages, and Anthropic's.
        ([ASK, {"role": "assistant", "content": [MISTRALS, {"type": "text"}]}], "openai"),
        (
            [ASK, {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}]}],
            "anthropic",
        ),
        (
            [{"role": "user", "content": [{"type": "document", "source": {"type": "text"}}]}],
            "anthropic",
        ),
        ([{"role": "user", "content": [{"type": "input_text", "text": "hello"}]}], "responses"),
        ([{"type": "message", "role": "user", "content": "hello"}], "responses"),
        ([{"role": Role.USER, "content": [{"type": "text", "text": "hello"}]}], "openai"),
        ([], "openai"),
    ],
)
def test_a_format_is_known_by_what_only_it_has(messages: list[Any], name: str) -> None:
    assert recognise(messages) == name


@pytest.mark.parametrize("param", ["messages", "input", "contents", "dialogue"])
@pytest.mark.parametrize(
    ("messages", "name"),
    [
        ([DEVELOPER, ASK, CHAT_CALL], "openai"),
        ([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}], "anthropic"),
        ([{"role": "user", "content": [{"text": "hello"}]}], "bedrock"),
        ([{"role": "user", "parts": [{"text": "hello"}]}], "gemini"),
    ],
)
def test_what_only_one_format_has_outweighs_the_arguments_name(
    messages: list[Any], name: str, param: str
) -> None:
    assert recognise(messages, param=param) == name


def test_the_arguments_name_decides_where_the_messages_do_not() -> None:
    assert recognise([ASK], param="input") == "responses"
    assert recognise(["hello"], param="contents") == "gemini"
    assert recognise([{"role": "user", "parts": [{"text": "hello"}]}], param="contents") == "gemini"
    assert recognise([ASK], param="messages") == recognise([ASK], param="prompt") == "openai"


def test_an_agent_whose_roles_are_an_enumeration_keeps_system_prompt_and_task() -> None:
    task = {"role": Role.USER, "content": [{"type": "text", "text": "Count the ships."}]}
    talk = [{"role": Role.SYSTEM, "content": [{"type": "text", "text": "You are a clerk."}]}, task]
    for number in range(20):
        talk += [
            {
                "role": Role.ASSISTANT,
                "content": [{"type": "text", "text": f"Step {number}. " * 30}],
            },
            {
                "role": Role.TOOL_CALL,
                "content": [{"type": "text", "text": f"Ship {number}. " * 30}],
            },
        ]
    made = Compacter(summarizer="extractive").compact(talk)

    assert made.changed
    assert made.messages[0] is talk[0]
    assert any(message is task for message in made.messages)


# Messages of frameworks: hand-made, with the fields that the real ones have.


class LangChainMessage(BaseModel):
    type: str
    content: str
    additional_kwargs: dict[str, Any] = {}
    id: str | None = None


@dataclass
class PydanticAIMessage:
    parts: list[dict[str, Any]]
    kind: str = "request"
    instructions: str | None = None


class HaystackMessage:
    def __init__(self, role: str, text: str) -> None:
        self._role = role
        self._content = [text]

    @property
    def role(self) -> str:
        return self._role

    @property
    def content(self) -> str:
        return self._content[0]


class Loose(BaseModel):
    """A model that takes any field."""

    model_config = ConfigDict(extra="allow")
    role: str


class Lazy:
    """A message that cannot be read when it is looked at."""

    @property
    def role(self) -> str:
        raise RuntimeError("not loaded")


FOREIGN: dict[str, Any] = {
    "LangChain": [
        LangChainMessage(type="system", content="s"),
        LangChainMessage(type="human", content="h" * 900),
    ],
    "LangChain tuples": [("system", "s"), ("human", "h" * 900)],
    "LlamaIndex": [
        SimpleNamespace(role=Role.USER, additional_kwargs={}, blocks=[{"text": "h" * 900}])
    ],
    "AutoGen": [SimpleNamespace(source="user", content="h" * 900, type="UserMessage")],
    "Pydantic AI": [PydanticAIMessage([{"part_kind": "user-prompt", "content": "h" * 900}])],
    "Haystack": [HaystackMessage("user", "h" * 900)],
    "smolagents objects": [SimpleNamespace(role=Role.USER, content="h" * 900, raw=None)],
    "lazy": [Lazy()],
    "mixed": [ASK, LangChainMessage(type="human", content="h" * 900)],
    "late": [*PLAIN, LangChainMessage(type="human", content="h" * 900)],
    "texts": ["hello"],
    "a named tuple's cousin": [SimpleNamespace(author="user", text="hello")],
    "a type beside a content": [SimpleNamespace(type="human", content="h" * 900)],
    "parts beside other fields": [SimpleNamespace(parts=[{"text": "h" * 900}], author="user")],
    "an extra field": [Loose.model_validate({"role": "user", "content": "h" * 900, "source": "a"})],
    "a name alone": [SimpleNamespace(name="Ada", id="1")],
    "LangChain dicts": [{"type": "human", "content": "h" * 900}],
    "AI SDK's parts": [{"role": "user", "parts": [{"type": "text", "text": "hello"}], "id": "1"}],
    "roles of nobody": [{"role": "human", "content": "h" * 900}, {"role": "ai", "content": "a"}],
    "Pydantic AI dicts": [
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "h" * 900}]}
    ],
}


@pytest.mark.parametrize("messages", FOREIGN.values(), ids=list(FOREIGN))
def test_messages_of_a_framework_are_of_no_format_and_the_remedy_is_named(
    messages: list[Any],
) -> None:
    with pytest.raises(
        UnknownFormatError,
        match=(
            r"messages\[\d+\] .*pass messages as that API "
            r"takes them"
        ),
    ):
        recognise(messages)


@pytest.mark.parametrize(
    ("stranger", "told"),
    [
        (
            LangChainMessage(type="human", content="h"),
            r"is a tests\.messages\..*LangChainMessage, which is not a message",
        ),
        ({"role": "human", "content": "h"}, "has the role 'human'"),
        ({"type": "human", "content": "h"}, "has the type 'human' and no role"),
        (
            {"role": "user", "parts": [{"type": "text", "text": "hello"}]},
            ("has parts that are not Gemini's"),
        ),
    ],
)
def test_the_error_names_the_first_strange_message_and_what_is_strange(
    stranger: Any, told: str
) -> None:
    with pytest.raises(UnknownFormatError, match=r"^messages\[1\] " + told):
        recognise([{"role": "system", "content": "s"}, stranger, stranger])


@pytest.mark.parametrize("before", [39, 40, 41, 400])
def test_what_tells_the_format_is_found_however_late_it_comes(before: int) -> None:
    told = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}

    assert recognise([*[ASK] * before, told, *[ASK] * 50]) == "anthropic"
    assert recognise([*[ASK] * before, told], since=before) == "anthropic"


# Tuples are refused before anything is read.
@pytest.mark.parametrize("stranger", sorted(FOREIGN.keys() - {"LangChain tuples"}))
@pytest.mark.parametrize("name", ["openai", "anthropic", "responses", "bedrock"])
def test_messages_of_a_framework_are_never_folded_whatever_format_is_named(
    name: str, stranger: str
) -> None:
    messages = FOREIGN[stranger]
    history = [{"role": "user", "content": "x" * 3_000}, *messages * 5, ASK]
    made = Compacter(summarizer="extractive", compact_ratio=1.0).compact(history, wire_format=name)
    strangers = [message for message in messages if message not in PLAIN]

    assert all(
        sum(message is one for one in made.messages) >= 1
        for message in strangers
        if not isinstance(message, dict)
    )


def test_the_error_says_how_langchains_messages_are_converted() -> None:
    kind = type("HumanMessage", (), {"__module__": "langchain_core.messages.human"})
    message = kind()
    vars(message).update(type="human", content="hello", additional_kwargs={})

    with pytest.raises(ConfigurationError, match=r"langchain_core.*convert_to_openai_messages"):
        Compacter(summarizer="extractive").compact([message])


@dataclass
class Mine:
    """A message of a program's own class with the provider's fields."""

    role: str
    content: str
    name: str | None = field(default=None)


def test_objects_with_the_providers_fields_and_other_mappings_are_read() -> None:
    talk = [
        Mine("user", "one"),
        SimpleNamespace(role="assistant", content="two"),
        UserDict(role="user", content="three"),
    ]

    assert recognise(talk) == "openai"
    assert (
        recognise(
            [ASK, SimpleNamespace(type="function_call", call_id="c", name="f", arguments="{}")]
        )
        == "responses"
    )
    assert Conversation(talk, get_format("openai")).kinds == (Kind.USER, Kind.ASSISTANT, Kind.USER)


@pytest.mark.parametrize(
    "message", ["Sort the content.", {"text": "hello"}, SimpleNamespace(text="hello")]
)
def test_what_google_takes_as_contents_is_geminis(message: Any) -> None:
    assert recognise([message], param="contents") == "gemini"
    assert recognise([ASK], param="contents") == "openai"


def test_only_the_first_forty_messages_are_looked_at_for_strange_roles() -> None:
    system = {"role": "system", "content": "s"}
    strange = {"role": "human", "content": "h"}

    with pytest.raises(UnknownFormatError, match=r"messages\[39\] has the role 'human'"):
        recognise([system] * 39 + [strange])
    assert recognise([system] * 40 + [strange]) == "openai"
