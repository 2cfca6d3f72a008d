"""The blocks of messages, read and edited by the table of their format.

The rows of a table define each type of block and the paths to its texts. A path is names of members
with dots between; an empty path is the block itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import is_
from typing import ClassVar, Literal, TypeAlias

from compacter.messages.fields import (
    Json,
    dig,
    field,
    first,
    json_text,
    listed,
    replaced,
    text_of,
    word,
)
from compacter.messages.parts import Part, PartKind, Place, spoken, weigh_sealed

Paths = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """Description of one type of block: its kind, and the paths to the texts, names and ids inside
    a block of this type.
    """

    kind: Literal["text", "call", "result", "media", "reasoning", "nested"]
    paths: Paths = ("",)
    """Texts, arguments, outputs, blocks inside it, or reasoning."""
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
    sealed: Paths = ()
    """Reasoning that only the model that made it, and its provider, can read."""

    def tool_of(self, block: Json) -> str:
        """Return the name of the tool of a call or a result; empty if it is not stated."""
        name = first(block, self.name)
        if not name and self.tool == "_call":
            return word(block, "type").removesuffix(self.tool)
        return str(name or self.tool)

    def weigh(self, block: Json) -> int:
        """Return the size of a block of reasoning, in characters: the size of its readable text or
        of its sealed form, whichever is larger.
        """
        open_ = first(block, self.paths)
        sealed = weigh_sealed(first(block, self.sealed))
        return max(len(text_of(open_) or json_text(open_ or None)), sealed)

    def read(self, block: Json) -> str | None:
        """Return the texts of a block, joined by line breaks; ``None`` if the block has no text."""
        read = [text_of(dig(block, path)) for path in self.paths]
        texts = [text for text in read if text is not None]
        return "\n".join(filter(None, texts)) if texts else None


TEXT = Row("text", edits=("",))
"""A bare text."""
MEDIUM = Row("media")
DATA = Row("text", ())
"""Data of unknown structure, shown as JSON."""
COMPACTION = Row("reasoning", ("content",), sealed=("encrypted_content",))
"""A compaction by the provider."""


ANY_SIGNATURE = "skip_thought_signature_validator"
"""Replaces the signature that a call in Gemini's format needs and that another model cannot have:
https://ai.google.dev/gemini-api/docs/thought-signatures."""


