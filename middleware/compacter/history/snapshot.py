"""The text of a ``History`` that is saved: its content, as it is checked when it is read."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PlainValidator

from compacter.lines.archive import Archive

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
    archive: Annotated[Any, PlainValidator(Archive.restored)] = Field(None, validate_default=True)
