"""compacter with ``recall=None``: no peer quotes what was folded, and quotes cost tokens that no
cache holds.
"""

from __future__ import annotations

from peer_compacter import Adapter as Quoting


class Adapter(Quoting):
    recall = None
