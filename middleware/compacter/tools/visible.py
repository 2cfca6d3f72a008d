"""Text of others on a terminal or a page: characters that control it or change the direction of
text are shown, not obeyed.
"""

from __future__ import annotations

import html
import json
import re

_ORDERS = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 and C1 controls, with ESC, CSI and OSC; not \t and \n
    "\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"  # invisible; direction
    "\u2028\u2029\ufff9-\ufffb"  # ends of lines, annotations
    "\U000e0000-\U000e007f"  # letters that nobody sees
    "]"
)
"""Characters that are escaped. Joiners (U+200C, U+200D) stay: scripts and emoji need them."""


def visible(text: str) -> str:
    r"""Return ``text`` with such characters escaped as ``\u001b``, which JSON reads as the
    character.
    """
    return _ORDERS.sub(lambda match: json.dumps(match[0])[1:-1], text)


def escape(text: str) -> str:
    """Return ``text`` as HTML that shows it literally. Control characters are escaped as by
    ``visible``, and ``<``, ``>``, ``&`` and quotation marks become entities.
    """
    return html.escape(visible(text))
