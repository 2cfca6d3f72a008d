"""Snapshots of a ``History``: versioned JSON, checked as it is read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PlainValidator

from compacter.by_hand import format_of
from compacter.compaction.conversation import Conversation
from compacter.errors import InvalidHistoryError
from compacter.memory.record import BYTES, restore_bytes
from compacter.messages.fields import members
from compacter.messages.format import Message
from compacter.recall.archive import Archive

VERSION = 1


class Snapshot(BaseModel):
    """Content of a snapshot."""

    # Errors quote no message.
    model_config = ConfigDict(frozen=True, strict=True, hide_input_in_errors=True)

    version: Annotated[int, Field(ge=VERSION, le=VERSION)]
    messages: list[dict[str, Any] | str]
    pins: list[bool]
    rules: list[str] = []
    wire_format: str | None = None
    conversation: str | None = None
    summary: Any = None
    archive: Annotated[Any, PlainValidator(Archive.restored)] = Field(None, validate_default=True)


def write_snapshot(
    messages: Sequence[Message], *, wire_format: str | None, **content: object
) -> str:
    """Return a snapshot. ``content`` are the other fields of a ``Snapshot``; of the archive what
    ``Archive.snapshot()`` returns.
    """
    form = format_of(messages, wire_format)
    return json.dumps(
        {
            "version": VERSION,
            "wire_format": wire_format,
            "messages": messages,
            "summary": Conversation(messages, form).prior,
            **content,
        },
        # Some SDKs put bytes into messages.
        default=lambda value: (
            {BYTES: members(value)} if isinstance(value, bytes) else members(value)
        ),
    )


def read_snapshot(snapshot: str | bytes, wire_format: str | None) -> Snapshot:
    """Return what a snapshot contains. ``wire_format`` is that of the history, if it is known.

    Raises ``InvalidHistoryError`` if it is not a snapshot, damaged, or of another version.
    """
    try:
        read = Snapshot.model_validate(json.loads(snapshot, object_hook=restore_bytes))
        form = format_of(read.messages, read.wire_format or wire_format)
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise InvalidHistoryError(
            f"not a History snapshot of version {VERSION}, or damaged: {error}"
        ) from None
    prior = Conversation(read.messages, form).prior
    if len(read.messages) != len(read.pins) or read.summary != prior:
        raise InvalidHistoryError(
            "the snapshot is damaged: a message or a pin was removed, or the summary message edited"
        )
    return read
