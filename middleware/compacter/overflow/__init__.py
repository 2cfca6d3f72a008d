"""The detector: whether an error means that the request is too long for the model, and by how much.

How it reads: ``signals`` gathers what an exception says, ``text`` brings that into one plain form, ``patterns`` is the
table of words, ``rules`` tells what they amount to, ``numbers`` which number is the limit, ``reply`` reads errors that
come under HTTP 200. The table is compiled when the first error is read.
"""

from __future__ import annotations

from compacter.overflow.detect import TokenLimit, detect_text, detect_token_limit, explain
from compacter.overflow.reply import NO_ROOM, detect_in_reply

__all__ = ["NO_ROOM", "TokenLimit", "detect_in_reply", "detect_text", "detect_token_limit", "explain"]
