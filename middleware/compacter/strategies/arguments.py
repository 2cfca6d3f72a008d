"""Checking what a strategy is made with."""

from __future__ import annotations

from compacter.errors import ConfigurationError


def whole_number(name: str, value: object, *, least: int, of: str) -> int:
    """``value``, a whole number from ``least`` on. Raises ``ConfigurationError`` that names the argument."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigurationError(f"{name} takes a number of {of} from {least} on, not {value!r}")
    return value
