"""A Compacter inside the wrapped function: what it gave up, the outer one does not try again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from compacter.overflow import TokenLimit


class GiveUps:
    """Number of this process's calls that were given up after at least one round."""

    count = 0


_GAVE_UP = "_compacter_gave_up"


def mark_given_up(error: Exception) -> None:
    """Mark the exception of a call that is given up."""
    GiveUps.count += 1
    with contextlib.suppress(AttributeError, TypeError):  # Some exceptions accept no attributes.
        setattr(error, _GAVE_UP, GiveUps.count)


def limit_since(
    before: int, detect: Callable[[BaseException], TokenLimit | None], error: BaseException
) -> TokenLimit | None:
    """Return the token limit that ``detect`` finds in an exception; ``None`` if a Compacter inside
    the wrapped function has given up with it or one of its causes.

    The outer one then does not retry, because it would send the same requests again. ``before`` is
    ``GiveUps.count`` at the start of the call, as a program may raise one exception object several
    times.
    """
    cause: BaseException | None = error
    for _ in range(10):
        if cause is None or GiveUps.count == before:
            break
        if getattr(cause, _GAVE_UP, 0) > before:
            return None
        cause = cause.__cause__ or cause.__context__
    return detect(error)
