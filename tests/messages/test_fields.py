"""Reading any object, of any class: its fields, its data, its text."""

from __future__ import annotations

from collections import UserDict
from enum import Enum, IntEnum
from types import SimpleNamespace
from typing import ClassVar

import pytest
from pydantic import BaseModel, ConfigDict, PrivateAttr

from compacter.messages.fields import Unencodable, faithful, field, replaced
from compacter.messages.format import get_format


class Model(BaseModel):
    """An SDK's object: declared fields, others beside them, and an attribute of the class."""

    model_config = ConfigDict(extra="allow")
    kind: ClassVar[str] = "of the class"
    role: str = "user"
    name: str | None = None


class Strict(BaseModel):
    role: str = "user"


class Word(Enum):
    USER = "user"


class Number(IntEnum):
    ONE = 1


class Unreadable:
    @property
    def role(self) -> str:
        raise RuntimeError("not loaded")


def test_what_cannot_be_read_is_none() -> None:
    assert (
        field(None, "role")
        is field(7, "role")
        is field(Unreadable(), "role")
        is field(Strict(), "absent")
        is None
    )


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


class Marked(BaseModel):
    """Private attributes without a value hide nothing."""

    text: str
    _notes: list[str] = PrivateAttr([])


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


def test_a_value_of_which_reading_fails_is_named_by_its_class() -> None:
    class Broken:
        __slots__ = ("text",)

        def __getattribute__(self, name: str) -> object:
            raise RuntimeError(name)

    with pytest.raises(Unencodable, match="Broken"):
        get_format("openai").content(Broken())
