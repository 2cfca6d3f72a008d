"""Recall with an embedder: a question finds a passage that has the same meaning in other words."""

from __future__ import annotations

import hashlib
from typing import Any

from compacter import Compacter, Quotes
from compacter.testing import ScriptedModel

SAME_MEANING = (("boathouse", "marina shed"), ("key", "unlock"))


def embed(texts: list[str]) -> list[list[float]]:
    """One vector for each text. It stands for a real model's, such as
    ``Quotes(embed="openai/text-embedding-3-small")``, or ``SentenceTransformer("...").encode``.
    """
    vectors = []
    for text in texts:
        lower = text.lower()
        meant = [float(any(word in lower for word in words)) * 4 for words in SAME_MEANING]
        digest = hashlib.sha256(text.encode()).digest()
        vectors.append([*meant, *(byte / 255 for byte in digest[:14])])
    return vectors


def ask(recall: Quotes) -> str:
    """The quotes that the model gets with a question about the first day."""
    model = ScriptedModel(window=1_000, replies="Noted.")
    completion = Compacter(summarizer="extractive", recall=recall).wrap(model.completion)
    history: list[dict[str, Any]] = []
    said = "The key of the boathouse hangs behind the copper kettle."
    for day in range(1, 151):
        history.append({"role": "user", "content": said})
        history.append(completion(model="any-model", messages=history)["choices"][0]["message"])
        said = f"Day {day}: we sold {day * 7 % 90} tickets."
    history.append({"role": "user", "content": "How can one unlock the marina shed?"})
    completion(model="any-model", messages=history)
    return str(model.requests[-1].messages[-2]["content"])


print("by words:", "copper kettle" in ask(Quotes()))
print("by meaning:", "copper kettle" in ask(Quotes(embed=embed)))
