"""Makes compactions ahead: what a preparation does, where its result is kept, and how a call that
is due gets it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from compacter.call.perform import Performs
from compacter.call.preparations import Key, Preparation, place
from compacter.call.prepare import SCOPE, WORTH, Prepare, Prepared, make_ahead
from compacter.call.recover import Policy
from compacter.call.wrapped_call import WrappedCall
from compacter.effects import Effect, Emit, Remember
from compacter.errors import CompactionError, FunctionError
from compacter.events import PreparationFailed
from compacter.memory.match import View
from compacter.memory.record import chain, prefix_digest
from compacter.messages.fields import Unencodable
from compacter.single_flight import LONGEST_WAIT


def offer(call: WrappedCall, what: Prepare) -> None:
    """Have the compaction made in the background, unless that is done or under way."""
    state = call.state
    where = place(call.io, state.preparations.nursery)
    if where is None:
        return
    key = _key(call)
    original = what.request.original
    form = what.request.format
    ahead = len(original) - len(what.request.messages)

    def last(count: int) -> str:
        return prefix_digest(form, original[count - 1 : count])

    try:
        if state.preparations.is_settled(key, len(original), ahead, last):
            return
    except Unencodable:
        return  # It could not be remembered.
    preparer = Preparer(call, what)
    tenant = state.preparations.tenant
    loop, nursery = where
    state.preparations.offer(
        Preparation(
            key=key,
            messages=original,
            nearness=what.nearness,
            tenant=tenant() if tenant is not None else None,
            io=call.io,
            make=preparer.prepare,
            loop=loop,
            nursery=nursery,
        )
    )


async def find_prepared_view(call: WrappedCall, effect: Prepared) -> View | None:
    """Return the view of these messages that was made ahead; ``None`` if there is none.

    If it is being made, by this process or another one, wait for it.
    """
    state = call.state
    running = state.preparations.due(_key(call), effect.messages)
    if running is not None and not running.blocks(call.io):
        await running.wait(call.io, min(LONGEST_WAIT, call.time_left()))
    view = await _view(call, effect)
    memory = state.memory
    if view is not None or running is not None or memory is None or not memory.blocking:
        return view
    if await call.one_summary.claim(memory, _claim_key(call)):
        return await _view(call, effect)
    return None


async def _view(call: WrappedCall, effect: Prepared) -> View | None:
    state = call.state
    memory, matcher = state.memory_of_prepared()
    return await call.view(memory, matcher, call.scope + SCOPE, effect)


def _key(call: WrappedCall) -> Key:
    return call.scope, call.policy.request.digest


def _claim_key(call: WrappedCall) -> str:
    return chain((), "\0".join((*_key(call), SCOPE)))


class Preparer(WrappedCall):
    """Makes one compaction ahead: a call that requests nothing but the summary."""

    def __init__(self, call: WrappedCall, what: Prepare) -> None:
        super().__init__(
            state=call.state,
            io=call.io,
            model=call.model,
            large=call.large,
            function=call.function,
            binding=call.binding,
            args=call.args,
            kwargs=call.kwargs,
            policy=Policy(call.policy.options, what.request, what.calibration),
            scope=call.scope,
            as_passed=call.as_passed,
            history=None,
            version=0,
        )
        self.what = what
        self.saved = False

    @property
    def timeout(self) -> float:
        """Limit for the summaries, in seconds. There is always one: a summarizer that hangs would
        keep its place for ever.
        """
        return self.state.options.timeout or LONGEST_WAIT

    async def prepare(self) -> None:
        """Make the compaction, and store it for the call that will be due. Raises no
        ``Exception``.
        """
        try:
            await self._prepare()
        except Exception as error:  # noqa: BLE001 - the call that is due takes the normal way
            cause = error.__cause__ if isinstance(error, CompactionError) else error
            failed = PreparationFailed(
                reason=str(error)
                if isinstance(error, FunctionError)
                else "no summary could be had",
                error=type(cause).__name__ if cause is not None else "",
                cause=cause if isinstance(cause, Exception) else None,
                **self.what.request.named,
            )
            await self.emit(Emit(failed))
            self._settle(self.state.options.min_calls_between)
        finally:
            self.close()

    async def _prepare(self) -> None:
        request = self.what.request
        memory = self.state.memory
        if memory is not None and memory.blocking:
            claims = self.one_summary
            if not await claims.is_granted(memory, _claim_key(self)) and await claims.grants_any(
                memory
            ):
                return  # Another process makes it.
        view = await _view(self, Prepared(request.original))
        if (
            view is not None
            and sum(map(request.format.size, view)) < request.conversation.size * WORTH
        ):
            self._settle(-1)
            return
        before = await self._digest()
        self._before = before
        await self.run(make_ahead(self.policy.options, self.what))
        self._settle(-1 if self.saved else self.state.options.min_calls_between)

    async def _digest(self) -> str:
        request = self.what.request
        digest = partial(prefix_digest, request.format, request.original)
        return await self.io.thread(digest) if self.large else digest()

    async def _remember(self, effect: Remember) -> None:
        """Store the compaction in a scope of its own; not if the program has edited the messages
        while it was made.
        """
        if await self._digest() == self._before:
            memory, matcher = self.state.memory_of_prepared()
            record = await self.save(memory, matcher, self.scope + SCOPE, effect)
            self.saved = bool(record)

    def _settle(self, calls: int) -> None:
        request = self.what.request
        original = request.original
        last = self.state.safely(
            "preparation", partial(prefix_digest, request.format, original[-1:])
        )
        if last is not None:
            ahead = len(original) - len(request.messages)
            self.state.preparations.settle(_key(self), len(original), ahead, last, calls)

    performs: ClassVar[Mapping[type[Effect[Any]], Performs]] = {
        **WrappedCall.performs,
        Remember: _remember,
    }
