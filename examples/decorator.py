"""Your own function, wrapped by a decorator."""

from __future__ import annotations

import asyncio
from typing import Any

from compacter import Compacter, compacted
from compacter.testing import ScriptedModel

Messages = list[dict[str, Any]]

model = ScriptedModel(window=300, replies="Noted, and filed under its date.")
compacter = Compacter(summarizer="extractive")


@compacter
def chat(messages: Messages, *, name: str = "any-model") -> str:
    """The text of the model's answer. Signature, docstring and types stay what they are."""
    return str(model.completion(name, messages)["choices"][0]["message"]["content"])


@compacted(compact_ratio=0.5, summarizer="extractive")
async def achat(messages: Messages) -> str:
    """Async alike. This one has a Compacter of its own; bare ``@compacted`` takes all the
    defaults.
    """
    return str((await model.acompletion("any-model", messages))["choices"][0]["message"]["content"])


def plainly(name: str, talk: Messages) -> str:
    """A function whose messages go by another name."""
    return str(model.completion(name, talk)["choices"][0]["message"]["content"])


def main() -> None:
    """Talk through one of them until it overflows, then send the same to the others."""
    history: Messages = []
    for number in range(30):
        history.append(
            {
                "role": "user",
                "content": (f"Invoice {number} is over {number * 17 + 90} euros, due in May."),
            }
        )
        history.append({"role": "assistant", "content": chat(history)})
    print(f"{chat.__name__}: {len(history)} messages, {compacter.totals.rounds} compactions")

    other = compacter.wrap(plainly, messages_param="talk")
    print(f"{other.__name__}: {other('any-model', history).strip()}")
    print(f"{achat.__name__}: {asyncio.run(achat(history)).strip()}")


if __name__ == "__main__":
    main()
