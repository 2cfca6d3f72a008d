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
from typing import Any

from compacter.call import streams
from compacter.call.arguments import Args, Binding, Named
from compacter.call.nested import GiveUps, gave_up_since, mark_given_up
from compacter.call.perform import Performer
from compacter.call.reader import read_call
from compacter.call.sizes import LEAST_CUT, may_be_cut
from compacter.call.state import State
from compacter.errors import CompactionError, ConfigurationError, FunctionError, add_note, notes_of
from compacter.io import ASYNC, IO, SYNC, is_kind, run
from compacter.messages.refusals import detect_in_reply
from compacter.messages.replies import Reply
from compacter.messages.usage import tokens_read

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
        self.read = functools.partial(read_call, state, function, binding)
        self.returns_awaitable = False
        """Whether the plain function has returned an awaitable; later calls are then handled as
        async ones."""
        self.param = binding.messages_param if type(binding).messages is Binding.messages else ""
        """Keyword of the messages; empty if a subclass of ``Binding`` has to find them."""
        self.measured: dict[int, tuple[int, int, int]] = {}
        """What `may_be_cut` keeps of earlier calls."""

    # -- the wrappers: a quiet call creates no objects ---------------------------------------------

    def synchronous(self) -> Function:
        """Return the wrapper of a plain function, which may return a reply, a stream or an
        awaitable.
        """
        function = self.function
        state = self.state
        binding = self.binding
        count_call = state.count_call
        idle = self.idle()
        messages = binding.messages
        param = self.param
        shape_of = streams.shape
        read_reply = self._read_reply
        prepares = state.prepares

        def call(*args: Any, **kwargs: Any) -> Any:
            if OWN_OPTIONS in kwargs:
                return self._with(kwargs.pop(OWN_OPTIONS))(*args, **kwargs)
            count_call()
            given = kwargs[param] if param in kwargs else messages(args, kwargs)
            if (
                prepares
                or not idle()
                or (type(given) is not list and binding.needs_list(args, kwargs))
            ):
                return self._start(args, kwargs)
            before = GiveUps.count
            try:
                raw = function(*args, **kwargs)
            except Exception as error:
                reply = self._refusal(error, before)
                if reply is None:
                    raise
            else:
                if type(raw) is not dict and (shape := shape_of(type(raw))) is not None:
                    return self._wrap_result(shape, raw, args, kwargs)
                reply = read_reply(raw, given, args, kwargs)
                if reply is None:
                    return raw
            return self._start(args, kwargs, reply)

        return call

    def asynchronous(self) -> Function:
        """Return the wrapper of a coroutine function."""
        self.returns_awaitable = True
        begin = self.synchronous()
        function = self.function
        count_call = self.state.count_call
        idle = self.idle()
        param = self.param
        prepares = self.state.prepares

        async def call(*args: Any, **kwargs: Any) -> Any:
            # What makes a quiet call, said once more: one wrapper within another costs half as
            # much again.
            given = kwargs.get(param)
            if type(given) is not list or OWN_OPTIONS in kwargs or prepares or not idle():
                return await begin(*args, **kwargs)
            count_call()
            return await self._await_reply(function(*args, **kwargs), given, args, kwargs)

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
        if state.proactive or state.prepared is None:
            return lambda: not state.proactive
        return state.prepared.memory.empty

    def _start(self, args: Args, kwargs: Named, reply: Reply | None = None) -> Any:
        if self.returns_awaitable:
            return self._handle(ASYNC, args, kwargs, reply)
        return run(self._handle(SYNC, args, kwargs, reply))

    # -- what a quiet call has returned ------------------------------------------------------------

    def _wrap_result(self, shape: streams.Shape, raw: Any, args: Args, kwargs: Named) -> Any:
        """Return the result for a stream or an awaitable that a plain function returned."""
        if shape == "awaitable":
            self.returns_awaitable = True
            return self._await_reply(raw, self.binding.messages(args, kwargs), args, kwargs)
        if shape == "stream":
            return run(self._open_stream(SYNC, raw, args, kwargs))
        return _iterate_later(self._open_stream)(ASYNC, raw, args, kwargs)

    async def _await_reply(
        self, awaitable: Awaitable[Any], given: Any, args: Args, kwargs: Named
    ) -> Any:
        """Await the result of a quiet call, and do with the reply what ``synchronous`` does."""
        before = GiveUps.count
        try:
            raw = await awaitable
        except Exception as error:
            reply = self._refusal(error, before)
            if reply is None:
                raise
        else:
            if type(raw) is not dict and streams.has(type(raw), ASYNC.iterates):
                return await self._open_stream(ASYNC, raw, args, kwargs)
            reply = self._read_reply(raw, given, args, kwargs)
            if reply is None:
                return raw
        return await self._handle(ASYNC, args, kwargs, reply)

    async def _open_stream(self, io: IO, stream: Any, args: Args, kwargs: Named) -> Any:
        """Read the stream of a quiet call up to its first content, and return it as if unread, or
        recover.
        """
        before = GiveUps.count
        reply = await streams.opened(io, stream, self.state.detect, self.binding.quiet)
        if reply.token_limit is None:
            return reply.raw
        if reply.error is not None and gave_up_since(before, reply.error):
            raise reply.error
        return await self._handle(io, args, kwargs, reply)

    def _refusal(self, error: Exception, before: int) -> Reply | None:
        """Return the reply for a token limit; ``None`` for another error, and for a call that a
        Compacter inside the function has given up.
        """
        limit = self.state.detect(error)
        if limit is None or gave_up_since(before, error):
            return None
        return Reply(token_limit=limit, error=error)

    def _read_reply(self, raw: Any, given: Any, args: Args, kwargs: Named) -> Reply | None:
        """Return a reply that states a token limit, or whose prompt the server may have truncated
        if there is a hook to tell; ``None`` for any other.

        Of its usage three integers are recorded, for the next call.
        """
        limit = detect_in_reply(raw)
        if limit is not None:
            return Reply(token_limit=limit, raw=raw)
        state = self.state
        tokens: int | None = None
        if type(given) is list and given and raw is not None and type(raw) is not str:
            try:
                if type(raw) is dict:
                    tokens = raw["usage"]["prompt_tokens"]
                else:
                    tokens = raw.usage.prompt_tokens
            except Exception:  # noqa: BLE001 - another API's reply, or an unknown type
                tokens = None
            if type(tokens) is not int:  # Not a closure, which would slow down every call.
                tokens = state.safely("reading", functools.partial(tokens_read, raw))
            state.last_reply = (tokens, len(given), id(given[-1])) if tokens else None
        if not state.event_hooks:
            return None
        if type(given) is list:
            beside = [value for value in (*args, *kwargs.values()) if value is not given]
            # A list without usage in its reply tells nothing.
            if (
                not tokens
                or tokens < LEAST_CUT
                or not may_be_cut(given, tokens, beside=beside, earlier=self.measured)
            ):
                return None
        return Reply(raw=raw)

    # -- calls that need compaction, and async results; the same code for sync and async -----------

    async def _handle(self, io: IO, args: Args, kwargs: Named, reply: Reply | None = None) -> Any:
        """Carry out a call that is not quiet: with records to look up, a trigger, a ``History``, or
        after the reply to a quiet one.

        If compacter itself fails, the result is that of the unwrapped function, or the provider's
        own exception. Only ``CompactionError`` is passed on.
        """
        if reply is None:
            args, kwargs = self.binding.as_list(args, kwargs, histories=False)
        # A hook must not change what is sent, so nothing is learnt on its behalf.
        learns = reply is None or reply.token_limit is not None
        world = await self.read(io, args, kwargs, learns=learns)
        if isinstance(world, str):
            return await self._call_unchanged(io, args, kwargs, reply, world)
        call = world.call
        if reply is not None:
            if reply.token_limit is None:
                await world.conduct(call.read_usage(reply.raw))
                return reply.raw
            world.last = reply
            world.trace = reply.error.__traceback__ if reply.error is not None else None
        failure: Exception
        try:
            raw = await world.conduct(call.complete() if reply is None else call.recover(reply))
        except CompactionError:
            raise
        except Exception as error:  # noqa: BLE001 - handled below, outside of this block
            failure = error
        else:
            shape = None if io.asynchronous else streams.shape(type(raw))
            if shape in ("awaitable", "async stream"):
                return self._wrap_result(shape, raw, args, kwargs)
            return raw if world.history is None else self._install_after(world, raw)
        finally:
            world.close()
        last = world.last
        if last is not None and last.error is not None:
            raise self._strip(last.error, world, failure)
        self.state.log.failed("compaction", failure)
        return last.raw if last is not None else await self._call_unchanged(io, args, kwargs)

    def _strip(self, theirs: Exception, world: Performer, failure: Exception) -> Exception:
        """Return the wrapped function's exception, with compacter's frames removed from its
        traceback.
        """
        if failure is not theirs:
            self.state.log.failed("compaction", failure)
            reason = f"it raised {type(failure).__name__}"
            if isinstance(failure, FunctionError):
                reason = str(failure)
            add_note(theirs, f"compacter could not compact: {reason}")
        elif world.gave_up:
            mark_given_up(theirs)
        trace = world.trace
        while trace is not None and trace.tb_frame.f_globals.get("__package__") == __package__:
            trace = trace.tb_next
        return theirs.with_traceback(trace)

    def _install_after(self, world: Performer, raw: Any) -> Any:
        """Return the reply, and install the compacted messages in the ``History`` once the reply is
        complete.
        """
        request = world.call.request
        history: Any = world.history
        if request.messages is request.original:
            return raw

        def install() -> None:
            if not history.install(world.version, request.messages, self.state.redaction):
                self.state.history_changed(None)

        return streams.when_done(raw, install)

    async def _call_unchanged(
        self,
        io: IO,
        args: Args,
        kwargs: Named,
        reply: Reply | None = None,
        reason: str = "",
    ) -> Any:
        """Call the function as if it were not wrapped; a refusal is raised again with the reason as
        a note.
        """
        if reply is None:
            args, kwargs = self.binding.as_list(args, kwargs)
            return await io.call(self.function, *args, **kwargs)
        if reply.error is None:
            return reply.raw
        if not any(note.startswith("compacter ") for note in notes_of(reply.error)):
            add_note(reply.error, f"compacter did nothing: {reason}")
        raise reply.error


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


def wrap_function(
    state: State, function: Function, binding: Binding, *, asynchronous: bool | None = None
) -> Function:
    """Return the wrapper of a function, with the same signature and of the same kind (sync, async,
    generator).

    ``asynchronous`` states that the result of a plain function is always awaitable, which cannot be
    detected: methods of the SDKs are decorated coroutine functions.
    """
    calls = WrappedFunction(state, function, binding)
    if is_kind(inspect.isasyncgenfunction, function):
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
