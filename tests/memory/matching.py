"""A ``Matcher`` as a plain program uses it: its coroutines are run at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compacter.memory import Memory
from compacter.memory.match import Matcher, View
from compacter.memory.record import Record
from compacter.messages.format import MessageFormat
from compacter.runtime.io import run


class Matching:
    def __init__(
        self,
        memory: Memory,
        *,
        alternate: bool | None = None,
    ) -> None:
        self.matcher = Matcher(memory, alternate=alternate)
        self.memory = self.matcher.memory

    def view(self, scope: str, form: MessageFormat, messages: Sequence[Any]) -> View | None:
        return run(self.matcher.view(scope, form, messages))

    def remember(
        self,
        scope: str,
        form: MessageFormat,
        before: Sequence[Any],
        after: Sequence[Any],
        window: int | None = None,
    ) -> Record | None:
        return run(self.matcher.remember(scope, form, before, after, window))


def record(key: str = "k", digest: str = "d") -> Record:
    """A record with one summary."""
    summary = {"role": "user", "content": "So far."}
    return Record(key, 3, (summary,), digest, "l")
