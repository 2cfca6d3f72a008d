"""What has been learnt of a model: its window, and how many characters one of its tokens stands for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from string import ascii_letters

from compacter.overflow import TokenLimit

DEFAULT = 4.0
"""Characters per token before anything is known: OpenAI's rule of thumb for English."""
_LEAST, _MOST = 0.25, 20.0
_FEWEST_TOKENS = 50
"""A sample smaller than this says more about the chat template than about the text."""
_LETTERS = ascii_letters.encode()
_TEMPLATE = 8
"""Tokens that a chat template may put around a message."""


def most_tokens(texts: Iterable[str]) -> int:
    """More tokens than any tokenizer makes of these messages' texts.

    At worst one for each byte, in emoji or scripts that it never learnt; blanks go with the next word, and letters
    stand in fours for three (random base64 text comes to 1.4 letters a token, words to four and more).
    """
    most = 0
    for text in texts:
        solid = text.encode("utf-8", "surrogatepass").translate(None, b" ")
        letters = len(solid) - len(solid.translate(None, _LETTERS))
        most += len(solid) - letters // 4 + _TEMPLATE
    return most


@dataclass(slots=True)
class Calibration:
    """Learnt from the provider's own numbers: a token-limit error, or the usage of a reply."""

    chars_per_token: float = DEFAULT
    window: int | None = None
    learnt: bool = False
    summarizer_window: int | None = None
    """Window in tokens of the model that summarises, where it is another one; ``None``: the same model."""
    warned: bool = False
    """Whether it was told that the trigger has no window to take its share of."""

    def learn(self, characters: int, tokens: int) -> None:
        """Take in a request of known size on both scales. Empty, tiny and absurd samples are ignored."""
        if tokens < _FEWEST_TOKENS or characters <= 0:
            return
        ratio = characters / tokens
        if _LEAST <= ratio <= _MOST:
            self.chars_per_token = ratio
            self.learnt = True

    def learn_limit(self, found: TokenLimit) -> None:
        """Take in the limit that an error stated."""
        if found.limit:
            self.window = found.limit

    def tokens(self, characters: int) -> int:
        """Estimate in tokens."""
        return round(characters / self.chars_per_token)
