"""Presets of options, and options from ``COMPACTER_*`` environment variables."""

from __future__ import annotations

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

# Variable with the keys of the memory, without its prefix.
_KEYS = "memory_encryption"
# Separators of the values of an option that takes several.
_SEPARATORS = {"strategy": ",", "fallback": ",", "rules": "\n"}


def from_environment(environment: Mapping[str, str], prefix: str) -> dict[str, Any]:
    """Return the options that are set by environment variables.

    Empty variables are ignored. Raises ``ConfigurationError`` for a variable with an invalid value,
    and warns of unknown ones with the prefix.
    """
    if getattr(environment, "items", None) is None:
        raise ConfigurationError(
            f"environment takes a mapping of variables such as os.environ, not {environment!r}"
        )
    texts = {  # ``dotenv_values`` has None for a variable without a value.
        variable[len(prefix) :].lower(): str(text or "").strip()
        for variable, text in environment.items()
        if variable.upper().startswith(prefix.upper())
    }
    keys = texts.pop(_KEYS, "")
    stored = {"encryption": _read_keys(keys, f"{prefix}{_KEYS.upper()}")} if keys else {}
    options = {}
    for name, text in texts.items():
        variable = f"{prefix}{name.upper()}"
        if text and name in Options.model_fields:
            options[name] = _read_option(variable, name, text, stored)
        elif text:
            warnings.warn(f"{variable} is ignored: {unknown(name)}", stacklevel=3)
    return options


def _read_keys(text: str, variable: str) -> list[str]:
    is_place = text.startswith(("file:", "env:"))
    return keys_from(text, variable) if is_place else text.replace(",", " ").split()


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
    """Convert a text for an option whose type pydantic does not convert itself."""
    separator = _SEPARATORS.get(name)
    if text.lower() == "none":
        return [] if separator else None
    if separator is None or text.startswith("["):
        if (
            Options.model_fields[name].annotation
            != Options.model_fields["summary_prompt"].annotation
        ):
            with suppress(ValueError):  # Then it is a text: a name, or the word of a truth value.
                return json.loads(text)
        return text
    made = BUILT_IN if name == "strategy" else {}
    parts = filter(None, map(str.strip, text.split(separator)))
    return [made[part]() if part in made else part for part in parts]
