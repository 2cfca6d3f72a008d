"""Streams, sync and async: a refusal is handled before you receive the first token."""

from __future__ import annotations

import asyncio
from typing import Any, TypeAlias

from compacter import Compacter
from compacter.testing import ScriptedModel

# This provider opens the stream, says whose turn it is, and only then refuses: inside HTTP 200, as
# some do.
model = ScriptedModel(
    window=400, replies="Here it is, word by word.", overflow_at="after_role", chunk_size=6
)
compacter = Compacter(summarizer="extractive")

Chunk: TypeAlias = Any
"""Whatever the provider streams; here a dict in OpenAI's shape."""

HISTORY: list[dict[str, Any]] = [
    {
        "role": "assistant" if turn % 2 else "user",
        "content": f"Part {turn} of a long story. " + "It goes on and on. " * 5,
    }
    for turn in range(31)
]


def text(chunk: Chunk) -> str:
    """What a chunk adds to the answer."""
    return "".join(choice["delta"].get("content") or "" for choice in chunk["choices"])


def main() -> None:
    """Each kind once."""
    completion = compacter.wrap(model.completion)
    with completion("any-model", HISTORY, stream=True) as stream:
        print("sync: ", "|".join(filter(None, map(text, stream))))

    async def listen() -> None:
        acompletion = compacter.wrap(model.acompletion)
        words = [
            text(chunk) async for chunk in await acompletion("any-model", HISTORY, stream=True)
        ]
        print("async:", "|".join(filter(None, words)))

    asyncio.run(listen())
    print(
        f"{len(model.streams)} streams opened, {model.rejected} refused, "
        f"{compacter.totals.rounds} compaction"
    )


if __name__ == "__main__":
    main()
