"""The text of a ``History`` that is saved: its content, as it is checked when it is read."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError

from compacter.lines.archive import Archive
from compacter.memory.record import restore_bytes

VERSION = 1


class Snapshot(BaseModel):
    """Content of a snapshot."""

    model_config = ConfigDict(frozen=True, strict=True)

    version: Annotated[int, Field(ge=VERSION, le=VERSION)]
    messages: list[dict[str, Any] | str]
    pins: list[bool]
    rules: list[str] = []
    wire_format: str | None = None
    conversation: str | None = None
    archive: Annotated[Any, PlainValidator(Archive.restored)] = Field(None, validate_default=True)


def read(text: str | bytes) -> Snapshot:
    """Return the snapshot in a text. Raises ``ValueError`` with its faults, which quotes no
    message.
    """
    try:
        return Snapshot.model_validate(json.loads(text, object_hook=restore_bytes))
    except ValidationError as error:
        faults = [
            ": ".join((*map(str, problem["loc"][:1]), problem["msg"])) for problem in error.errors()
        ]
        raise ValueError("; ".join(faults).replace("Input should be", "must be")) from None
