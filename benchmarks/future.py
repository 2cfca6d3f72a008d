"""What an agent needs later: names that it really used after a cut, in the request that the
provider accepted there.

Each real conversation (``COMPACTER_DATA``, default ``../shared/data``) is sent up to its cut to a
provider whose window takes what must stay (system prompt, last user message) and a share of all
else. A name counts when it stands in the request that was accepted: in the summary, in quotes, or
in what stayed. ``by hand`` is ``compact(budget=...)`` to the same size, all of which the summary
may fill; a wrapped call leaves room for what comes next.

Run: ``python benchmarks/future.py --share 0.2``. Prints a table and ends with one JSON line.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from compacter import Compacter
from compacter.compaction.conversation import Conversation
from compacter.messages.format import MessageFormat, get_format
from compacter.testing import token_limit_error

WAYS: dict[str, dict[str, Any]] = {
    "recall": {"summarizer": "extractive"},
    "no recall": {"summarizer": "extractive", "recall": None},
    "by hand": {"summarizer": "extractive", "memory": None},
}


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a file of JSON lines."""
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def size(messages: Sequence[Any], form: MessageFormat) -> int:
    """Data size in characters."""
    return sum(form.outline(messages).sizes)


def text(messages: Sequence[Any], form: MessageFormat) -> str:
    """All that can be read of a request."""
    return "\n".join(part.text for read in form.parts_of_each(messages) for part in read.readable)


def accepted(
    messages: Sequence[Any], form: MessageFormat, window: int, options: dict[str, Any]
) -> list[Any]:
    """The request that a provider with so many characters of window accepts; empty where it accepts
    none.
    """
    compacter = Compacter(**options)
    if "memory" in options:
        return list(compacter.compact(messages, wire_format=form.name, budget=window).messages)
    sent: list[Any] = []

    def provider(messages: list[Any], **_: Any) -> dict[str, Any]:
        if (used := size(messages, form)) > window:
            raise token_limit_error("openai", limit=window // 4, input_tokens=used // 4)
        sent[:] = messages
        return {
            "choices": [
                {"message": {"role": "assistant", "content": "Noted."}, "finish_reason": "stop"}
            ]
        }

    call = compacter.wrap(provider, wire_format=form.name, messages_param="messages")
    try:
        call(messages=list(messages))
    except Exception:  # noqa: BLE001 - what must stay is larger than the window
        return []
    return sent


def main() -> None:
    """Print the share of the names that were there, for each way."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(
        os.environ.get("COMPACTER_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
    )
    parser.add_argument("--data", type=Path, default=default)
    parser.add_argument("--share", type=float, default=0.2)
    options = parser.parse_args()
    if not (options.data / "future_use.jsonl").exists():
        print(json.dumps({"skipped": f"no collected conversations in {options.data}"}))
        return
    probes = {row["conversation"]: row for row in rows(options.data / "future_use.jsonl")}
    shares: dict[str, list[float]] = {}
    refused: dict[str, int] = {}
    for record in rows(options.data / "conversations.jsonl"):
        probe = probes.get(record["id"])
        if probe is None:
            continue
        form = get_format(record["format"])
        before = record["messages"][: probe["cut"]]
        read = Conversation(before, form)
        window = read.size - read.free + int(read.free * options.share)
        names = [needle["value"] for needle in probe["needles"]]
        for name, way in WAYS.items():
            request = accepted(before, form, window, way)
            refused[name] = refused.get(name, 0) + (not request)
            held = text(request, form)
            shares.setdefault(name, []).append(sum(value in held for value in names) / len(names))
    found = {
        name: {"survived": round(sum(each) / len(each), 3), "refused": refused[name]}
        for name, each in shares.items()
    }
    for name, figures in found.items():
        print(f"{name:20} {figures}")
    print(json.dumps({"share": options.share, "conversations": len(probes), **found}))


if __name__ == "__main__":
    main()
