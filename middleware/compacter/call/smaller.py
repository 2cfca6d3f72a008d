"""The request of one wrapped call, and the ways to make it smaller.

Pure. In this order: the next way to try, a message that is shortened, a compaction, one that was
made ahead, and the numbers that these go by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from compacter.call.apart import APART
from compacter.call.prepare import WORTH
from compacter.call.request import ConversationState, Request, facts_of, with_less_retrieved
from compacter.call.sizes import FEWEST_QUOTED, target_in_proportion
from compacter.compaction.cut import plan
from compacter.compaction.plan import Calibration, CompactionPlan, target_characters
from compacter.compaction.run import compact
from compacter.compaction.trigger import threshold
from compacter.errors import CompactionError, FunctionError
from compacter.events import (
    CompactionFailed,
    CompactionReused,
    CompactionSkipped,
    MaxTokensAdjusted,
    MessageShortened,
    Trigger,
)
from compacter.messages.format import Message
from compacter.options import Options, Retrieved
from compacter.overflow import TokenLimit

if TYPE_CHECKING:
    from compacter.call.wrapped_call import WrappedCall

_LEAST_OUTPUT = 64
"""Smallest output limit, in tokens, worth retrying with; below it the history is compacted."""
_OUTPUT_MARGIN = 8
"""Tokens left free when the output limit is lowered, for those that a chat template adds."""


@dataclass(eq=False)
class SmallerRequest:
    """The request that is sent next, which becomes smaller step by step."""

    options: Options
    """Options of the Compacter."""
    request: Request
    """Request that is sent next; at first the caller's own."""
    calibration: Calibration
    """Calibration of the model; updated by this call."""
    state: ConversationState = field(default_factory=ConversationState)
    """The conversation's state between calls, for the trigger."""
    quotes: bool = True
    """Whether quotes may be sent; not after a request with quotes was refused."""
    world: WrappedCall = APART
    """What the call asks for. By default each step is left to who drives it, see ``apart.py``."""
    tried: list[str] = field(default_factory=list)
    """Descriptions of the steps that made the request smaller."""

    async def make_smaller(self, found: TokenLimit) -> str:
        """Make the request smaller, and return a description of the step; empty if there is no way
        to.
        """
        request = self.request
        target = self.target(found)
        if request.quotes:
            self.quotes = False
            self.request = request = replace(request, quotes="")
            # Without a number, the request is first sent without them, unless it is the last try.
            last = len(self.tried) + 1 == self.options.max_retries
            if not last if target is None else target >= request.conversation.size:
                return "quotes left out"
        lowered = self.find_lower_output(found) if found.kind == "input_plus_output" else None
        if lowered is not None:
            before = request.output_tokens or 0
            self.request = replace(
                request,
                options={**request.options, request.output_option: lowered},
                output_tokens=lowered,
            )
            event = MaxTokensAdjusted(
                before=before,
                after=lowered,
                limit=found.limit,
                attempt=len(self.tried) + 1,
                **request.named,
            )
            await self.world.emit(event)
            return f"{request.output_option} lowered from {before} to {lowered}"
        step = ""
        if self.options.retrieved is not None:
            step = await self._shorten_message(self.options.retrieved, target, found)
            if not step and (target is None or self.staying > target):
                # To compact all that may be compacted would not suffice, as far as is known.
                step = await self._shorten_message(None, target, found)
        is_helpless = 0 < self.state.helpless <= self.staying
        if not step and is_helpless and (target is None or self.staying > target):
            return ""  # It was too much before, although all else was compacted.
        return step or (await self.compact_history(target, found))

    async def _shorten_message(
        self, how: Retrieved | None, target: int | None, found: TokenLimit
    ) -> str:
        """Shorten retrieved text, or tool results, in the last user message; return what was done,
        if anything.
        """
        try:
            shorter = with_less_retrieved(self.request, how, target)
        except FunctionError as error:
            await self.emit_failed("token_limit", str(error), error)
            return ""
        if shorter is None:
            return ""
        self.request = shorter
        read = shorter.conversation
        size = read.sizes[read.last_user or 0]
        facts = {"limit": found.limit, "attempt": len(self.tried) + 1, **shorter.named}
        await self.world.emit(MessageShortened(before=size, after=size - shorter.saved, **facts))
        return f"the last user message shortened by {shorter.saved:,} characters"

    async def compact_history(
        self, target: int | None, found: TokenLimit | None = None, quotes: int = 0
    ) -> str:
        """Compact the messages, or use a compaction that was made ahead or by another call; return
        a description, empty if unchanged.

        ``found`` and ``quotes`` are why it is made, see ``plan``. The memory is always read again:
        another call may have stored a record since this one began. Raises ``CompactionError`` if
        there is neither a summary nor a fallback.
        """
        prepared = False
        if self.options.prepare_tokens is not None:
            prepared = await self.enforce_prepared()
        if prepared and (target is None or self.request.conversation.size <= target):
            return "a compaction that was made ahead"
        planned = self.plan(target, found, quotes)
        request = self.request
        if self.options.memory is not None and planned.cut:
            head = tuple(map(planned.messages.__getitem__, planned.compacted))
            view = await self.world.look_up(head)
            if view is not None and self.keeps_pins(view):
                smaller = replace(request, messages=tuple(view), read=None)
                if smaller.size < request.size:
                    self.request = smaller
                    reused = CompactionReused(
                        messages_before=len(request.messages),
                        messages_after=len(smaller.messages),
                        **planned.named,
                    )
                    await self.world.emit(reused)
                    return "a compaction that another call had just made"
        made = await compact(self.options, planned, self.world)
        if made is None:
            return ""
        after = made.conversation
        await self.world.remember(after.messages, made.change)
        await self.world.emit(made.event)
        self.request = replace(request, messages=after.messages, read=after)
        event = made.event
        sizes = f"{event.original_data_size:,} to {event.compacted_data_size:,} characters"
        return f"{sizes} ({event.strategy})"

    async def compact_to(self, target: int, quotes: int = 0) -> bool:
        """Compact the messages to this size, in characters, before any refusal, and return whether
        it succeeded.

        For the trigger, or if ``quotes`` is not 0 for that much room for quotes, in characters. A
        failure is sent as an event, not raised.
        """
        state = self.state
        state.tried = state.calls
        try:
            done = await self.compact_history(target, quotes=quotes)
        except CompactionError as error:
            trigger: Trigger = "quotes" if quotes else "threshold"
            await self.emit_failed(trigger, "no summary could be had", error.__cause__)
            return False
        if done:
            state.tokens = state.stuck = 0
        elif not quotes:
            state.stuck = self.request.size
        return bool(done)

    @property
    def staying(self) -> int:
        """Size of what no compaction removes, in characters."""
        read = self.request.conversation
        return read.size - read.free - self.request.saved

    @property
    def is_held_back(self) -> bool:
        """Whether the last compaction of this conversation is so near that the next one waits."""
        state = self.state
        return (
            state.tried is not None and state.calls - state.tried <= self.options.min_calls_between
        )

    def plan(
        self, target: int | None, found: TokenLimit | None = None, quotes: int = 0
    ) -> CompactionPlan:
        """Return the plan of compacting the messages to a target size, in characters.

        ``found`` is the token limit that requires it, ``quotes`` the room for quotes, in
        characters, that it is made for; without either it is made for the trigger.
        """
        request = self.request
        conversation = request.conversation
        trigger: Trigger = "quotes" if quotes else "threshold"
        if target is not None:
            target += request.saved
        if found is not None:
            trigger = "token_limit"
            if target is not None and target >= conversation.size:
                # It fits by its characters, and was refused all the same: use the ratio of the
                # provider's numbers.
                target = target_in_proportion(request, found)
            quotes = self._room_kept_for_quotes(target)
        asked = CompactionPlan(
            conversation=conversation,
            reserved=quotes if quotes >= FEWEST_QUOTED else 0,
            trigger=trigger,
            calibration=self.calibration,
            model=request.model,
            attempt=len(self.tried) + 1,
            digest=request.digest,
            target=target,
            token_limit=found,
            must=found is not None,
        )
        return plan(self.options, asked)

    def _room_kept_for_quotes(self, target: int | None) -> int:
        """Return the room for quotes, in characters, that a refused request is to leave."""
        recall = self.options.recall
        conversation = self.request.conversation
        # Between an agent's steps there is no new question, so its steps need the room more than
        # quotes (issue 10).
        if recall is None or not self.quotes or target is None or not self.request.begins_turn:
            return 0
        room = max(0, target - conversation.size + conversation.free)
        wanted = recall.room_in_tokens(self.calibration.tokens(room))
        return int(wanted * self.calibration.chars_per_token)

    def find_lower_output(self, found: TokenLimit) -> int | None:
        """Return a lower output limit, in tokens, if the input alone fits; ``None`` if that does
        not help.
        """
        before = self.request.output_tokens
        if not self.options.adjust_max_tokens or not found.limit or not before:
            return None
        used = found.input_tokens or 0
        left = found.limit - used - _OUTPUT_MARGIN
        return left if used > 0 and _LEAST_OUTPUT <= left < before else None

    def keeps_pins(self, view: Sequence[Message]) -> bool:
        """Return whether a remembered view contains all pinned messages; some may have been pinned
        since.
        """
        request = self.request
        wanted = request.find_pinned(request.original)
        present = set(map(id, view)) if wanted else ()
        return all(id(request.original[index]) in present for index in wanted)

    async def enforce_prepared(self) -> bool:
        """Use the compaction of this conversation that was made ahead, and return whether there is
        one.
        """
        request = self.request
        view = await self.world.find_prepared()
        if view is None or not self.keeps_pins(view):
            return False
        smaller = replace(request, messages=tuple(view), read=None, quotes="")
        if smaller.size >= request.size * WORTH:
            return False
        self.request = smaller
        self.state.tokens = self.state.stuck = 0
        # First, as with a new one: a hook that repeats the call finds it.
        if self.options.memory is not None:
            await self.world.remember(view)
        await self.world.emit(
            CompactionReused(
                messages_before=len(request.messages),
                messages_after=len(smaller.messages),
                prepared=True,
                **request.named,
            )
        )
        return True

    def target(self, found: TokenLimit) -> int | None:
        """Return the largest size of the messages, in characters; ``None`` if no limit is known."""
        overhead = self.request.overhead
        output_tokens = self.request.output_tokens
        return target_characters(
            found, self.calibration, overhead=overhead, output_tokens=output_tokens
        )

    def threshold(self) -> int | None:
        """Return the input tokens from which the trigger compacts, with room for the output.

        ``None`` without the option ``trigger_tokens``, or if it is a share of an unknown window.
        """
        trigger = self.options.trigger_tokens
        if trigger is None:
            return None
        return threshold(trigger, self.calibration.window, self.request.output_tokens or 0)

    async def emit_skipped(
        self, trigger: Trigger, reason: Literal["cool_down", "unknown_window", "no_progress"]
    ) -> None:
        """Send the event that a compaction was due and does not take place."""
        await self.world.emit(
            CompactionSkipped(trigger=trigger, reason=reason, **self.request.named)
        )

    async def emit_failed(self, trigger: Trigger, reason: str, cause: BaseException | None) -> None:
        """Send the event that the request could not be made smaller; of a ``FunctionError`` the
        cause is named.
        """
        facts = {**facts_of(cause), **self.request.named}
        await self.world.emit(CompactionFailed(trigger=trigger, reason=reason, **facts))
