"""The detector: whether an error means that the request is too long for the model, and by how much."""

from __future__ import annotations

from compacter.overflow.detect import detect_text, detect_token_limit
from compacter.overflow.reply import NO_ROOM, detect_in_reply
from compacter.overflow.token_limit import TokenLimit

__all__ = ["NO_ROOM", "TokenLimit", "detect_in_reply", "detect_text", "detect_token_limit"]
