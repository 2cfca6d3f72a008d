"""What a wrapped call that succeeds costs, over the bare call.

Run: ``python benchmarks/overhead.py``. The function that is wrapped does nothing, so all that is
seen is compacter. Three tables. Before anything was compacted, by the length of the history (which
must not matter), beside what any wrapper costs that merely calls and catches. And with a compaction
remembered, which every call has to find again, beside what it costs to encode the same messages as
JSON, as a client does before it sends them. Last, the two options that make each call look at the
history's sizes. Each figure is the best of several batches. Ends with one JSON line.
"""

from __future__ import annotations

import asyncio
import copy
import gc
import json
import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from compacter import Compacter
from compacter.testing import ScriptedSummarizer, token_limit_error

LENGTHS = (10, 100, 1_000, 10_000)
CALLS = 2_000
BATCHES = 60
REPEATS = 40
REPLY = {
    "choices": [{"message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 10, "completion_tokens": 1},
}

Message = dict[str, Any]


def bare(*, model: str, messages: Sequence[Message]) -> Message:  # noqa: ARG001 - the signature of a completion
    """A completion that costs nothing."""
    return REPLY


async def abare(*, model: str, messages: Sequence[Message]) -> Message:  # noqa: ARG001 - as above
    """As ``bare``."""
    return REPLY


def caught(*args: Any, **kwargs: Any) -> Message:
    """The least that a wrapper can do: pass on, and catch."""
    try:
        return bare(*args, **kwargs)
    except ValueError as error:
        return {"error": str(error)}


async def acaught(*args: Any, **kwargs: Any) -> Message:
    """As ``caught``."""
    try:
        return await abare(*args, **kwargs)
    except ValueError as error:
        return {"error": str(error)}


def conversation(length: int, *, letters: int = 60) -> list[Message]:
    """A system prompt, and user and assistant in turn."""
    turns = [
        {"role": "assistant" if turn % 2 else "user", "content": f"message {turn} " + "x" * letters}
        for turn in range(length - 1)
    ]
    return [{"role": "system", "content": "You are helpful."}, *turns]


@contextmanager
def undisturbed() -> Generator[None]:
    """No garbage collection while the clock runs: it would be charged to whoever happens to be
    measured.
    """
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def run(function: Callable[..., object], messages: Sequence[Message]) -> float:
    """Seconds of a batch of calls."""
    started = time.perf_counter()
    for _ in range(CALLS):
        function(model="any", messages=messages)
    return time.perf_counter() - started


def arun(function: Callable[..., Awaitable[object]], messages: Sequence[Message]) -> float:
    """As ``run``, awaited in one event loop."""

    async def batch() -> float:
        started = time.perf_counter()
        for _ in range(CALLS):
            await function(model="any", messages=messages)
        return time.perf_counter() - started

    return asyncio.run(batch())


def quiet() -> list[dict[str, float]]:
    """Added microseconds by length of the history, nothing compacted yet."""
    compacter = Compacter()
    batches: dict[str, Callable[[Sequence[Message]], float]] = {
        "bare": partial(run, bare),
        "sync": partial(run, compacter.wrap(bare)),
        "sync_any": partial(run, caught),
        "abare": partial(arun, abare),
        "async": partial(arun, compacter.wrap(abare)),
        "async_any": partial(arun, acaught),
    }
    histories = {length: conversation(length) for length in LENGTHS}
    best = {(name, length): float("inf") for name in batches for length in LENGTHS}
    with undisturbed():
        # In turn, so that a busy moment of the machine meets all of them.
        for _ in range(BATCHES):
            for name, batch in batches.items():
                for length, messages in histories.items():
                    best[name, length] = min(best[name, length], batch(messages) / CALLS * 1e6)
    print("Nothing compacted yet: added microseconds a call\n")
    print(f"{'messages':>9}{'sync':>9}{'any wrapper':>13}{'async':>9}{'any wrapper':>13}")
    rows: list[dict[str, float]] = []
    for length in LENGTHS:
        row = {"messages": float(length)}
        for name in ("sync", "sync_any", "async", "async_any"):
            row[name] = (
                best[name, length] - best["abare" if name.startswith("async") else "bare", length]
            )
        rows.append(row)
        print(
            f"{length:>9,}{row['sync']:>9.2f}{row['sync_any']:>13.2f}{row['async']:>9.2f}{row['async_any']:>13.2f}"
        )
    return rows


class Provider:
    """Refuses what has more characters than its window allows, and counts what it was asked."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.requests = 0
        self.rejected = 0

    def completion(self, *, model: str, messages: Sequence[Message]) -> Message:  # noqa: ARG002
        """A reply, or a token-limit error."""
        self.requests += 1
        tokens = sum(len(message["content"]) for message in messages) // 4
        if tokens > self.window:
            self.rejected += 1
            raise token_limit_error("openai", limit=self.window, input_tokens=tokens)
        return {**REPLY, "usage": {"prompt_tokens": tokens, "completion_tokens": 1}}


def milliseconds(function: Callable[..., object], each: Iterable[Sequence[Message]]) -> float:
    """One call, in milliseconds: the best over ``each``; copies are fresh ones each time."""
    best = float("inf")
    with undisturbed():
        for messages in each:
            started = time.perf_counter()
            function(model="any", messages=messages)
            best = min(best, time.perf_counter() - started)
    return best * 1e3


def encode(*, model: str, messages: Sequence[Message]) -> str:
    """What a client does with a request before it is sent."""
    return json.dumps({"model": model, "messages": messages})


def remembered(length: int) -> dict[str, float]:
    """Added milliseconds with a compaction of this history remembered, by the way it is
    sent again.
    """
    messages = conversation(length, letters=200)
    provider = Provider(sum(len(message["content"]) for message in messages) // 8)
    seen: list[list[Message]] = []

    def spied(*, model: str, messages: list[Message]) -> Message:
        seen.append(messages)
        return provider.completion(model=model, messages=messages)

    compacter = Compacter(summarizer=ScriptedSummarizer("They went through a long list."))
    wrapped = compacter.wrap(spied)
    wrapped(model="any", messages=messages)
    base = milliseconds(provider.completion, [seen[-1]] * REPEATS)
    clock = conversation(length, letters=200)
    clock[0] = {"role": "system", "content": "You are helpful. It is 12:01."}
    found = {
        "messages": length,
        "same": milliseconds(wrapped, [messages] * REPEATS) - base,
        "deepcopy": milliseconds(wrapped, (copy.deepcopy(messages) for _ in range(REPEATS))) - base,
        "json": milliseconds(wrapped, (json.loads(json.dumps(messages)) for _ in range(REPEATS)))
        - base,
        "new_system": milliseconds(wrapped, [clock] * REPEATS) - base,
        "encode": milliseconds(encode, [messages] * REPEATS),
    }
    found["found"] = float((provider.rejected, compacter.totals.rounds) == (1, 1))
    messages[length // 10]["content"] = "This was edited in place."
    wrapped(model="any", messages=messages)
    found["edit_noticed"] = float((provider.rejected, compacter.totals.rounds) == (2, 2))
    return found


def recalled() -> list[dict[str, float]]:
    """The third table."""
    print("\nA compaction remembered: added milliseconds a call, by what is sent again\n")
    print(
        f"{'messages':>9}{'same':>9}{'deep copies':>13}{'JSON copies':>13}{'new system':>12} "
        f" edit in place"
    )
    rows = []
    for length in LENGTHS[1:]:
        row = remembered(length)
        rows.append(row)
        print(
            f"{length:>9,}{row['same']:>9.3f}{row['deepcopy']:>13.3f}{row['json']:>13.3f}{row['new_system']:>12.3f}{row['encode']:>10.2f}"
            f"  {'noticed, compacted anew' if row['edit_noticed'] else 'NOT NOTICED'}"
            f"{'' if row['found'] else ', COMPACTION NOT FOUND AGAIN'}"
        )
    return rows


def agent(length: int) -> list[Message]:
    """An agent at work: a question, a call, its result, an answer."""
    found: list[Message] = [{"role": "system", "content": "You are helpful."}]
    for turn in range(length // 4):
        function = {"name": "read", "arguments": json.dumps({"path": f"src/part_{turn}.py"})}
        found += [
            {"role": "user", "content": f"Look at file {turn}, please, and tell what it does."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{turn}", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": f"c{turn}", "content": "a line of code\n" * 15},
            {"role": "assistant", "content": f"It adds up what file {turn} has read."},
        ]
    return found[:length]


def watched() -> list[dict[str, float]]:
    """The third table."""
    print("\nOptions that look at each call: added microseconds, nothing compacted\n")
    print(f"{'messages':>9}{'on_event':>10}{'of an agent':>13}{'trigger_tokens':>16}")
    rows = []
    for length in LENGTHS:
        row = {"messages": float(length)}
        looks: tuple[tuple[str, list[Any], dict[str, Any]], ...] = (
            ("on_event", conversation(length), {"on_event": lambda _: None}),
            ("on_event_agent", agent(length), {"on_event": lambda _: None}),
            ("trigger_tokens", conversation(length), {"trigger_tokens": 10**9}),
        )
        for name, messages, options in looks:
            tokens = len(json.dumps(messages)) // 5
            usage = {"prompt_tokens": tokens, "completion_tokens": 1}
            reply = partial(answer, {**REPLY, "usage": usage})
            wrapped = Compacter(**options).wrap(reply)
            base = milliseconds(reply, [messages] * BATCHES)
            row[name] = (milliseconds(wrapped, [messages] * BATCHES) - base) * 1e3
        rows.append(row)
        print(
            f"{length:>9,}{row['on_event']:>10.1f}{row['on_event_agent']:>13.1f}"
            f"{row['trigger_tokens']:>16.1f}"
        )
    return rows


def answer(reply: Message, *, model: str, messages: Sequence[Message]) -> Message:  # noqa: ARG001
    """A completion that says how many tokens it has read."""
    return reply


def main() -> None:
    """Print the tables and the JSON line."""
    rows = quiet()
    flat = rows[-1]["sync"] / rows[0]["sync"]
    print(f"\n{LENGTHS[-1]:,} messages against {LENGTHS[0]}: {flat:.2f} times the added time")
    memory = recalled()
    options = watched()
    print()
    print(
        json.dumps(
            {
                "added_us": [{key: round(value, 2) for key, value in row.items()} for row in rows],
                "flat": round(flat, 2),
                "recalled_ms": [
                    {key: round(value, 3) for key, value in row.items()} for row in memory
                ],
                "watched_us": [
                    {key: round(value, 1) for key, value in row.items()} for row in options
                ],
            }
        )
    )


if __name__ == "__main__":
    main()
