"""The facts about a model that are learnt from its refusals and replies, and kept from one call to
the next: its window, and how many characters a token of it has.
"""

from __future__ import annotations

from dataclasses import dataclass

CHARS_PER_TOKEN = 4.0
"""Characters per token of an unknown model: OpenAI's rule of thumb for English."""
# Bounds of the characters per token of a sample; outside of them one of its two sizes is wrong.
_LEAST_CHARS_PER_TOKEN = 0.25
_MOST_CHARS_PER_TOKEN = 20.0
# Most characters per token that text may have; English has 4 to 5. More means that pictures cost
# less than estimated.
_MOST_TEXT = 6.0
# Smallest window that a refusal may state, in tokens: three sentences. A smaller number counts
# something else.
_LEAST_WINDOW = 100
# Smallest window of a summarizer, in tokens: the prompt alone takes most of it.
_LEAST_FOR_PROMPT = 256
# Smallest sample to learn from, in tokens; a smaller one is dominated by the chat template.
_FEWEST_LEARNT = 50


@dataclass(slots=True)
class Calibration:
    """Facts about one model on one server: its window in tokens, and how many characters a token
    has. They come from the numbers in refusals and from the usage in replies.
    """

    chars_per_token: float = CHARS_PER_TOKEN
    window: int | None = None
    learnt: bool = False
    summarizer_window: int | None = None
    """Window in tokens of the model that summarizes; ``None`` if this model does."""
    scale: float = 1.0
    """Tokens by the provider's count for each one by the estimate for the script
    (``lines/weight.py``)."""
    taken: int = 0
    """Input tokens of the largest request that was answered."""
    refused: int = 0
    """Estimated tokens of the smallest request that was refused without a number; 0 before the
    first."""
    is_bracketed: bool = False
    """Whether ``window`` is only the middle between ``taken`` and ``refused``."""
    is_stated: bool = False
    """Whether a refusal has stated ``window``."""
    compactions: int = 0
    """Compactions below the window since a refusal has last shown it."""
    patience: int = 1
    """Such compactions after which the window is tried again; doubled by each refusal then."""
    doubted: int = 0
    """The window that the last refusal stated, in tokens."""
    wants_thinking: bool | None = None
    """Whether the model refuses requests without its older thinking; ``None`` if unknown."""
    caches: bool | None = None
    """Whether the provider has read a part of a prompt from its cache; ``None`` before a usage."""
    truncated: int = 0
    """Input tokens of the last reply whose server was found to have truncated the prompt."""
    warned: bool = False
    """Whether the unknown window was already reported in an event; the trigger cannot work without
    it."""

    def learn(self, characters: int, tokens: int, of_one: float = 0.0) -> None:
        """Learn from a request whose size is known in both units. Empty, tiny and implausible
        samples are ignored.

        ``of_one`` is the estimated number of tokens of one character, by the script; 0 if it is
        unknown.
        """
        if (
            tokens >= _FEWEST_LEARNT
            and _LEAST_CHARS_PER_TOKEN <= characters / tokens <= _MOST_CHARS_PER_TOKEN
        ):
            self.chars_per_token = characters / tokens
            self.learnt = True
            if of_one:
                self.scale = tokens / (characters * of_one)

    def state_window(self, window: int) -> bool:
        """Take over the window, in tokens, that a refusal states, and return whether it is
        plausible.

        If the server has answered a larger request before, one such refusal is not believed. If two
        refusals in a row state it, another server has taken the place of the old one, and the
        window is taken over.
        """
        can_be = window >= _LEAST_WINDOW and (window >= self.taken or window == self.doubted)
        self.doubted = window
        if not can_be:
            return False
        self._confirm(is_same=window == self.window)
        self.window = window
        self.is_stated = True
        self.is_bracketed = False
        self.refused = 0
        if window < self.taken:  # Another server, or more memory, answered that request.
            self.taken = 0
        return True

    def assume_window(self, window: int | None) -> None:
        """Use a window from a table or a record, unless one is known or a larger request was
        answered.
        """
        if self.window is None and window is not None and window >= self.taken:
            self.window = window

    def take(self, tokens: int) -> None:
        """Learn that a request with this many input tokens was answered. A window or a refused size
        that is smaller is dropped.
        """
        if tokens <= self.taken:
            return
        self.taken = tokens
        if tokens >= self.refused:
            self.refused = 0
        self._settle()

    def refuse(self, tokens: int) -> None:
        """Learn from a request of an estimated size that was refused without a number."""
        self._confirm()
        self.refused = min(tokens, self.refused or tokens)
        if self.taken >= self.refused:  # The window has become smaller since.
            self.taken = 0
        self._settle()

    def _confirm(self, *, is_same: bool = True) -> None:
        """Begin the count of compactions again, because a refusal has shown the window."""
        if not is_same:
            self.patience = 1
        elif self.compactions >= self.patience:
            self.patience *= 2
        self.compactions = 0

    def _settle(self) -> None:
        """Drop a window that was disproved. If no number states the window, use the middle between
        the largest request answered and the smallest refused.
        """
        window = self.window or 0
        if window < self.taken or (self.learnt and 0 < self.refused < window):
            self.window = None
            self.is_stated = False
            self.compactions = 0
            self.patience = 1
        if self.taken and self.refused and (self.window is None or self.is_bracketed):
            self.window = (self.taken + self.refused) // 2
            self.is_bracketed = True

    @property
    def window_of_summarizer(self) -> int | None:
        """Window in tokens of the model that summarizes; ``None`` if that is unknown. A window that
        holds no prompt is another model's.
        """
        window = self.summarizer_window or self.window
        return window if window and window >= _LEAST_FOR_PROMPT else None

    @property
    def text_per_token(self) -> float:
        """Characters per token of text alone, for summaries and quotes."""
        return CHARS_PER_TOKEN if self.chars_per_token > _MOST_TEXT else self.chars_per_token

    def tokens(self, characters: int) -> int:
        """Return the estimated number of tokens of so many ``characters``."""
        return round(characters / self.chars_per_token)

    def tokens_of_one(self, script: float) -> float:
        """Return a cautious estimate of the tokens of one character: by the calibration, or by the
        ``script`` if that is more.
        """
        return max(script * self.scale, self.learnt / self.chars_per_token)
