"""One call of a wrapped function: what it does, in the order in which it happens.

A `Call` begins with what is remembered, compacts if it is due, and sends its request, with quotes.
A refusal makes the request smaller (``smaller.py``) and sends it again, until it is answered or
given up; of a reply it learns. It is pure: it awaits what its world does, a `Performer`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING, Any

from tenacity import RetryCallState, Retrying, stop_after_attempt

from compacter.call.apart import APART
from compacter.call.request import (
    FEWEST_QUOTED,
    LEAST_CUT,
    ConversationState,
    Request,
    begin_ahead,
    calibrate,
    facts_of,
    missing_tokens,
)
from compacter.call.smaller import (
    advice,
    compact_history,
    compact_to,
    enforce_prepared,
    make_room,
    make_smaller,
)
from compacter.compaction.sizes import MARGIN, TARGET_SHARE, Calibration, Sizes
from compacter.effects import Quote
from compacter.errors import CompactionError, FunctionError, add_note
from compacter.events import (
    CompactionFailed,
    CompactionSkipped,
    Event,
    RetriesExhausted,
    SilentTruncation,
    Trigger,
)
from compacter.messages.refusals import NO_ROOM, SEALED
from compacter.messages.replies import Reply
from compacter.messages.usage import tokens_read
from compacter.options import Options, TriggerFacts
from compacter.overflow import TokenLimit

if TYPE_CHECKING:
    from collections.abc import Callable

    from compacter.call.perform import Performer

_FULL = 0.98
"""Share of the window from which prompt and reply count as filling it; servers reserve a few
tokens."""
_FAR_OVER = 1.5
"""Multiple of the threshold from which the cool-down is ignored."""
_ENOUGH = 1_000
"""Room in characters in which the best passage and its answer fit, with their frame; with more,
no quotes means that there are none."""


@dataclass(eq=False)
class Call:
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
    world: Performer = APART
    """Does what the call asks for; by default each step is left to who drives it."""
    quotes: bool = True
    """Whether quotes may be sent; not after a request with quotes was refused."""
    tried: list[str] = field(default_factory=list)
    """Descriptions of the steps that made the request smaller."""
    sought: bool = False
    """Whether this call has looked for quotes without room for them: once is enough."""

    async def complete(self) -> object:
        """Return the reply. Raises the exceptions of the call and those of ``recover``."""
        self.state.calls += 1
        if self.options.memory is not None:
            view = await self.world.look_up()
            self.request = self.request.with_view(view) or self.request
        late = self.state.late
        if late is not None:
            await self._compact_late(late)
        else:
            await self._compact_if_due()
        reply = await self._send()
        if reply.token_limit is None:
            return await self._accept(reply)
        self.state.tried = self.state.calls
        return await self.recover(reply)

    async def recover(self, refused: Reply) -> object:
        """Make the request smaller and call again, as long as that helps and is allowed.

        ``refused`` is the reply with the token limit. Raises the provider's own last exception,
        with a note that lists the rounds, if the call is given up; ``CompactionError`` if there is
        neither a summary nor a fallback.
        """
        if refused.token_limit is None or not self.is_confirmed(refused.token_limit):
            return refused.raw
        most = self.options.max_retries
        stop = stop_after_attempt(1 + most) if isinstance(most, int) else most
        rounds = RetryCallState(Retrying(stop=stop), fn=None, args=(), kwargs={})
        while refused.token_limit is not None:
            limit = calibrate(self, refused.token_limit)
            error = refused.error or RuntimeError("the reply says that the request is too long")
            rounds.set_exception((type(error), error, error.__traceback__))
            if stop(rounds):
                reason = "no rounds are left" if self.tried else "max_retries=0"
                return await self._give_up(refused, limit, reason)
            rounds.prepare_for_next_attempt()
            try:
                done = await make_smaller(self, limit, error)
            except CompactionError as failure:
                # Without a cause of its own: from the error for which the summary was needed.
                raise failure from failure.__cause__ or refused.error
            if not done:
                return await self._give_up(refused, limit, "nothing more can be reduced")
            self.tried.append(done)
            refused = await self._send()
        return refused.raw

    async def _send(self) -> Reply:
        """Send the request, with quotes for its question if messages were compacted, and return the
        reply.

        A token limit is in the reply; any other error is raised.
        """
        await self._add_quotes()
        request = self.request
        reply = await self.world.send(request.sent, request.options)
        if reply.token_limit is not None and not self.is_confirmed(reply.token_limit):
            return replace(reply, token_limit=None)
        return reply

    async def _give_up(self, refused: Reply, limit: TokenLimit, reason: str) -> object:
        """Raise the provider's own exception, with a note; return the reply if that refused."""
        is_sealed = limit.source == SEALED
        if refused.error and is_sealed and not self.tried:
            raise refused.error
        rounds = len(self.tried)
        target = self.target(limit)
        if self.tried and target is not None and self.staying > target:
            self.state.helpless = self.staying
        await self.tell(
            RetriesExhausted,
            rounds=rounds,
            reason=reason,
            attempt=rounds,
            limit=limit.limit,
            requested=limit.requested,
        )
        if self.tried:
            await self.world.forget()
        if refused.error is None:
            return refused.raw
        steps = "; ".join(f"round {number}: {step}" for number, step in enumerate(self.tried, 1))
        helps = "" if is_sealed else advice(self.request, self.calibration, limit.limit)
        add_note(
            refused.error, f"compacter gave up: {reason} ({steps or 'nothing was tried'}).{helps}"
        )
        raise refused.error

    # -- before the request ------------------------------------------------------------------------

    async def _compact_late(self, limit: TokenLimit) -> None:
        """Compact after a stream of the call before has ended in a token limit."""
        self.state.late = None
        target = self.target(limit)
        fits = target is not None and self.request.conversation.size <= target
        if fits or self.options.max_retries == 0:
            return
        try:
            await compact_history(self, target, "token_limit", limit)
        except CompactionError as error:
            await self.report_failure("token_limit", error.__cause__, "no summary could be had")

    async def _compact_if_due(self) -> None:
        """Compact if the request has reached the threshold. What was made ahead is also put in
        force if the request would exceed the window.
        """
        prepares = self.options.prepare_tokens is not None
        trigger = self.options.trigger_tokens
        if trigger is None and not prepares:
            return
        state = self.state
        window = self.calibration.window
        limit = self.sizes.trigger
        if isinstance(trigger, float) and limit is None:
            await self.skip_once("threshold")
        if state.calls == 1:
            return
        tokens = await self._estimate_tokens()
        if callable(trigger) and await self._decides(trigger, tokens):
            limit = tokens
        if (
            prepares
            and tokens >= min(limit or inf, (window or inf) * MARGIN)
            and (await enforce_prepared(self))
        ):
            tokens = await self._estimate_tokens()
        if limit is None:
            return
        target = self.sizes.below(limit, self.request.size, tokens, state.stuck)
        if target is None:
            return
        if self.is_held_back and tokens < limit * _FAR_OVER:
            await self.tell(CompactionSkipped, trigger="threshold", reason="cool_down")
        elif await compact_to(self, max(1, target - self.request.overhead), "threshold"):
            left = await self._estimate_tokens()
            state.stuck = self.request.size if left >= limit else 0

    async def _decides(self, trigger: Callable[[TriggerFacts], bool], tokens: int) -> bool:
        """Return whether the user's function wants a compaction; False if it fails."""
        state = self.state
        facts = TriggerFacts(
            tokens=tokens,
            window=self.calibration.window,
            messages=len(self.request.messages),
            calls=state.calls - state.tried,
        )
        try:
            return trigger(facts)
        except FunctionError as error:
            await self.report_failure("threshold", error)
            return False

    async def _estimate_tokens(self) -> int:
        """Return the estimated input tokens of the request, tools and other options included.

        The count of ``token_counter``; else the last usage, plus an estimate of the messages added
        since.
        """
        request = self.request
        state = self.state
        tokens = self.calibration.tokens
        if self.options.token_counter is not None:
            try:
                return self.options.token_counter(list(request.messages)) + tokens(request.overhead)
            except FunctionError as error:
                await self.report_failure("threshold", error)
        size = request.size
        if state.tokens and size >= state.characters:
            return state.tokens + tokens(size - state.characters)
        return tokens(size)

    # -- quotes ------------------------------------------------------------------------------------

    async def _add_quotes(self) -> None:
        """Add quotes for the question of the request, if messages were compacted.

        They only take room that is free. A question or an agent's step, for which there are quotes
        and no room, has the next compaction made now: it is due soon, as the request fills the
        window.
        """
        request = self.request
        if not self.quotes or (request.messages is request.original and not request.archive):
            return  # Nothing was compacted.
        is_last = bool(self.tried) and len(self.tried) == self.options.max_retries
        if (is_last and self.sizes.room is None) or request.conversation.last_user is None:
            # They may be refused, and then the request could not be sent without them.
            return
        wanted, free = self.room_for_quotes()
        text = await self.quote(min(wanted, free))
        if not text and self.sizes.room is not None and min(wanted, free) < min(wanted, _ENOUGH):
            await make_room(self, wanted, free)

    async def quote(self, room: int, *, sent: bool = True) -> str:
        """Return quotes of up to so many characters, and add them to the request if ``sent``."""
        if room < FEWEST_QUOTED:
            return ""
        request = self.request
        text = await self.world.quote(
            Quote(
                request.original,
                request.conversation,
                room,
                request.archive,
                request.digest,
                request.tokens_of_one,
                sent,
            )
        )
        if text and sent:
            self.request = replace(request, quotes=text)
        return text

    # -- the reply ---------------------------------------------------------------------------------

    async def _accept(self, reply: Reply) -> object:
        """Learn from the reply's usage, and return the reply.

        With a trigger, a prompt that the server has truncated is compacted and sent once more, if a
        round is allowed.
        """
        request = self.request
        calibration = self.calibration
        calibration.take(tokens_read(reply.raw))
        # What is learnt never depends on a hook, as it decides what is sent. To read a whole
        # history for its size alone would take too long once the model is known.
        learns = self.learns or not calibration.learnt or request.read is not None
        tokens = 0
        is_cut = False
        if learns or self.watched:
            tokens, is_cut = await self.read_usage(reply.raw)
        if not is_cut:
            if tokens and learns:
                self.note_usage(tokens)
            if self.options.prepare_tokens is not None:
                await begin_ahead(self, tokens)
            return reply.raw
        if self.options.trigger_tokens is None or self.options.max_retries == 0:
            return reply.raw
        target = int(tokens * TARGET_SHARE * calibration.chars_per_token) - request.overhead
        self.request = replace(request, quotes="")
        if await compact_to(self, max(1, target), "threshold"):
            with suppress(Exception):  # The first call has succeeded; its reply is returned.
                again = await self._send()
                if again.token_limit is None:
                    read, is_cut = await self.read_usage(again.raw)
                    if read and not is_cut:
                        self.note_usage(read)
                    return again.raw
        self.request = request
        return reply.raw

    async def read_usage(self, raw: object) -> tuple[int, bool]:
        """Return the tokens that the server has read, and whether it has silently truncated the
        prompt, of which it sends an event. The tokens are 0 if what a reply states is no number of
        them.
        """
        tokens = tokens_read(raw)
        expected = missing_tokens(self, tokens) if tokens else None
        if expected is None:
            return tokens, False
        if tokens < LEAST_CUT:
            return 0, False
        await self.tell(SilentTruncation, expected_tokens=expected, prompt_tokens=tokens)
        return tokens, True

    def note_usage(self, tokens: int) -> None:
        """Learn from the usage of a reply to the request."""
        request = self.request
        calibration = self.calibration
        calibration.learn(request.size, tokens, request.tokens_of_one)
        # Without the quotes: the next request may have others, or none.
        quotes = len(request.quotes)
        self.state.tokens = tokens - calibration.tokens(quotes)
        self.state.characters = request.size - quotes

    # -- sizes and limits --------------------------------------------------------------------------

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
    def is_held_back(self) -> bool:
        """Whether the last compaction of this conversation is so near that the next one waits."""
        return 0 < self.state.tried >= self.state.calls - self.options.min_calls_between

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

    async def tell(self, kind: type[Event], **facts: Any) -> None:
        """Send an event of this kind, with the names of model and conversation."""
        await self.world.emit(kind(**facts, **self.request.named))

    async def skip_once(self, trigger: Trigger) -> None:
        """Send the event that the option is a share of an unknown window, once for a model."""
        if not self.calibration.warned:
            self.calibration.warned = True
            await self.tell(CompactionSkipped, trigger=trigger, reason="unknown_window")

    async def report_failure(
        self, trigger: Trigger, cause: BaseException | None, reason: str = ""
    ) -> None:
        """Send the event that the request could not be made smaller; what a ``FunctionError`` says
        is the reason.
        """
        facts = facts_of(cause)
        await self.tell(CompactionFailed, trigger=trigger, reason=reason or str(cause), **facts)
