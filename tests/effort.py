"""How much a test looks at, and whether work grows no faster than what it reads."""

from __future__ import annotations

import gc
import os
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")
FLOOR = 0.002
"""Seconds below which a time is noise."""
LONG = bool(os.environ.get("COMPACTER_LONG"))
"""`make test-long`: more cases of the same kind, and longer conversations."""


def every(step: int, cases: Iterable[T]) -> list[T]:
    """Number of cases to run of one kind; all of them in `make test-long`."""
    return list(cases)[:: 1 if LONG else step]


def times(count: int, *, long: int) -> int:
    """How often, or how many turns; the larger number in `make test-long`."""
    return long if LONG else count


def grows_linearly(work: Callable[[T], object], make: Callable[[int], T], size: int) -> bool:
    """Whether ten times the size is at most thirty times the work; a measurement that was disturbed
    is repeated.
    """
    shorter = make(size)
    longer = make(10 * size)
    return any(seconds(work, longer) <= 30 * max(seconds(work, shorter), FLOOR) for _ in range(5))


def seconds(work: Callable[[T], object], given: T) -> float:
    """Processor time of this thread: other threads and programs do not count, nor the collection of
    garbage, which looks at all that the tests before have left.
    """
    gc.disable()
    try:
        started = time.thread_time()
        work(given)
        return time.thread_time() - started
    finally:
        gc.enable()


def repeated(shape: str) -> Callable[[int], str]:
    """Makes texts that consist of this shape."""
    return lambda size: shape * (size // len(shape))
