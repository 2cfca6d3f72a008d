"""Content distinguishes messages: it is equal only if the provider gets the same."""

from __future__ import annotations

import json
from collections import namedtuple
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import litellm
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessage
from pydantic import BaseModel, PrivateAttr
from tests.dialects import DIALECTS

from compacter import Compacter
from compacter.messages.fields import Unencodable, faithful
from compacter.messages.format import FORMATS, get_format

if TYPE_CHECKING:
    from tests.dialects import Dialect

    from compacter.messages.format import Message


def called(name: str, arguments: Any) -> Message:
    """A message that calls a tool with exactly these arguments, in the format of that name."""
    usual = {"the": "arguments"}

    def put(data: Any) -> Any:
        if data in (usual, json.dumps(usual)):
            return arguments
        if isinstance(data, dict):
            return {key: put(value) for key, value in data.items()}
        return [put(value) for value in data] if isinstance(data, list) else data

    (message,) = DIALECTS[name].calls([("c", "f", usual)])
    return put(message)


ARGUMENTS: list[dict[str, Any]] = [
    {"on": True},
    {"on": 1},
    {"on": 1.0},
    {"on": "true"},
    {"on": False},
    {"on": 0},
    {"on": None},
    {"on": ""},
    {"on": []},
    {"on": {}},
    {"on": [True]},
    {"on": [1]},
    {"cache_control": {"type": "ephemeral"}},
    {"cache_control": {"type": "none"}},
    {"cache_control": "on"},
    {"inner": {"cache_control": {"type": "ephemeral"}}},
    {"inner": {}},
    {"input": {"arguments": None}},
    {},
]


@pytest.mark.parametrize("name", FORMATS)
def test_no_two_arguments_have_one_content(name: str) -> None:
    """Their contents differ as JSON, also where Python takes two values for equal."""
    contents = [get_format(name).content(called(name, arguments)) for arguments in ARGUMENTS]

    assert len({json.dumps(content, sort_keys=True) for content in contents}) == len(ARGUMENTS)


class Hidden:
    """A message whose data is behind properties."""

    def __init__(self, text: str) -> None:
        self._raw = {"role": "user", "content": text}

    role = property(lambda self: self._raw["role"])
    content = property(lambda self: self._raw["content"])


class HiddenInSlots:
    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text


class Private(BaseModel):
    role: str = "user"
    _text: str = PrivateAttr("")

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text


class Refusing:
    def __getattr__(self, name: str) -> object:
        raise RuntimeError(name)


def deep(levels: int) -> Any:
    value: Any = "leaf"
    for _ in range(levels):
        value = [value]
    return value


def circle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


UNENCODABLE: dict[str, Any] = {
    "properties": Hidden("a"),
    "slots": HiddenInSlots("a"),
    "a private attribute": Private("a"),
    "refuses": Refusing(),
    "keys that are numbers": {1: "a", "b": 2},
    "keys of mixed types": {None: "a", (1, 2): "b"},
    "deep": deep(600),
    "deep objects": json.loads('{"in": ' * 600 + "{}" + "}" * 600),
    "very deep": deep(10_000),
    "a circle": circle(),
    "a set": {"a", "b"},
    "a function": len,
    "a class": dict,
    "a generator": (text for text in "ab"),
}


@pytest.mark.parametrize("value", UNENCODABLE.values(), ids=list(UNENCODABLE))
@pytest.mark.parametrize("name", FORMATS)
def test_what_cannot_be_encoded_faithfully_raises_one_exception(name: str, value: Any) -> None:
    for message in (called(name, {"x": value}), {"role": "user", "content": value, "parts": value}):
        with pytest.raises(Unencodable):
            get_format(name).content(message)


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_nested_too_deeply_for_python_is_folded_like_anything_else(name: str) -> None:
    form = get_format(name)
    told = list[object]()
    said = [form.say("user", f"Question {number}. ".ljust(200, "q")) for number in range(9)]
    blocks = [{"new": deep(700)}]
    answer = {
        "role": "model" if name == "gemini" else "assistant",
        "content": blocks,
        "parts": blocks,
    }
    messages = [said[0], called(name, {"x": deep(700)}), answer, *said[1:]]

    result = Compacter(summarizer="extractive", on_event=told.append).compact(
        messages, wire_format=name
    )

    assert messages[1:3] == list(result.discarded[1:3])
    assert [type(event).__name__ for event in told] == ["CompactionStarted", "CompactionEvent"]


@dataclass
class Plain:
    role: str
    content: str


@dataclass(slots=True)
class Slotted:
    role: str
    content: str


Pair = namedtuple("Pair", ["role", "content"])  # noqa: PYI024 - a hand-written one has no types either


def test_objects_whose_data_can_be_seen_are_told_apart_by_it() -> None:
    for make in (Plain, Slotted, Pair):
        assert faithful(make("user", "a")) == faithful(make("user", "a"))
        assert faithful(make("user", "a")) != faithful(make("user", "b"))
    assert (
        faithful(Plain("user", "a"))
        == {"role": "user", "content": "a"}
        == faithful(Slotted("user", "a"))
    )


def test_private_bookkeeping_of_the_vendors_is_no_content() -> None:
    made = ChatCompletionMessage(role="assistant", content="a")
    one = litellm.Message(role="assistant", content="a")
    other = litellm.Message(role="assistant", content="a")
    content = get_format("openai").content

    assert (
        content(one)
        == content(other)
        == content(made)
        == content({"role": "assistant", "content": "a"})
    )


def test_a_cache_mark_on_a_message_is_no_content(dialect: Dialect) -> None:
    marked, bare = dialect.marked

    assert dialect.format.content(marked) == dialect.format.content(bare)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(one=VALUES, other=VALUES)
def test_equal_content_means_equal_arguments(one: Any, other: Any) -> None:
    """The arguments of two tool calls have one content only if their JSON is the same."""
    contents = [
        json.dumps(faithful({"input": value}, frozenset({"input"}))) for value in (one, other)
    ]
    texts = [json.dumps(value, sort_keys=True) for value in (one, other)]

    assert (contents[0] == contents[1]) == (texts[0] == texts[1])
