"""JSON bodies, which may be large: those are read and written in a thread, so that the streams of
others go on.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

# Size from which a body is parsed in a thread, in bytes: below, parsing takes about a millisecond,
# and the way to a thread and back a tenth of that.
_LARGE = 128 << 10


async def read(raw: bytes) -> dict[str, Any] | None:
    """Return the JSON object in a body; ``None`` if it has none."""
    try:
        found = await asyncio.to_thread(json.loads, raw) if len(raw) > _LARGE else json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


async def write(body: Mapping[str, Any], size: int) -> bytes:
    """Return a body as JSON; ``size`` is that of the original."""
    text = await asyncio.to_thread(json.dumps, body) if size > _LARGE else json.dumps(body)
    return text.encode()
