"""Base of the memories that store records as text, which may be encrypted.

With encryption, reading and writing records need a key: https://cryptography.io/en/latest/fernet/
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from compacter.errors import ConfigurationError, seconds
from compacter.memory.circuit import Report
from compacter.memory.protocol import BaseMemory
from compacter.memory.record import Record

if TYPE_CHECKING:
    from cryptography.fernet import Fernet, MultiFernet

# Beginning of every Fernet token: its version and a time before the year 2106, in base64.
_BEGINNING = b"gAAAA"


Encryption: TypeAlias = "Fernet | MultiFernet | str | bytes | Sequence[str | bytes] | None"
"""A key of ``Fernet.generate_key()``; several, of which the first encrypts and all decrypt; or an
object with the methods ``encrypt`` and ``decrypt`` of ``Fernet``."""


def _cipher(given: Any) -> Any:  # noqa: ANN401 - as ``Encryption`` says
    if given is None or hasattr(given, "decrypt"):
        return given
    try:
        from cryptography.fernet import Fernet, MultiFernet
    except ImportError as error:
        raise ImportError(
            'compacter\'s encryption needs: pip install "llm-compacter[encryption]"'
        ) from error
    try:
        return MultiFernet(map(Fernet, [given] if isinstance(given, (str, bytes)) else given))
    except (TypeError, ValueError):
        # The message does not repeat the key.
        raise ConfigurationError(
            "encryption takes a key of cryptography's Fernet.generate_key(), several (the "
            "first one encrypts), or a Fernet or MultiFernet"
        ) from None


class StoringMemory(BaseMemory):
    """Base class of memories that store text.

    Args:
        place: Where it is stored, without credentials, for the log.
        deadline: Seconds that one operation may take.
        encryption: Keys or cipher; ``None`` for plain text.
    """

    def __init__(self, place: str, deadline: float, encryption: Encryption) -> None:
        super().__init__()
        self.deadline = seconds("deadline", deadline)
        self._options: dict[str, Any] = {"deadline": deadline, "encryption": encryption}
        self._cipher = _cipher(encryption)
        self._place = place
        self._is_unreadable_reported = False

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
            sentence = (
                f"a record at {self._place} cannot be decrypted: it was written with another key, "
                "or altered, and counts as missing. Give encryption that key too, after the one "
                "that writes, or let such records expire"
            )
            self._reports.append(Report("memory_unreadable", sentence, self._place))
        return record
