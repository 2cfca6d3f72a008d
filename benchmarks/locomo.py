"""Questions of LoCoMo about very long chats: the answers in the requests that a model gets.

LoCoMo (https://arxiv.org/abs/2402.17753) has chats of months and questions about them. Each
question is the next user message, in a window that is a share of the chat; no model is asked. An
answer counts if its words stand in one line of the accepted request, the question left out, which
is more than chance and less than a right answer.

``COMPACTER_DATA`` is a folder with ``conversations.jsonl`` (``id``, ``messages``, OpenAI-style) and
``facts.jsonl`` (``conversation``, ``question`` and ``needles``, the beginnings of the answer's
words), made from LoCoMo's file.

Run: ``python benchmarks/locomo.py --share 0.1``. Prints a table and ends with one JSON line.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from constraints import size

from compacter import Compacter
from compacter.testing import TokenLimitError, token_limit_error


def rows(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a file."""
    with file.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def reached(
    messages: list[dict[str, Any]], probes: list[dict[str, Any]], share: float, **options: Any
) -> int:
    """Return how many questions about a chat find their answer in the request.

    Args:
        messages: The chat.
        probes: The questions.
        share: The window, as a share of the chat.
        options: Options of the ``Compacter``.
    """
    window = int(size(messages) * share)
    accepted: list[dict[str, Any]] = []

    def provider(*, model: str, messages: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: ARG001
        tokens = size(messages) // 4
        if tokens > window // 4:
            raise token_limit_error("openai", input_tokens=tokens, limit=window // 4)
        accepted[:] = messages
        reply = {"message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
        return {"choices": [reply], "usage": {"prompt_tokens": tokens, "completion_tokens": 1}}

    call = Compacter(summarizer="extractive", **options).wrap(provider)
    count = 0
    for probe in probes:
        question = {"role": "user", "content": probe["question"]}
        try:
            call(model="any", messages=[*messages, question])
        except TokenLimitError:
            continue
        lines = "\n".join(message["content"] for message in accepted[:-1]).lower().splitlines()
        count += any(all(needle in line for needle in probe["needles"]) for line in lines)
    return count


def main() -> None:
    """Ask the questions with quotes and without, and print how many find their answer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("COMPACTER_DATA"))
    parser.add_argument("--share", type=float, default=0.1, help="the window, of the chat (0.1)")
    given = parser.parse_args()
    if given.data is None:
        reason = "needs COMPACTER_DATA"
        print(f"Skipped: {reason}\n{json.dumps({'skipped': reason})}")
        return
    probes: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for probe in rows(given.data / "facts.jsonl"):
        probes[probe["conversation"]].append(probe)
    found = {"with quotes": 0, "recall=None": 0}
    for record in rows(given.data / "conversations.jsonl"):
        of = probes.get(record["id"], [])
        if of:
            found["with quotes"] += reached(record["messages"], of, given.share)
            found["recall=None"] += reached(record["messages"], of, given.share, recall=None)
    asked = sum(map(len, probes.values()))
    for name, count in found.items():
        print(f"{name:12} {count} of {asked}")
    print(json.dumps({"share": given.share, "asked": asked, "found": found}))


if __name__ == "__main__":
    main()
