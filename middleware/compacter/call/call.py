"""One call of a wrapped function: what it does, in the order in which it happens.

A `Call` begins with what is remembered, compacts if it is due, and sends its request with quotes.
After a refusal it makes the request smaller (``reduce.py``) and sends it again, until it is
answered or given up; from a reply it learns. It is pure: it awaits the methods of its `World`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

from tenacity import RetryCallState, Retrying, stop_after_attempt

from compacter.call.attempt import Attempt
from compacter.call.reduce import (
    advice,
    compact_for_quotes,
    compact_to,
    enforce_prepared,
    reduce_request,
)
from compacter.call.request import LEAST_CUT, calibrate, missing_tokens
from compacter.compaction.sizes import MARGIN, TARGET_SHARE
from compacter.errors import CompactionError, FunctionError, add_note
from compacter.events import CompactionSkipped, RetriesExhausted, SilentTruncation
from compacter.messages.replies import SEALED, Reply, tokens_read
from compacter.options import TriggerFacts
from compacter.overflow import TokenLimit

if TYPE_CHECKING:
    from collections.abc import Callable

_FAR_OVER = 1.5
"""Multiple of the threshold from which the cool-down is ignored."""
_ENOUGH = 1_000
"""Room in characters in which the best passage and its answer fit, with their frame; with more,
no quotes means that there are none."""


@dataclass(eq=False)
class Call(Attempt):
    """One call from its first request to its reply."""

    async def complete(self) -> object:
        """Return the reply. Raises the exceptions of the call and those of ``recover``."""
        self.state.calls += 1
        if self.options.memory is not None:
            view = await self.world.look_up()
            self.request = self.request.with_view(view) or self.request
        await self._compact_if_due()
        reply = await self._send_with_quotes()
        if reply.token_limit is None:
            return await self._accept(reply)
        self.state.last_attempt_at_call = self.state.calls
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
            limit = calibrate(self.request, self.calibration, refused.token_limit)
            error = refused.error or RuntimeError("the reply says that the request is too long")
            rounds.set_exception((type(error), error, error.__traceback__))
            if stop(rounds):
                reason = "no rounds are left" if self.tried else "max_retries=0"
                return await self._give_up(refused, limit, reason)
            rounds.prepare_for_next_attempt()
            try:
                done = await reduce_request(self, limit, error)
            except CompactionError as failure:
                # Without a cause of its own: from the error for which the summary was needed.
                raise failure from failure.__cause__ or refused.error
            if not done:
                return await self._give_up(refused, limit, "nothing more can be reduced")
            self.tried.append(done)
            refused = await self._send_with_quotes()
        return refused.raw

    async def _send_with_quotes(self) -> Reply:
        """Send the request, with quotes for its question if messages were compacted, and return the
        reply.

        A token limit is in the reply; any other error is raised.
        """
        await self._add_quotes()
        request = self.request
        reply = await self.world.send(request.sent, request.options_sent)
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
            self.state.incompressible_size = self.staying
        await self.emit(
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
            await self.warn_of_unknown_window("threshold")
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
        target = self.sizes.below(limit, self.request.size, tokens, state.size_above_threshold)
        if target is None:
            return
        if self.in_cool_down and tokens < limit * _FAR_OVER:
            await self.emit(CompactionSkipped, trigger="threshold", reason="cool_down")
        elif await compact_to(self, max(1, target - self.request.overhead), "threshold"):
            left = await self._estimate_tokens()
            state.size_above_threshold = self.request.size if left >= limit else 0

    async def _decides(self, trigger: Callable[[TriggerFacts], bool], tokens: int) -> bool:
        """Return whether the user's function wants a compaction; False if it fails."""
        state = self.state
        facts = TriggerFacts(
            tokens=tokens,
            window=self.calibration.window,
            messages=len(self.request.messages),
            calls=state.calls - state.last_attempt_at_call,
        )
        try:
            return trigger(facts)
        except FunctionError as error:
            await self.emit_failure("threshold", error)
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
                await self.emit_failure("threshold", error)
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
        if not (self.quotes and request.is_compacted):
            return
        is_last = bool(self.tried) and len(self.tried) == self.options.max_retries
        if (is_last and self.sizes.room is None) or request.conversation.last_user is None:
            # They may be refused, and then the request could not be sent without them.
            return
        wanted, free = self.room_for_quotes()
        text = await self.quote(min(wanted, free))
        if not text and self.sizes.room is not None and min(wanted, free) < min(wanted, _ENOUGH):
            await compact_for_quotes(self, wanted, free)

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
                await self._begin_ahead(tokens)
            return reply.raw
        if self.options.trigger_tokens is None or self.options.max_retries == 0:
            return reply.raw
        target = int(tokens * TARGET_SHARE * calibration.chars_per_token) - request.overhead
        self.request = replace(request, quotes="")
        if await compact_to(self, max(1, target), "threshold"):
            with suppress(Exception):  # The first call has succeeded; its reply is returned.
                again = await self._send_with_quotes()
                if again.token_limit is None:
                    read, is_cut = await self.read_usage(again.raw)
                    if read and not is_cut:
                        self.note_usage(read)
                    return again.raw
        self.request = request
        return reply.raw

    async def _begin_ahead(self, tokens: int) -> None:
        """Start the next compaction in the background once the request, which had so many input
        tokens, is large enough. From half that size on, note the request, so that the next one can
        be recognised as its continuation.
        """
        quotes = len(self.request.quotes)
        tokens = tokens or self.calibration.tokens(self.request.size)
        ahead = self.sizes.ahead(tokens - self.calibration.tokens(quotes))
        if ahead is None:
            await self.warn_of_unknown_window("prepared")
        elif ahead[0] >= 0:
            await self.world.prepare(self, *ahead)

    async def read_usage(self, raw: object) -> tuple[int, bool]:
        """Return the tokens that the server has read, and whether it has silently truncated the
        prompt, of which it sends an event. The tokens are 0 if what a reply states is no number of
        them.
        """
        tokens = tokens_read(raw)
        expected = missing_tokens(self.request, self.calibration, tokens) if tokens else None
        if expected is None:
            return tokens, False
        if tokens < LEAST_CUT:
            return 0, False
        await self.emit(SilentTruncation, expected_tokens=expected, prompt_tokens=tokens)
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
