"""The codes with which terminals colour a text."""

from __future__ import annotations

import re

# Also as JSON, Python and shells write the character before the bracket.
_CODE = re.compile(r"(?:\x1b|\\(?:u001b|x1b|033|e))\[[0-9;?]{0,32}[ -/]{0,8}[@-~]")


def without_colours(text: str) -> str:
    """Return ``text`` without the codes of a terminal."""
    return _CODE.sub("", text)
