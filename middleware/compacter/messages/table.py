"""The rows of a format's table: what each type of block is, and where its text stands.

A path is names of members with dots between; an empty one is the block itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import is_
from typing import Final, Literal

from compacter.messages.fields import Json, characters, dig, field, first, replaced, text_of, word
from compacter.messages.parts import weigh_sealed

Paths = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """What one type of block is, and where it has what."""

    kind: Literal["text", "call", "result", "media", "reasoning", "nested"]
    paths: Paths = ("",)
    """Texts, arguments, outputs, blocks inside it, or reasoning. A ``~`` marks what is sealed: only
    the model that made it, and its provider, can read it."""
    name: Paths = ()
    """Name of the tool."""
    call_id: Paths = ()
    """Id that pairs a call with its result; empty if it needs no partner."""
    edits: Paths = ()
    """Texts that may be edited."""
    outputs: Paths = ()
    """Results inside a call without an id, which the provider has run itself."""
    tool: str = ""
    """Name of the tool if the block states none; ``_call`` for its type without that ending."""

    def is_sealed(self, block: Json) -> bool:
        """Return whether only the model that made a block can read it. The text of a compaction can
        be read by any, if nothing is sealed beside it.
        """
        sealed = [path[1:] for path in self.paths if path[:1] == "~"]
        return bool(first(block, tuple(sealed)) if self is COMPACTION else sealed)

    def tool_of(self, block: Json) -> str:
        """Return the name of the tool of a call or a result; empty if it is not stated."""
        name = first(block, self.name)
        name = getattr(name, "value", name)
        if not name and self.tool == "_call":
            return word(block, "type").removesuffix(self.tool)
        return str(name or self.tool)

    def weigh(self, block: Json) -> int:
        """Return the size of reasoning in characters: of the first of its paths with something."""
        for path in self.paths:
            value = dig(block, path.lstrip("~"))
            is_sealed = path[:1] == "~"
            size = (
                weigh_sealed(value) if is_sealed else len(text_of(value) or "") or characters(value)
            )
            if size:
                return size
        return 0

    def read(self, block: Json) -> str | None:
        """Return the texts of a block, one a line; ``None`` if it has none."""
        read = [text_of(dig(block, path)) for path in self.paths if path[:1] != "~"]
        if len(read) == 1:
            return read[0]
        return None if read.count(None) == len(read) else "\n".join(filter(None, read))


TEXT: Final = Row("text", edits=("",))
"""A bare text."""
MEDIUM: Final = Row("media")
DATA: Final = Row("text", ())
"""Data of unknown structure, shown as JSON."""
COMPACTION: Final = Row("reasoning", ("content", "~encrypted_content"))
"""A compaction by the provider."""


ANY_SIGNATURE: Final = "skip_thought_signature_validator"
"""Stands for the signature that a call in Gemini's format needs and that another model cannot have:
https://ai.google.dev/gemini-api/docs/thought-signatures."""


def edit_at(item: Json, path: str, edit: Callable[[Json], Json]) -> Json:
    """Return a copy with what stands at a path edited, in each of a list on the way; the item
    itself if nothing changed.
    """
    if item is None or not path:
        return item if item is None else edit(item)
    if isinstance(item, (list, tuple)):
        edited = [edit_at(inner, path, edit) for inner in item]
        return item if all(map(is_, edited, item)) else edited
    name, _, rest = path.partition(".")
    old = field(item, name)
    new = edit_at(old, rest, edit)
    return item if new is old else replaced(item, **{name: new})
