"""When a compaction is due before any refusal, and to what size. Shared by calls with
``trigger_tokens`` and by ``History``.
"""

from __future__ import annotations

MOST_RESERVED = 0.5
"""Largest share of the window that is reserved for the output: many programs set the output limit
to the whole window, which would leave no room for any input."""
TARGET_SHARE = 0.9
"""Size to compact to, as a share of the threshold, so that the next message does not trigger
again."""
GROWN = 1.25
"""Growth after which a history that stayed above the threshold is compacted again, as a multiple of
its size: each try costs a summary, and what must stay has not become smaller."""


def threshold(trigger: float, window: int | None, output_tokens: int = 0) -> int | None:
    """Return the input tokens from which a compaction is due; ``None`` for a share of an unknown
    window.

    Args:
        trigger: Tokens, or as a ``float`` a share of the window.
        window: The model's context window in tokens, if known.
        output_tokens: Output limit of the request; the threshold leaves room for it.
    """
    whole = isinstance(trigger, int)
    if window is None:
        return int(trigger) if whole else None
    wanted = int(trigger if whole else trigger * window)
    room = window - min(output_tokens, int(window * MOST_RESERVED))
    return max(1, min(wanted, room))


def due(*, size: int, tokens: int, limit: int, stuck: int = 0) -> int | None:
    """Return the size to compact to, in characters; ``None`` if no compaction is due.

    Args:
        size: Size of all that is sent, in characters.
        tokens: The same in tokens.
        limit: The threshold, in tokens.
        stuck: Size of a history that stayed above the threshold although it was compacted, in
            characters; 0 if there is none. It must have grown before the next try.
    """
    if tokens < limit or size <= stuck * GROWN:
        return None
    return max(1, int(size * limit * TARGET_SHARE / tokens))
