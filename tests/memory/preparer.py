"""A program that is killed while it makes a compaction ahead, sharing its memory with another one.

It writes "began" when the summary is requested, and waits for ever.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

from compacter import Compacter, RedisMemory, SQLiteMemory
from compacter.testing import ScriptedModel


def history(turns: int) -> list[dict[str, Any]]:
    """Some turns of 100 tokens each, and a question."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}]
    for number in range(turns):
        messages.append({"role": "user", "content": f"Question {number}".ljust(196, "?")})
        messages.append({"role": "assistant", "content": f"Answer {number}".ljust(196, ".")})
    return [*messages, {"role": "user", "content": "And now?"}]


def memory_of(kind: str, place: str, namespace: str) -> SQLiteMemory | RedisMemory:
    """Return the memory that both programs share."""
    if kind == "sqlite":
        return SQLiteMemory(place, deadline=60)
    return RedisMemory(place, namespace=namespace, deadline=60)


def main(kind: str, place: str, namespace: str) -> None:
    """Make two calls, and then the summary that never comes."""
    began = threading.Event()

    def summarize(messages: list[Any]) -> str:
        began.set()
        threading.Event().wait()
        return ""

    compacter = Compacter(
        prepare_tokens=700,
        recall=None,
        memory=memory_of(kind, place, namespace),
        summarizer=summarize,
    )
    completion = compacter.wrap(ScriptedModel(window=1_000).completion)
    # Only a request that continues the one before begins it.
    for turns in (7, 8):
        completion("m", history(turns))
    assert began.wait(20)
    print("began", flush=True)  # noqa: T201 - the test reads it
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
