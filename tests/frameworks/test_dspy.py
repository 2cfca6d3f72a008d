"""DSPy, whose programs go on when the history is too long."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("dspy")

import dspy
from tests.frameworks.provider import WORDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from compacter import Compacter


ENGINES = ["auto", "litellm"]


def lm(engine: str, url: str, compacter: Compacter) -> Any:
    return compacter.wrap(
        dspy.LM(
            "openai/gpt-4o",
            api_base=url,
            api_key="sk-test",
            engine=engine,
            cache=False,
            num_retries=0,
        )
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_plain(serve: Callable, compacter: Compacter, history: list[Any], engine: str) -> None:
    served = serve()
    assert lm(engine, served.url, compacter)(messages=history) == [WORDS]


@pytest.mark.parametrize("engine", ENGINES)
async def test_async(
    serve: Callable, compacter: Compacter, history: list[Any], engine: str
) -> None:
    served = serve()
    assert await lm(engine, served.url, compacter).acall(messages=history) == [WORDS]


@pytest.mark.parametrize("engine", ENGINES)
def test_program(serve: Callable, compacter: Compacter, talk: list, engine: str) -> None:
    served = serve()
    turns = [
        {"question": a[1], "answer": b[1]} for a, b in zip(talk[::2], talk[1::2], strict=False)
    ]

    class Ask(dspy.Signature):
        question: str = dspy.InputField()
        history: dspy.History = dspy.InputField()
        colour: str = dspy.OutputField()

    with dspy.context(lm=lm(engine, served.url, compacter), adapter=dspy.JSONAdapter()):
        found = dspy.Predict(Ask)(
            question="What colour is the harbour?", history=dspy.History(messages=turns)
        )
    assert found.colour == "blue"


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, dspy.LM.copy])
def test_copies(serve: Callable, compacter: Compacter, history: list[Any], how: Callable) -> None:
    served = serve()
    assert how(lm("auto", served.url, compacter))(messages=history) == [WORDS]
