"""The detector: whether an error means that the request is too long for the model, and by how much.

How it reads: ``signals`` gathers what an exception says, ``text`` brings that into one plain form, ``table`` holds the
words, ``detect`` tells what they amount to, and ``numbers`` which number is the limit.
"""

from __future__ import annotations

from compacter.overflow.detect import NO_ROOM, detect_in_reply, detect_text, detect_token_limit, explain
from compacter.overflow.numbers import TokenLimit

__all__ = ["NO_ROOM", "TokenLimit", "detect_in_reply", "detect_text", "detect_token_limit", "explain"]
