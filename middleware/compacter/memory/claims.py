"""Who holds which claim: the owner tokens of this process."""

from __future__ import annotations

import secrets
import threading
from collections import deque


class Tokens:
    """One token for each claim granted, so that a claim which ran out is never taken from its next owner.

    Tokens of one key are given back oldest first: it is the oldest one whose claim may have run out.
    """

    def __init__(self) -> None:
        self._held: dict[str, deque[str]] = {}
        self._lock = threading.Lock()

    @staticmethod
    def new() -> str:
        """A token that nobody else has."""
        return secrets.token_hex(16)

    def hold(self, key: str, token: str) -> None:
        """Remember a claim that was granted."""
        with self._lock:
            self._held.setdefault(key, deque()).append(token)

    def give_back(self, key: str) -> str | None:
        """The token to release ``key`` with; ``None`` when this process holds no claim on it."""
        with self._lock:
            tokens = self._held.get(key)
            if tokens is None:
                return None
            token = tokens.popleft()
            if not tokens:
                del self._held[key]
            return token
