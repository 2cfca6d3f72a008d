"""Presets of options, and options from ``COMPACTER_*`` environment variables."""

from __future__ import annotations

import difflib
import json
import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from compacter.compaction.strategies import BUILT_IN
from compacter.errors import ConfigurationError
from compacter.memory.address import keys_from, memory_of
from compacter.options import Options, unknown, validated

PRESETS: Mapping[str, Mapping[str, Any]] = {
    # Made ahead, and in force before the provider refuses. With a trigger of 0.8, .108 of the steps
    # of real runs lack a name that they use; .077 with 0.95, as without one.
    "agents": {"trigger_tokens": 0.95, "prepare_tokens": 0.8},
    # In a window of a tenth of the chat, .84 of 360 questions about it could be answered; .75 with
    # the defaults.
    "chat": {"recall": 0.35},
    # Summaries without a model; compacting more at once keeps the prompt cache valid for longer.
    "frugal": {"summarizer": "extractive", "compact_ratio": 0.85},
}
"""Options of each preset, as measured by ``benchmarks/presets.py``."""

# What separates the values of an option that takes several.
_SEPARATORS = {"strategy": ",", "fallback": ",", "rules": "\n"}
# Least similarity to an option's name, from 0 to 1, of a variable that counts as misspelt.
_MISSPELT = 0.8


def from_environment(environment: Mapping[str, str], prefix: str) -> dict[str, Any]:
    """Return the options that are set by environment variables.

    Empty variables are ignored. Raises ``ConfigurationError`` for a variable with an invalid value,
    and for a misspelt option; warns of other unknown variables with the prefix.
    """
    texts = {}
    for variable, text in environment.items():
        if variable.upper().startswith(prefix.upper()):
            if not isinstance(text, str):
                raise ConfigurationError(f"{variable} takes a text, not {text!r}")
            texts[variable[len(prefix) :].lower()] = (variable, text.strip())
    variable, keys = texts.pop("memory_encryption", ("", ""))
    stored: dict[str, Any] = {}
    if keys:
        is_place = keys.startswith(("file:", "env:"))
        listed = keys_from(keys, variable) if is_place else keys.replace(",", " ").split()
        stored["encryption"] = listed
    options = {}
    for name, (variable, text) in texts.items():
        if not text:
            continue
        if name in Options.model_fields:
            options[name] = _read_option(variable, name, text, stored)
        elif difflib.get_close_matches(name, Options.model_fields, 1, _MISSPELT):
            raise ConfigurationError(f"{variable}: {unknown(name)}")
        else:
            warnings.warn(f"{variable} is ignored: {unknown(name)}", stacklevel=3)
    return options


def _read_option(variable: str, name: str, text: str, stored: Mapping[str, Any]) -> object:
    """Return the value of one option. Raises ``ConfigurationError`` that names the variable."""
    try:
        value = memory_of(text, **stored) if name == "memory" else _read(name, text)
        validated({name: value})
    except ConfigurationError as error:
        fault = str(error).removeprefix(f"{name}: ").partition(" (got ")[0]
        # An address may contain a password.
        shown = "" if name == "memory" else f"={text!r}"
        raise ConfigurationError(f"{variable}{shown}: {fault}") from None
    return value


def _read(name: str, text: str) -> object:
    """Return a value as an option takes it: of what pydantic does not read from text itself."""
    separator = _SEPARATORS.get(name)
    if text.lower() == "none":
        return [] if separator else None
    if separator is None or text.startswith("["):
        if Options.model_fields[name].annotation != (str | None):
            with suppress(ValueError):  # Then it is a text: a name, or the word of a truth value.
                return json.loads(text)
        return text
    made = BUILT_IN if name == "strategy" else {}
    parts = filter(None, map(str.strip, text.split(separator)))
    return [made[part]() if part in made else part for part in parts]
