"""Messages are read only: noticing, and undoing, what foreign code did to them."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from compacter.messages.format import Message


class Untouched:
    """Remembers the content of messages that are dicts; SDK objects are left to their owner."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._held: list[tuple[dict[str, object], dict[str, object]]] = []
        for message in messages:
            if isinstance(message, dict):
                try:
                    self._held.append((message, copy.deepcopy(message)))
                except Exception:  # noqa: BLE001, S112 - what cannot be copied cannot be watched
                    continue

    def restored(self) -> bool:
        """Whether a message had been changed; it is as it was again."""
        changed = [(message, before) for message, before in self._held if message != before]
        for message, before in changed:
            message.clear()
            message.update(before)
        return bool(changed)
