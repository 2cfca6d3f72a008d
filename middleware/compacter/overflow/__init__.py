"""The detector: whether an error means that the request is too long for the model, and by how much.

``signals`` collects text, status and codes of an exception, and ``text`` normalises the text.
``rows`` has the table of patterns as data, which ``table`` reads. ``statements`` has the rules that
combine them and decides which sentence counts, ``numbers`` finds the limit and the size of the
request, and ``detect`` adds the evidence of status, codes and related exceptions.
``messages.replies`` reads replies without an exception.
"""

from __future__ import annotations

from compacter.overflow.detect import (
    detect_token_limit,
    explain,
    is_sealed,
)
from compacter.overflow.numbers import TokenLimit

__all__ = [
    "TokenLimit",
    "detect_token_limit",
    "explain",
    "is_sealed",
]
