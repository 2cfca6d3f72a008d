"""Many conversations at once with one Compacter. Two calls that need the same compaction make it
once.
"""

from __future__ import annotations

import asyncio
from typing import Any

from compacter import Compacter
from compacter.testing import ScriptedModel, ScriptedSummarizer

model = ScriptedModel(window=500, replies="Understood. " * 8)
summarizer = ScriptedSummarizer(
    "Which orders are in stock, and when each is sent; one of them is urgent."
)
compacter = Compacter(summarizer=summarizer.acall)
completion = compacter.wrap(model.acompletion)


async def converse(customer: str) -> list[dict[str, Any]]:
    """One conversation of twenty turns."""
    history: list[dict[str, Any]] = []
    for number in range(20):
        history.append(
            {
                "role": "user",
                "content": (f"{customer}: is order {number} in stock, and when is it sent?"),
            }
        )
        reply = await completion("any-model", history)
        history.append(reply["choices"][0]["message"])
    return history


async def main() -> None:
    """Five customers, then one history sent twice at the same moment."""
    histories = await asyncio.gather(
        *(converse(name) for name in ("Ada", "Ben", "Cleo", "Dai", "Eve"))
    )
    print(f"{sum(map(len, histories))} messages in {len(histories)} conversations at once")
    print(f"{compacter.totals.rounds} compactions, {model.rejected} refusals")

    long = [
        {"role": "user", "content": f"Zoe: what about order {number}? " + "It is urgent. " * 5}
        for number in range(30)
    ]
    before = compacter.totals
    await asyncio.gather(completion("any-model", long), completion("any-model", long))
    after = compacter.totals
    print(
        f"two calls, one history: {after.rounds - before.rounds} made, "
        f"{after.reused - before.reused} reused"
    )


if __name__ == "__main__":
    asyncio.run(main())
