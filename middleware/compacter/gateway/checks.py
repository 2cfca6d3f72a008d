"""What is checked once, at start: settings, and whether the memory answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from compacter.errors import ConfigurationError
from compacter.memory import Memory

M = TypeVar("M", bound=BaseModel)
# Key of a record that is never there.
_NO_KEY = "compacter-start"


def checked(model: type[M], given: Mapping[str, Any], path: str = "") -> M:
    """Return settings. Raises ``ConfigurationError`` with the place of each that is invalid; none
    is repeated, as it may be a password.
    """
    try:
        return model(**given)
    except ValidationError as error:
        problems = []
        for problem in error.errors():
            name = ".".join(map(str, problem["loc"]))
            text = problem["msg"].removeprefix("Value error, ").removeprefix(f"{name} ")
            problems.append(f"{path}{name}: {text}")
        raise ConfigurationError("; ".join(problems)) from None


def problem_of(memory: Memory | None, address: str) -> str | None:
    """Return a sentence if the memory does not answer; ``None`` if it does. A warning at start is
    worth more than one a call at night.

    Args:
        memory: The memory; ``None`` for none.
        address: Where it is, as in the settings; the sentence leaves its password out.
    """
    if memory is None:
        return None
    try:
        memory.find((_NO_KEY,))
    except Exception as error:  # noqa: BLE001 - a memory may raise anything
        parts = urlsplit(address)
        place = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        return (
            f"the memory at {place} does not answer ({_cause_of(error)}); until it does, "
            "each process remembers nothing, and summaries are made twice"
        )
    return None


def _cause_of(error: BaseException) -> str:
    """Return the name of what went wrong first, such as a password that the server refuses."""
    earlier = error.__cause__ or error.__context__
    return type(error).__name__ if earlier is None else _cause_of(earlier)
