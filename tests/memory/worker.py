"""A program that resends a history which is too long, together with other processes, sharing their
memory.

It writes "refused", reads "go" and writes the result, a line each: the test decides when the
refusal comes.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from compacter import Compacter, RedisMemory, SQLiteMemory
from compacter.testing import ScriptedModel, ScriptedSummarizer, TokenLimitError

MODEL = ScriptedModel(window=2_000)


def completion(model: str, messages: list[Any]) -> Any:
    """Refuse when all of the others are about to be refused, too."""
    try:
        return MODEL.completion(model, messages)
    except TokenLimitError:
        print("refused", flush=True)  # noqa: T201 - the test reads it
        sys.stdin.readline()
        raise


def main(kind: str, place: str, namespace: str) -> None:
    """Make one call and tell what it took."""
    sqlite = kind == "sqlite"
    memory = (
        SQLiteMemory(place, deadline=60)
        if sqlite
        else RedisMemory(place, namespace=namespace, deadline=60)
    )
    summarizer = ScriptedSummarizer(f"They spoke of {'trains and ' * 3}ships.")
    history = [{"role": "system", "content": "Be brief."}]
    for number in range(60):
        role = "assistant" if number % 2 else "user"
        history.append({"role": role, "content": f"{role} says thing {number} about trains. " * 4})
    history.append({"role": "user", "content": "And now?"})
    reused: list[Any] = []
    compacter = Compacter(memory=memory, summarizer=summarizer, on_event=reused.append)
    compacter.wrap(completion)("model", history)
    print(  # noqa: T201 - the test reads it
        json.dumps(
            {
                "compactions": compacter.totals.rounds,
                "sent": MODEL.requests[-1].messages,
                "reused": sum(type(event).__name__ == "CompactionReused" for event in reused),
            }
        ),
        flush=True,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
