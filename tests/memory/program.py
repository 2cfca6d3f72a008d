"""Programs that share their memory with other processes, started by the tests.

Arguments: what to do, then the kind of memory, its place, and a namespace.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any

from compacter import Compacter, RedisMemory, SQLiteMemory
from compacter.testing import ScriptedModel, ScriptedSummarizer, TokenLimitError


def history(turns: int) -> list[dict[str, Any]]:
    """Some turns of 100 tokens each, and a question."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}]
    for number in range(turns):
        messages.append({"role": "user", "content": f"Question {number}".ljust(196, "?")})
        messages.append({"role": "assistant", "content": f"Answer {number}".ljust(196, ".")})
    return [*messages, {"role": "user", "content": "And now?"}]


def memory_of(kind: str, place: str, namespace: str) -> SQLiteMemory | RedisMemory:
    """Return the memory that the processes share."""
    if kind == "sqlite":
        return SQLiteMemory(place, deadline=60)
    return RedisMemory(place, namespace=namespace, deadline=60)


def resend(memory: SQLiteMemory | RedisMemory) -> None:
    """Make one call, and print what it took: "refused", then, after a line is read, the result. So
    the test decides when the refusal comes.
    """
    model = ScriptedModel(window=2_000)

    def completion(name: str, messages: list[Any]) -> Any:
        try:
            return model.completion(name, messages)
        except TokenLimitError:
            print("refused", flush=True)  # noqa: T201 - the test reads it
            sys.stdin.readline()
            raise

    summarizer = ScriptedSummarizer(f"They spoke of {'trains and ' * 3}ships.")
    compacter = Compacter(memory=memory, summarizer=summarizer)
    compacter.wrap(completion)("model", history(30))
    totals = compacter.totals
    sent = [str(message["content"]) for message in model.requests[-1].messages]
    told = {"compactions": totals.rounds, "reused": totals.reused, "sent": sent}
    print(json.dumps(told), flush=True)  # noqa: T201 - the test reads it


def prepare(memory: SQLiteMemory | RedisMemory) -> None:
    """Make a compaction ahead, print "began" when its summary is requested, and wait for ever."""
    began = threading.Event()

    def summarize(messages: list[Any]) -> str:
        began.set()
        threading.Event().wait()
        return ""

    compacter = Compacter(prepare_tokens=700, recall=None, memory=memory, summarizer=summarize)
    completion = compacter.wrap(ScriptedModel(window=1_000).completion)
    # Only a request that continues the one before begins it.
    for turns in (7, 8):
        completion("m", history(turns))
    assert began.wait(20)
    print("began", flush=True)  # noqa: T201 - the test reads it
    threading.Event().wait()


def claim(memory: SQLiteMemory | RedisMemory) -> None:
    """Hold a claim for three seconds."""
    print("held", memory.claim("k", 3) is not None, flush=True)  # noqa: T201 - the test reads it
    sys.stdin.read()


if __name__ == "__main__":
    {"resend": resend, "prepare": prepare, "claim": claim}[sys.argv[1]](memory_of(*sys.argv[2:]))
