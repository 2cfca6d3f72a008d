"""Makes a compaction ahead, of a copy of what was sent, and finds it for the call that is due."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial

from compacter.call.prepare import SCOPE, WORTH, Prepare, Prepared, make_ahead
from compacter.call.recover import Policy
from compacter.call.request import Request
from compacter.call.wrapped_call import WrappedCall
from compacter.compaction.conversation import Conversation
from compacter.effects import Emit
from compacter.errors import CompactionError, FunctionError
from compacter.events import PreparationFailed
from compacter.memory.match import View
from compacter.messages.format import Message
from compacter.single_flight import LONGEST_WAIT


async def offer(call: WrappedCall, what: Prepare) -> None:
    """Note the request, and begin to make the compaction if it is to be made now."""
    preparations = call.state.preparations
    request = what.request
    look = partial(preparations.of, call.scope, request.format, _body(request), _shorter(request))
    preparation, continues = await call.io.thread(look) if call.large else look()
    if not what.ratio or not continues or preparation.done is not None:
        return
    take_down = partial(_copy, request)
    copied = await call.io.thread(take_down) if call.large else take_down()
    maker = replace(
        call,
        policy=Policy(call.policy.options, copied, what.calibration),
        scope=call.scope + SCOPE,
        history=None,
        ahead=True,
    )
    make = partial(_make, maker, replace(what, request=copied))
    preparations.begin(preparation, call.io, make)


async def _make(maker: WrappedCall, what: Prepare) -> None:
    """Make the compaction, unless another process has stored one that fits. Raises no
    ``Exception``.
    """
    request = what.request
    try:
        view = await maker.view(Prepared(request.original))
        size = request.conversation.size
        if view is None or sum(map(request.format.size, view)) >= size * WORTH:
            await maker.run(make_ahead(maker.policy.options, what))
    except Exception as error:  # noqa: BLE001 - the call that is due takes the normal way
        cause = error.__cause__ if isinstance(error, CompactionError) else error
        reason = str(error) if isinstance(error, FunctionError) else "no summary could be had"
        failed = PreparationFailed(
            reason=reason,
            error=type(cause).__name__ if cause is not None else "",
            cause=cause if isinstance(cause, Exception) else None,
            **request.named,
        )
        await maker.emit(Emit(failed))


async def find_prepared_view(call: WrappedCall, effect: Prepared) -> View | None:
    """Return the view of these messages that was made ahead; ``None`` if there is none. If it is
    being made, wait for it.
    """
    state = call.state
    request = call.policy.request
    if state.preparations:
        look = partial(
            state.preparations.of, call.scope, request.format, _body(request), _shorter(request)
        )
        preparation, continues = await call.io.thread(look) if call.large else look()
        if continues:
            await preparation.wait(call.io, min(LONGEST_WAIT, call.time_left()))
    return await replace(call, scope=call.scope + SCOPE, ahead=True).view(effect)


def _body(request: Request) -> list[Message]:
    """Return the caller's messages that the next request is to contain too: without system messages
    and the last one, which may hold the time of day, or text retrieved for this call alone.
    """
    speaker = request.format.speaker
    return [message for message in request.original if speaker(message) != "system"][:-1]


def _shorter(request: Request) -> int:
    return len(request.original) - len(request.messages)


def _copy(request: Request) -> Request:
    """Return a copy of the request, which the program cannot change."""
    # Together: the messages of the one are those of the other.
    original, messages = copy.deepcopy((list(request.original), list(request.messages)))
    read = request.conversation
    made = Conversation.of(messages, request.format, pinned=read.pinned, rules=read.rules)
    return replace(request, original=original, messages=messages, read=made)
