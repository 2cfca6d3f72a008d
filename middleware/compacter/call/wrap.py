"""Wrappers of plain functions, coroutine functions, generator functions and async generator
functions.

In this order: the wrappers, which do as little as possible for a quiet call, one that needs nothing
from compacter; what becomes of a quiet call's reply; `WrappedFunction._handle`, for every other
call.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping
from types import CoroutineType
from typing import Any, NoReturn

from compacter.call import streams
from compacter.call.arguments import Args, Binding, Named
from compacter.call.call import Call
from compacter.call.log import outside
from compacter.call.perform import Performer
from compacter.call.reader import read_call
from compacter.call.recalls import answer_recalls, fault_of
from compacter.call.request import may_be_cut
from compacter.call.send import GiveUps, limit_since, mark_given_up
from compacter.call.state import State
from compacter.call.warm import warmed_up
from compacter.errors import CompactionError, ConfigurationError, FunctionError, add_note
from compacter.messages.refusals import detect_in_reply
from compacter.messages.replies import Reply
from compacter.messages.usage import HAS_USAGE, tokens_read
from compacter.runtime.io import ASYNC, IO, SYNC, is_kind, is_large, run

Function = Callable[..., Any]
OWN_OPTIONS = "compacter_options"
"""Name of the argument with options for one call; it is not passed to the wrapped function."""
WRAPPED_BY = "__compacter__"
"""Attribute of a wrapped function or client: the name of its Compacter's state."""


