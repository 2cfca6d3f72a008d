"""The plan of one compaction, what is known of the model (sizes in characters and in tokens), and
the size at which a compaction is due before any refusal.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import compress
from operator import not_
from string import ascii_letters
from typing import TYPE_CHECKING, Any

from compacter.compaction.conversation import is_inserted
from compacter.messages.format import Message
from compacter.overflow import TokenLimit

if TYPE_CHECKING:
    from compacter.compaction.conversation import Conversation
    from compacter.events import Trigger

DEFAULT = 4.0
"""Default characters per token: OpenAI's rule of thumb for English."""
# Characters per token outside of which a sample is taken for an error in one of its two sizes.
_LEAST = 0.25
_MOST = 20.0
# Most characters per token that text may have; English has 4 to 5. Above it are pictures lighter
# than estimated.
_MOST_TEXT = 6.0
# Smallest sample to learn from, in tokens; a smaller one is dominated by the chat template.
_FEWEST_TOKENS = 50
_LETTERS = ascii_letters.encode()
# Tokens that a chat template may put around a message.
_TEMPLATE = 8
MARGIN = 0.97
"""Share of the limit to aim at, as sizes in tokens are estimates."""


@dataclass(slots=True)
class Calibration:
    """Facts learnt about a model from the provider's numbers: those of a token-limit error, or the
    usage of a reply.
    """

    chars_per_token: float = DEFAULT
    window: int | None = None
    learnt: bool = False
    summarizer_window: int | None = None
    """Window in tokens of the model that summarizes; ``None``: it is the same model."""
    scale: float = 1.0
    """Tokens by the provider's count for each one by the estimate for the script
    (``recall/weight.py``)."""
    taken: int = 0
    """Input tokens of the largest request that was answered."""
    refused: int = 0
    """Estimated tokens of the smallest request that was refused without a number; 0 if none was."""
    is_bracketed: bool = False
    """Whether ``window`` is only the middle between ``taken`` and ``refused``."""
    warned: bool = False
    """Whether the unknown window was already reported in an event; the trigger cannot work without
    it."""

    def learn(self, characters: int, tokens: int, of_one: float = 0.0) -> None:
        """Learn from a request whose size is known in both units. Empty, tiny and implausible
        samples are ignored.

        ``of_one`` is the estimated size of one of the characters in tokens, by their script; 0 if
        that is unknown.
        """
        if tokens >= _FEWEST_TOKENS and _LEAST <= characters / tokens <= _MOST:
            self.chars_per_token = characters / tokens
            self.learnt = True
            if of_one:
                self.scale = tokens / (characters * of_one)

    def state_window(self, window: int) -> None:
        """Take the window, in tokens, that a refusal states."""
        self.window = window
        self.is_bracketed = False
        self.refused = 0
        if window < self.taken:  # Another server took that request, or this one with more memory.
            self.taken = 0

    def assume_window(self, window: int | None) -> None:
        """Take a window from a table or a record, unless one is known or a larger request was
        answered.
        """
        if self.window is None and window is not None and window >= self.taken:
            self.window = window

    def take(self, tokens: int) -> None:
        """Learn from a request of so many input tokens that was answered: a smaller window, or a
        refusal of less, no longer holds.
        """
        if tokens <= self.taken:
            return
        self.taken = tokens
        if self.window is not None and tokens > self.window:
            self.window = None
            self.is_bracketed = False
        if tokens >= self.refused:
            self.refused = 0
        self._bracket()

    def refuse(self, tokens: int) -> None:
        """Learn from a request of an estimated size that was refused without a number."""
        self.refused = min(tokens, self.refused or tokens)
        if self.taken >= self.refused:  # The window has become smaller since.
            self.taken = 0
        if self.window is not None and self.refused < self.window and self.learnt:
            self.window = None
        self._bracket()

    def _bracket(self) -> None:
        """Take the middle between what was answered and what was refused for the window, if no
        number states it.
        """
        if self.taken and self.refused and (self.window is None or self.is_bracketed):
            self.window = (self.taken + self.refused) // 2
            self.is_bracketed = True

    @property
    def text_per_token(self) -> float:
        """Characters per token of text alone, as summaries and quotes are."""
        return DEFAULT if self.chars_per_token > _MOST_TEXT else self.chars_per_token

    def tokens(self, characters: int) -> int:
        """Return an estimate in tokens."""
        return round(characters / self.chars_per_token)


