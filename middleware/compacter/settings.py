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
from compacter.options import Options, validated

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

# Options that cannot be given as text.
_FUNCTIONS = frozenset(
    {
        "pin",
        "detect",
        "retrieved",
        "on_compaction",
        "on_event",
        "before_compaction",
        "logger",
        "token_counter",
    }
)
# Options that take any text, numbers and words among them.
_TEXTS = frozenset(
    name for name, option in Options.model_fields.items() if option.annotation == (str | None)
)
_WORDS: Mapping[str, bool | None] = {
    "true": True,
    "yes": True,
    "on": True,
    "false": False,
    "no": False,
    "off": False,
    "none": None,
}
# Least similarity to an option's name, from 0 to 1, of a variable that counts as misspelt.
_MISSPELT = 0.8


def from_environment(environment: Mapping[str, str], prefix: str) -> dict[str, Any]:
    """Return the options that are set by environment variables.

    Empty variables are ignored. Raises ``ConfigurationError`` for a variable with an invalid value,
    for an option that takes a function, and for a misspelt option; warns of other unknown variables
    with the prefix.
    """
    texts = {}
    for variable, text in environment.items():
        if variable.upper().startswith(prefix.upper()):
            if not isinstance(text, str):
                raise ConfigurationError(f"{variable} takes a text, not {text!r}")
            texts[variable[len(prefix) :].lower()] = (variable, text.strip())
    stored = _read_storing(*(texts.pop(name, ("", "")) for name in _STORING))
    options = {}
    for name, (variable, text) in texts.items():
        if text and _is_option(variable, name, prefix):
            options[name] = _check_option(variable, name, text, stored)
    return options


def _is_option(variable: str, name: str, prefix: str) -> bool:
    names = Options.model_fields
    if name in _FUNCTIONS:
        raise ConfigurationError(
            f"{variable}: the option {name} takes a function; set it in the program"
        )
    if name in names:
        return True
    misspelt = difflib.get_close_matches(name, names, 1, _MISSPELT)
    meant = misspelt or [option for option in sorted(names) if name in option]
    question = f"; did you mean {prefix}{meant[0].upper()}?" if meant else ""
    if misspelt:
        raise ConfigurationError(f"{variable} is not an option{question}")
    warnings.warn(f"{variable} is ignored: there is no such option{question}", stacklevel=4)
    return False


# Variables, without their prefix, that say how the memory at an address stores its records.
_STORING = ("memory_encryption", "memory_quotes")


def _read_storing(encryption: tuple[str, str], quotes: tuple[str, str]) -> dict[str, Any]:
    """Return the keys and the switch for quoted lines of a memory that is named by its address."""
    stored: dict[str, Any] = {}
    variable, keys = encryption
    if keys.startswith(("file:", "env:")):
        stored["encryption"] = keys_from(keys, variable)
    elif keys:  # The variable itself holds them.
        stored["encryption"] = keys.replace(",", " ").split()
    variable, text = quotes
    if text:
        stored["quotes"] = _WORDS.get(text.lower())
        if stored["quotes"] is None:
            raise ConfigurationError(f"{variable} takes true or false, not {text!r}")
    return stored


def _check_option(variable: str, name: str, text: str, stored: Mapping[str, Any]) -> object:
    """Return the value of one option. Raises ``ConfigurationError`` that names the variable."""
    value = _read(variable, name, text, stored)
    try:
        validated({name: value})
    except ConfigurationError as error:
        takes = str(error).removeprefix(f"{name}: ").partition(" (got ")[0]
        raise ConfigurationError(f"{variable}={text!r}: {takes}") from None
    return value


def _read(variable: str, name: str, text: str, stored: Mapping[str, Any]) -> object:
    if name == "memory":
        try:
            return memory_of(text, **stored)
        except ConfigurationError as error:
            raise ConfigurationError(f"{variable}: {error}") from None
    if name in ("strategy", "fallback") and _WORDS.get(text.lower(), text) is not None:
        words = [word.strip().lower() for word in text.split(",")]
        unknown = [word for word in words if name == "strategy" and word not in BUILT_IN]
        if unknown:
            raise ConfigurationError(
                f"{variable} takes names from {', '.join(BUILT_IN)}, not {unknown[0]!r}"
            )
        return [BUILT_IN[word]() for word in words] if name == "strategy" else words
    is_none = text.lower() == "none"
    if name in _TEXTS:
        return None if is_none else text
    if name == "rules":
        return [] if is_none else _read_rules(variable, text)
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for number in (int, float):
        with suppress(ValueError):
            return number(text)
    return text


def _read_rules(variable: str, text: str) -> list[object]:
    if not text.startswith("["):
        return [line.strip() for line in text.splitlines() if line.strip()]
    try:
        rules = json.loads(text)
    except ValueError:
        rules = None
    if not isinstance(rules, list):
        raise ConfigurationError(
            f'{variable} takes one rule a line, or a JSON list such as ["Answer in French."]'
        )
    return rules
