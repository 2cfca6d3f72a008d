"""A summary is the same in every process: none of it hangs on the order of a set."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import json
from random import Random
from compacter.messages.parts import Part
from compacter.summary.head import Head
from compacter.summary.write import quote

chance = Random(7)
words = "ledger harbour crate pier noon friday mast sail rope anchor tide captain".split()
parts = []
for turn in range(120):
    names = {f"at{n}": f"hold/{chance.choice(words)}_{turn}{n}.txt" for n in range(4)}
    parts.append(Part("assistant", "call", json.dumps(names), "look", turn, 0, f"c{turn}"))
    text = ". ".join(" ".join(chance.choices(words, k=9)).capitalize() for _ in range(4)) + "."
    parts.append(Part("assistant" if turn % 2 else "user", "text", text))
# A statement beside an order and a later statement that share words with it, eight messages apart
# so that their numbers collide in a set.
for row in range(12):
    names = [chr(97 + row) * 2 + name for name in ("pilot", "barge", "canal", "lantern")]
    about = ["Never load the {3} alone.", *["Thanks."] * 7, "{1} {2} were in sight."]
    about.append("{0} of {1} and {2} had a {3}.")
    for text in about:
        parts.append(Part("user", "text", text.format(*names), index=len(parts)))
print("\\n".join(quote(Head(parts), room).text for room in (600, 2_000, 4_000)))
"""


def test_a_summary_without_a_model_is_the_same_whatever_the_seed_of_hashes() -> None:
    summaries = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert len(summaries[0]) > 3_000
    assert summaries[0] == summaries[1]
