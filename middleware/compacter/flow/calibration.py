"""What has been learnt of a model: its window, and how many characters one of its tokens stands for."""

from __future__ import annotations

from dataclasses import dataclass

from compacter.overflow import TokenLimit

DEFAULT = 4.0
"""Characters per token before anything is known: OpenAI's rule of thumb for English."""
_LEAST, _MOST = 0.25, 20.0
_FEWEST_TOKENS = 50
"""A sample smaller than this says more about the chat template than about the text."""


@dataclass(slots=True)
class Calibration:
    """Learnt from the provider's own numbers: a token-limit error, or the usage of a reply."""

    chars_per_token: float = DEFAULT
    window: int | None = None
    learnt: bool = False
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
