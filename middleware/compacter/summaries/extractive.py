"""A summary without a model: the ledger, and the sentences and lines that say most of what is not said elsewhere."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from compacter.history.entry import Entry
from compacter.summaries import ledger as ledgers
from compacter.summaries import tag
from compacter.summaries.identifiers import IDENTIFIER
from compacter.summaries.selection import choose
from compacter.summaries.shorten import shorten
from compacter.summaries.units import Source, Unit, cut
from compacter.summaries.words import words

_LEDGER_SHARE = 3
W_ID, W_DF, SH, PW, CP = 3.0, 0.0, 1, 1.0, 1.0


def extract(entries: Sequence[Entry], *, budget: int, prior: str | None = None, ledger: bool = True) -> str:
    """Return a summary of at most ``budget`` characters, its ledger (at most a third) included."""
    kept = ledgers.build(entries, prior="", budget=budget // _LEDGER_SHARE) if ledger else ""
    room = budget - (len(tag.join("", kept)) if kept else 0)
    return tag.join(_prose(entries, room, kept), kept)


def _prose(entries: Sequence[Entry], budget: int, kept: str) -> str:
    sources, units = cut(entries)
    texts = [shorten(u.text) if u.prose and SH else u.text for u in units]
    seen: dict[str, int] = {}
    features: list[list[int]] = []
    counts: Counter[int] = Counter()
    ident: list[bool] = []
    def number(f: str, isid: bool) -> int:
        n = seen.get(f)
        if n is None:
            n = seen[f] = len(seen); ident.append(isid)
        return n
    for t in texts:
        fs = {number(w, False) for w in words(t)}
        fs |= {number("=" + m, True) for m in IDENTIFIER.findall(t)}
        features.append(list(fs))
        counts.update(fs)
    total = len(units)
    weights = [0.0] * len(seen)
    for f, n in counts.items():
        w = math.log(1 + total / n) ** PW
        weights[f] = w * (W_ID * n ** W_DF if ident[f] else 1)
    costs = [int((len(t) + 1)**CP) for t in texts]
    groups = [u.entry for u in units]
    gcosts = [len(s.mark) for s in sources]
    chosen = choose(features, weights, costs, groups, gcosts, budget, set(), [1.0] * len(units))
    out: list[str] = []
    last = -1
    for i in sorted(chosen):
        if groups[i] != last:
            last = groups[i]
            out.append(sources[last].mark + texts[i])
        else:
            out[-1] += " " + texts[i]
    return "\n".join(out)[:budget]
