"""What one fold of a megabyte costs, whatever stands in it: processor seconds per megabyte, and
against plain prose.

A fold reads foreign text with many patterns: to redact it, to find sentences and rules, to index
it. Each line is one overflow of a history that holds nothing but one shape of text, with
``redact="secrets"`` and no model.

    python benchmarks/folds.py [SHAPE ...]
"""

from __future__ import annotations

import sys
import time
from typing import Any

from compacter import Compacter
from compacter.testing import token_limit_error

CHINESE = "".join(chr(0x4E00 + place * 37 % 4_000) for place in range(1_000))
SHAPES = {
    "prose": (
        "The deploy of service alpha-7 went well at noon, and Ada wrote down what was left to do. "
    ),
    "rules": "You must never send that file to a customer. ",
    "log": (
        "2026-11-22 10:00:00,123 ERROR [main] com.acme.Orders - failed id=abc-123 "
        "path=/var/log/orders.log\n"
    ),
    "json": '{"a": {"b": [1, 2, 3], "user": "ada lovelace"}, "c": "text of a value"}\n',
    "table": "| 12 | value x | note text |\n",
    "Chinese": "。".join(CHINESE[place : place + 25] for place in range(0, 1_000, 25)),
    "Chinese without stops": CHINESE,
    "base64": "QUJD/+xyz0",
    "hex": "deadbeef",
    "labels": "password=",
    "escapes": "\\u5bc6",
    "emoji": "\U0001f468\u200d\U0001f469\u200d\U0001f467 ",
    "joiners": "\u200d",
    "spaces": " ",
    "lines": "\n",
    "dashes": "-",
    "dots": ".",
    "ellipses": "… ",
    "angles": "<",
    "brackets": "[",
    "fences": "```\n",
}
MESSAGES = 50
MEGABYTE = 1_000_000


def seconds(text: str) -> float:
    """Processor seconds of one overflow of a megabyte of ``text``, repeated."""
    block = text * (MEGABYTE // MESSAGES // len(text))
    roles = ("user", "assistant")
    history = [{"role": roles[n % 2], "content": f"{n} {block}"} for n in range(MESSAGES)]
    history.append({"role": "user", "content": "And now?"})
    refused = False

    def completion(model: str, messages: list[Any]) -> dict[str, Any]:  # noqa: ARG001 - as a client names them
        nonlocal refused
        if not refused:
            refused = True
            raise token_limit_error(limit=200_000, input_tokens=400_000)
        return {
            "choices": [
                {"message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
            ]
        }

    call = Compacter(summarizer="extractive", redact="secrets").wrap(completion)
    began = time.process_time()
    call("model", history)
    return time.process_time() - began


def main(names: list[str]) -> None:
    """Print one line for each shape."""
    seconds(SHAPES["prose"])  # Imports and compiles.
    prose = seconds(SHAPES["prose"])
    print(f"{'shape':24} {'s/MB':>6} {'of prose':>9}")
    for name in names or SHAPES:
        taken = seconds(SHAPES[name])
        print(f"{name:24} {taken:6.2f} {taken / prose:9.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
