"""Cut a conversation into pieces that a summarizer can read one after another, leaving nothing out."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace

from compacter.messages.parts import Entry
from compacter.summaries import transcript

SMALLEST = 256
"""Characters below which a chunk cannot hold the fence, a speaker and a part label."""

_LABEL_SIZE = len("(part 9999999 of 9999999) ")
_JOINER = "\u200d"
_ENCLOSING = ("Mn", "Me", "Mc")
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_FLAGS = range(0x1F1E6, 0x1F200)
_HIGH, _LOW = range(0xD800, 0xDC00), range(0xDC00, 0xE000)


def split(entries: Sequence[Entry], budget: int) -> tuple[tuple[Entry, ...], ...]:
    """Return chunks whose rendered transcripts have at most ``budget`` characters, covering everything.

    An entry that is too large alone is cut into parts labelled ``(part 2 of 5)``. Calls stay with their
    results where both fit. Raises ValueError for a budget below ``SMALLEST``.
    """
    if budget < SMALLEST:
        message = f"a chunk needs at least {SMALLEST} characters, not {budget}"
        raise ValueError(message)
    room = budget - transcript.FENCE_SIZE + 1
    chunks: list[tuple[Entry, ...]] = []
    chunk: list[Entry] = []
    used = 0
    for group in _groups(entries):
        sizes = [_size(entry) for entry in group]
        if used + sum(sizes) > room and sum(sizes) <= room and chunk:
            chunks.append(tuple(chunk))
            chunk, used = [], 0
        for entry, whole in zip(group, sizes, strict=True):
            for part in (entry,) if whole <= room else _parts(entry, room):
                size = _size(part)
                if used + size > room and chunk:
                    chunks.append(tuple(chunk))
                    chunk, used = [], 0
                chunk.append(part)
                used += size
    if chunk:
        chunks.append(tuple(chunk))
    return tuple(chunks)


def boundary(text: str, index: int) -> int:
    """Return the last place up to ``index`` where a cut tears no character apart; 0 when there is none."""
    while 0 < index < len(text) and _joined(text, index):
        index -= 1
    return index


def _size(entry: Entry) -> int:
    return len(transcript.line(entry)) + 1


def _groups(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """Calls and the results that follow them, else single entries."""
    group: list[Entry] = []
    for entry in entries:
        ends = group and (entry.kind not in ("call", "result") or (entry.kind == "call" and group[-1].kind == "result"))
        if ends:
            yield group
            group = []
        group.append(entry)
        if entry.kind not in ("call", "result"):
            yield group
            group = []
    if group:
        yield group


def _parts(entry: Entry, room: int) -> list[Entry]:
    text, pieces, start = entry.text, list[str](), 0
    space = room - _size(replace(entry, text="")) - _LABEL_SIZE
    while start < len(text):
        end = min(len(text), start + space)
        while len(transcript.neutral(text[start:end])) > space:
            # Rendering adds characters (an indent after each line break): shrink in proportion, at least by
            # one.
            end = start + max(
                1, min((end - start) * space // len(transcript.neutral(text[start:end])), end - start - 1)
            )
        cut = start + boundary(text[start : end + 1], end - start) if end < len(text) else end
        end = cut if cut > start else end
        pieces.append(text[start:end])
        start = end
    return [replace(entry, text=f"(part {number} of {len(pieces)}) {piece}") for number, piece in enumerate(pieces, 1)]


def _joined(text: str, index: int) -> bool:
    """Whether what stands around ``index`` is seen as one character."""
    before, after = text[index - 1], text[index]
    if after < "\u0300":
        return before == "\r" and after == "\n"
    code = ord(after)
    return (
        unicodedata.category(after) in _ENCLOSING
        or _JOINER in (before, after)
        or code in _SKIN_TONES
        or (code in _LOW and ord(before) in _HIGH)
        or (code in _FLAGS and _flags_before(text, index) % 2 == 1)
    )


def _flags_before(text: str, index: int) -> int:
    count = 0
    while index - count > 0 and ord(text[index - count - 1]) in _FLAGS:
        count += 1
    return count
