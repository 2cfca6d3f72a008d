"""Cut a conversation into pieces that a summarizer can read one after another, leaving nothing out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from compacter.messages.parts import Part
from compacter.summary import prompt

SMALLEST = 256
"""Characters below which a chunk cannot hold the fence, a speaker and a part label."""

_LABEL_SIZE = len("(part 9999999 of 9999999) ")


def split(entries: Sequence[Part], budget: int) -> tuple[tuple[Part, ...], ...]:
    """Return chunks whose rendered transcripts have at most ``budget`` characters, covering everything.

    An entry that is too large alone is cut into parts labelled ``(part 2 of 5)``. Calls stay with their results where
    both fit. Raises ValueError for a budget below ``SMALLEST``.
    """
    if budget < SMALLEST:
        raise ValueError(f"a chunk needs at least {SMALLEST} characters, not {budget}")
    room = budget - prompt.FENCE_SIZE + 1
    chunks: list[tuple[Part, ...]] = []
    chunk: list[Part] = []
    used = 0
    for group in _groups(entries):
        sizes = [size(entry) for entry in group]
        fresh = used + sum(sizes) > room >= sum(sizes)
        for entry, whole in zip(group, sizes, strict=True):
            for part in (entry,) if whole <= room else _parts(entry, room):
                length = size(part)
                if (fresh or used + length > room) and chunk:
                    chunks.append(tuple(chunk))
                    chunk, used = [], 0
                fresh = False
                chunk.append(part)
                used += length
    return (*chunks, tuple(chunk)) if chunk else tuple(chunks)


def size(entry: Part) -> int:
    """Return the characters of an entry's line in the transcript, its line break included."""
    return len(prompt.line(entry)) + 1


def _groups(entries: Sequence[Part]) -> Iterator[list[Part]]:
    """Calls and the results that follow them, else single entries."""
    group: list[Part] = []
    for entry in entries:
        joins = entry.kind == "result" or (entry.kind == "call" and not (group and group[-1].kind == "result"))
        if group and not (joins and group[-1].kind in ("call", "result")):
            yield group
            group = []
        group.append(entry)
    if group:
        yield group


def _parts(entry: Part, room: int) -> list[Part]:
    text, pieces, start = entry.text, list[str](), 0
    space = room - size(replace(entry, text="")) - _LABEL_SIZE
    while start < len(text):
        end = min(len(text), start + space)
        # Rendering adds characters (an indent after each line break): shrink in proportion, at least by one.
        while (rendered := len(prompt.neutral(text[start:end]))) > space:
            end = start + max(1, min((end - start) * space // rendered, end - start - 1))
        pieces.append(text[start:end])
        start = end
    return [replace(entry, text=f"(part {number} of {len(pieces)}) {piece}") for number, piece in enumerate(pieces, 1)]