def edit_at(item: Json, path: str, edit: Callable[[Json], Json]) -> Json:
    """Return a copy of ``item`` in which ``edit`` was applied to the value at ``path``. If there is
    a list on the way, it is applied in each element. If no value has changed, return ``item``
    itself.
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


EditKind = Literal["text", "result"]
Edit = Callable[[EditKind, str, str], str]
"""``(kind, text, tool name) -> text``; returns the text itself to leave it unchanged."""

Found: TypeAlias = tuple[Row, Json, str]
"""The row of a block, what it describes (the block, or one member of it), and that member's name or
an empty string."""


_MEDIUM_LEFT_OUT = "[{}: left out, as the request had too many bytes]"
_NOTHING_LEFT = "[compacter: thinking, left out]"


class Blocks:
    """Blocks of one format: its table, and a few methods for rules that a table cannot express."""

    alternates: ClassVar[bool] = False
    """Whether user and assistant must alternate strictly, beginning with the user, and blank texts
    are refused."""
    assistant: ClassVar[str] = "assistant"
    """Role of the model."""
    body: ClassVar[str] = "content"
    """Member of a message with its text or blocks."""
    text_type: ClassVar[str] = "text"
    """Type of a text block in a user message; empty if the one member of a block is its type."""
    table: ClassVar[Mapping[str, Row]] = {}
    """Rows of the blocks, by type or by member."""
    endings: ClassVar[Mapping[str, Row]] = {}
    """Rows of the blocks whose type is not in the table, by the ending of their type."""
    other: ClassVar[Row] = DATA
    """Row of all other blocks."""

    beside: ClassVar[tuple[tuple[str, Row], ...]] = ()
    """Rows of the values that a message has beside its blocks, by their path."""
    outdated: ClassVar[str] = ""
    """Member with a list that an edit of the block empties: it belongs to the old text."""

    def whole(self, message: Json) -> Row | None:  # noqa: ARG002 - most formats have none
        """Return the row of the table for a message that is one block as a whole, such as a tool's
        result; ``None`` for a message that consists of blocks.
        """
        return None

    def blocks(self, message: Json) -> list[Json]:
        """Return the blocks of a message, unchanged; a bare text is one block."""
        return list(listed(field(message, self.body)))

    def find(self, block: Json) -> Found:
        """Return the row of a block, the value that it describes, and the member with that
        value.
        """
        if isinstance(block, str):
            return TEXT, block, ""
        if self.text_type:
            kind = word(block, "type")
            endings = (row for ending, row in self.endings.items() if kind.endswith(ending))
            return self.table.get(kind) or next(endings, self.other), block, ""
        for key in block if isinstance(block, Mapping) else self.table:
            if key in self.table and (value := field(block, key)) is not None:
                return self.table[key], value, key
        return self.other, block, ""

    def _pieces(self, message: Json) -> list[Found]:
        """Return the result of ``find`` for everything in a message."""
        row = self.whole(message)
        if row is not None:
            return [(row, message, "")]
        found = list(map(self.find, self.blocks(message)))
        for path, row in self.beside:
            found += [(row, each, "") for each in listed(dig(message, path))]
        return found

    def _show(self, found: Found, place: Place) -> list[Part]:
        """Return the parts of a block."""
        row, block, key = found
        if row.kind == "text":
            text = row.read(block)
            return [place.data(block) if text is None else place.text(text)]
        if row.kind == "reasoning":
            size = row.weigh(block)
            kind: PartKind = "compaction" if row is COMPACTION else "reasoning"
            return [Part(place.role, kind, "", "", place.index, size)] if size else []
        if row.kind == "media":
            return [place.medium(key or word(block, "type"), block)]
        shown: list[Part] = []
        paths = row.paths
        if row.kind == "call":
            called = self._call_id(row, block)
            name = row.tool_of(block)
            text = json_text(first(block, paths))
            size = len(name) + len(text)
            shown.append(Part("assistant", "call", text, name, place.index, size, called))
            if called is not None:
                return shown
            place = Place("tool", place.index, place.name)
            paths = row.outputs
        elif row.kind == "result":
            name = row.tool_of(block) or place.name
            place = Place("tool", place.index, name, self._call_id(row, block))
            shown.append(Part("tool", "answer", "", name, place.index, 0, place.call_id))
        for inner in self._inner(row, block, paths):
            shown += self._show(self.find(inner), place)
        return shown

    def _inner(self, row: Row, block: Json, paths: Paths) -> Sequence[Json]:  # noqa: ARG002 - for one
        """Return the blocks inside a block: the value at the first of these paths."""
        return listed(first(block, paths))

    def _call_id(self, row: Row, block: Json) -> str | None:
        """Return the id of a call or a result; ``None`` if it needs no partner."""
        called = first(block, row.call_id)
        if called:
            return str(called)
        return "" if row.call_id and not row.outputs else None

    def _body(self, text: str) -> Json:
        """Return a text as the body of a message; a blank text is replaced if the provider refuses
        it.
        """
        text = spoken(text) if self.alternates else text
        return text if self.text_type else [self._text_block(text)]

    def say(self, role: str, text: str) -> Json:
        """Return a message with this text; a blank text is replaced if the provider refuses it."""
        return {"role": "user" if role == "user" else self.assistant, self.body: self._body(text)}

    # -- the provider's own compaction, in a summary message ---------------------------------------

    def with_blocks_before(self, text: str, blocks: Sequence[Json]) -> Json:
        """Return a new user message with this text; before it, blocks of the provider's own
        compaction. ``stand_alone`` makes of them what the provider takes.
        """
        message = self.say("user", text)
        if not blocks:
            return message
        return {**message, self.body: [*blocks, self._text_block(text)]}

    def blocks_before(self, message: Json) -> list[Json]:
        """Return the blocks of the provider's own compaction in a summary message."""
        blocks = self.blocks(message)
        is_ours = field(message, "role") == "user"
        is_there = is_ours and any(self.find(block)[0] is COMPACTION for block in blocks)
        return blocks[:-1] if is_there else []

    def stand_alone(self, blocks: Sequence[Json]) -> list[Json]:
        """Return the messages in which blocks of the provider's own compaction are sent."""
        return [{"role": self.assistant, self.body: [*blocks]}]

    # -- editing -----------------------------------------------------------------------------------

    def rewrite(self, message: Json, edit: Edit) -> Json:
        """Return a copy with edited texts and results, but unchanged calls; the message itself if
        nothing changed.

        A list of text parts inside one result is edited as one text. Media are dropped from a
        result whose text was edited.
        """
        row = self.whole(message)
        if row is not None:
            return self._edit(row, message, edit)
        return self.with_blocks(
            message, [self._edit_block(block, edit) for block in self.blocks(message)]
        )

    def without_media(self, message: Json) -> Json:
        """Return a copy with a note in place of each medium; the message itself if it has none."""
        row = self.whole(message)
        if row is not None:
            return self._without_media_at(row, message)
        return self.with_blocks(message, [*map(self._without_medium, self.blocks(message))])

    def _without_medium(self, block: Json) -> Json:
        row, value, key = self.find(block)
        if row.kind == "media":
            return self._text_block(_MEDIUM_LEFT_OUT.format(key or word(block, "type")))
        edited = self._without_media_at(row, value) if row.kind == "result" else value
        return block if edited is value else replaced(block, **{key: edited}) if key else edited

    def _without_media_at(self, row: Row, value: Json) -> Json:
        def edit(output: Json) -> Json:
            if not isinstance(output, (list, tuple)):
                return output
            edited = [*map(self._without_medium, output)]
            return output if all(map(is_, edited, output)) else edited

        for path in row.edits:
            value = edit_at(value, path, edit)
        return value

    def with_blocks(self, message: Json, blocks: list[Json]) -> Json:
        """Return a copy with these blocks; the message itself if none has changed."""
        old = self.blocks(message)
        if blocks == old:
            return message
        body = field(message, self.body)
        is_bare = isinstance(body, str) and [*map(type, blocks)] == [str]
        return replaced(message, **{self.body: blocks[0] if is_bare else blocks})

    def _edit_block(self, block: Json, edit: Edit) -> Json:
        row, value, key = self.find(block)
        edited = self._edit(row, value, edit)
        if edited is value:
            return block
        return replaced(block, **{key: edited}) if key else edited

    def _edit(self, row: Row, block: Json, edit: Edit) -> Json:
        """Return an edited copy of the block that ``find`` has found; the block itself if nothing
        changed.
        """
        kind: EditKind = "text" if row.kind == "text" else "result"
        work = partial(self._edit_text, edit, kind, row.tool_of(block))
        edited = block
        for path in row.edits:
            edited = edit_at(edited, path, work)
        is_outdated = edited is not block and field(block, self.outdated)
        return replaced(edited, **{self.outdated: []}) if is_outdated else edited

    def _edit_text(self, edit: Edit, kind: EditKind, tool: str, output: Json) -> Json:
        """Edit a text, or a list of texts as one. A blank result is replaced, because some
        providers refuse it.
        """
        if not isinstance(output, (str, list, tuple)):
            return output
        place = Place("tool", 0)
        old = "".join(
            part.text
            for found in map(self.find, listed(output))
            if found[0].edits
            for part in self._show(found, place)
        )
        new = edit(kind, old, tool) if old else old
        if new == old:
            return output
        return spoken(new) if isinstance(output, str) else self._body(new)

    def _text_block(self, text: str) -> Json:
        return {"type": self.text_type, "text": text} if self.text_type else {"text": text}

    # -- after a change of model -------------------------------------------------------------------

    def without_sealed(self, messages: Sequence[Json]) -> tuple[list[Json], Counter[str]]:
        """Return messages without blocks that only the model that made them can read, such as
        encrypted reasoning, and the number of such blocks by type.

        Pairs of calls and results stay, and no message is left empty. The readable text of a
        compaction stays as a text.
        """
        kinds: Counter[str] = Counter()
        sent: list[Json] = []
        for message in messages:
            old = self.blocks(message)
            new = [inner for block in old for inner in self._unseal(block, kinds)]
            if old and not new:
                new = [self._text_block(_NOTHING_LEFT)]
            sent.append(self.with_blocks(message, new))
        return sent, kinds

    def _unseal(self, block: Json, kinds: Counter[str]) -> list[Json]:
        """Return the blocks that replace a block, and count those left out."""
        row, inner, key = self.find(block)
        if not first(inner, row.sealed):
            return [block]
        kinds[key or word(block, "type")] += 1
        text = row.read(inner) if row is COMPACTION else ""
        return [self._text_block(f"[compacter: summary of earlier messages: {text}]")] * bool(text)
