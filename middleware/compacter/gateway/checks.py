"""Checks at start: settings, and whether the memory answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from traceback import format_exception
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from compacter.errors import ConfigurationError
from compacter.memory import Memory
from compacter.options import Summarizer, validated

M = TypeVar("M", bound=BaseModel)
# Key of a record that never exists.
_NO_KEY = "compacter-start"
_REFUSES_PASSWORD = re.compile(
    "AuthenticationError|NoPermissionError|NOAUTH|WRONGPASS|invalid password|Authentication req"
)


def checked(model: type[M], given: object, *path: str) -> M:
    """Return the checked settings. Raises ``ConfigurationError`` with the place of each invalid
    value, but not the value, which may be a password.
    """
    try:
        return model.model_validate(given)
    except ValidationError as error:
        problems = []
        for problem in error.errors():
            name = ".".join(map(str, problem["loc"]))
            text = problem["msg"].removeprefix("Value error, ").removeprefix(f"{name} ")
            text = text.replace("Input should be", "must be")
            problems.append(f"{'.'.join(filter(None, (*path, name)))}: {text}")
        raise ConfigurationError("; ".join(problems)) from None


def read_summarizer(options: Mapping[str, Any]) -> tuple[str | None, Summarizer]:
    """Return the model of the gateway that writes summaries, and the summarizer, if it is another:
    ``"extractive"``, or a function. Raises ``ConfigurationError``.
    """
    writer = validated({"summarizer": options.get("summarizer")}).summarizer
    if writer == "provider":
        raise ConfigurationError('summarizer="provider" needs an SDK\'s client; leave it out here')
    if isinstance(writer, str) and writer != "extractive":
        return writer.strip(), None
    return None, writer


def problem_of(memory: Memory | None, address: str) -> str | None:
    """Return a sentence if the memory does not answer; ``None`` if it does. A warning at start is
    better than one for each call later.

    Args:
        memory: The memory; ``None`` for none.
        address: Its address, as in the settings; the sentence leaves out the password.

    Raises: ConfigurationError: The server refuses because a password is missing, which waiting does
        not remedy.
    """
    if memory is None:
        return None
    try:
        memory.find((_NO_KEY,))
    except Exception as error:  # noqa: BLE001 - a memory may raise anything
        parts = urlsplit(address)
        place = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        if _REFUSES_PASSWORD.search("".join(format_exception(error, limit=0))):
            raise ConfigurationError(
                f"memory: the server at {place} refuses the password, or wants one: "
                "redis://:PASSWORD@HOST:PORT/DB"
            ) from None
        return (
            f"the memory at {place} does not answer ({type(error).__name__}); until it does, "
            "each process remembers nothing, and summaries are made twice"
        )
    return None
