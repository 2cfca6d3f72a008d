"""Base of the memories that store records as text, which may be encrypted.

With encryption, reading and writing records need a key: https://cryptography.io/en/latest/fernet/
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Generator, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from compacter.errors import CompacterError, ConfigurationError, seconds
from compacter.memory.protocol import BaseMemory
from compacter.memory.record import Record

if TYPE_CHECKING:
    from cryptography.fernet import Fernet, MultiFernet

DEADLINE = 1.0
"""Default time limit of one operation, in seconds."""
WEEK = 7 * 86_400.0
"""Default time in seconds for which an unused record is kept."""
PER_KEY = 32
"""Most records that are kept under one key: older ones of a conversation matter only to its forks.
"""
# Beginning of every Fernet token: its version and a time before the year 2106, in base64.
_BEGINNING = b"gAAAA"


Encryption: TypeAlias = "Fernet | MultiFernet | str | bytes | Sequence[str | bytes] | None"
"""A key of ``Fernet.generate_key()``; several, of which the first encrypts and all decrypt; or an
object with the methods ``encrypt`` and ``decrypt`` of ``Fernet``."""


class MemoryUnavailable(CompacterError):  # noqa: N818 - a state, like ``concurrent.futures.BrokenExecutor``
    """A memory did not answer within its deadline."""


def _cipher(given: Any) -> Any:  # noqa: ANN401 - as ``Encryption`` says
    if given is None or hasattr(given, "decrypt"):
        return given
    try:
        from cryptography.fernet import Fernet, MultiFernet
    except ImportError as error:
        raise ImportError("compacter's encryption needs: pip install cryptography") from error
    try:
        return MultiFernet(map(Fernet, [given] if isinstance(given, (str, bytes)) else given))
    except (TypeError, ValueError):
        # The message does not repeat the key.
        raise ConfigurationError(
            "encryption takes a key of cryptography's Fernet.generate_key(), several (the "
            "first one encrypts), or a Fernet or MultiFernet"
        ) from None


class StoringMemory(BaseMemory):
    """Base class of memories that store each record as text, in a file or on a server.

    Args:
        address: Address of the file or server, without credentials, for the log; empty if it is
            unknown.
        deadline: Seconds that one operation may take.
        encryption: Keys that encrypt the text, or a cipher; ``None`` stores plain text.
    """

    kind: str
    """Name of the store, such as "the Redis server"."""

    def __init__(self, address: str, deadline: float, encryption: Encryption) -> None:
        super().__init__()
        self.deadline = seconds("deadline", deadline)
        self._failing: set[str] = set()
        self._options: dict[str, Any] = {"deadline": deadline, "encryption": encryption}
        self._cipher = _cipher(encryption)
        self._address = address
        self._token = secrets.token_hex(16)
        self._is_unreadable_reported = False

    @property
    def owner(self) -> str:
        """Name by which the store distinguishes the claims of this object from all others. A forked
        child process has another name.
        """
        return f"{self._token}:{os.getpid()}"

    @property
    def is_away(self) -> bool:
        """Whether the memory failed, and has not worked since."""
        return bool(self._failing)

    @contextlib.contextmanager
    def watched(self, what: str = "use") -> Generator[None]:
        """Return a context manager for one operation. It logs when the store begins to fail, and
        when it works again.

        Args:
            what: Kind of the operation, such as "reading". Operations of another kind may still
                work.
        """
        try:
            yield
        except self.failures as error:
            if what not in self._failing:
                self._failing.add(what)
                # The first line of such a text names an address or a state, and never a record.
                cause = f"{type(error).__name__}: {error}".partition("\n")[0]
                self.report("memory_away", f"failed ({cause}); calls go on without it")
            raise
        if what in self._failing:
            self._failing.discard(what)
            self.report("memory_back", "answers again", "info")

    def report(self, name: str, what: str, level: str = "warning") -> None:
        """Log an event of the memory; ``what`` is the end of a sentence about the memory, for the
        log.
        """
        place = f"{self.kind} at {self._address}".removesuffix(" at ")
        self.write_log(level, f"compacter.{name}", f"{place} {what}", {"address": self._address})

    def _encode(self, record: Record) -> str:
        """Return the text to store for a record. Raises ``Unencodable``."""
        text = record.to_json()
        return self._cipher.encrypt(text.encode()).decode() if self._cipher else text

    def _decode(self, texts: Iterable[str | bytes]) -> list[Record]:
        """Return the records of stored ``texts``, without texts that are not records or, with a
        cipher, not encrypted.
        """
        return [record for record in map(self._read, texts) if record]

    def _read(self, text: str | bytes) -> Record | None:
        data = text if isinstance(text, bytes) else text.encode("ascii", "replace")
        record = None
        with suppress(Exception):  # Another key, an altered token, a cipher of the user's own.
            record = Record.from_json(self._cipher.decrypt(data) if self._cipher else data)
        if record is None and data.startswith(_BEGINNING) and not self._is_unreadable_reported:
            self._is_unreadable_reported = True
            self.report(
                "memory_unreadable",
                "has a record that cannot be decrypted: it was written with another key, or "
                "altered, and counts as missing. Give encryption that key too, after the one "
                "that writes, or let such records expire",
            )
        return record
