"""Messages of frameworks, read as OpenAI has them and written back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from compacter import Shorten
from compacter.call.state import State
from compacter.call.wrap import wrap_function
from compacter.frameworks.own_types import Adapter, OwnTypes, back, each, mixed, separate_media
from compacter.memory import Record
from compacter.messages.fields import Unencodable
from compacter.messages.openai import OPENAI
from compacter.options import validated


@dataclass
class Picture:
    """A picture of a framework."""

    url: str


class Closed:
    """A picture whose data cannot be read."""

    def __init__(self, data: bytes) -> None:
        self._data = data


@dataclass
class Said:
    """A message of a framework."""

    role: str
    content: Any


def read(message: Said) -> dict[str, Any]:
    return {"role": message.role, "content": mixed(message.content)}


def write(message: Any) -> Said:
    return Said(message["role"], separate_media(message["content"]))


class Model:
    """A framework's model that refuses more than 4,000 characters."""

    def __init__(self) -> None:
        self.sent: list[list[Said]] = []

    def ask(self, messages: list[Said]) -> str:
        if sum(len(str(message.content)) for message in messages) > 4_000:
            raise ValueError(
                "This model's maximum context length is 1000 tokens. You requested 2000 tokens."
            )
        self.sent.append(messages)
        return "A harbour."


def test_messages_that_differ_in_a_medium_have_different_contents() -> None:
    one, other, same = (
        OPENAI.content(read(Said("user", ["Look.", Picture(url)]))) for url in "aba"
    )
    assert one != other
    assert one == same


def test_a_record_with_a_medium_is_not_saved_as_text() -> None:
    # The framework's object could not be made of the text again.
    message = read(Said("user", ["Look.", Picture("a")]))
    record = Record("key", 1, (message,), "digest", "last")
    with pytest.raises(Unencodable):
        record.to_json()


@pytest.mark.parametrize("kind", [Picture, Closed])
def test_no_conversation_gets_a_picture_of_another_one(kind: type[Any]) -> None:
    binding = OwnTypes(
        "openai",
        positional=("self", "messages"),
        adapter=Adapter(read=each(read), write=back(write)),
    )
    model = Model()
    ask = wrap_function(State(validated({"strategy": Shorten()})), Model.ask, binding)
    pictures = [kind("a"), kind("b")]
    for picture in pictures:
        asked = Said("user", ["What is on this picture? " * 400, picture])
        ask(model, [asked, Said("assistant", "Ships."), Said("user", "Why?")])
    assert [vars(messages[0].content[1]) for messages in model.sent] == [
        vars(picture) for picture in pictures
    ]
