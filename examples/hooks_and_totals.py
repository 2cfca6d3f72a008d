"""Hooks for one event or all of them, a veto, totals, and the log."""

from __future__ import annotations

import logging
from typing import Any

from compacter import Compacter, CompactionEvent, CompactionPlan
from compacter.events import Event
from compacter.testing import ScriptedModel, ScriptedSummarizer

model = ScriptedModel(window=600, replies="Done. " * 12)


def looked_over(plan: CompactionPlan) -> CompactionPlan | bool:
    """Sees each plan before it is carried out; False forbids it, a changed copy is carried out
    instead.
    """
    print(
        f"  planned: {len(plan.head)} of {len(plan.messages)} messages, "
        f"{plan.ratio:.0%} of what may go"
    )
    return True


compacter = Compacter(
    summarizer=ScriptedSummarizer(
        "They moved files from one folder to another.", returns="completion"
    ),
    before_compaction=looked_over,
)


@compacter.on_compaction
def told(event: CompactionEvent) -> None:
    """After the compaction, before the request is sent again."""
    print(
        f"  {event.strategy}: {event.original_data_size} to {event.compacted_data_size} characters"
    )
    if event.limit:
        print(f"  the provider said: {event.requested} tokens, and {event.limit} are allowed")
    print(f"  the summary took {event.input_tokens} tokens")


@compacter.on_event
def noted(event: Event) -> None:
    """Everything: started, failed, skipped, reused, adjusted, given up."""
    print(f"  {type(event).__name__}")


def main() -> None:
    """Talk until it has happened twice."""
    # sizes and counts, never a message's text
    logging.basicConfig(level=logging.INFO, format="  log: %(message)s")
    completion = compacter.wrap(model.completion)
    history: list[dict[str, Any]] = []
    while compacter.totals.rounds < 2:
        history.append(
            {
                "role": "user",
                "content": f"Please move file {len(history)} as well, and tell me when it is done.",
            }
        )
        before = compacter.totals.rounds
        history.append(completion("any-model", history)["choices"][0]["message"])
        if compacter.totals.rounds > before:
            print(f"after {len(history)} messages")
    print(compacter.totals)


if __name__ == "__main__":
    main()
