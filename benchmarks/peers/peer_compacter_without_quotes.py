"""compacter with ``recall=None``: no peer quotes what was folded, and quotes cost tokens that no cache holds."""

from __future__ import annotations

from base import Settings
from peer_compacter import Adapter as Quoting

from compacter import Compacter


class Adapter(Quoting):
    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        summarizer = self.compacter.options.summarizer
        self.compacter = Compacter(compact_ratio=settings.ratio, summarizer=summarizer, recall=None)
