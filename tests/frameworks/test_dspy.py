"""DSPy, whose programs go on when the history is too long."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("dspy")

import dspy

if TYPE_CHECKING:
    from collections.abc import Callable

    from compacter import Compacter


ENGINES = ["auto", "litellm"]


@pytest.fixture
def history(talk: list[tuple[str, str]]) -> list[Any]:
    return [{"role": role, "content": text} for role, text in talk]


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
def test_plain(
    serve: Callable, compacter: Compacter, history: list[Any], words: str, engine: str
) -> None:
    served = serve()
    assert lm(engine, served.url, compacter)(messages=history) == [words]
    assert served.recovered()


@pytest.mark.parametrize("engine", ENGINES)
async def test_async(
    serve: Callable, compacter: Compacter, history: list[Any], words: str, engine: str
) -> None:
    served = serve()
    assert await lm(engine, served.url, compacter).acall(messages=history) == [words]
    assert served.recovered()


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
    assert served.recovered()


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, dspy.LM.copy])
def test_copies(
    serve: Callable, compacter: Compacter, history: list[Any], words: str, how: Callable
) -> None:
    served = serve()
    assert how(lm("auto", served.url, compacter))(messages=history) == [words]
    assert served.recovered()


def test_page(serve: Callable, run_page: Callable) -> None:
    served = serve()
    assert run_page("dspy")["answer"] == "blue"
    assert served.recovered()
