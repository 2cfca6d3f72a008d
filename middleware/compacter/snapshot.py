"""Snapshots of a ``History``: versioned JSON, checked as it is read."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from compacter.compaction.conversation import Conversation
from compacter.errors import InvalidHistoryError
from compacter.messages.fields import plain
from compacter.messages.format import Message, get_format
from compacter.messages.recognise import recognise
from compacter.recall.archive import Archive

VERSION = 1
# Key of an object that stands for bytes, which JSON has not.
_BYTES = "compacter:bytes"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was read from a snapshot. Messages, pins and rules have been checked."""

    messages: list[Message]
    pins: list[bool]
    rules: tuple[str, ...]
    wire_format: str | None
    conversation: str
    archive: Any

    def restored_archive(self) -> Archive:
        """Return the archive. Raises ``InvalidHistoryError`` if it is damaged."""
        try:
            return Archive.restored(self.archive)
        except (ValueError, TypeError, LookupError):
            raise InvalidHistoryError(
                "the snapshot is damaged: its archive cannot be read"
            ) from None


def write_snapshot(
    messages: Sequence[Message],
    pins: Sequence[bool],
    *,
    wire_format: str | None,
    rules: Sequence[str],
    conversation: str,
    archive: object,
) -> str:
    """Return a snapshot. ``archive`` is that of ``Archive.snapshot()``, if there is one."""
    form = get_format(wire_format or recognise(messages))
    return json.dumps(
        {
            "version": VERSION,
            "wire_format": wire_format,
            "messages": [plain(message) for message in messages],
            "pins": list(pins),
            "rules": list(rules),
            "conversation": conversation,
            "summary": Conversation.of(messages, form).prior,
            "archive": archive,
        },
        default=_store_bytes,
    )


def read_snapshot(snapshot: str | bytes, wire_format: str | None) -> Snapshot:
    """Return what a snapshot contains. ``wire_format`` is that of the history, if it is known.

    Raises ``InvalidHistoryError`` if it is not a snapshot, damaged, or of another version.
    """
    try:
        data = json.loads(snapshot, object_hook=_restore_bytes)
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidHistoryError(f"not a History snapshot: {error}") from None
    if not isinstance(data, dict) or "version" not in data:
        raise InvalidHistoryError('not a History snapshot: "version" is missing')
    if type(data["version"]) is not int or data["version"] != VERSION:
        raise InvalidHistoryError(
            f"the snapshot has version {data['version']!r}; this compacter reads {VERSION}"
        )
    messages = data.get("messages")
    pins = data.get("pins")
    if (
        not isinstance(messages, list)
        or not isinstance(pins, list)
        or not all(isinstance(pin, bool) for pin in pins)
    ):
        raise InvalidHistoryError("the snapshot is damaged: messages and pins must be lists")
    if len(messages) != len(pins):
        raise InvalidHistoryError(
            f"the snapshot is damaged: {len(messages)} messages but {len(pins)} pins"
        )
    rules = data.get("rules", [])
    if not isinstance(rules, list) or not all(isinstance(rule, str) for rule in rules):
        raise InvalidHistoryError("the snapshot is damaged: rules must be a list of texts")
    if not all(isinstance(message, (dict, str)) for message in messages):
        raise InvalidHistoryError(
            "the snapshot is damaged: a message is neither an object nor text"
        )
    named = _check_format(data, messages, wire_format)
    conversation = str(data.get("conversation") or "")
    return Snapshot(messages, pins, tuple(rules), named, conversation, data.get("archive"))


def _check_format(
    data: dict[str, Any], messages: list[Message], wire_format: str | None
) -> str | None:
    """Return the name of the format in a snapshot, after a look at its summary message."""
    named = data.get("wire_format")
    if named is not None and not isinstance(named, str):
        raise InvalidHistoryError("the snapshot is damaged: wire_format must be text")
    try:
        form = get_format(named or wire_format or recognise(messages))
    except ValueError as error:
        raise InvalidHistoryError(f"the snapshot is damaged: {error}") from None
    if data.get("summary") != Conversation.of(messages, form).prior:
        raise InvalidHistoryError(
            "the snapshot is damaged: its summary message was moved or edited"
        )
    return named


def _store_bytes(value: bytes | bytearray) -> dict[str, str]:
    """Return bytes, which some SDKs put into messages, in a form for JSON. ``plain`` leaves nothing
    else.
    """
    return {_BYTES: base64.b64encode(value).decode("ascii")}


def _restore_bytes(value: dict[str, object]) -> object:
    held = value.get(_BYTES)
    return (
        base64.b64decode(held, validate=True)
        if len(value) == 1 and isinstance(held, str)
        else value
    )
