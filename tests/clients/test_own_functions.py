"""Functions of the user's are asked for a summary in terms that they can pass on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest
from tests.conversations import dialogue, user
from tests.dialects import DIALECTS, Dialect

from compacter import Compacter, CompactionEvent

LIMITS = {"openai": {"max_tokens"}, "anthropic": {"max_tokens"}, "responses": {"max_output_tokens"}}
REFUSAL = ValueError("maximum context length is 8000 tokens, but you requested 9000 tokens")


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_the_limit_has_the_formats_own_name_or_none(dialect: Dialect) -> None:
    history = []
    for turn in range(30):
        history.append(dialect.user(f"What is pier {turn} made of? " * 9))
        history.append(dialect.answer(f"Pier {turn} is made of oak. " * 9))
    history.append(dialect.user("And now?"))
    events: list[CompactionEvent] = []
    asked: list[dict[str, Any]] = []

    def ask(messages: list[Any], **options: Any) -> Any:
        if len(messages) >= len(history):
            raise REFUSAL
        asked.append(options)
        return "They talked about a harbour."

    wrapped: Any = Compacter(on_compaction=events.append, max_summary_tokens=300).wrap(
        ask, messages_param="messages", wire_format=dialect.name
    )
    wrapped(history)
    assert [event.fallback for event in events] == [False]
    assert set(asked[0]) == LIMITS.get(dialect.name, set())


# -- methods of other vendors' clients -------------------------------------------------------------


class Chat:
    """Methods of a client such as Mistral's: one answers, the others parse or stream."""

    def complete(self, *, messages: list[Any], response_format: Any = None, **_: Any) -> Any:
        assert response_format is None
        return {"choices": [{"message": {"content": "They talked about a harbour."}}]}

    def parse(self, response_format: type, **options: Any) -> Any:
        assert response_format is dict
        if len(options["messages"]) > 20:
            raise REFUSAL
        return {"choices": [{"message": {"parsed": {}}}]}


class Instructor:
    """A client whose only method parses."""

    def create(self, response_model: type, messages: list[Any]) -> Any:
        assert response_model is dict
        if len(messages) > 20:
            raise REFUSAL
        return {}


class Client:
    def __init__(self) -> None:
        self.chat = Chat()


OAK = "Pier {n} is made of oak. " * 9
HISTORY: list[Any] = [*dialogue(30, OAK, OAK), user("And now?")]


def test_a_method_that_parses_gets_its_summary_from_the_one_that_answers() -> None:
    """Where the same object has a method that answers in words, that one makes the summary."""
    events: list[CompactionEvent] = []
    parse: Any = Compacter(on_compaction=events.append).wrap(Client().chat.parse)
    assert parse(response_format=dict, messages=HISTORY, model="m")
    assert [event.fallback for event in events] == [False]
    assert "harbour" in events[0].summary


def test_a_function_that_can_only_stream_makes_its_own_summary() -> None:
    """The chunks of Cohere's stream are read, as those of the other APIs."""

    def chat_stream(*, messages: list[Any], **options: Any) -> Iterator[Any]:
        if len(messages) > 20:
            raise REFUSAL
        for word in ("They talked ", "about a harbour."):
            yield {"type": "content-delta", "delta": {"message": {"content": {"text": word}}}}

    events: list[CompactionEvent] = []
    wrapped: Any = Compacter(on_compaction=events.append).wrap(chat_stream)
    assert list(wrapped(messages=HISTORY))
    assert [event.fallback for event in events] == [False]
    assert "They talked about a harbour." in events[0].summary


def test_a_method_that_can_only_parse_asks_for_a_summarizer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The warning blames the method and not the model, and names the option."""
    create: Any = Compacter().wrap(Instructor().create)
    assert create(dict, messages=HISTORY) == {}
    assert "the wrapped method parses: give a summarizer" in caplog.text
    assert "capable" not in caplog.text


@pytest.mark.parametrize(
    ("client", "line"),
    [
        (Client(), r"compacter\.wrap\(client\.chat\.complete\)"),
        (type("Client", (), {"chat": Chat().complete})(), r"compacter\.wrap\(client\.chat\)"),
        (
            type("Client", (), {"complete": Chat().complete})(),
            r"compacter\.wrap\(client\.complete\)",
        ),
        (
            type("Client", (), {"chat": Client(), "chat_completion": Chat().complete})(),
            r"compacter\.wrap\(client\.chat_completion\)",
        ),
    ],
    ids=["Mistral", "Cohere and Ollama", "Azure AI Inference", "Hugging Face"],
)
def test_a_whole_client_of_another_vendor_is_refused_with_the_line_that_works(
    client: Any, line: str
) -> None:
    """The error names the client's own method."""
    with pytest.raises(TypeError, match=f"cannot wrap .*Client: wrap its method, {line}"):
        Compacter().wrap(client)


@dataclass
class Model:
    """A framework's model, which takes a vendor's client."""

    client: Any = None
    async_client: Any = None
    http_client: Any = None


@dataclass
class Agent:
    """A framework's agent with such a model."""

    model: Any


@pytest.mark.parametrize("given", [Model(), Agent(Model())])
def test_a_model_that_takes_a_client_is_refused_with_the_line_that_works(given: Any) -> None:
    """The error names the arguments for a client, sync and async, of the model."""
    line = "Model(client=compacter.wrap(...), async_client=compacter.wrap(...), ...)"
    with pytest.raises(TypeError, match=re.escape(f"give it a wrapped client, {line} (docs/cl")):
        Compacter().wrap(given)


def test_a_module_is_refused_with_the_function_that_works() -> None:
    """The error for a module names its function that answers."""
    module = ModuleType("any_llm")
    vars(module)["completion"] = Chat().complete
    line = re.escape("the module any_llm: wrap its method, compacter.wrap(any_llm.completion)")
    with pytest.raises(TypeError, match=line):
        Compacter().wrap(module)


@pytest.mark.parametrize("package", ["claude_agent_sdk.query", "mirascope.llm.calls.calls"])
def test_a_package_that_takes_an_address_is_refused_with_serve(package: str) -> None:
    """The error for its functions and objects names ``compacter serve``."""

    def query(*, prompt: str) -> str:
        return prompt

    query.__module__ = package
    kind = type("Client", (), {"__module__": package, "__call__": lambda self, prompt: prompt})
    for target in (query, kind()):
        with pytest.raises(TypeError, match=r"`compacter serve`, as docs/frameworks/index\.md#oth"):
            Compacter().wrap(target)