class WrappedFunction:
    """Makes the wrapper of one function, and carries out its calls."""

    def __init__(self, state: State, function: Function, binding: Binding) -> None:
        self.state = state
        self.function = function
        self.binding = binding
        self.returns_awaitable = False
        """Whether the plain function has returned an awaitable; later calls are then handled as
        async ones."""
        self.measured: dict[int, tuple[int, int, int]] = {}
        """What `may_be_cut` keeps of earlier calls."""

    # -- the wrappers: a quiet call creates no objects ---------------------------------------------

    def synchronous(self) -> Function:
        """Return the wrapper of a plain function, which may return a reply, a stream or an
        awaitable.
        """
        function = self.function
        binding = self.binding
        count_call = self.state.count_call
        idle = self.idle()
        late = self.state.late
        messages = binding.messages
        param = binding.messages_param
        shape_of = streams.shape
        read_reply = self._read_reply

        def call(*args: Any, **kwargs: Any) -> Any:
            if OWN_OPTIONS in kwargs:
                return self._with(kwargs.pop(OWN_OPTIONS))(*args, **kwargs)
            count_call()
            given = kwargs.get(param)
            given = given if type(given) is list else messages(args, kwargs)
            reply = None
            is_quiet = idle() and not late
            if is_quiet and (type(given) is list or not binding.needs_list(args, kwargs)):
                before = GiveUps.count
                try:
                    raw = function(*args, **kwargs)
                except Exception as error:
                    limit = limit_since(before, self.state.detect, error)
                    if limit is None:
                        raise
                    reply = Reply(token_limit=limit, error=error)
                else:
                    if type(raw) is not dict and (shape := shape_of(type(raw))) is not None:
                        return self._wrap_result(shape, raw, args, kwargs)
                    reply = read_reply(raw, given, kwargs)
                    if reply is None:
                        return raw
            if self.returns_awaitable:
                return self._handle(ASYNC, args, kwargs, reply)
            return run(self._handle(SYNC, args, kwargs, reply))

        return call

    def asynchronous(self) -> Function:
        """Return the wrapper of a coroutine function."""
        self.returns_awaitable = True
        begin = self.synchronous()
        function = self.function
        count_call = self.state.count_call
        idle = self.idle()
        late = self.state.late
        param = self.binding.messages_param

        async def call(*args: Any, **kwargs: Any) -> Any:
            # What makes a quiet call, said once more: one wrapper within another costs half as
            # much again.
            given = kwargs.get(param)
            if type(given) is not list or OWN_OPTIONS in kwargs or late or not idle():
                return await begin(*args, **kwargs)
            count_call()
            return await self._settle(ASYNC, function(*args, **kwargs), given, args, kwargs)

        return call

    def generator(self) -> Function:
        """Return the wrapper of a generator function, which makes the call when its first chunk is
        requested.
        """
        begin = self.synchronous()

        def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            return (yield from begin(*args, **kwargs))

        return call

    def async_generator(self) -> Function:
        """Return the wrapper of an async generator function."""

        @functools.wraps(self.function)
        async def begin(*args: Any, **kwargs: Any) -> Any:
            return self.function(*args, **kwargs)

        return _iterate_later(WrappedFunction(self.state, begin, self.binding).asynchronous())

    def _with(self, options: object) -> Function:
        """Return the wrapper with other options; for ``False`` the bare function."""
        if options is False:
            return self.binding.bare or self.function
        if not isinstance(options, Mapping):
            raise ConfigurationError(
                f"{OWN_OPTIONS} takes a dict of options, or False, not {options!r}"
            )
        other = WrappedFunction(self.state.replaced(options), self.function, self.binding)
        other.returns_awaitable = self.returns_awaitable
        return other.synchronous()

    def idle(self) -> Callable[[], bool]:
        """Return a function that is true if no work is needed before the call."""
        state = self.state
        is_quiet = not state.proactive and not state.prepares
        return state.memory.empty if is_quiet and state.memory is not None else lambda: is_quiet

    # -- what a quiet call has returned ------------------------------------------------------------

    def _wrap_result(self, shape: streams.Shape, raw: Any, args: Args, kwargs: Named) -> Any:
        """Return the result for a stream or an awaitable that a plain function returned."""
        outcome = raw, self.binding.messages(args, kwargs), args, kwargs
        if shape == "stream":
            return run(self._settle(SYNC, *outcome))
        if shape == "async stream":
            return _iterate_later(self._settle)(ASYNC, *outcome)
        self.returns_awaitable = True
        return self._settle(ASYNC, *outcome)

    async def _settle(self, io: IO, raw: Any, given: Any, args: Args, kwargs: Named) -> Any:
        """Return the result of a quiet call: awaited unless it is a stream, which is returned as if
        unread once its first content has come; or recover.
        """
        before = GiveUps.count
        try:
            # The first is by far the most common, and quicker to tell.
            if type(raw) is CoroutineType or streams.shape(type(raw)) == "awaitable":
                raw = await raw
            if type(raw) is dict or not streams.has(type(raw), io.iterates):
                reply = self._read_reply(raw, given, kwargs)
                if reply is None:
                    return raw
            else:
                detect = functools.partial(limit_since, before, self.state.detect)
                note = functools.partial(self._note_late, io, args, kwargs)
                reply = await streams.opened(io, raw, detect, self.binding.quiet, on_error=note)
                if reply.token_limit is None:
                    return reply.raw
        except Exception as error:
            await warmed_up(io)
            limit = await io.thread(
                functools.partial(limit_since, before, self.state.detect, error)
            )
            if limit is None:
                raise
            reply = Reply(token_limit=limit, error=error)
        return await self._handle(io, args, kwargs, reply)

    def _read_reply(self, raw: Any, given: Any, kwargs: Named) -> Reply | None:
        """Return a reply that states a token limit, or whose prompt the server may have truncated
        if there is a hook to tell; ``None`` for any other.

        Of its usage three integers are recorded, for the next call.
        """
        limit = detect_in_reply(raw)
        if limit is not None:
            return Reply(token_limit=limit, raw=raw)
        state = self.state
        tokens: int | None = None
        kind = type(raw)
        if type(given) is list and given and raw is not None and kind is not str:
            if kind is not dict or not HAS_USAGE.isdisjoint(raw):
                try:
                    usage = raw["usage"] if kind is dict else raw.usage
                    tokens = usage["prompt_tokens"] if kind is dict else usage.prompt_tokens
                except Exception:  # noqa: BLE001 - another API's reply, or an unknown type
                    tokens = None
                if type(tokens) is not int:  # Not a closure, which would slow down every call.
                    tokens = None
                    with state.safely("reading"):
                        tokens = tokens_read(raw)
            state.last_reply = (tokens, len(given), id(given[-1])) if tokens else None
        if not state.event_hooks:
            return None
        if type(given) is list:
            beside = [value for value in kwargs.values() if value is not given]
            # A list without usage in its reply tells nothing.
            if not tokens or not may_be_cut(given, tokens, beside, self.measured):
                return None
        return Reply(raw=raw)

    def _note_late(self, io: IO, args: Args, kwargs: Named, error: Exception) -> None:
        """Read a quiet call whose stream has failed after its first content, and note the token
        limit, if it is one.
        """
        state = self.state
        with state.safely("reading"):
            if state.detect(error) is None:
                return
            world = self._performer(io, args, kwargs)
            if not isinstance(read_call(world, learns=True), str):
                world.note_late(error)

    # -- calls that need more; the same code for sync and async ------------------------------------

    async def _handle(self, io: IO, args: Args, kwargs: Named, reply: Reply | None = None) -> Any:
        """Carry out a call that is not quiet: with records to look up, a trigger, a ``History``, or
        after the reply to a quiet one.

        If compacter itself fails, the result is that of the unwrapped function, or the provider's
        own exception. Only ``CompactionError`` is passed on.
        """
        args, kwargs = self.binding.as_list(args, kwargs, histories=False)
        # A hook must not change what is sent, so nothing is learnt on its behalf.
        learns = reply is None or reply.token_limit is not None
        read = await self.read(io, args, kwargs, learns=learns)
        if isinstance(read, str):
            return await self._end(io, args, kwargs, reply, f"did nothing: {read}")
        world, call = read
        if reply is not None:
            if reply.token_limit is None:
                await world.conduct(call.read_usage(reply.raw))
                return reply.raw
            world.last = reply
        note = ""
        self.state.take_late(world.conversation)
        try:
            raw = await world.conduct(call.complete() if reply is None else call.recover(reply))
            raw = await world.conduct(answer_recalls(call, raw))
        except CompactionError:
            raise
        except Exception as error:  # noqa: BLE001 - handled below, outside of this block
            last = world.last
            if last is None or error is not last.error:
                self.state.log.failed("compaction", error)
                reason = (
                    error
                    if isinstance(error, FunctionError)
                    else f"it raised {type(error).__name__}"
                )
                note = f"could not compact: {reason}"
            elif call.tried:
                mark_given_up(error)
        else:
            shape = None if io.asynchronous else streams.shape(type(raw))
            if shape in ("awaitable", "async stream"):
                return self._wrap_result(shape, raw, args, kwargs)
            return self._install_after(world, call, raw)
        finally:
            world.close()
        return await self._end(io, args, kwargs, world.last, note)

    def _performer(self, io: IO, args: Args, kwargs: Named) -> Performer:
        return Performer(
            state=self.state,
            io=io,
            function=self.function,
            binding=self.binding,
            args=args,
            kwargs=kwargs,
        )

    async def read(
        self, io: IO, args: Args, kwargs: Named, *, learns: bool = True
    ) -> tuple[Performer, Call] | str:
        """Return a call and its world, or the reason, as a sentence, why it cannot be compacted.

        ``learns``: whether to calibrate by the last reply.
        """
        state = self.state
        world = self._performer(io, args, kwargs)
        with state.safely("reading"):
            world.large = io.asynchronous and is_large(self.binding.messages(args, kwargs))
            call = await world.compute(functools.partial(read_call, world, learns=learns))
            return call if isinstance(call, str) else (world, call)
        return "its messages could not be read"

    async def _end(self, io: IO, args: Args, kwargs: Named, last: Reply | None, note: str) -> Any:
        """Return or raise the wrapped function's last reply, with a note; without one, call it as
        if it were not wrapped.

        Compacter's frames are removed from the exception's traceback.
        """
        if last is None:
            args, kwargs = self.binding.as_list(args, kwargs)
            return await io.call(self.function, *args, **kwargs)
        error = last.error
        if error is None:
            return last.raw
        if note and "compacter " not in str(getattr(error, "__notes__", "")):
            add_note(error, f"compacter {note}")
        raise error.with_traceback(outside(error.__traceback__))

    def _install_after(self, world: Performer, call: Call, raw: Any) -> Any:
        """Return the reply, and install the compacted messages in the ``History`` once the reply is
        complete.
        """
        request = call.request
        history: Any = world.history
        if history is None or request.messages is request.original:
            return raw

        def install() -> None:
            if not history.install(world.version, request.messages, self.state.redaction):
                self.state.history_changed(None)

        return streams.when_done(raw, install)


