"""Exceptions of compacter, and the check of a number that raises one.

CompacterError
 |-- ConfigurationError        an option or argument is invalid (also a ValueError)
 |-- CompactionError           there is no summary, and no fallback (``fallback=None``)
 `-- InvalidHistoryError       a tool call or result lacks its partner (also a ValueError)

When a call is given up, the provider's own last exception is raised, never one of these.
"""

from __future__ import annotations


class CompacterError(Exception):
    """Base class of compacter's exceptions."""


class ConfigurationError(CompacterError, ValueError):
    """An option or argument is invalid; the message names it and the remedy."""


class CompactionError(CompacterError):
    """There is no summary, and no fallback; ``__cause__`` is the reason."""


class InvalidHistoryError(CompacterError, ValueError):
    """A history has a tool call without its result or a result without its call, or a snapshot cannot be read.

    Args:
        message: Description of the fault.
        call_id: Id of the call or result that lacks its partner.
        index: Position of its message in the list; -1 if there is none.
    """

    def __init__(self, message: str, *, call_id: str = "", index: int = -1) -> None:
        super().__init__(message)
        self.call_id = call_id
        """Id of the call or result that lacks its partner."""
        self.index = index
        """Position of the message in the list."""


def whole_number(name: str, value: object, *, least: int, of: str) -> int:
    """Return ``value`` if it is a whole number of at least ``least``, else raise ``ConfigurationError``.

    Args:
        name: Name of the argument.
        value: Its value; a bool is refused.
        least: Smallest number allowed.
        of: What is counted, such as ``"tokens"``.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigurationError(f"{name} takes a whole number of {of} of at least {least}, not {value!r}")
    return value
