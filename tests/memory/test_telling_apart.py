"""One conversation never gets another one's summary, and nothing that cannot be read raises into a
call.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from litellm import Message as LitellmMessage
from tests.memory.matching import Matching

from compacter import SQLiteMemory
from compacter.memory import InProcessMemory
from compacter.memory.record import prefix_digest
from compacter.messages.format import get_format

OPENAI = get_format("openai")
ANTHROPIC = get_format("anthropic")
SUMMARY = {"role": "user", "content": "[summary] So far."}


def asking(arguments: Any) -> list[Any]:
    """A history whose first folded message is a tool call with these arguments."""
    return [
        {"role": "user", "content": "Go on."},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t", "name": "act", "input": arguments}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t", "content": "Done."}],
        },
        {"role": "assistant", "content": "It is done."},
        {"role": "user", "content": "And now?"},
    ]


DIFFERENT = [
    ({"force": True}, {"force": 1}),
    ({"force": False}, {"force": 0}),
    ({"size": 1}, {"size": 1.0}),
    ({"size": 0.0}, {"size": -0.0}),
    ({"size": 1}, {"size": "1"}),
    ({"force": True}, {"force": "true"}),
    ({"force": None}, {"force": "null"}),
    ({"list": [1, True]}, {"list": [True, 1]}),
    ({"list": [[], {}]}, {"list": [{}, []]}),
    ({"list": ["a", "b"]}, {"list": ["ab"]}),
    ({"text": "a" * 3_000 + "b"}, {"text": "a" * 3_000 + "c"}),
    ({"cache_control": {"type": "ephemeral"}}, {"cache_control": {"type": "none"}}),
    ({"cache_control": "no-store"}, {}),
    ({"x": None}, {}),
    ({"n": 2**61 - 1}, {"n": 0}),
    ({"n": -1}, {"n": -2}),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT, ids=repr)
@pytest.mark.parametrize("seen", [True, False], ids=["seen before", "looked up"])
def test_arguments_that_differ_are_told_apart(one: Any, other: Any, seen: bool) -> None:
    memory = InProcessMemory()
    history = asking(one)
    edited = asking(other)
    after = [SUMMARY, history[4]]
    matcher = Matching(memory, alternate=False)
    matcher.remember("scope", ANTHROPIC, history, after)
    if seen:
        assert matcher.view("scope", ANTHROPIC, history) == after
    else:
        memory.matches.clear()
    assert matcher.view("scope", ANTHROPIC, edited) is None
    assert matcher.view("scope", ANTHROPIC, history) == after
    history[1]["content"][0]["input"] = other
    assert matcher.view("scope", ANTHROPIC, history) is None


class Hidden:
    """A message whose data stand behind properties, as in some vendors' SDKs."""

    def __init__(self, role: str, text: str) -> None:
        self._role = role
        self._text = text

    role = property(lambda self: self._role)
    content = property(lambda self: self._text)


class Slotted:
    __slots__ = ("_text", "role")

    def __init__(self, role: str, text: str) -> None:
        self.role = role
        self._text = text

    content = property(lambda self: self._text)


class Raising:
    """A message that cannot be read at all."""

    role = "user"

    @property
    def content(self) -> str:
        raise RuntimeError("not now")

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("not now")


class Apart(str):
    """A text that equals itself alone."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


def nested(levels: int) -> Any:
    value: Any = "deep"
    for _ in range(levels):
        value = [value]
    return value


def cyclic() -> Any:
    value: dict[str, Any] = {}
    value["self"] = value
    return value


UNREADABLE: dict[str, Callable[[], Any]] = {
    "behind properties": lambda: Hidden("user", "One."),
    "in slots": lambda: Slotted("user", "One."),
    "raising": Raising,
    "keys of two types": lambda: {
        "role": "user",
        "content": "x",
        "extra": {1: "a", "b": 2, None: 3},
    },
    "keys that are numbers": lambda: {"role": "user", "content": "x", "extra": {1: "a"}},
    "keys with one text": lambda: {
        "role": "user",
        "content": "x",
        "extra": {Apart("a"): 1, Apart("a"): 2},
    },
    "nested without end": cyclic,
    "nested deeply": lambda: {"role": "user", "content": "x", "extra": nested(5_000)},
    "nested 600 levels": lambda: {"role": "user", "content": "x", "extra": nested(600)},
    "a number of 5,000 digits": lambda: {"role": "user", "content": "x", "n": 10**5_000},
    "a bare object": object,
    "a set": lambda: {"role": "user", "content": "x", "extra": {1, 2}},
    "a generator": lambda: {"role": "user", "content": (part for part in "ab")},
}


@pytest.mark.parametrize("name", UNREADABLE)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_what_cannot_be_encoded_neither_matches_nor_raises_nor_is_kept(
    name: str, place: int
) -> None:
    memory = InProcessMemory()
    told = list[str]()
    memory.write_log = lambda level, name, *_: told.append(f"{level} {name}")
    matcher = Matching(memory)
    plain = [
        {"role": ("user", "assistant")[number % 2], "content": f"Message {number}."}
        for number in range(9)
    ]
    matcher.remember("scope", OPENAI, plain, [SUMMARY, *plain[6:]])
    history: list[Any] = list(plain)
    history[place] = UNREADABLE[name]()
    other: list[Any] = list(plain)
    other[place] = UNREADABLE[name]()
    assert matcher.view("scope", OPENAI, history) is None
    before = len(memory)
    matcher.remember("scope", OPENAI, history, [SUMMARY, *history[6:]])
    if len(memory) > before:
        # It can be encoded after all: then it encodes this content and no other.
        assert prefix_digest(OPENAI, [history[place]]) == prefix_digest(OPENAI, [other[place]])
    else:
        assert matcher.view("scope", OPENAI, other) is None
        assert set(told) <= {"debug compacter.not_remembered"}
    assert matcher.view("scope", OPENAI, plain) == [SUMMARY, *plain[6:]]


def test_a_summary_that_cannot_be_stored_is_not_kept(tmp_path: Any) -> None:
    told: list[str] = []
    memory = SQLiteMemory(tmp_path / "memory.db")
    history = asking({})
    odd = {"role": "user", "content": [{"type": "text", "compacter:bytes": "YWJj"}]}
    memory.write_log = lambda level, name, *_: told.append(f"{level} {name}")
    Matching(memory).remember("scope", ANTHROPIC, history, [odd, history[4]])
    assert Matching(memory, alternate=False).view("scope", ANTHROPIC, history) is None
    assert told == ["debug compacter.not_remembered"]


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=6,
)


def same(one: Any, other: Any) -> bool:
    """The plain model: equal by type and value, all the way down."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return repr(one) == repr(other)


