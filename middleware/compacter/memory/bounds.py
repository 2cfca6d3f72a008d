"""Numbers that bound a memory, checked when it is made."""

from __future__ import annotations

from compacter.errors import ConfigurationError


def whole_number(name: str, value: object) -> int:
    """``value``, if it is a whole number from 1 on. Raises ``ConfigurationError`` that names the option."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigurationError(f"{name} takes a whole number from 1 on, not {value!r}")
    return value


def seconds(name: str, value: object) -> float:
    """``value``, if it is a number above 0. Raises ``ConfigurationError`` that names the option."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        raise ConfigurationError(f"{name} takes a number of seconds above 0, not {value!r}")
    return float(value)
