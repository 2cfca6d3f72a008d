"""Encryption of records, so that reading and writing them needs a key: https://cryptography.io/en/latest/fernet/."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from compacter.errors import ConfigurationError
from compacter.memory.record import Record


class Cipher(Protocol):
    """Authenticated encryption: ``cryptography``'s ``Fernet`` and ``MultiFernet``, or an object with these methods."""

    def encrypt(self, data: bytes, /) -> bytes:
        """Return the encrypted data, as ASCII bytes."""
        ...

    def decrypt(self, token: bytes, /) -> bytes:
        """Return the data. Raises an exception if it was not encrypted with this key, or was altered."""
        ...


Encryption = Cipher | str | bytes | Sequence[str | bytes] | None
"""A key of ``Fernet.generate_key()``; several, of which the first encrypts and all decrypt; or a cipher."""


class Codec:
    """Converter between records and the text that is stored, which is plain text without a cipher."""

    def __init__(self, encryption: Encryption = None) -> None:
        self._cipher = encryption if encryption is None else _cipher(encryption)

    def encode(self, record: Record) -> str:
        """Return the text of a record. Raises ``Unencodable``."""
        text = record.to_json()
        return text if self._cipher is None else self._cipher.encrypt(text.encode("ascii")).decode("ascii")

    def decode(self, text: str | bytes) -> Record | None:
        """Return the record; ``None`` if the text is not a record or, with a cipher, is not encrypted."""
        if self._cipher is not None:
            try:
                text = self._cipher.decrypt(text.encode("ascii") if isinstance(text, str) else text)
            except Exception:  # noqa: BLE001 - another key, an altered token, a cipher of the user's own
                return None
        return Record.from_json(text)


def _cipher(given: Cipher | str | bytes | Sequence[str | bytes]) -> Cipher:
    if callable(getattr(given, "encrypt", None)) and callable(getattr(given, "decrypt", None)):
        return given  # type: ignore[return-value]
    try:
        from cryptography.fernet import Fernet, MultiFernet
    except ImportError as error:
        raise ImportError('compacter\'s encryption needs: pip install "llm-compacter[encryption]"') from error
    try:
        keys = [given] if isinstance(given, (str, bytes)) else list(given)  # type: ignore[arg-type]
        return MultiFernet([Fernet(key) for key in keys])
    except (TypeError, ValueError):
        # The message does not repeat the key.
        raise ConfigurationError(
            "encryption takes a key of cryptography's Fernet.generate_key(), several (the first one encrypts), or a "
            "Fernet or MultiFernet"
        ) from None
