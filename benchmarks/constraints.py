"""Constraints that a user states along the way, and the request after a compaction.

After COMPINT (https://arxiv.org/abs/2608.11242): side constraints, such as a number that may go
into no file, are put into real chats, in four framings: inside the first message, inside one in the
middle, or inside a late one, or there as a message of their own. The summarizer names none of them,
so what is counted is what code keeps; the newest message asks for nothing. A constraint counts if
it is in the accepted request, word for word.

The constraints are those of the package ``conpact`` (``pip install --no-deps conpact==0.1.0``; none
of it is copied here). ``COMPACTER_DATA`` is a folder with ``conversations.jsonl``: a chat with its
``messages`` on each line, OpenAI-style; those of LoCoMo will do.

Run: ``python benchmarks/constraints.py --share 0.25``. Prints a table and ends with one JSON line.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

from compacter import Compacter
from compacter.testing import TokenLimitError, token_limit_error

LEADS = (
    "",
    "For the rest of this talk. ",
    "Please keep to this constraint: ",
    "From now on: ",
)
SUMMARY = "They went through several things, one by one, and agreed on most."
PLACES = {"first": 0.0, "middle": 0.5, "late": 0.8}
_CHATS = 4
_USERS = 12
_SIZES = range(20_000, 200_000)
"""Chats that are used, the fewest messages of the user in one, and its size in characters."""


def constraints() -> list[str]:
    """Return the constraints of the package."""
    package = importlib.util.find_spec("conpact")
    if package is None or not package.submodule_search_locations:
        return []
    (folder,) = package.submodule_search_locations
    return [row["sc"] for row in runpy.run_path(str(Path(folder) / "constraints.py"))["SCS"]]


def size(messages: list[Any]) -> int:
    """Return the number of characters."""
    return sum(len(message["content"]) for message in messages)


def is_chat(messages: list[Any]) -> bool:
    """Return whether all of it is text, and it is long enough."""
    for message in messages:
        if not isinstance(message, dict) or message.get("tool_calls"):
            return False
        if not isinstance(message.get("content"), str):
            return False
    users = sum(message.get("role") == "user" for message in messages)
    return users >= _USERS and size(messages) in _SIZES


def chats(file: Path) -> list[list[dict[str, Any]]]:
    """Return the chats to try, always the same ones of a file."""
    with file.open(encoding="utf-8") as lines:
        found = [messages for line in lines if is_chat(messages := json.loads(line)["messages"])]
    random.Random(5).shuffle(found)
    return found[:_CHATS]


def request_after(history: list[dict[str, Any]], window: int) -> str:
    """Return the text of the accepted request; an empty one if none is.

    Args:
        history: The messages.
        window: The provider's window, in characters.
    """
    accepted = [""]

    def provider(*, model: str, messages: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: ARG001
        if size(messages) > window:
            raise token_limit_error("openai", input_tokens=size(messages) // 4, limit=window // 4)
        accepted[0] = "\n".join(message["content"] for message in messages)
        reply = {"message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
        return {"choices": [reply]}

    try:
        Compacter(summarizer=lambda _: SUMMARY).wrap(provider)(model="any", messages=history)
    except TokenLimitError:
        return ""
    return accepted[0].lower()


def stated(
    chat: list[dict[str, Any]], place: float, constraint: str, *, is_own: bool
) -> list[dict[str, Any]]:
    """Return the chat with a constraint in it, and a last message that asks for nothing."""
    users = [at for at, message in enumerate(chat) if message["role"] == "user"]
    at = users[int(len(users) * place)]
    history = [dict(message) for message in chat]
    if is_own:
        said = [constraint, "Understood."]
        history[at:at] = [
            {"role": role, "content": text}
            for role, text in zip(("user", "assistant"), said, strict=True)
        ]
    else:
        history[at]["content"] = f"{constraint}\n\n{history[at]['content']}"
    history.append({"role": "assistant", "content": "ok"})
    history.append({"role": "user", "content": "Thanks. Let us go on with the next one."})
    return history


def main() -> None:
    """Put each constraint into each chat, and print the shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("COMPACTER_DATA"))
    parser.add_argument("--share", type=float, default=0.25, help="the window, of the chat (0.25)")
    options = parser.parse_args()
    told = constraints()
    if not told or options.data is None:
        reason = "needs conpact and COMPACTER_DATA"
        print(f"Skipped: {reason}\n{json.dumps({'skipped': reason})}")
        return
    kept, asked = Counter[str](), Counter[str]()
    for chat in chats(options.data / "conversations.jsonl"):
        for is_own in (False, True):
            for name, place in PLACES.items():
                if is_own and name == "first":
                    continue
                key = f"{'own message' if is_own else 'inside'}, {name}"
                for lead in LEADS:
                    for constraint in told:
                        history = stated(chat, place, lead + constraint, is_own=is_own)
                        request = request_after(history, int(size(history) * options.share))
                        asked[key] += 1
                        kept[key] += constraint.lower() in request
    shares = {key: round(kept[key] / asked[key], 3) for key in asked}
    for key, share in shares.items():
        print(f"{key:20} {share:.2f}")
    total = {"asked": asked.total(), "kept": round(kept.total() / asked.total(), 3)}
    print(json.dumps({"share": options.share, **total, "places": shares}))


if __name__ == "__main__":
    main()
