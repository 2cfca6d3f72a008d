"""What is read of any object, whatever its class: its fields, its data, its text."""

from __future__ import annotations

from collections import UserDict
from enum import Enum, IntEnum
from functools import cached_property
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel, ConfigDict, PrivateAttr

from compacter.messages.fields import (
    Unencodable,
    faithful,
    field,
    flat,
    json_text,
    listed,
    members,
    replaced,
    word,
)
from compacter.messages.format import get_format


class Model(BaseModel):
    """An SDK's object: declared fields, others beside them, and an attribute of the class."""

    model_config = ConfigDict(extra="allow")
    kind: ClassVar[str] = "of the class"
    role: str = "user"
    name: str | None = None


class Strict(BaseModel):
    role: str = "user"


class Text(str):
    """A subclass of ``str``, as some SDKs have them."""

    __slots__ = ()


class Word(Enum):
    USER = "user"


class Number(IntEnum):
    ONE = 1


class Twice(Enum):
    """An enumeration whose members are members of another one."""

    USER = Word.USER


class Unreadable:
    @property
    def role(self) -> str:
        raise RuntimeError("not loaded")


class Dynamic:
    """Fields that are found when they are asked for."""

    def __getattr__(self, name: str) -> str:
        if name not in ("role", "more"):
            raise AttributeError(name)
        return name.replace("role", "user").replace("more", "m")


ITEMS = {
    "dict": {"role": "user", "more": "m"},
    "mapping": UserDict(role="user", more="m"),
    "model": Model.model_validate({"role": "user", "more": "m"}),
    "object": SimpleNamespace(role="user", more="m"),
    "dynamic object": Dynamic(),
}


@pytest.mark.parametrize("item", ITEMS.values(), ids=list(ITEMS))
def test_a_field_is_read_wherever_it_is_and_is_none_where_it_is_not(item: Any) -> None:
    assert (field(item, "role"), field(item, "more"), field(item, "absent")) == ("user", "m", None)


def test_what_cannot_be_read_is_none() -> None:
    assert (
        field(None, "role")
        is field(7, "role")
        is field(Unreadable(), "role")
        is field(Strict(), "absent")
        is None
    )


def test_a_text_is_a_plain_string_and_any_other_value_is_itself() -> None:
    for value in (Text("user"), Word.USER):
        assert type(field({"role": value}, "role")) is str
        assert word({"role": value}, "role") == "user"
    assert field({"role": Number.ONE}, "role") is Number.ONE
    assert word({"role": 1}, "role") == word({}, "role") == ""


def test_the_members_of_a_thing_are_what_json_can_say() -> None:
    given = {
        "user": Word.USER,
        "eA==": b"x",
        "eQ==": bytearray(b"y"),
        "1j": 1j,
    }

    assert [members(value) for value in given.values()] == list(given)
    for thing in (SimpleNamespace(role="user", _raw=1), Model(), UserDict(role="user")):
        assert members(thing) == {"role": "user"}


def test_objects_and_bytes_are_shown_as_json_says_them() -> None:
    given = {"in": [Model(), Number.ONE], "data": bytearray(b"ABC")}

    assert json_text(given) == '{"in": [{"role": "user"}, 1], "data": "QUJD"}'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ("", ""),
        ("text", "text"),
        (Text("text"), "text"),
        ([], "[]"),
        (0, "0"),
        ({"é": 1.5}, '{"é": 1.5}'),
        # What JSON cannot say:
        ({(1, 2): ["b"]}, "[dict]"),
    ],
)
def test_any_value_has_a_text(value: object, text: str) -> None:
    assert json_text(value) == text
    assert type(json_text(value)) is str


def test_text_on_one_line_has_single_spaces() -> None:
    assert flat(" a\n\n b\tc ") == "a b c"


def test_one_part_is_a_list_of_parts_and_none_is_an_empty_one() -> None:
    several = ["a"]
    pair = ("a", "b")

    assert listed(several) is several
    assert listed(pair) is pair
    assert (list(listed(None)), list(listed("")), list(listed({"a": 1}))) == ([], [""], [{"a": 1}])


def test_a_copy_with_another_field_is_of_its_class_if_that_can_be_copied() -> None:
    model = Model(name="Ada")
    mapping = UserDict(role="user", name="Ada")
    thing = SimpleNamespace(role="user", name="Ada")

    assert replaced(model, name="Eva") == Model(name="Eva")
    assert (
        replaced(mapping, name="Eva")
        == replaced(thing, name="Eva")
        == {"role": "user", "name": "Eva"}
    )
    assert model.name == mapping["name"] == thing.name == "Ada"


# What tells one value from another


class Key(str):
    """A key that is equal only to itself."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


class PartlyHidden:
    def __init__(self, text: str) -> None:
        self.text = text
        self._raw = text


def remembering() -> None:
    """A function with a field."""


remembering.text = "a"  # type: ignore[attr-defined]


class Counted(BaseModel):
    """A model that keeps what it has computed."""

    text: str

    @cached_property
    def length(self) -> int:
        return len(self.text)


class Marked(BaseModel):
    """Private attributes without a value hide nothing."""

    text: str
    _notes: list[str] = PrivateAttr([])


@pytest.mark.parametrize(
    "value",
    [
        {1: "a"},
        {"in": {1: "a"}},
        {Key("a"): 1, "a": 2},
        {Key("a"): "x", "a": "x"},
        {"a": len},
        PartlyHidden("a"),
        remembering,
    ],
)
def test_a_value_that_is_not_all_seen_has_no_digest(value: object) -> None:
    with pytest.raises(Unencodable):
        get_format("openai").content({"role": "tool", "content": value})


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (Marked(text="a"), {"text": "a"}),
        ({"at": Word.USER, "b": Number.ONE, "c": b"ABC"}, {"at": "user", "b": 1, "c": "QUJD"}),
        (Model.model_validate({"more": "m"}), {"more": "m", "role": "user"}),
        ({"in": {"cache_control": {}, "none": None, "a": 1}}, {"in": {"a": 1}}),
        ({"cache_control": "on"}, {"cache_control": "on"}),
        (
            {"own": {"cache_control": {}, "none": [None]}},
            {"own": {"cache_control": {}, "none": [None]}},
        ),
    ],
)
def test_data_for_a_digest_is_sorted_and_complete(value: object, data: object) -> None:
    assert faithful(value, frozenset({"own"})) == data


def test_what_an_object_has_computed_is_no_data() -> None:
    asked = Counted(text="a")

    assert asked.length == 1
    assert faithful(asked) == faithful(Counted(text="a")) == {"text": "a"}


def test_data_for_a_digest_is_in_the_order_of_its_keys() -> None:
    assert list(faithful({"b": 1, "a": 2})) == ["a", "b"]


def test_a_value_of_which_reading_fails_is_named_by_its_class() -> None:
    class Broken:
        __slots__ = ("text",)

        def __getattribute__(self, name: str) -> object:
            raise RuntimeError(name)

    with pytest.raises(Unencodable, match="Broken"):
        get_format("openai").content(Broken())
