"""Recall with an embedder: a question finds a passage that has the same meaning in other words."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from compacter import Compacter, Quotes
from compacter.lines.passages import Passage
from compacter.testing import ScriptedModel

Vector = Sequence[float]
ELSEWHERE = ["How far is the moon?", "What should I cook tonight?", "How do I sort a list?"]
"""Questions that hardly any conversation answers: how close passages are to these is no closeness.
One model gives unrelated texts a cosine of 0.1, another 0.7."""
LEAST_CLOSE = 0.2
"""Closeness from which a passage answers: 0 is as close as to the questions above, 1 the same
text."""


class ByMeaning:
    """A function for ``Quotes(search=...)`` that compares vectors; each text is embedded once."""

    def __init__(self, embed: Callable[[list[str]], Sequence[Vector]]) -> None:
        self._embed = embed
        self._vectors: dict[str, list[float]] = {}

    def __call__(self, question: str, passages: Sequence[Passage]) -> list[float]:
        """Return how close each passage is to the question; 0 for one that does not answer it."""
        texts = [passage.text for passage in passages]
        new = [text for text in {*texts, question, *ELSEWHERE} if text not in self._vectors]
        for text, vector in zip(new, self._embed(new) if new else [], strict=True):
            length = math.hypot(*vector) or 1.0
            self._vectors[text] = [number / length for number in vector]
        usual = sum(self._cosine(text, other) for text in texts for other in ELSEWHERE)
        usual /= max(1, len(texts) * len(ELSEWHERE))
        close = [(self._cosine(text, question) - usual) / max(1e-9, 1 - usual) for text in texts]
        # Squares, as most passages are somewhat close to any question.
        return [max(0.0, each) ** 2 if max(close) >= LEAST_CLOSE else 0.0 for each in close]

    def _cosine(self, one: str, other: str) -> float:
        return sum(a * b for a, b in zip(self._vectors[one], self._vectors[other], strict=True))


SAME_MEANING = (("boathouse", "marina shed"), ("key", "unlock"))


def embed(texts: list[str]) -> list[list[float]]:
    """One vector for each text. It stands for a real model's, such as
    ``SentenceTransformer("...").encode``, or a provider's.
    """
    lowered = [text.lower() for text in texts]
    meant = [
        [float(any(word in text for word in words)) for words in SAME_MEANING] for text in lowered
    ]
    return [[*vector, 0.3] for vector in meant]


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


if __name__ == "__main__":
    print("by words:", "copper kettle" in ask(Quotes()))
    print("by meaning:", "copper kettle" in ask(Quotes(search=ByMeaning(embed))))
