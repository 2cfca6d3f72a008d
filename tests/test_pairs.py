"""Every public method that has an async twin takes the same parameters and has the same outcome."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

import pytest
from tests.conversations import talk

import compacter
from compacter import Compacter, History
from compacter.testing import ScriptedSummarizer

if TYPE_CHECKING:
    from collections.abc import Callable


def pairs() -> list[tuple[type, str]]:
    """Public classes and the names of their sync methods that have a twin with an ``a``
    before it.
    """
    classes = [
        one for name in compacter.__all__ if isinstance(one := getattr(compacter, name), type)
    ]
    return [
        (kind, name)
        for kind in classes
        for name in dir(kind)
        if not name.startswith("_") and inspect.iscoroutinefunction(getattr(kind, f"a{name}", None))
    ]


def a_compacter() -> Compacter:
    return Compacter(summarizer=ScriptedSummarizer("They spoke of trains."), memory=None)


MAKE: dict[type, Callable[[], Any]] = {
    Compacter: a_compacter,
    History: lambda: History(talk(12, 300), compacter=a_compacter(), max_tokens=500),
}
OPTIONAL: dict[str, Any] = {
    "budget": 3_000,
    "summary": "Spoke of trains.",
    "wire_format": "openai",
    "strict": True,
}
PROMISED = [pair for pair in pairs() if pair[0] in MAKE]


def facts(outcome: Any) -> Any:
    if isinstance(outcome, bool):
        return outcome
    return (
        outcome.messages,
        outcome.discarded,
        outcome.fits,
        outcome.changed,
        outcome.event.model_dump(exclude={"duration"}) if outcome.event else None,
    )


def arguments(kind: type, name: str) -> tuple[list[str], dict[str, Any]]:
    """Names of a method's parameters, and the arguments that it requires."""
    parameters = list(inspect.signature(getattr(kind, name)).parameters)
    return parameters, {"messages": talk(12, 300)} if "messages" in parameters else {}


def test_there_are_pairs() -> None:
    assert {(kind.__name__, name) for kind, name in PROMISED} >= {
        ("Compacter", "compact"),
        ("History", "compact"),
        ("History", "compact_if_needed"),
    }


@pytest.mark.parametrize(("kind", "name"), pairs())
def test_the_parameters_and_the_type_of_the_outcome_are_the_same(kind: type, name: str) -> None:
    sync = inspect.signature(getattr(kind, name))
    twin = inspect.signature(getattr(kind, f"a{name}"))
    assert list(sync.parameters.values()) == list(twin.parameters.values())
    if kind in MAKE:
        assert sync.return_annotation == twin.return_annotation


@pytest.mark.parametrize(("kind", "name"), PROMISED)
def test_the_outcome_is_the_same_with_each_of_their_arguments(kind: type, name: str) -> None:
    parameters, required = arguments(kind, name)
    chosen = [{}, *({one: OPTIONAL[one]} for one in parameters if one in OPTIONAL)]
    for options in chosen:
        given = required | options
        sync = getattr(MAKE[kind](), name)(**given)
        twin = asyncio.run(getattr(MAKE[kind](), f"a{name}")(**given))
        assert facts(sync) == facts(twin), options


@pytest.mark.parametrize(("kind", "name"), PROMISED)
def test_what_they_raise_is_the_same(kind: type, name: str) -> None:
    parameters, required = arguments(kind, name)
    wrong = {"budget": -1, "summary": " ", "wire_format": "morse"}
    for option in [one for one in parameters if one in wrong]:
        given = required | {option: wrong[option]}
        with pytest.raises(compacter.CompacterError) as sync:
            getattr(MAKE[kind](), name)(**given)
        with pytest.raises(compacter.CompacterError) as twin:
            asyncio.run(getattr(MAKE[kind](), f"a{name}")(**given))
        assert (type(sync.value), str(sync.value)) == (type(twin.value), str(twin.value))
