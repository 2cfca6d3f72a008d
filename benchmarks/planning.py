"""How long it takes to choose what would be folded: sizes, steps, and the cut.

Run: ``python benchmarks/planning.py``. ``Compacter.plan`` on agents' histories with tools, from 200
to 100,000 messages, beside what it costs to encode the same messages as JSON, as a client does
before it sends them. The latter also shows what the machine's caches do to anything that walks a
long list. Each figure is the best of several runs. Ends with one JSON line.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable
from typing import Any

from compacter import Compacter

LENGTHS = (200, 2_000, 20_000, 100_000)
RUNS = 200_000
"""Messages that are planned for each length, at least."""


def conversation(length: int) -> list[dict[str, Any]]:
    """A system prompt, then turns of five: a request, two tools called at once, their results, an
    answer.
    """
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are a careful engineer."}]
    turn = 0
    while len(messages) < length:
        ids = (f"call_{turn}_a", f"call_{turn}_b")
        calls = [
            {
                "id": name,
                "type": "function",
                "function": {"name": "read_file", "arguments": f'{{"path": "src/{turn}.py"}}'},
            }
            for name in ids
        ]
        messages += [
            {"role": "user", "content": f"Now look at module {turn} and tell me what it does."},
            {"role": "assistant", "content": None, "tool_calls": calls},
            *(
                {"role": "tool", "tool_call_id": name, "content": "def f(x):\n    return x\n" * 20}
                for name in ids
            ),
            {"role": "assistant", "content": f"Module {turn} returns what it is given."},
        ]
        turn += 1
    return messages[:length]


def milliseconds(function: Callable[[], object], runs: int) -> float:
    """The best of several runs, without garbage collection in between."""
    best = float("inf")
    gc.collect()
    gc.disable()
    try:
        for _ in range(runs):
            started = time.perf_counter()
            function()
            best = min(best, time.perf_counter() - started)
    finally:
        gc.enable()
    return best * 1e3


def measured(length: int) -> dict[str, float]:
    """One row."""
    messages = conversation(length)
    compacter = Compacter()
    runs = max(3, RUNS // length)
    plan = milliseconds(lambda: compacter.plan(messages), runs)
    encoding = milliseconds(lambda: json.dumps(messages), runs)
    chosen = compacter.plan(messages)
    return {
        "messages": length,
        "plan_ms": plan,
        "us_per_message": plan / length * 1e3,
        "encode_ms": encoding,
        "ratio": chosen.ratio,
    }


def main() -> None:
    """Print the table and the JSON line."""
    print("Planning a compaction: milliseconds\n")
    print(f"{'messages':>9}{'plan':>10}{'us/message':>12}{'encoding':>10}{'plan/encoding':>15}")
    rows = []
    for length in LENGTHS:
        row = measured(length)
        rows.append(row)
        print(
            f"{length:>9,}{row['plan_ms']:>10.3f}{row['us_per_message']:>12.2f}{row['encode_ms']:>10.3f}"
            f"{row['plan_ms'] / row['encode_ms']:>15.2f}"
        )
    long = rows[-1]
    short = rows[1]
    growth = {
        name: long[name] / short[name] * LENGTHS[1] / LENGTHS[-1]
        for name in ("plan_ms", "encode_ms")
    }
    print(
        f"\n{LENGTHS[-1]:,} messages against {LENGTHS[1]:,}, time a message: "
        f"planning {growth['plan_ms']:.2f} times, encoding {growth['encode_ms']:.2f} times"
    )
    print()
    print(
        json.dumps({"rows": [{key: round(value, 4) for key, value in row.items()} for row in rows]})
    )


if __name__ == "__main__":
    main()
