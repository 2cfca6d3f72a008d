"""The state of one call as far as it has got, and its sizes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from compacter.call.request import FEWEST_QUOTED, ConversationState, Request, facts_of
from compacter.call.world import DEFERRED, World
from compacter.compaction.sizes import Calibration, Sizes
from compacter.effects import Quote
from compacter.events import CompactionFailed, CompactionSkipped, Event, Trigger
from compacter.messages.replies import NO_ROOM
from compacter.options import Options
from compacter.overflow import TokenLimit

_FULL = 0.98
"""Share of the window from which prompt and reply count as filling it; servers reserve a few
tokens."""


@dataclass(eq=False)
class Attempt:
    """One call, and the request that it sends next."""

    options: Options
    """Options of the Compacter."""
    request: Request
    """Request that is sent next; at first the caller's own."""
    calibration: Calibration
    """Calibration of the model; updated by this call."""
    state: ConversationState = field(default_factory=ConversationState)
    """The conversation's state between calls."""
    learns: bool = True
    """Whether the size of every request is learnt, for the trigger."""
    watched: bool = True
    """Whether someone listens to events, such as that of a prompt that the server has truncated."""
    world: World = DEFERRED
    """Does what the call asks for; by default each step is left to who drives it."""
    quotes: bool = True
    """Whether quotes may be sent; not after a request with quotes was refused."""
    tried: list[str] = field(default_factory=list)
    """Descriptions of the steps that made the request smaller."""
    sought: bool = False
    """Whether this call has looked for quotes without room for them: once is enough."""

    @property
    def sizes(self) -> Sizes:
        """The sizes of this call."""
        request = self.request
        return Sizes(self.options, self.calibration, request.overhead, request.output_tokens or 0)

    @property
    def staying(self) -> int:
        """Size of what no compaction removes, in characters."""
        read = self.request.conversation
        return read.size - read.free - self.request.saved

    def room_for_quotes(self) -> tuple[int, int]:
        """Return the largest size that quotes may have, and how many characters are free (negative
        if the request is too large), counted in characters of the request's own script.
        """
        if self.options.recall is None:
            return 0, 0
        return self.sizes.quotes(self.request.size, self.request.tokens_of_one)

    @property
    def attempt(self) -> int:
        """Number of the round, from 1."""
        return len(self.tried) + 1

    @property
    def in_cool_down(self) -> bool:
        """Whether the last compaction of this conversation is so recent that the next one waits."""
        state = self.state
        return 0 < state.last_attempt_at_call >= state.calls - self.options.min_calls_between

    def target(self, limit: TokenLimit, chars_per_token: float = 0.0) -> int | None:
        """Return the largest size of the messages, in characters, with which the request fits;
        ``None`` if no limit is known.

        By the calibration's characters of a token, unless others are given.
        """
        return self.sizes.target(
            limit.limit, self.request.output_that_counts(limit), chars_per_token
        )

    def is_confirmed(self, limit: TokenLimit) -> bool:
        """Return whether a reply that was cut off has filled the window; True for any other sign of
        a token limit.

        It has if it is below the caller's output limit, and prompt and reply fill the window; if
        the window is unknown, if the reply has one token at most.
        """
        if limit.source != NO_ROOM:
            return True
        written = limit.output_tokens or 0
        allowed = self.request.output_tokens
        if allowed is not None and written >= allowed:
            return False
        window = self.calibration.window
        if window is None:
            return written <= 1
        return (limit.input_tokens or 0) + written >= window * _FULL

    async def emit(self, kind: type[Event], **facts: Any) -> None:
        """Send an event of this kind, with the names of model and conversation."""
        await self.world.emit(kind(**facts, **self.request.named))

    async def warn_of_unknown_window(self, trigger: Trigger) -> None:
        """Send the event that the option is a share of an unknown window, once for a model."""
        if not self.calibration.warned:
            self.calibration.warned = True
            await self.emit(CompactionSkipped, trigger=trigger, reason="unknown_window")

    async def emit_failure(
        self, trigger: Trigger, cause: BaseException | None, reason: str = ""
    ) -> None:
        """Send the event that the request could not be made smaller; what a ``FunctionError`` says
        is the reason.
        """
        facts = facts_of(cause)
        await self.emit(CompactionFailed, trigger=trigger, reason=reason or str(cause), **facts)

    async def quote(self, room: int, *, sent: bool = True) -> str:
        """Return quotes of up to so many characters, and add them to the request if ``sent``."""
        if room < FEWEST_QUOTED:
            return ""
        text: str = await self.world.quote(self.question(room, sent=sent))
        if text and sent:
            self.request = replace(self.request, quotes=text)
        return text

    def question(self, room: int, *, sent: bool = True, query: str = "") -> Quote:
        """Return what quotes of up to so many characters are found by."""
        request = self.request
        return Quote(
            request.original,
            request.conversation,
            room,
            request.archive,
            request.digest,
            request.tokens_of_one,
            sent,
            query,
        )
