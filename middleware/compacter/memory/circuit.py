"""When a memory is left alone: for half a minute after three failures in a row, so that not every
call waits for it.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Literal

from compacter.memory.protocol import MemoryUnavailable

Level = Literal["info", "warning"]

FAILURES = 3
"""Failures in a row after which a memory is left alone: one may be a connection that ended."""
PAUSE = 30.0
"""Seconds for which it is left alone then; after that one operation tries it."""
# Most characters of an exception's text in the log.
_MOST_OF_CAUSE = 200
_CREDENTIALS = re.compile(r"(?<=//)[^/@\s]*@")


@dataclass(frozen=True, slots=True)
class Report:
    """What happened to a memory, for the log."""

    level: Level
    name: str
    """Name of the log's event, without the prefix."""
    sentence: str
    facts: dict[str, str]


class Circuit:
    """Circuit breaker of one memory. Thread-safe, without a lock that a fork could find locked.

    Args:
        name: What failed, such as "the Redis server".
        address: Where it is, without credentials.
        tell: Called with a report when the memory is left alone, and when it answers again.
    """

    def __init__(self, name: str, address: str, tell: Callable[[Report], object]) -> None:
        self._name = name
        self._address = address
        self._tell = tell
        self.reset()

    def reset(self) -> None:
        """Forget all failures."""
        self.failures = 0
        """Failures in a row."""
        self._until = 0.0
        # When the first pause began.
        self._opened = 0.0

    @property
    def is_open(self) -> bool:
        """Whether the memory has failed several times, and not worked since."""
        return self.failures >= FAILURES

    @contextlib.contextmanager
    def count(self, failures: tuple[type[Exception], ...]) -> Generator[None]:
        """Count the outcome of the block: one of these ``failures``, or success.

        Raises ``MemoryUnavailable`` during a pause.
        """
        now = time.monotonic()
        if now < self._until:
            raise MemoryUnavailable(
                f"{self._name} failed a moment ago and is not used for some seconds"
            )
        if self.is_open:
            # This operation tries; the others follow if it succeeds.
            self._until = now + PAUSE
        try:
            yield
        except failures as error:
            self._fail(error)
            raise
        opened = self._opened
        self.reset()
        if opened:
            seconds = time.monotonic() - opened
            self._report("info", "memory_back", f"answers again, after {seconds:.0f} seconds")

    def _fail(self, error: Exception) -> None:
        self.failures += 1
        if not self.is_open:
            return
        now = time.monotonic()
        self._until = now + PAUSE
        if not self._opened:
            self._opened = now
            # The first line of such a text names an address or a state, and never quotes a record.
            line = f"{type(error).__name__}: {error}".partition("\n")[0]
            cause = _CREDENTIALS.sub("", line)[:_MOST_OF_CAUSE]
            sentence = (
                f"is left alone for {PAUSE:g} seconds at a time: it failed {self.failures} times "
                f"in a row ({cause}); calls go on without it"
            )
            self._report("warning", "memory_away", sentence, cause=cause)

    def _report(self, level: Level, name: str, sentence: str, **facts: str) -> None:
        place = f"{self._name} at {self._address}".removesuffix(" at ")
        self._tell(Report(level, name, f"{place} {sentence}", {"address": self._address, **facts}))
