"""A function of your own, made safe by one line above it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compacter import Compacter, compacted
from compacter.testing import ScriptedModel

model = ScriptedModel(window=400, replies="Noted. " * 10)
compacter = Compacter(summarizer="extractive")


@compacter
def chat(messages: Sequence[dict[str, Any]], *, name: str = "any-model") -> str:
    """The text of the model's answer. Signature, docstring and types stay what they are."""
    return str(model.completion(name, messages)["choices"][0]["message"]["content"])


@compacted(compact_ratio=0.5, summarizer="extractive")
def ask(prompt: Sequence[dict[str, Any]]) -> str:
    """A Compacter of its own, with its own options; bare ``@compacted`` works too."""
    return chat.__wrapped__(prompt)  # type: ignore[attr-defined, no-any-return]


def main() -> None:
    """Talk through each of them."""
    history: list[dict[str, Any]] = []
    for number in range(30):
        history.append(
            {"role": "user", "content": f"Invoice {number} is over {number * 17 + 90} euros, due in May."}
        )
        history.append({"role": "assistant", "content": chat(history)})
    print(
        f"{chat.__name__}: {len(history)} messages, {compacter.totals.rounds} compactions, {model.rejected} refusals"
    )


if __name__ == "__main__":
    main()
