"""Compact before the window is full, so that no request is refused."""

from __future__ import annotations

from typing import Any

from compacter import Compacter
from compacter.testing import ScriptedModel, ScriptedSummarizer

WINDOW = 1_000


def talk(compacter: Compacter) -> ScriptedModel:
    """Eighty turns, with a context window of 1,000 tokens."""
    model = ScriptedModel(window=WINDOW, replies="I see. Go on. " * 4)
    completion = compacter.wrap(model.completion)
    history: list[dict[str, Any]] = []
    for number in range(80):
        history.append(
            {
                "role": "user",
                "content": (f"Chapter {number}: the travellers reach the next village."),
            }
        )
        history.append(completion("any-model", history)["choices"][0]["message"])
    return model


def main() -> None:
    """Only when it must, and at seven tenths of the window."""
    summarizer = ScriptedSummarizer("The travellers went from village to village.")
    for name, compacter in (
        ("after a refusal", Compacter(summarizer=summarizer)),
        (
            "at 700 tokens",
            Compacter(summarizer=summarizer, trigger_tokens=700, min_calls_between=3),
        ),
    ):
        model = talk(compacter)
        largest = max(request.tokens for request in model.requests if not request.refused)
        print(
            f"{name:>16}: {compacter.totals.rounds} compactions, {model.rejected} refused, "
            f"largest request {largest} of {WINDOW} tokens"
        )


if __name__ == "__main__":
    main()
