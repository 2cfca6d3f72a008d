"""What is stored of a record: its text, which may be encrypted, and may leave quoted lines out.

Encryption makes reading and writing records need a key: https://cryptography.io/en/latest/fernet/
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from compacter.errors import ConfigurationError, seconds
from compacter.memory.circuit import Report
from compacter.memory.inprocess import InProcessMemory
from compacter.memory.protocol import BaseMemory
from compacter.memory.record import Record
from compacter.messages.fields import Json
from compacter.summary import message as summary_message

if TYPE_CHECKING:
    from cryptography.fernet import Fernet, MultiFernet

# Beginning of every Fernet token: its version and a time before the year 2106, in base64.
_BEGINNING = b"gAAAA"


Encryption: TypeAlias = "Fernet | MultiFernet | str | bytes | Sequence[str | bytes] | None"
"""A key of ``Fernet.generate_key()``; several, of which the first encrypts and all decrypt; or an
object with the methods ``encrypt`` and ``decrypt`` of ``Fernet``."""


def without_quotes(record: Record) -> Record | None:
    """Return the record without the lines that its summaries quote; ``None`` if one of them
    consists of nothing else, as those that no model wrote.
    """
    try:
        literals = tuple(
            replace(literal, message=_without_quotes(literal.message))
            for literal in record.literals
        )
    except LookupError:
        return None
    return replace(record, literals=literals)


def _without_quotes(value: Json) -> Json:
    """Return a copy without quoted lines of the summaries in it. Raises ``LookupError`` if nothing
    would be left of one.
    """
    if isinstance(value, dict):
        return {key: _without_quotes(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [*map(_without_quotes, value)]
    summary = summary_message.parse(value) if isinstance(value, str) else None
    if summary is None or not summary.quoted:
        return value
    if not summary.story:
        raise LookupError
    return summary_message.compose(replace(summary, quoted=""))


def _cipher(given: Any) -> Any:  # noqa: ANN401 - as ``Encryption`` says
    if hasattr(given, "decrypt"):
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
        encryption: What encrypts it; ``None`` for plain text.
        quotes: Whether the lines that a summary quotes are stored too.
    """

    def __init__(
        self, place: str, deadline: float, encryption: Encryption, *, quotes: object
    ) -> None:
        super().__init__()
        if not isinstance(quotes, bool):
            raise ConfigurationError(f"quotes takes True or False, not {quotes!r}")
        self.deadline = seconds("deadline", deadline)
        self._options: dict[str, Any] = {
            "deadline": deadline,
            "encryption": encryption,
            "quotes": quotes,
        }
        self._cipher = None if encryption is None else _cipher(encryption)
        self._place = place
        self._is_unreadable_reported = False
        # Without ``quotes``: the records of this process with the lines that are not stored.
        self._own = InProcessMemory()

    def _encode(self, record: Record) -> str | None:
        """Return the text to store for a record; ``None`` if it is not stored. Raises
        ``Unencodable``.
        """
        stored: Record | None = record
        if not self._options["quotes"]:
            self._own.save(record)
            stored = without_quotes(record)
        if stored is None:
            return None
        text = stored.to_json()
        return self._cipher.encrypt(text.encode()).decode() if self._cipher else text

    def _decode(self, keys: Sequence[str], texts: Iterable[str | bytes]) -> list[Record]:
        """Return the records under these ``keys``: those of this process, and the stored ones of
        these ``texts``, without what is no record or, with a cipher, is not encrypted.
        """
        own = {record.id: record for record in self._own.find(keys)}
        stored = (self._read(text) for text in texts)
        return [*own.values(), *(record for record in stored if record and record.id not in own)]

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
            report = Report("warning", "memory_unreadable", sentence, {"address": self._place})
            self._reports.append(report)
        return record
