"""Settings that are ready made: presets, and what ``COMPACTER_*`` variables of the environment say."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any

from compacter.compaction.strategies import ClearToolResults, Shorten, Truncate
from compacter.compaction.summarize import Summarize
from compacter.errors import ConfigurationError
from compacter.memory import InProcessMemory, Memory

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "agents": {"strategy": (ClearToolResults(), Summarize()), "trigger_tokens": 0.8},
    "chat": {"preserve_recent_turns": 2},
    "frugal": {"summarizer": "extractive"},
}

_FUNCTIONS = frozenset(
    {"pin", "detect", "retrieved", "on_compaction", "on_event", "before_compaction", "logger", "token_counter"}
)
"""Options that no text can say."""
_STRATEGIES = {
    "summarize": Summarize, "truncate": Truncate, "clear_tool_results": ClearToolResults, "shorten": Shorten,
}  # fmt: skip
_WORDS: Mapping[str, bool | None] = {
    "true": True, "yes": True, "on": True, "false": False, "no": False, "off": False, "none": None, "": None,
}  # fmt: skip
_SIMILAR = 0.8
"""How alike a variable's name and an option's are for the one to be taken for the other misspelt."""


def from_environment(environment: Mapping[str, str], names: frozenset[str], prefix: str) -> dict[str, Any]:
    """The options that variables set, by the options' names.

    Raises ``ConfigurationError`` for a variable that cannot be read, sets a function, or looks like a misspelt option;
    others with the prefix are somebody else's.
    """
    found: dict[str, Any] = {}
    for variable, text in environment.items():
        if not variable.upper().startswith(prefix.upper()):
            continue
        name = variable[len(prefix) :].lower()
        if name in _FUNCTIONS:
            raise ConfigurationError(f"{variable}: the option {name} takes a function; set it in the program")
        if name in names:
            found[name] = _read(variable, name, text.strip())
            continue
        similar = difflib.get_close_matches(name, names, 1, _SIMILAR)
        if similar:
            raise ConfigurationError(f"{variable} is no option; did you mean {prefix}{similar[0].upper()}?")
    return found


def memory_of(text: str) -> Memory | None:
    """The memory that a text names: ``in-process``, ``none``, ``sqlite:PATH`` or ``redis://...``.

    Raises ``ConfigurationError`` for any other text.
    """
    kind, _, rest = text.partition(":")
    if _WORDS.get(text.lower(), text) is None:
        return None
    if text.lower() == "in-process":
        return InProcessMemory()
    if kind == "sqlite" and rest:
        from compacter.memory.sqlite import SQLiteMemory

        return SQLiteMemory(rest.removeprefix("//"))
    if kind in ("redis", "rediss", "unix"):
        from compacter.memory.redis import RedisMemory

        return RedisMemory(text)
    raise ConfigurationError(f"memory takes in-process, none, sqlite:PATH or redis://HOST:PORT/DB, not {text!r}")


def _read(variable: str, name: str, text: str) -> object:
    if name == "memory":
        return memory_of(text)
    if name in ("strategy", "fallback") and _WORDS.get(text.lower(), text) is not None:
        words = [word.strip().lower() for word in text.split(",")]
        unknown = [word for word in words if name == "strategy" and word not in _STRATEGIES]
        if unknown:
            raise ConfigurationError(f"{variable} takes names out of {', '.join(_STRATEGIES)}, not {unknown[0]!r}")
        return [_STRATEGIES[word]() for word in words] if name == "strategy" else words
    if name == "rules":
        return _rules(variable, text)
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _rules(variable: str, text: str) -> list[object]:
    if not text.startswith("["):
        return [line.strip() for line in text.splitlines() if line.strip()]
    try:
        rules = json.loads(text)
    except ValueError:
        rules = None
    if not isinstance(rules, list):
        raise ConfigurationError(f'{variable} takes one rule a line, or a JSON list such as ["Answer in French."]')
    return rules
