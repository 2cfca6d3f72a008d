"""How many standing constraints survive a model-free compaction of real conversations, word for
word.

Constraints in several languages are said by the user at the top, in the middle and near the end of
each conversation (``COMPACTER_DATA``, default ``../shared/data``), which is then compacted to a
share of its size.

Run: ``python benchmarks/constraints.py --share 0.2``. Prints a table and ends with one JSON line.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

from compacter import Compacter
from compacter.messages.format import get_format

CONSTRAINTS = (
    "Never deploy on a Friday without asking Marlene first.",
    "The whole trip may cost at most 2,350 euros, flights included.",
    "Always write file sizes in mebibytes.",
    "Do not contact the supplier before 9 April 2027.",
    "Whatever happens, the folder /srv/archive must stay read-only.",
    "I want you to call me Captain in every reply.",
    "Please keep all answers below 120 words.",
    "Under no circumstances share the code kestrel-59 with anybody.",
    "Schicke niemals Kundendaten an externe Dienste.",
    "Alle Zeitangaben müssen in UTC stehen, immer.",
    "Ne modifie jamais le fichier paie.ods sans mon accord.",
    "Réponds toujours avec trois puces au maximum.",
    "No borres nunca la carpeta de facturas de 2024.",
    "Usa siempre el sistema métrico.",
    "Nunca altere a tabela clientes sem aprovação da Joana.",
    "Non superare mai i 40 gradi nel forno di prova.",
    "Никогда не перезапускай сервер orion-3 днём.",
    "Zawsze podawaj ceny w złotych.",
    "绝不要在周末发布新版本。",
    "レポートは必ず日本語で書いてください。",
    "테스트 데이터는 절대 삭제하지 마세요.",
    "يجب ألا تتجاوز التكلفة 500 درهم.",
)
PLACES = {"top": 0.0, "middle": 0.5, "end": 0.95}
SMALLEST = 4_000
"""Characters of the smallest conversation used: below that a share holds little more than the
constraint."""


def kept(messages: list[Any], wire_name: str, place: float, constraint: str, share: float) -> bool:
    """Whether ``constraint``, said at ``place`` of the conversation, survives its compaction."""
    shape = get_format(wire_name)
    steps = [*shape.outline(messages).steps, len(messages)]
    at = steps[int(place * (len(steps) - 1))]
    said = [*messages[:at], shape.say("user", constraint), *messages[at:]]
    budget = int(sum(shape.outline(said).sizes) * share)
    compacter = Compacter(summarizer="extractive", memory=None)
    result = compacter.compact(said, wire_format=wire_name, budget=budget)
    return constraint in json.dumps(list(result.messages), ensure_ascii=False)


def main() -> None:
    """Run it over the conversations and print the shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(
        os.environ.get("COMPACTER_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
    )
    parser.add_argument("--data", type=Path, default=default)
    parser.add_argument("--share", type=float, default=0.2)
    parser.add_argument(
        "--each", type=int, default=2, help=("constraints tried at each place of a conversation")
    )
    options = parser.parse_args()
    survived: dict[str, list[bool]] = defaultdict(list)
    lost: list[tuple[str, str, str]] = []
    with (options.data / "conversations.jsonl").open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            record = json.loads(line)
            if len(line) < SMALLEST:
                continue
            for offset, (name, place) in enumerate(PLACES.items()):
                for turn in range(options.each):
                    constraint = CONSTRAINTS[
                        (number * 7 + offset * 3 + turn * 5) % len(CONSTRAINTS)
                    ]
                    held = kept(
                        record["messages"], record["format"], place, constraint, options.share
                    )
                    survived[name].append(held)
                    if not held:
                        lost.append((record["id"], name, constraint))
    for conversation, name, constraint in lost:
        print(f"lost  {conversation:40} {name:8} {constraint}")
    shares = {name: round(sum(held) / len(held), 3) for name, held in survived.items()}
    every = [held for values in survived.values() for held in values]
    print(
        json.dumps(
            {
                "share": options.share,
                "asked": len(every),
                "survived": round(sum(every) / len(every), 3),
                **shares,
            }
        )
    )


if __name__ == "__main__":
    main()
