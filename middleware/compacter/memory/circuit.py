"""A memory that fails three times in a row is not used for thirty seconds, so that not every call
waits for it.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Literal

from compacter.errors import CompacterError

FAILURES = 3
"""Failures in a row after which a memory is not used: one may be a connection that ended."""
PAUSE = 30.0
"""Seconds for which it is not used; then one operation tries it."""
_CREDENTIALS = re.compile(r"(?<=//)[^/@\s]*@")


class MemoryUnavailable(CompacterError):  # noqa: N818 - a state, like ``concurrent.futures.BrokenExecutor``
    """A memory did not answer within its deadline, or failed several times and is not used for
    half a minute.
    """


@dataclass(frozen=True, slots=True)
class Report:
    """What happened to a memory, for the log."""

    name: str
    """Name of the log's event, without the prefix."""
    sentence: str
    address: str
    level: Literal["info", "warning"] = "warning"


class Circuit:
    """Circuit breaker of one memory. Thread-safe, without a lock that a fork could find locked.

    Args:
        name: What fails, such as "the Redis server".
        address: Its place, without credentials.
        report: Called with a report when a pause begins, and when the memory works again.
    """

    def __init__(self, name: str, address: str, report: Callable[[Report], object]) -> None:
        self._name = name
        self._address = address
        self._report = report
        self.reset()

    def reset(self) -> None:
        """Forget all failures."""
        self.failures = 0
        """Failures in a row."""
        self._until = 0.0

    @property
    def is_open(self) -> bool:
        """Whether the memory has failed several times, and not worked since."""
        return self.failures >= FAILURES

    @contextlib.contextmanager
    def count(self, failures: tuple[type[Exception], ...]) -> Generator[None]:
        """Count the outcome of the block: one of these ``failures``, or success.

        Raises ``MemoryUnavailable`` during a pause.
        """
        if time.monotonic() < self._until:
            raise MemoryUnavailable(
                f"{self._name} failed a moment ago and is not used for some seconds"
            )
        if self.is_open:
            # This operation tries; the others follow if it succeeds.
            self._until = time.monotonic() + PAUSE
        try:
            yield
        except failures as error:
            self.failures += 1
            if self.is_open:
                self._until = time.monotonic() + PAUSE
            if self.failures == FAILURES:
                # The first line of such a text names an address or a state, and never a record.
                cause = f"{type(error).__name__}: {error}".partition("\n")[0]
                reason = _CREDENTIALS.sub("", cause)
                sentence = (
                    f"is not used for {PAUSE:g} seconds at a time: it failed {FAILURES} times in "
                    f"a row ({reason}); calls go on without it"
                )
                self._emit("memory_away", sentence, "warning")
            raise
        if self.is_open:
            self._emit("memory_back", "answers again", "info")
        self.reset()

    def _emit(self, name: str, sentence: str, level: Literal["info", "warning"]) -> None:
        place = f"{self._name} at {self._address}".removesuffix(" at ")
        self._report(Report(name, f"{place} {sentence}", self._address, level))
