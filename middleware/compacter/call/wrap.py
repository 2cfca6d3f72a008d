"""Wrappers of plain functions, coroutine functions, generator functions and async generator
functions.

In this order: the four wrappers, which do as little as possible for a quiet call, one that needs
nothing from compacter; `WrappedFunction._handle`, for every other call; compactions made ahead.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping
from typing import Any

from compacter.call import streams
from compacter.call.apart import drive
from compacter.call.arguments import Args, Binding, Named
from compacter.call.nested import GiveUps, gave_up_since, mark_given_up
from compacter.call.perform import Performer
from compacter.call.reader import note_usage, read_call
from compacter.call.request import LEAST_CUT, may_be_cut
from compacter.call.state import State
from compacter.errors import CompactionError, ConfigurationError, FunctionError, add_note, notes_of
from compacter.io import ASYNC, IO, SYNC, is_kind, run
from compacter.messages.refusals import detect_in_reply
from compacter.messages.replies import Reply

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
        event_hooks = state.event_hooks
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
                refused = self._refusal(error, before)
                if refused is None:
                    raise
            else:
                if type(raw) is not dict and (shape := shape_of(type(raw))) is not None:
                    return self._wrap_result(shape, raw, args, kwargs)
                limit = detect_in_reply(raw)
                if limit is None:
                    tokens = note_usage(state, raw, given)
                    if event_hooks and self._may_be_cut(tokens, given, args, kwargs):
                        run(self._look_after(SYNC, raw, args, kwargs))
                    return raw
                refused = Reply(token_limit=limit, raw=raw)
            return self._start(args, kwargs, refused)

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
            return await self._await_reply(function(*args, **kwargs), args, kwargs, given)

        return call

    def generator(self) -> Function:
        """Return the wrapper of a generator function, which makes the call when its first chunk is
        requested.
        """
        opened = self.synchronous()

        def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            chunks = opened(*args, **kwargs)
            try:
                return (yield from chunks)
            finally:
                run(streams.close(SYNC, chunks))

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

    def _start(self, args: Args, kwargs: Named, refused: Reply | None = None) -> Any:
        if self.returns_awaitable:
            return self._handle(ASYNC, args, kwargs, refused)
        return run(self._handle(SYNC, args, kwargs, refused))

    def idle(self) -> Callable[[], bool]:
        """Return a function that is true if no work is needed before the call."""
        state = self.state
        if state.proactive or state.prepared is None:
            return lambda: not state.proactive
        is_empty = state.prepared.memory.empty
        if not state.prepares:
            return is_empty
        # A call that is due has to wait for the compaction that is being made.
        return lambda: is_empty() and not state.preparations

    def _refusal(self, error: Exception, before: int) -> Reply | None:
        """Return the reply for a token limit; ``None`` for another error, and for a call that a
        Compacter inside the function has given up.
        """
        limit = self.state.detect(error)
        if limit is None or gave_up_since(before, error):
            return None
        return Reply(token_limit=limit, error=error)

    def _wrap_result(self, shape: streams.Shape, raw: Any, args: Args, kwargs: Named) -> Any:
        """Return the result for a stream or an awaitable that a plain function returned."""
        if shape == "awaitable":
            self.returns_awaitable = True
            return self._await_reply(raw, args, kwargs, self.binding.messages(args, kwargs))
        if shape == "stream":
            return run(self._open_stream(SYNC, raw, args, kwargs))
        return _iterate_later(self._open_stream)(ASYNC, raw, args, kwargs)

    # -- calls that need compaction, and async results; the same code for sync and async -----------

    async def _await_reply(
        self, awaitable: Awaitable[Any], args: Args, kwargs: Named, given: Any
    ) -> Any:
        """Await the result of a quiet call, and do with the reply what ``synchronous`` does."""
        before = GiveUps.count
        try:
            raw = await awaitable
        except Exception as error:
            refused = self._refusal(error, before)
            if refused is None:
                raise
        else:
            if type(raw) is not dict and streams.has(type(raw), ASYNC.iterates):
                return await self._open_stream(ASYNC, raw, args, kwargs)
            limit = detect_in_reply(raw)
            if limit is None:
                tokens = note_usage(self.state, raw, given)
                if self.state.event_hooks and self._may_be_cut(tokens, given, args, kwargs):
                    await self._look_after(ASYNC, raw, args, kwargs)
                return raw
            refused = Reply(token_limit=limit, raw=raw)
        return await self._handle(ASYNC, args, kwargs, refused)

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

    async def _handle(self, io: IO, args: Args, kwargs: Named, refused: Reply | None = None) -> Any:
        """Carry out a call that is not quiet: with records to look up, a trigger, a ``History``, or
        after a refusal.

        If compacter itself fails, the result is that of the unwrapped function, or the provider's
        own exception. Only ``CompactionError`` is passed on.
        """
        if refused is None:
            args, kwargs = self.binding.as_list(args, kwargs, histories=False)
        world = await self.read(io, args, kwargs)
        if isinstance(world, str):
            return await self._call_unchanged(io, args, kwargs, refused, world)
        call = world.call
        if refused is not None:
            world.last = refused
            world.trace = refused.error.__traceback__ if refused.error is not None else None
        failure: Exception
        try:
            work = call.complete() if refused is None else call.recover(refused)
            raw = await (drive(world, work) if world.large else work)
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
        return last.raw if last is not None else await self._call_unchanged(io, args, kwargs, None)

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

        if streams.shape(type(raw)) is not None:
            return streams.when_done(raw, install)
        install()
        return raw

    async def _call_unchanged(
        self,
        io: IO,
        args: Args,
        kwargs: Named,
        refused: Reply | None,
        reason: str = "",
    ) -> Any:
        """Call the function as if it were not wrapped; a refusal is raised again with the reason as
        a note.
        """
        if refused is None:
            args, kwargs = self.binding.as_list(args, kwargs)
            return await io.call(self.function, *args, **kwargs)
        if refused.error is None:
            return refused.raw
        if not any(note.startswith("compacter ") for note in notes_of(refused.error)):
            add_note(refused.error, f"compacter did nothing: {reason}")
        raise refused.error

    # -- after a quiet call ------------------------------------------------------------------------

    def _may_be_cut(self, tokens: int | None, given: Any, args: Args, kwargs: Named) -> bool:
        """Return whether the prompt of a quiet call may have been truncated. A quick estimate."""
        if not tokens or type(given) is not list:
            # A list without usage in its reply tells nothing.
            return type(given) is not list
        beside = [value for value in (*args, *kwargs.values()) if value is not given]
        return tokens >= LEAST_CUT and may_be_cut(given, tokens, beside, self.measured)

    async def _look_after(self, io: IO, raw: Any, args: Args, kwargs: Named) -> None:
        """Send an event if the server has silently truncated the prompt."""
        world = await self.read(io, args, kwargs, learns=False)
        if not isinstance(world, str):
            await world.conduct(world.call.read_usage(raw))


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
