"""Hold the model-free summary against the compaction-conformance-kit (PyPI) at fixed output budgets.

Run: ``python benchmarks/conformance.py --budgets 10%,20%``. Needs ``pip install compaction-conformance-kit``.
Prints the kit's own table and ends with one JSON line.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from importlib import import_module
from typing import Literal, Protocol

from compacter.messages.parts import Entry
from compacter.summaries import tag
from compacter.summary.timeline import timeline

_UNLIMITED = 1_000_000


class Turn(Protocol):
    """A turn of the kit's sessions."""

    @property
    def role(self) -> Literal["system", "user", "assistant", "tool"]:
        """Who speaks."""
        ...

    @property
    def text(self) -> str:
        """What is said."""
        ...


class Adapter:
    """What the kit calls: each round folds the summary of the round before."""

    name = "compacter"

    def compact(self, turns: Sequence[Turn], round_num: int = 1, budget_chars: int | None = None) -> object:
        """Return the summary of ``turns`` in at most ``budget_chars`` characters, tag included."""
        budget = _UNLIMITED if budget_chars is None else budget_chars
        frame = len(tag.compose(""))
        text = tag.compose(timeline([_entry(turn, place) for place, turn in enumerate(turns)], budget - frame))
        context = import_module("compaction_kit.compacted").CompactedContext
        return context(text=text, compactor_name=self.name, round_num=round_num)


def _entry(turn: Turn, place: int) -> Entry:
    before = tag.parse(turn.text)
    if before is not None:
        return Entry("assistant", "summary", before.prose, index=place)
    return Entry(turn.role, "text", turn.text, index=place)


def main() -> None:
    """Run the kit's budget benchmark on the adapter."""
    kit = import_module("compaction_kit.benchmark")

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budgets", default="10%,20%", help="shares of the transcript, e.g. 10%%,20%%")
    parser.add_argument("--seeds", type=int, default=4, help="how many sessions of each kind")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    budgets = [
        float(share.rstrip("%")) / 100 if share.endswith("%") else float(share) for share in options.budgets.split(",")
    ]
    payload = kit.run_budget_benchmark({Adapter.name: Adapter}, budgets, range(1, options.seeds + 1), options.rounds)
    print(kit.budget_benchmark_to_markdown(payload))
    print(json.dumps([
        {
            "budget": entry["budget_fraction"],
            "compliant": entry["budget_compliant"],
            "survival": entry["randomized"]["overall_final_survival"],
            "supersession": entry["randomized"]["supersession"],
            "semantic": entry["semantic"],
        }
        for entry in payload["entries"]
    ]))  # fmt: skip


if __name__ == "__main__":
    main()