def _iterate_later(opened: Callable[..., Awaitable[Any]]) -> Callable[..., AsyncIterator[Any]]:
    """Return an async generator function that opens the stream at its first chunk."""

    async def call(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        chunks = await opened(*args, **kwargs)
        try:
            async for chunk in chunks:
                yield chunk
        finally:
            await streams.close(ASYNC, chunks)

    return call


def _refusing(fault: str) -> Function:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise ConfigurationError(fault)

    return refuse


def wrap_function(
    state: State, function: Function, binding: Binding, *, asynchronous: bool | None = None
) -> Function:
    """Return the wrapper of a function, with the same signature and of the same kind (sync, async,
    generator).

    ``asynchronous`` states that the result of a plain function is always awaitable, which cannot be
    detected: methods of the SDKs are decorated coroutine functions.

    Raises ``ConfigurationError`` if a function cannot have the tool of ``Quotes(tool=True)``; a
    vendor's method raises it when it is called, as its client has others.
    """
    fault = fault_of(state.options.recall, binding)
    if fault and not binding.vendors:
        raise ConfigurationError(fault)
    calls = WrappedFunction(state, function, binding)
    if fault:
        shaped = _refusing(fault)
    elif is_kind(inspect.isasyncgenfunction, function):
        shaped = calls.async_generator()
    elif is_kind(inspect.isgeneratorfunction, function):
        shaped = calls.generator()
    elif asynchronous or is_kind(inspect.iscoroutinefunction, function):
        shaped = calls.asynchronous()
    else:
        shaped = calls.synchronous()
    updated = functools.WRAPPER_UPDATES if hasattr(function, "__name__") else ()
    wrapped = functools.update_wrapper(shaped, function, updated=updated)
    setattr(wrapped, WRAPPED_BY, state.name)
    return wrapped
