"""Policy of one wrapped call: the remembered view, the trigger, the request, and the rounds after a
token limit.

Pure: a `Policy` awaits what its world does, a `WrappedCall`. In the order of a call: `complete`
begins it, quotes are added (``quoted.py``), `recover` makes the request smaller (``smaller.py``)
until it is answered or given up; then the trigger, compactions made ahead, the usage of replies,
and the numbers in the provider's errors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tenacity import RetryCallState, Retrying, stop_after_attempt

from compacter.call.prepare import ahead
from compacter.call.quoted import QuotedRequest
from compacter.call.request import advice
from compacter.call.sizes import (
    LEAST_CUT,
    calibrate,
    fills_window,
    learn,
    may_be_cut,
    missing_tokens,
    request_tokens,
)
from compacter.compaction.plan import MARGIN
from compacter.compaction.trigger import TARGET_SHARE, due
from compacter.errors import CompactionError, FunctionError, add_note
from compacter.events import RetriesExhausted, SilentTruncation
from compacter.messages.replies import Reply
from compacter.messages.usage import tokens_read
from compacter.overflow import TokenLimit

_FAR_OVER = 1.5
"""Multiple of the threshold from which the cool-down is ignored."""


@dataclass(eq=False)
class Policy(QuotedRequest):
    """Decisions of one wrapped call."""

    detect: Callable[[BaseException], TokenLimit | None] | None = None
    """Detector of token limits; ``None`` for the one of the options."""
    proactive: bool = True
    """Whether the size of every request is learnt, for the trigger."""
    watched: bool = True
    """Whether someone listens to events, such as that of a prompt that the server has truncated."""

    # -- one call ----------------------------------------------------------------------------------

    async def complete(self) -> object:
        """Return the reply to the call. Raises the exceptions of the call and those of
        ``recover``.
        """
        state = self.state
        state.calls += 1
        if self.options.memory is not None:
            view = await self.world.look_up()
            if view is not None and self.keeps_pins(view):
                self.request = replace(self.request, messages=tuple(view), read=None)
        if self.options.trigger_tokens is not None:
            await self._compact_at_threshold()
        if self.options.prepare_tokens is not None:
            await self._keep_within_window()
        reply = await self._send()
        if reply.token_limit is not None:
            state.tried = state.calls
            return await self.recover(reply)
        return await self._check_reply(reply)

    async def recover(self, refused: Reply) -> object:
        """Make the request smaller and call again, until there is a reply, another error, or
        nothing left to try.

        ``refused`` is the reply with the token limit. Raises the provider's own last exception,
        with a note that lists the rounds, if the call is given up; ``CompactionError`` if there is
        neither a summary nor a fallback.
        """
        if refused.token_limit is None or not self.is_confirmed(refused.token_limit):
            return refused.raw
        limit = self.options.max_retries
        stop = stop_after_attempt(1 + limit) if isinstance(limit, int) else limit
        rounds = RetryCallState(Retrying(stop=stop), fn=None, args=(), kwargs={})
        while refused.token_limit is not None:
            found = self.calibrate(refused.token_limit)
            error = refused.error or RuntimeError("the reply says that the request is too long")
            rounds.set_exception((type(error), error, error.__traceback__))
            if stop(rounds):
                return await self._give_up(
                    refused, "no rounds are left" if self.tried else "max_retries=0"
                )
            rounds.prepare_for_next_attempt()
            try:
                done = await self.make_smaller(found)
            except CompactionError as failure:
                # If it has no cause of its own, the provider's error, for which the summary was
                # needed.
                raise failure from failure.__cause__ or refused.error
            if not done:
                return await self._give_up(refused, "nothing more can be reduced")
            self.tried.append(done)
            refused = await self._send()
        return refused.raw

    async def _send(self) -> Reply:
        """Send the request, with quotes for its question if messages were compacted, and return the
        reply.

        A token limit is in the reply; any other error is raised.
        """
        await self.add_quotes()
        request = self.request
        try:
            reply = await self.world.send(request.sent, request.options)
        except Exception as error:
            found = (self.detect or self.options.detect)(error)
            if found is None:
                raise
            return Reply(token_limit=found, error=error)
        if reply.error is not None and reply.token_limit is None:
            raise reply.error
        if reply.token_limit is not None and not self.is_confirmed(reply.token_limit):
            return replace(reply, token_limit=None)
        return reply

    async def _give_up(self, refused: Reply, reason: str) -> object:
        """Raise the provider's own exception, with a note; return the reply if the refusal
        was one.
        """
        found = refused.token_limit
        rounds = len(self.tried)
        target = self.target(found) if found else None
        if self.tried and target is not None and self.staying > target:
            self.state.helpless = self.staying
        facts: dict[str, Any] = (
            {"limit": found.limit, "requested": found.requested} if found else {}
        )
        await self.world.emit(
            RetriesExhausted(
                rounds=rounds, reason=reason, attempt=rounds, **facts, **self.request.named
            )
        )
        if refused.error is None:
            return refused.raw
        steps = "; ".join(f"round {number}: {step}" for number, step in enumerate(self.tried, 1))
        helps = advice(self.request, self.calibration, found.limit if found else None)
        add_note(
            refused.error, (f"compacter gave up: {reason} ({steps or 'nothing was tried'}).{helps}")
        )
        raise refused.error

    # -- the trigger -------------------------------------------------------------------------------

    async def _compact_at_threshold(self) -> None:
        """Compact before the call if the request has reached the threshold."""
        state = self.state
        request = self.request
        limit = self.threshold()
        if limit is None:
            if not self.calibration.warned:
                self.calibration.warned = True
                await self.emit_skipped("threshold", "unknown_window")
            return
        if state.calls == 1:
            return
        tokens = await self._estimate_tokens()
        size = request.size
        if (
            tokens >= limit
            and self.options.prepare_tokens is not None
            and (await self.enforce_prepared())
        ):
            tokens = await self._estimate_tokens()
            size = self.request.size
        target = due(size=size, tokens=tokens, limit=limit, stuck=state.stuck)
        if target is None:
            return
        if self.is_held_back and tokens < limit * _FAR_OVER:
            await self.emit_skipped("threshold", "cool_down")
            return
        if await self.compact_to(max(1, target - request.overhead)):
            left = await self._estimate_tokens()
            state.stuck = self.request.size if left >= limit else 0

    # -- compactions made ahead --------------------------------------------------------------------

    async def _keep_within_window(self) -> None:
        """Put the compaction that was made ahead in force if the request would exceed the window:
        it is sure to be refused.
        """
        window = self.calibration.window
        if window is None or self.state.calls == 1:
            return
        tokens = await self._estimate_tokens()
        if tokens > window * MARGIN:
            await self.enforce_prepared()

    async def prepare(self, tokens: int) -> None:
        """Have the next compaction made ahead if the request, which had so many input tokens, has
        reached the size for it.
        """
        request = replace(self.request, quotes="")
        calibration = self.calibration
        tokens = (tokens or calibration.tokens(self.request.size)) - calibration.tokens(
            len(self.request.quotes)
        )
        if isinstance(self.options.prepare_tokens, float) and calibration.window is None:
            if not calibration.warned:
                calibration.warned = True
                await self.emit_skipped("prepared", "unknown_window")
            return
        what = ahead(self.options, request, calibration, tokens)
        if what is not None:
            await self.world.prepare(what)

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
                await self.emit_failed("threshold", str(error), error)
        size = request.size
        if state.tokens and size >= state.characters:
            return state.tokens + tokens(size - state.characters)
        return tokens(size)

    # -- the reply's usage, and the numbers of errors ----------------------------------------------

    async def _check_reply(self, reply: Reply) -> object:
        """Learn from the reply's usage, and return the reply.

        With a trigger, a prompt that the server has truncated is compacted and sent once more, if a
        round is allowed.
        """
        whole = self.request
        # What is learnt never depends on a hook, as it decides what is sent. To read a whole
        # history for its size alone would take too long once the model is known.
        learns = self.proactive or not self.calibration.learnt or whole.read is not None
        tokens = self._read_usage(reply.raw) if learns or self.watched else 0
        if learns and whole.read is not None:
            self.calibration.accept(request_tokens(whole, self.calibration))
        if not tokens or not (await self.cut_silently(tokens)):
            if tokens and learns:
                self.note_usage(tokens)
            if self.options.prepare_tokens is not None:
                await self.prepare(tokens)
            return reply.raw
        if self.options.trigger_tokens is None or self.options.max_retries == 0:
            return reply.raw
        target = max(
            1, int(tokens * TARGET_SHARE * self.calibration.chars_per_token) - whole.overhead
        )
        self.request = replace(whole, quotes="")
        if await self.compact_to(target):
            try:
                again = await self._send()
            except Exception:  # noqa: BLE001 - the first call has succeeded; its reply is returned
                again = reply
            if again is not reply and again.token_limit is None:
                read = tokens_read(again.raw)
                if read and missing_tokens(self.request, read, self.calibration) is None:
                    self.note_usage(read)
                return again.raw
        self.request = whole
        return reply.raw

    def _read_usage(self, raw: object) -> int:
        """Return the tokens that the server has read; 0 if what it reports is no number of them."""
        tokens = tokens_read(raw)
        if 0 < tokens < LEAST_CUT and missing_tokens(self.request, tokens, self.calibration):
            return 0
        return tokens

    async def cut_silently(self, tokens: int) -> bool:
        """Return whether a server that read ``tokens`` has silently truncated the prompt, and send
        an event if so.
        """
        request = self.request
        if tokens < LEAST_CUT:
            return False
        unread = request.read is None
        if unread and not may_be_cut(request.sent, tokens, overhead=request.overhead):
            return False
        expected = missing_tokens(request, tokens, self.calibration)
        if expected is None:
            return False
        await self.world.emit(
            SilentTruncation(expected_tokens=expected, prompt_tokens=tokens, **self.request.named)
        )
        return True

    def note_usage(self, tokens: int) -> None:
        """Learn from the usage of a reply to the request."""
        learn(self.request, tokens, self.calibration)
        size = self.request.size
        quotes = len(self.request.quotes)
        # Without the quotes: the next request may have others, or none.
        self.state.tokens = tokens - self.calibration.tokens(quotes)
        self.state.characters = size - quotes

    def is_confirmed(self, found: TokenLimit) -> bool:
        """See ``sizes.fills_window``."""
        return fills_window(found, self.request.output_tokens, self.calibration.window)

    def calibrate(self, found: TokenLimit) -> TokenLimit:
        """See ``sizes.calibrate``."""
        return calibrate(self.request, found, self.calibration)
