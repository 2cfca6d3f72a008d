"""instructor, which goes on when the history is too long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("instructor")

import instructor
import openai
from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Callable

    from compacter import Compacter


class Colour(BaseModel):
    colour: str


def made(way: str, compacter: Compacter, client: Any, mode: instructor.Mode) -> Any:
    if way == "client":
        return instructor.from_openai(compacter.wrap(client), mode=mode)
    return compacter.wrap(instructor.from_openai(client, mode=mode))


MODES = [instructor.Mode.TOOLS, instructor.Mode.JSON, instructor.Mode.RESPONSES_TOOLS]


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("way", ["client", "instructor"])
def test_plain(
    serve: Callable, compacter: Compacter, history: list, way: str, mode: instructor.Mode
) -> None:
    serve(tool_calls=99)
    client = made(way, compacter, openai.OpenAI(max_retries=0), mode)
    assert client.create(model="gpt-4o", messages=history, response_model=Colour).colour == "blue"


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("way", ["client", "instructor"])
async def test_async(
    serve: Callable, compacter: Compacter, history: list, way: str, mode: instructor.Mode
) -> None:
    serve(tool_calls=99)
    client = made(way, compacter, openai.AsyncOpenAI(max_retries=0), mode)
    found = await client.create(model="gpt-4o", messages=history, response_model=Colour)
    assert found.colour == "blue"


@pytest.mark.parametrize("way", ["client", "instructor"])
def test_partial_stream(
    serve: Callable, compacter: Compacter, history: list, way: str, in_stream: bool
) -> None:
    serve(tool_calls=99, in_stream=in_stream)
    client = made(way, compacter, openai.OpenAI(max_retries=0), instructor.Mode.TOOLS)
    parts = list(client.create_partial(model="gpt-4o", messages=history, response_model=Colour))
    assert parts[-1].colour == "blue"


def test_hooks_stay(serve: Callable, compacter: Compacter, history: list) -> None:
    serve(tool_calls=99)
    seen: list[Any] = []
    bare = instructor.from_openai(openai.OpenAI(max_retries=0))
    bare.on("completion:response", seen.append)
    compacter.wrap(bare).create(model="gpt-4o", messages=history, response_model=Colour)
    assert len(seen) == 1


def test_an_instructor_of_a_function_says_what_to_wrap(compacter: Compacter) -> None:
    with pytest.raises(TypeError, match="wrap the function"):
        compacter.wrap(instructor.from_litellm(lambda **_: None))
