"""One readable piece of a message, the same for every wire format: what a summarizer gets to see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Speaker = Literal["system", "user", "assistant", "tool"]
Kind = Literal["text", "call", "result", "media", "summary"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A piece of one message as text.

    ``text`` holds the words of a text, the arguments (JSON text) of a call, the output of a result, the placeholder
    of a medium, or the prose of a prior summary. Reasoning is never made into an entry.
    """

    role: Speaker
    kind: Kind
    text: str
    name: str = ""
    """The tool's name, for a call and (where the wire format tells it) for a result."""
    index: int = 0
    """Position of the message in the caller's list."""
