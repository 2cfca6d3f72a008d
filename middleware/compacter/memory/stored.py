"""What is stored of a record: its text, which may be encrypted, and may leave quoted lines out.

Encryption makes reading and writing records need a key: https://cryptography.io/en/latest/fernet/
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from compacter.errors import ConfigurationError
from compacter.memory.circuit import Report
from compacter.memory.inprocess import InProcessMemory
from compacter.memory.protocol import BaseMemory
from compacter.memory.record import Record, StoredMessage
from compacter.messages.fields import Json
from compacter.summary import message as summary_message

# Beginning of every Fernet token: its version and a time before the year 2106, in base64.
_BEGINNING = b"gAAAA"


class Cipher(Protocol):
    """Authenticated encryption: ``cryptography``'s ``Fernet`` and ``MultiFernet``, or an object
    with these methods.
    """

    def encrypt(self, data: bytes, /) -> bytes:
        """Return the encrypted data, as ASCII bytes."""
        ...

    def decrypt(self, token: bytes, /) -> bytes:
        """Return the data. Raises an exception if it was not encrypted with this key, or was
        altered.
        """
        ...


Encryption = Cipher | str | bytes | Sequence[str | bytes] | None
"""A key of ``Fernet.generate_key()``; several, of which the first encrypts and all decrypt; or a
cipher."""


class Codec:
    """Converter between records and the text that is stored.

    Args:
        encryption: What encrypts it; ``None`` for plain text.
        place: Where it is stored, for the log.
        tell: Called once with a report if a record cannot be decrypted.
    """

    def __init__(
        self,
        encryption: Encryption = None,
        *,
        place: str = "",
        tell: Callable[[Report], object] | None = None,
    ) -> None:
        self._cipher = encryption if encryption is None else _cipher(encryption)
        self._place = place
        self._tell = tell

    def encode(self, record: Record) -> str:
        """Return the text of a record. Raises ``Unencodable``."""
        text = record.to_json()
        return (
            text
            if self._cipher is None
            else self._cipher.encrypt(text.encode("ascii")).decode("ascii")
        )

    def decode(self, text: str | bytes) -> Record | None:
        """Return the record; ``None`` if the text is not a record or, with a cipher, is not
        encrypted.
        """
        beginning = text[: len(_BEGINNING)]
        is_token = beginning in (_BEGINNING, _BEGINNING.decode())
        if self._cipher is not None:
            try:
                text = self._cipher.decrypt(text.encode("ascii") if isinstance(text, str) else text)
            except Exception:  # noqa: BLE001 - another key, an altered token, a cipher of the user's own
                if is_token:
                    self._report(
                        "cannot be decrypted: it was written with another key, or altered. Give "
                        "that key too, after the one that writes, or let such records expire"
                    )
                return None
        elif is_token:
            self._report("is encrypted, and no key is given: set encryption to its writer's key")
        return Record.from_json(text)

    def _report(self, fault: str) -> None:
        tell = self._tell
        self._tell = None
        if tell is not None:
            place = f" at {self._place}" if self._place else ""
            sentence = f"a record{place} {fault}; it counts as missing"
            tell(Report("warning", "memory_unreadable", sentence, {"address": self._place}))


def without_quotes(record: Record) -> Record | None:
    """Return the record without the lines that its summaries quote; ``None`` if one of them
    consists of nothing else, as those that no model wrote.
    """
    literals: list[StoredMessage] = []
    for literal in record.literals:
        message = _without_quotes(literal.message)
        if message is None:
            return None
        literals.append(replace(literal, message=message))
    return replace(record, literals=tuple(literals))


def _without_quotes(value: Json) -> Json:
    """Return a copy without quoted lines of the summaries in it; ``None`` if nothing would be left
    of one.
    """
    if isinstance(value, str):
        summary = summary_message.parse(value)
        if summary is None or not summary.quoted:
            return value
        return summary_message.compose(replace(summary, quoted="")) if summary.story else None
    if isinstance(value, dict):
        inner = {key: _without_quotes(item) for key, item in value.items()}
        lost = any(item is None and value[key] is not None for key, item in inner.items())
        return None if lost else inner
    if isinstance(value, (list, tuple)):
        items = [_without_quotes(item) for item in value]
        lost = any(new is None and old is not None for new, old in zip(items, value, strict=True))
        return None if lost else items
    return value


def _cipher(given: Cipher | str | bytes | Sequence[str | bytes]) -> Cipher:
    if callable(getattr(given, "encrypt", None)) and callable(getattr(given, "decrypt", None)):
        return given  # type: ignore[return-value]
    try:
        from cryptography.fernet import Fernet, MultiFernet
    except ImportError as error:
        raise ImportError(
            'compacter\'s encryption needs: pip install "llm-compacter[encryption]"'
        ) from error
    try:
        keys = [given] if isinstance(given, (str, bytes)) else list(given)  # type: ignore[arg-type]
        return MultiFernet([Fernet(key) for key in keys])
    except (TypeError, ValueError):
        # The message does not repeat the key.
        raise ConfigurationError(
            "encryption takes a key of cryptography's Fernet.generate_key(), several (the "
            "first one encrypts), or a "
            "Fernet or MultiFernet"
        ) from None


class StoringMemory(BaseMemory):
    """Base class of memories that store text."""

    def _open_codec(self, encryption: Encryption, quotes: object, place: str) -> None:
        if not isinstance(quotes, bool):
            raise ConfigurationError(f"quotes takes True or False, not {quotes!r}")
        self._encryption = encryption
        self._codec = Codec(encryption, place=place, tell=self._reports.append)
        self._quotes = quotes
        # The records of this process with the lines that are not stored.
        self._own = InProcessMemory()

    def _encode(self, record: Record) -> str | None:
        """Return the text to store for a record; ``None`` if it is not stored."""
        if self._quotes:
            return self._codec.encode(record)
        self._own.save(record)
        stored = without_quotes(record)
        return None if stored is None else self._codec.encode(stored)

    def _decode(self, keys: Sequence[str], texts: Iterable[str | bytes]) -> list[Record]:
        """Return the records under these keys: the stored ones, and those of this process."""
        records = [record for text in texts if (record := self._codec.decode(text)) is not None]
        own = {record.id: record for record in self._own.find(keys)}
        return [*own.values(), *(record for record in records if record.id not in own)]

    def _clear_own(self) -> None:
        self._own.clear()