def most_tokens(texts: Iterable[str]) -> int:
    """Return an upper bound on the number of tokens of these messages' texts, for any tokenizer.

    The worst case is one token per byte, for emoji and scripts unknown to the tokenizer. Blanks are
    part of the next word, and four letters count as three tokens (random base64 text has 1.4
    letters per token, words four and more).
    """
    most = 0
    for text in texts:
        solid = text.encode("utf-8", "surrogatepass").translate(None, b" ")
        letters = len(solid) - len(solid.translate(None, _LETTERS))
        most += len(solid) - letters // 4 + _TEMPLATE
    return most


# -- before any refusal: calls with ``trigger_tokens``, and ``History`` ----------------------------

MOST_RESERVED = 0.5
"""Largest share of the window that is reserved for the output: many programs set the output limit
to the whole window, which would leave no room for any input."""
TARGET_SHARE = 0.9
"""Size to compact to, as a share of the threshold, so that the next message does not trigger
again."""
GROWN = 1.25
"""Growth after which a history that stayed above the threshold is compacted again, as a multiple of
its size: each try costs a summary, and what must stay has not become smaller."""


def threshold(trigger: float, window: int | None, output_tokens: int = 0) -> int | None:
    """Return the input tokens from which a compaction is due; ``None`` for a share of an unknown
    window.

    Args:
        trigger: Tokens, or as a ``float`` a share of the window.
        window: The model's context window in tokens, if known.
        output_tokens: Output limit of the request; the threshold leaves room for it.
    """
    whole = isinstance(trigger, int)
    if window is None:
        return int(trigger) if whole else None
    wanted = int(trigger if whole else trigger * window)
    room = window - min(output_tokens, int(window * MOST_RESERVED))
    return max(1, min(wanted, room))


def due(*, size: int, tokens: int, limit: int, stuck: int = 0) -> int | None:
    """Return the size to compact to, in characters; ``None`` if no compaction is due.

    Args:
        size: Size of all that is sent, in characters.
        tokens: The same in tokens.
        limit: The threshold, in tokens.
        stuck: Size of a history that stayed above the threshold although it was compacted, in
            characters; 0 if there is none. It must have grown before the next try.
    """
    if tokens < limit or size <= stuck * GROWN:
        return None
    return max(1, int(size * limit * TARGET_SHARE / tokens))


