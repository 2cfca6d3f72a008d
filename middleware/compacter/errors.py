"""What compacter itself raises.

CompacterError
 |-- ConfigurationError        an option or argument is not usable (also a ValueError)
 |-- CompactionError           no summary could be had, and ``fallback=None`` forbids to go on without one
 `-- InvalidHistoryError       ``strict=True`` found half a tool pair (also a ValueError)

When a call is given up, the provider's own last exception is raised, never one of these.
"""

from __future__ import annotations


class CompacterError(Exception):
    """Base of every exception that compacter makes."""


class ConfigurationError(CompacterError, ValueError):
    """An option or argument is not usable; the message names it and the remedy."""


class CompactionError(CompacterError):
    """No summary could be had; ``__cause__`` is the reason."""


class InvalidHistoryError(CompacterError, ValueError):
    """A history has a tool call without its result or a result without its call, or a snapshot cannot be read.

    Args:
        message: What is wrong.
        call_id: Id of the call or result that lacks its partner.
        index: Position of its message in the list; -1 where that has no meaning.
    """

    def __init__(self, message: str, *, call_id: str = "", index: int = -1) -> None:
        super().__init__(message)
        self.call_id = call_id
        """Id of the call or result that lacks its partner."""
        self.index = index
        """Position of the message in the list."""
