"""Streams that were opened with HTTP 200 and then say "too long", before they have said anything else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from compacter.call.streams import has_content
from compacter.overflow import TokenLimit, detect_in_reply

_END: Any = object()
_MOST_HELD = 64
"""Chunks without content after which a stream is passed on unread."""


async def refused_before_content(
    stream: Any, detect: Callable[[BaseException], TokenLimit | None]
) -> tuple[list[Any], Exception | None, TokenLimit | None]:
    """Read a stream up to its first content: what was read, what it raised, and the token limit in it.

    Args:
        stream: Chunks, as objects or as server-sent events in bytes.
        detect: The detector for what the stream raises.
    """
    held: list[Any] = []
    text = b""
    iterator = aiter(stream)
    while len(held) < _MOST_HELD:
        try:
            chunk = await anext(iterator, _END)
        except Exception as error:  # noqa: BLE001 - handed back: the reader raises it, or calls again
            return held, error, detect(error)
        if chunk is _END:
            break
        held.append(chunk)
        if isinstance(chunk, (str, bytes)):
            text += chunk.encode() if isinstance(chunk, str) else chunk
            events, text = _events(text)
        else:
            events = [chunk]
        for event in events:
            found = detect_in_reply(event)
            if found is not None:
                return held, None, found
            if has_content(event):
                return held, None, None
    return held, None, None


def _events(text: bytes) -> tuple[list[Any], bytes]:
    """The data of complete server-sent events, and what is left over."""
    *blocks, rest = text.replace(b"\r\n", b"\n").split(b"\n\n")
    events: list[Any] = []
    for block in blocks:
        data = b"\n".join(line[5:].strip() for line in block.split(b"\n") if line.startswith(b"data:"))
        if not data:
            continue
        try:
            events.append(json.loads(data))
        except ValueError:
            events.append(data)  # ``[DONE]``, or nothing that is known: it counts as content.
    return events, rest
