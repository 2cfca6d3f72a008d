"""One call whose attempts somebody else makes: a gateway's router, with retries and fallbacks of its own.

`call/wrap.py` makes the calls of a function itself. A plug-in of a gateway cannot: it is asked before each attempt what
to send, and told of each failure. So the same flow (`complete`, `recover`) is carried on from one attempt to the next.
"""

from __future__ import annotations

from typing import Any

from compacter.call.arguments import Binding
from compacter.call.io import ASYNC
from compacter.call.perform import WrappedCall
from compacter.call.request import weight
from compacter.call.state import State
from compacter.call.wrap import WrappedFunction
from compacter.compaction.plan import plan
from compacter.compaction.task import CompactionPlan
from compacter.effects import Call, Flow, Reply
from compacter.errors import CompactionError
from compacter.overflow import TokenLimit

_SMALL = 0.5
"""Share of the window up to which a history surely fits, by a quick estimate."""


class SteppedCall(WrappedFunction):
    """The attempts of one call. ``first`` says what to send, ``again`` what to send after a token limit.

    Args:
        state: Options, memory and totals. The option ``summarizer`` is set: nobody else could be asked.
        binding: How to read the call's arguments.
    """

    def __init__(self, state: State, binding: Binding) -> None:
        super().__init__(state, _nobody, binding)
        self.rounds = 0
        """Times that the request was made smaller after a token limit."""
        self.original_size = 0
        """Characters of the messages as the caller sent them; 0 where they went on as they were."""
        self.sent_size = 0
        """Characters of what was sent last."""
        self._given_up: Exception | None = None
        self._flow: Flow[object] | None = None
        self._call: WrappedCall | None = None
        self._effect: Call | None = None

    @property
    def changed(self) -> bool:
        """Whether anything but the caller's own request was sent."""
        return bool(self.sent_size) and self.sent_size < self.original_size

    @property
    def tokens_saved(self) -> int:
        """Estimate of the tokens by which the request became smaller."""
        if self._call is None or not self.changed:
            return 0
        return self._call.policy.calibration.tokens(self.original_size - self.sent_size)

    async def first(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments to send first: a remembered view, or what ``trigger_tokens`` makes of them.

        Nothing is read where no record is kept and there is no trigger. Raises nothing of compacter's own.
        """
        self.state.count_call()
        if self.idle()() or self._surely_fits(kwargs):
            return kwargs
        call = await self._begun(kwargs)
        if call is None:
            return kwargs
        self._flow = call.policy.complete()
        return await self._sent(kwargs, None)

    def same(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments to send when an attempt failed for another reason than a token limit: the same view.

        Raises the provider's own exception once the call is given up: nothing is sent again that was refused.
        """
        if self._given_up is not None:
            raise self._given_up
        return kwargs if self._effect is None else self._replaced(kwargs, self._effect)

    async def again(self, kwargs: dict[str, Any], error: Exception, found: TokenLimit) -> dict[str, Any]:
        """The arguments to send after a token limit. Raises ``error`` when the call is given up.

        Args:
            kwargs: The arguments as the caller made them.
            error: What the provider said.
            found: What was read of it.
        """
        if self._given_up is not None:
            raise self._given_up
        if self._flow is None:
            call = await self._begun(kwargs)
            if call is None:
                self._given_up = error
                raise error
            self._flow = call.policy.recover(Reply(token_limit=found, error=error))
            sent = await self._sent(kwargs, None, error)
        else:
            sent = await self._sent(kwargs, Reply(token_limit=found, error=error), error)
        if self._effect is None:
            given_up: Exception | None = self._given_up
            self._given_up = given_up or error
            raise self._given_up
        self.rounds += 1
        return sent

    async def answered(self, reply: object) -> None:
        """Take in the usage of a reply: what ``trigger_tokens`` goes by."""
        if self._flow is not None and self._effect is not None and self.state.proactive:
            await self._advanced(Reply(raw=reply))
            self.close()

    async def planned(self, kwargs: dict[str, Any], found: TokenLimit) -> CompactionPlan | None:
        """What ``again`` would fold: no model is asked. ``None`` where the call holds nothing that could be folded."""
        call = await self._begun(kwargs)
        if call is None:
            return None
        found = call.policy.calibrate(found)
        return plan(self.state.options, call.policy.job(call.policy.target(found), found))

    def close(self) -> None:
        """End the flow, and release what others may wait for."""
        flow, self._flow = self._flow, None
        if flow is not None:
            flow.close()
        if self._call is not None:
            self._call.close()

    def _surely_fits(self, kwargs: dict[str, Any]) -> bool:
        """Whether the whole history is far below the known window: then no record is looked for, whatever it is.

        Where that guess is wrong, the provider refuses, and what was folded before is found then.
        """
        messages = kwargs.get(self.binding.messages_param)
        calibration = self.state.calibration(self.binding.read((), kwargs).model)
        if self.state.proactive or not calibration.window or not isinstance(messages, list):
            return False
        left = int(calibration.window * calibration.chars_per_token * _SMALL)
        for message in messages:
            # Most messages are a role and a text: ten thousand of these are weighed in a millisecond.
            text = message.get("content") if type(message) is dict and len(message) == 2 else None
            left -= len(text) if type(text) is str else weight(message, left)
            if left <= 0:
                return False
        return True

    # -- inside --------------------------------------------------------------------------------------------------------

    async def _begun(self, kwargs: dict[str, Any]) -> WrappedCall | None:
        """The call, read; ``None`` where it holds nothing that could be compacted."""
        call = await self.read(ASYNC, (), kwargs)
        if isinstance(call, str):
            return None
        self.close()
        self._call = call
        return call

    async def _sent(
        self, kwargs: dict[str, Any], outcome: Reply | None, refused: Exception | None = None
    ) -> dict[str, Any]:
        """Carry the flow on to its next call, and say what that sends; ``kwargs`` where it came to none."""
        self._effect = effect = await self._advanced(outcome, refused)
        if effect is None or self._call is None:
            return kwargs
        request = self._call.policy.request
        if effect.messages is not request.original:
            size = request.format.size
            self.original_size = self.original_size or sum(map(size, request.original))
            self.sent_size = sum(map(size, effect.messages))
        return self._replaced(kwargs, effect)

    async def _advanced(self, outcome: Reply | None, refused: Exception | None = None) -> Call | None:
        """Carry out what the flow asks for, up to its next call; ``None`` where it has come to its end.

        ``refused`` is what the provider said last: to end with it is no fault.
        """
        flow, call = self._flow, self._call
        assert flow is not None and call is not None  # noqa: S101, PT018 - made together
        try:
            found = await call.run(flow, outcome, until=Call)
        except Exception as error:  # noqa: BLE001 - what compacter does for itself must not raise into a call
            self._flow = None
            if error is not refused:
                self.state.log.failed("compaction", error)
                if refused is not None and not isinstance(error, CompactionError):
                    refused.add_note(f"compacter could not compact: it raised {type(error).__name__}")
            self._given_up = error if isinstance(error, CompactionError) else refused
            return None
        finally:
            # The right to fold this head is given back as soon as the record is kept: the attempt itself may last.
            call.close(for_good=False)
        return found if isinstance(found, Call) else None

    def _replaced(self, kwargs: dict[str, Any], effect: Call) -> dict[str, Any]:
        return self.binding.replace((), kwargs, list(effect.messages), effect.options)[1]


async def _nobody(**_: Any) -> None:
    """Stands for the function that somebody else calls."""
