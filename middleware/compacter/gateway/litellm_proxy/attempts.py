"""A call whose attempts a gateway's router makes, with its own retries and fallbacks.

`call/wrap.py` calls the wrapped function itself. A plug-in of a gateway cannot: its hooks run
before each attempt, and after each failure. So a `SteppedCall` continues one flow (`complete`,
`recover`) from each attempt to the next.
"""

from __future__ import annotations

from typing import Any

from compacter.call.arguments import Binding
from compacter.call.call import Call
from compacter.call.effects import Send
from compacter.call.policy import complete, recover
from compacter.call.pump import pump
from compacter.call.state import State
from compacter.call.wrap import WrappedFunction
from compacter.errors import CompactionError, add_note
from compacter.messages.replies import Reply
from compacter.overflow import TokenLimit
from compacter.runtime.io import ASYNC, weight

# Largest share of the window that a history certainly fits into, by a quick estimate.
_SMALL = 0.5


class SteppedCall(WrappedFunction):
    """The attempts of one call. ``first`` returns what to send, ``again`` what to send after a
    token limit.

    Args:
        state: Options, memory and totals. The option ``summarizer`` must be set: no function can be
            called.
        binding: How to read the call's arguments.
    """

    def __init__(self, state: State, binding: Binding) -> None:
        super().__init__(state, _not_called, binding)
        self.tokens_saved = 0
        """Estimated number of tokens by which the request became smaller."""
        self._given_up: Exception | None = None
        self._flow: Any = None
        self._handlers: Any = None  # `Handlers`, made with the flow
        # What the last attempt sends.
        self._effect: Send | None = None

    async def first(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments to send first: with a remembered view, or compacted because of
        ``trigger_tokens``.

        Without records and without a trigger the messages are not read. Never raises an exception
        of compacter.
        """
        state = self.state
        state.count_call()
        if self._surely_fits(kwargs) or (
            not state.proactive
            and state.prepared.memory.empty()
            and not state.preparations
            and not self._may_begin_one(kwargs)
        ):
            return kwargs
        call = await self._begin(kwargs)
        if call is None:
            return kwargs
        self._flow = complete(call)
        return await self._send_next(kwargs, None)

    def same(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments to send after a failure that is not a token limit: the same ones.

        Raises the provider's exception once the call is given up, so that no refused request is
        sent again.
        """
        if self._given_up is not None:
            raise self._given_up
        return kwargs if self._effect is None else self._replace_call(kwargs, self._effect)

    async def again(
        self, kwargs: dict[str, Any], error: Exception, found: TokenLimit
    ) -> dict[str, Any]:
        """Return the arguments to send after a token limit. Raises ``error`` when the call is given
        up.

        Args:
            kwargs: The caller's arguments.
            error: The provider's exception.
            found: The token limit in it.
        """
        if self._given_up is not None:
            raise self._given_up
        refused = Reply(token_limit=found, error=error)
        is_first = self._flow is None
        if is_first:
            call = await self._begin(kwargs)
            if call is None:
                self._given_up = error
                raise error
            self._flow = recover(call, refused)
        sent = await self._send_next(kwargs, None if is_first else refused, error)
        if self._effect is None:
            given_up: Exception | None = self._given_up
            self._given_up = given_up or error
            raise self._given_up
        return sent

    async def answered(self, reply: object) -> None:
        """Record the usage of a reply, for ``trigger_tokens`` and ``prepare_tokens``."""
        learns = self.state.proactive or self.state.prepares
        if self._flow is not None and self._effect is not None and learns:
            await self._advance(Reply(raw=reply))
            self.close()

    def close(self) -> None:
        """End the flow, and release leases that other calls may wait for."""
        flow = self._flow
        self._flow = None
        if flow is not None:
            flow.close()
        if self._handlers is not None:
            self._handlers.close()

    def _may_begin_one(self, kwargs: dict[str, Any]) -> bool:
        """Return whether the reply may begin a compaction ahead. Reads nothing if
        ``prepare_tokens`` is a share of a window that is not known yet.
        """
        begin = self.state.options.prepare_tokens
        if isinstance(begin, float):
            return bool(self.state.calibration(self.binding.read((), kwargs).model).window)
        return begin is not None

    def _surely_fits(self, kwargs: dict[str, Any]) -> bool:
        """Return whether the whole history is far below the known window, so that no record is
        looked up.

        If the estimate is wrong, the provider refuses, and the record is found then.
        """
        messages = kwargs.get(self.binding.messages_param)
        calibration = self.state.calibration(self.binding.read((), kwargs).model)
        if self.state.proactive or not calibration.window or not isinstance(messages, list):
            return False
        left = int(calibration.window * calibration.chars_per_token * _SMALL)
        for message in messages:
            # Most messages are a role and a text: ten thousand of these are measured in a
            # millisecond.
            text = message.get("content") if type(message) is dict and len(message) == 2 else None
            left -= len(text) if type(text) is str else weight(message, left)
            if left <= 0:
                return False
        return True

    # -- inside ------------------------------------------------------------------------------------

    async def _begin(self, kwargs: dict[str, Any]) -> Call | None:
        """Read the call; return ``None`` if it cannot be compacted."""
        handlers = await self.read(ASYNC, (), kwargs)
        if isinstance(handlers, str):
            return None
        self.close()
        self._handlers = handlers
        return handlers.call

    async def _send_next(
        self, kwargs: dict[str, Any], outcome: Reply | None, refused: Exception | None = None
    ) -> dict[str, Any]:
        """Continue the flow to its next call, and return the arguments of this call; ``kwargs`` if
        the flow has ended.
        """
        self._effect = effect = await self._advance(outcome, refused)
        if effect is None:
            return kwargs
        request = self._handlers.call.request
        if effect.messages is not request.original:
            before, after = (
                sum(map(request.format.size, messages))
                for messages in (request.original, effect.messages)
            )
            tokens = self._handlers.call.calibration.tokens
            self.tokens_saved = max(0, int(tokens(before - after)))
        return self._replace_call(kwargs, effect)

    async def _advance(
        self, outcome: Reply | None, refused: Exception | None = None
    ) -> Send | None:
        """Go on to the next call and return it; ``None`` if the flow has ended.

        ``refused`` is the provider's last exception; a flow that ends with it has not failed.
        """
        flow = self._flow
        try:
            found = await pump(flow, self._handlers, outcome, Send)
        except Exception as error:  # noqa: BLE001 - what compacter does for itself must not raise into a call
            self.close()
            if error is not refused:
                self.state.log.failed("compaction", error)
                if refused is not None and not isinstance(error, CompactionError):
                    add_note(
                        refused, (f"compacter could not compact: it raised {type(error).__name__}")
                    )
            self._given_up = error if isinstance(error, CompactionError) else refused
            return None
        return found if isinstance(found, Send) else None

    def _replace_call(self, kwargs: dict[str, Any], effect: Send) -> dict[str, Any]:
        return self.binding.replace((), kwargs, list(effect.messages), effect.options)[1]


async def _not_called(**_: Any) -> None:
    """Placeholder of the wrapped function, which the router calls."""