# -- the plan --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CompactionPlan:
    """The messages that a compaction would replace. Sizes are data sizes in characters.

    ``before_compaction`` may return a copy with another cut: ``dataclasses.replace(plan,
    cut=...)``. A cut inside a step is moved to the beginning of the step. Protected messages are
    kept wherever the cut is.
    """

    conversation: Conversation
    """The messages as they were read: kinds, sizes, steps, and which must be kept verbatim
    (``protected``)."""
    cut: int = 0
    """Index of the first message of the tail. The messages before it, except ``held``, are the
    head."""
    strategy: str = ""
    """Name of the strategy; the names of several are joined by ``+``."""
    trigger: Trigger
    """``token_limit``, ``threshold``, ``quotes``, ``manual`` or ``prepared``."""
    model: str | None = None
    """Name of the model, if the call has one."""
    calibration: Calibration
    """What is known of the model: its window, and its characters per token."""
    target: int | None = None
    """Largest size of the messages afterwards; ``None`` if unknown."""
    reserved: int = 0
    """Part of the target to leave free for quotes; at most half of the room is."""
    summary: str | None = None
    """Summary given by the caller, used instead of the model's."""
    must: bool = False
    """Whether something must be compacted, whatever ``preserve_recent_turns`` is."""
    is_chosen: bool = False
    """Whether a hook has set the cut."""
    attempt: int = 1
    """Number of the round in its call."""
    digest: str = ""
    """Digest that identifies the conversation in events."""
    token_limit: TokenLimit | None = None
    """The refusal that requires the compaction."""

    def __repr__(self) -> str:
        return f"CompactionPlan(cut={self.cut}, strategy={self.strategy!r})"

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages, in order."""
        return self.conversation.messages

    @property
    def wire_format(self) -> str:
        """``openai``, ``anthropic``, ``responses``, ``gemini`` or ``bedrock``."""
        return self.conversation.format.name

    @property
    def held(self) -> tuple[int, ...]:
        """Indexes before the cut of messages to keep verbatim: system, pinned, and the last user
        message.
        """
        return tuple(compress(range(self.cut), self.conversation.protected))

    @property
    def compacted(self) -> tuple[int, ...]:
        """Indexes of the head, ascending."""
        return tuple(compress(range(self.cut), map(not_, self.conversation.protected)))

    # Its name up to 0.3, for one version.
    folded = compacted

    @property
    def prior(self) -> int | None:
        """Index of an earlier summary message, which is compacted too; ``None`` if there is
        none.
        """
        prior = self.conversation.prior
        return prior if prior in self.compacted else None

    @property
    def original_data_size(self) -> int:
        """Size of all messages, in characters."""
        return self.conversation.size

    @property
    def head_size(self) -> int:
        """Size of the messages that would be compacted, in characters."""
        return self.conversation.heads[max(0, min(self.cut, len(self.messages)))]

    @property
    def tail_size(self) -> int:
        """Size of the messages to keep verbatim, held ones included, in characters."""
        return self.original_data_size - self.head_size

    @property
    def ratio(self) -> float:
        """Share of the head in the compactable size, from 0 to 1."""
        return round(self.head_size / (self.conversation.free or 1), 4)

    @property
    def replaced(self) -> tuple[Message, ...]:
        """The messages of the head, the earlier summary included."""
        return tuple(self.messages[index] for index in self.compacted)

    @property
    def head(self) -> tuple[Message, ...]:
        """The conversation's own messages that would be compacted, in order: without the earlier
        summary and the fillers beside it, which compacter has written.
        """
        return self._own(self.compacted)

    @property
    def tail(self) -> tuple[Message, ...]:
        """The conversation's own messages from the cut on, verbatim."""
        return self._own(range(self.cut, len(self.messages)))

    @property
    def staying(self) -> tuple[int, ...]:
        """Indexes of the messages to keep verbatim, ascending."""
        return (*self.held, *range(self.cut, len(self.messages)))

    @property
    def kept(self) -> tuple[Message, ...]:
        """The messages to keep verbatim, in order."""
        return tuple(self.messages[index] for index in self.staying)

    def _own(self, indexes: Iterable[int]) -> tuple[Message, ...]:
        """Return the messages at these indexes that compacter has not inserted."""
        prior = self.prior
        form = self.conversation.format
        messages = (self.messages[index] for index in indexes if index != prior)
        return tuple(message for message in messages if not is_inserted(message, form))

    @property
    def named(self) -> dict[str, Any]:
        """Fields of events that say why it is made, in which call and conversation."""
        return {
            "trigger": self.trigger,
            "model": self.model,
            "attempt": self.attempt,
            "conversation": self.digest,
        }

    @property
    def facts(self) -> dict[str, Any]:
        """``named``, and the numbers of the token limit that requires the compaction."""
        limit = self.token_limit or TokenLimit()
        return self.named | {"limit": limit.limit, "requested": limit.requested}

    def is_met_by(self, size: int) -> bool:
        """Return whether messages of this size are within the target.

        Args:
            size: Data size in characters.
        """
        return self.target is None or size <= self.target

    @property
    def has_budget(self) -> bool:
        """Whether a budget was given by hand, all of which is to be used."""
        return self.trigger == "manual" and self.target is not None

    @property
    def is_satisfied(self) -> bool:
        """Whether a compaction by hand has nothing to do, as the messages are within its budget."""
        is_met = self.has_budget and self.is_met_by(self.original_data_size)
        return is_met and self.summary is None