class Word(str):
    """A text of a class of its own, as an enumeration's member is."""

    __slots__ = ()


@pytest.mark.parametrize(
    "value", [(1, "a", ("b",)), Word("a"), [Word("a" * 5_000)], {"n": (1.5, True, None)}]
)
def test_tuples_and_texts_of_another_class_are_known_again(value: Any) -> None:
    memory = InProcessMemory()
    matcher = Matching(memory, alternate=False)
    history = asking({"value": value})
    matcher.remember("scope", ANTHROPIC, history, [SUMMARY, history[4]])
    for _ in range(2):
        assert matcher.view("scope", ANTHROPIC, copy.deepcopy(history)) is not None
    assert matcher.view("scope", ANTHROPIC, asking({"value": 7})) is None


@given(json_values, json_values)
def test_comparing_with_what_was_seen_agrees_with_types_and_values(one: Any, other: Any) -> None:
    memory = InProcessMemory()
    matcher = Matching(memory, alternate=False)
    history = asking({"value": one})
    matcher.remember("scope", ANTHROPIC, history, [SUMMARY, history[4]])
    if len(memory):
        assert matcher.view("scope", ANTHROPIC, copy.deepcopy(history)) is not None
        if not same(one, other) and type(one) is not bytes and type(other) is not bytes:
            digests = [
                prefix_digest(ANTHROPIC, asking({"value": value})[1:2]) for value in (one, other)
            ]
            found = matcher.view("scope", ANTHROPIC, asking({"value": other})) is not None
            assert found is (digests[0] == digests[1])


MARK = {"cachePoint": {"type": "default"}}
SAME: dict[str, list[list[Any]]] = {
    "openai": [
        [{"role": "user", "content": "a"}, {"content": "a", "role": "user", "name": None}],
        [{"role": "assistant", "content": "a"}, LitellmMessage(role="assistant", content="a")],
        [{"role": "user", "content": "\0a"}, {"role": "user", "content": "\0a", "name": None}],
        [
            {"role": "tool", "tool_call_id": "t", "content": "c"},
            {"content": "c", "role": "tool", "tool_call_id": "t"},
        ],
    ],
    "anthropic": [
        [
            {"role": "user", "content": "a"},
            {"role": "user", "content": [{"text": "a", "type": "text"}]},
            {"role": "user", "content": [{"type": "text", "text": "a", "citations": []}]},
        ],
        [
            {
                "role": "user",
                "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "a"}],
            }
        ],
    ],
    "responses": [
        [{"role": "user", "content": "a"}, {"content": "a", "role": "user"}],
        [{"type": "other", "role": "user", "content": "a"}],
    ],
    "gemini": [
        [{"role": "user", "parts": [{"text": "a"}]}, {"parts": [{"text": "a"}], "role": "user"}],
        [
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"aB": 1}}}]},
            {"parts": [{"functionCall": {"args": {"aB": 1}, "name": "f"}}], "role": "model"},
        ],
        [{"role": "user", "content": "a"}],
    ],
    "bedrock": [
        [
            {"role": "user", "content": [{"text": "a"}]},
            {"role": "user", "content": [{"text": "a"}, MARK]},
        ]
    ],
}
"""Spellings of one message in a row; each row another message."""


@pytest.mark.parametrize("name", SAME)
def test_one_message_has_one_digest_however_it_is_spelt(name: str) -> None:
    rows = [{prefix_digest(get_format(name), [message]) for message in row} for row in SAME[name]]
    assert [len(digests) for digests in rows] == [1] * len(rows)
    assert len(set.union(*rows)) == len(rows)


def test_a_digest_knows_where_each_message_ends_and_whose_calls_it_is_for() -> None:
    def digest(*texts: str, scope: str = "") -> str:
        return prefix_digest(OPENAI, [{"role": "user", "content": text} for text in texts], scope)

    many = [str(number) for number in range(200)]
    each = [
        digest(),
        digest("ab"),
        digest("a", "b"),
        digest("b", "a"),
        digest("", "ab"),
        digest("ab", scope="other"),
    ]
    each += [digest(*many), digest(*many[1:], many[0]), digest(*many[:-1]), digest(*many[:-1], "x")]
    assert len(set(each)) == len(each)
    assert digest(*many) == digest(*many)
