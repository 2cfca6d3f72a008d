"""Store discarded messages in SQLite's full-text search, where the model can look them up."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Sequence
from typing import Any

from compacter import Compacter, CompactionEvent
from compacter.testing import ScriptedModel

database = sqlite3.connect(":memory:")
database.execute("create virtual table said using fts5(role, words)")

TOOL = {
    "type": "function",
    "function": {
        "name": "what_did_we_say_about",
        "description": "Search the parts of this conversation that are no longer shown.",
        "parameters": {
            "type": "object",
            "properties": {"words": {"type": "string"}},
            "required": ["words"],
        },
    },
}


def answer(messages: Sequence[dict[str, Any]]) -> str | dict[str, Any]:
    """A stand-in for a model: it looks up what it is asked about, and reads out what it finds."""
    last = messages[-1]
    if last["role"] == "tool":
        return f"You said: {json.loads(last['content'])[0]}"
    if asked := re.match(r"What did we say about (.+)\?", last["content"]):
        function = {"name": "what_did_we_say_about", "arguments": json.dumps({"words": asked[1]})}
        return {"tool_calls": [{"id": "call_1", "type": "function", "function": function}]}
    return "All right."


model = ScriptedModel(window=600, replies=answer)
compacter = Compacter(summarizer="extractive", compact_ratio=0.8)
completion = compacter.wrap(model.completion)


@compacter.on_compaction
def store(event: CompactionEvent) -> None:
    """File what was compacted. A summary message among it holds nothing new."""
    rows = [
        (message["role"], message["content"]) for message in event.discarded if message["content"]
    ]
    database.executemany("insert into said values (?, ?)", rows)


def what_did_we_say_about(words: str) -> list[str]:
    """The three best matches."""
    quoted = " ".join(f'"{word}"' for word in re.findall(r"\w+", words))
    found = database.execute(
        "select words from said where said match ? order by rank limit 3", [quoted]
    )
    return [row[0] for row in found]


def main() -> None:
    """Talk, overflow, and ask about the beginning."""
    history: list[dict[str, Any]] = []
    topics = ("the boiler", "the roof", "the fence", "the cellar", "the chimney", "the garden gate")

    def say(words: str) -> str:
        history.append({"role": "user", "content": words})
        while True:
            message = completion("any-model", history, tools=[TOOL])["choices"][0]["message"]
            history.append(message)
            if not message.get("tool_calls"):
                return str(message["content"])
            for call in message["tool_calls"]:
                found = what_did_we_say_about(**json.loads(call["function"]["arguments"]))
                history.append(
                    {"role": "tool", "tool_call_id": call["id"], "content": json.dumps(found)}
                )

    for number in range(36):
        say(
            f"Note on {topics[number % 6]}: firm {number} quotes {number * 35 + 400} euros, "
            f"valid for a week."
        )
    stored = database.execute("select count(*) from said").fetchone()[0]
    print(
        f"{compacter.totals.rounds} compaction; {stored} messages left the request and were stored"
    )
    print(say("What did we say about firm 2?"))


if __name__ == "__main__":
    main()
