"""The detector: whether an error means that the request is too long for the model, and by how much.

``signals`` collects text, status and codes of an exception, ``text`` normalises the text, ``table`` has the patterns,
``detect`` has the rules that combine them, and ``numbers`` finds the limit and the size of the request.
"""

from __future__ import annotations

from compacter.overflow.detect import NO_ROOM, detect_in_reply, detect_text, detect_token_limit, explain
from compacter.overflow.numbers import TokenLimit

__all__ = ["NO_ROOM", "TokenLimit", "detect_in_reply", "detect_text", "detect_token_limit", "explain"]
