"""What survives with a real, very small model as the summarizer, against no model, at the same
budget.

Conversations made up here name facts, identifiers and standing rules early on and go on with small
talk. Each is compacted to a share of its size by the embedded 135M model
(``examples/embedded_model.py``, which says what it needs) and by none; a planted piece survives if
it stands in the result word for word.

Run: ``python benchmarks/with_model.py --share 0.2``. Prints a table and ends with one JSON line.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from compacter import Compacter, CompactionEvent

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

from embedded_model import EmbeddedModel, embedded_model, why_unavailable

PEOPLE = (
    (
        "Ramon Veldkamp",
        "Utrecht",
        "beekeeper",
        "restoring clocks",
        ("Never call me before ten in the morning."),
    ),
    ("Ingrid Solheim", "Bergen", "welder", "ice climbing", "Always give lengths in centimetres."),
    (
        "Tomas Havel",
        "Brno",
        "notary",
        "growing chillies",
        ("The whole thing must cost less than 1,850 euros."),
    ),
    ("Adaeze Obi", "Enugu", "midwife", "chess by post", "Do not share my address with anybody."),
)
THINGS = (
    "order KX-4471",
    "/srv/plans/roof-v3.dxf",
    "https://tiles.example/offer/88213",
    "error E1204",
    "pump P-07b",
)
TOPICS = ("the roof", "the gutters", "the fence", "the cellar", "the north wall", "the gate")


def conversation(
    person: tuple[str, ...], turns: int
) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    """A history, and what is planted in it by kind."""
    name, city, job, hobby, rule = person
    history = [
        {
            "role": "user",
            "content": (f"Hi! My name is {name}, I live in {city} and work as a {job}. {rule}"),
        },
        {"role": "assistant", "content": f"Nice to meet you, {name.split()[0]}. What is it about?"},
        {
            "role": "user",
            "content": (f"The house. When I am not {hobby}, which is my hobby, I repair it."),
        },
        {"role": "assistant", "content": "Then let us go through it part by part."},
    ]
    for turn in range(turns):
        topic = TOPICS[turn % len(TOPICS)]
        thing = THINGS[turn] if turn < len(THINGS) else ""
        about = f" It is about {thing}." if thing else ""
        history.append(
            {
                "role": "user",
                "content": (f"What should I look at first when I repair {topic}?{about}"),
            }
        )
        answer = (
            f"For {topic}, look for damp first, then for rust, and only then think of "
            f"paint. It takes patience."
        )
        history.append(
            {
                "role": "assistant",
                "content": (f"{answer} Ask a neighbour who has done it before you begin."),
            }
        )
    history.append({"role": "user", "content": "And what comes after that?"})
    return history, {
        "facts": [name, city, job, hobby],
        "rules": [rule],
        "identifiers": list(THINGS),
    }


def survived(messages: object, planted: dict[str, list[str]]) -> dict[str, tuple[int, int]]:
    """How many of the planted pieces stand in the messages, and of how many, by kind."""
    text = json.dumps(list(messages), ensure_ascii=False)  # type: ignore[call-overload]
    return {
        kind: (sum(piece in text for piece in pieces), len(pieces))
        for kind, pieces in planted.items()
    }


def measure(summarizer: Any, share: float, turns: int) -> dict[str, Any]:
    """Compact every conversation and add up."""
    hits: dict[str, list[int]] = {}
    events: list[CompactionEvent] = []
    started = time.perf_counter()
    for person in PEOPLE:
        history, planted = conversation(person, turns)
        budget = int(sum(len(message["content"]) for message in history) * share)
        result = Compacter(summarizer=summarizer, fallback="extractive", memory=None).compact(
            history, budget=budget
        )
        events += [result.event] if result.event else []
        for kind, (kept, all_) in survived(result.messages, planted).items():
            total = hits.setdefault(kind, [0, 0])
            total[0] = total[0] + kept
            total[1] = total[1] + all_
    return {
        **{kind: round(kept / all_, 3) for kind, (kept, all_) in hits.items()},
        "fallbacks": sum(event.fallback for event in events),
        "seconds": round(time.perf_counter() - started, 1),
    }


def asking(model: EmbeddedModel) -> Any:
    """The model as a summarizer."""

    def summarizer(messages: list[dict[str, str]], max_tokens: int) -> Any:
        body = {"messages": messages, "max_tokens": min(max_tokens, 160), "temperature": 0}
        return model.post("/v1/chat/completions", body)["choices"][0]["message"]["content"]

    return summarizer


def main() -> None:
    """Print both, side by side."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=0.2)
    parser.add_argument("--turns", type=int, default=20, help="turns of each conversation")
    options = parser.parse_args()
    if reason := why_unavailable():
        print(json.dumps({"skipped": reason}))
        return
    results = {"none": measure("extractive", options.share, options.turns)}
    with embedded_model() as model:
        results["135M"] = measure(asking(model), options.share, options.turns)
    print(f"{'':14}" + "".join(f"{name:>10}" for name in results))
    for kind in results["none"]:
        print(f"{kind:14}" + "".join(f"{result[kind]:>10}" for result in results.values()))
    print(json.dumps({"share": options.share, **results}))


if __name__ == "__main__":
    main()
