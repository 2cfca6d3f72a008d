"""Wrappers of plain functions, coroutine functions, generator functions and async generator
functions.

In this order: the four wrappers, which do as little as possible for a quiet call, one that needs
nothing from compacter; `WrappedFunction._handle`, for every other call; compactions made ahead.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from compacter.call import streams
from compacter.call.arguments import Binding
from compacter.call.nested import GiveUps, gave_up_since, mark_given_up
from compacter.call.prepare import NOTED, limits
from compacter.call.reader import Reader
from compacter.call.sizes import may_be_cut
from compacter.call.state import State
from compacter.call.wrapped_call import WrappedCall
from compacter.errors import CompactionError, ConfigurationError, FunctionError, add_note, notes_of
from compacter.io import ASYNC, IO, SYNC, is_kind, run, weight
from compacter.messages.refusals import detect_in_reply
from compacter.messages.replies import Reply
from compacter.messages.usage import tokens_read

if TYPE_CHECKING:
    from compacter.history import History

Function = Callable[..., Any]
OWN_OPTIONS = "compacter_options"
"""Name of the argument with options for one call; it is not passed to the wrapped function."""
# Characters per token from which a reply without usage is looked at more closely: fewer than most
# texts have, more than Chinese.
_LEAST_CHARACTERS = 2
WRAPPED_BY = "__compacter__"
"""Attribute of a wrapped function or client: the name of its Compacter's state."""


class WrappedFunction:
    """Makes the wrapper of one function, and carries out its calls."""

    def __init__(self, state: State, function: Function, binding: Binding) -> None:
        self.state = state
        self.function = function
        self.binding = binding
        self.reader = Reader(state, function, binding)
        self.returns_awaitable = False
        """Whether the plain function has returned an awaitable; later calls are then handled as
        async ones."""
        self.measured: dict[int, tuple[int, int, int]] = {}
        """What `may_be_cut` keeps of earlier calls."""

    # -- the wrappers: a quiet call creates no objects ---------------------------------------------

    def synchronous(self) -> Function:  # noqa: C901 - in one piece, to keep quiet calls fast
        """Return the wrapper of a plain function, which may return a reply, a stream or an
        awaitable.
        """
        function = self.function
        state = self.state
        binding = self.binding
        count_call = state.count_call
        idle = self.idle()
        detect = state.detect
        messages = binding.messages
        param = self._param()
        shape_of = streams.shape
        event_hooks = state.event_hooks
        note = self.reader.note
        prepares = state.prepares

        def call(*args: Any, **kwargs: Any) -> Any:
            if OWN_OPTIONS in kwargs:
                return self._with(kwargs.pop(OWN_OPTIONS), "synchronous")(*args, **kwargs)
            count_call()
            given = kwargs[param] if param in kwargs else messages(args, kwargs)
            if not idle() or (type(given) is not list and binding.needs_list(args, kwargs)):
                if self.returns_awaitable:
                    return self._handle(ASYNC, args, kwargs)
                return run(self._handle(SYNC, args, kwargs))
            before = GiveUps.count
            try:
                raw = function(*args, **kwargs)
            except Exception as error:
                found = detect(error)
                if found is None or gave_up_since(before, error):
                    raise
                refused = Reply(token_limit=found, error=error)
            else:
                if type(raw) is not dict and (shape := shape_of(type(raw))) is not None:
                    return self._wrap_result(shape, raw, given, args, kwargs)
                found = detect_in_reply(raw)
                if found is None:
                    tokens = note(raw, given)
                    if (event_hooks or prepares) and self._matters(tokens, given, args, kwargs):
                        run(self._look_after(SYNC, raw, tokens, args, kwargs))
                    return raw
                refused = Reply(token_limit=found, raw=raw)
            return run(self._handle(SYNC, args, kwargs, refused))

        return call

    def asynchronous(self) -> Function:
        """Return the wrapper of a coroutine function."""
        function = self.function
        state = self.state
        binding = self.binding
        count_call = state.count_call
        idle = self.idle()
        messages = binding.messages
        param = self._param()

        async def call(*args: Any, **kwargs: Any) -> Any:
            if OWN_OPTIONS in kwargs:
                return await self._with(kwargs.pop(OWN_OPTIONS), "asynchronous")(*args, **kwargs)
            count_call()
            given = kwargs[param] if param in kwargs else messages(args, kwargs)
            if not idle() or (type(given) is not list and binding.needs_list(args, kwargs)):
                return await self._handle(ASYNC, args, kwargs)
            return await self._await_reply(function(*args, **kwargs), given, args, kwargs)

        return call

    def _with(self, options: object, shape: str) -> Any:
        """Return the wrapper of this shape with other options; for ``False`` the bare function."""
        if options is False:
            return self.binding.bare or self.function
        if not isinstance(options, Mapping):
            raise ConfigurationError(
                f"{OWN_OPTIONS} takes a dict of options, or False, not {options!r}"
            )
        other = WrappedFunction(self.state.replaced(options), self.function, self.binding)
        return getattr(other, shape)()

    def idle(self) -> Callable[[], bool]:
        """Return a function that is true if no work is needed before the call."""
        proactive = self.state.proactive
        memory = self.state.memory
        if self.state.prepares and not proactive:
            preparations = self.state.preparations
            is_empty = self.state.memory_of_prepared()[0].empty
            # A call that is due has to wait for the compaction that is being made.
            return lambda: is_empty() and not preparations
        return (lambda: not proactive) if proactive or memory is None else memory.empty

    def _param(self) -> str:
        """Return the keyword of the messages argument; empty if a subclass of ``Binding`` has to
        find it.
        """
        plain = type(self.binding).messages is Binding.messages
        return self.binding.messages_param if plain else ""

    def _wrap_result(
        self,
        shape: streams.Shape,
        raw: Any,
        given: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Return the result for a stream or an awaitable that a plain function returned."""
        if shape == "awaitable":
            self.returns_awaitable = True
            return self._await_reply(raw, given, args, kwargs)
        if shape == "stream":
            return run(self._open_stream(SYNC, raw, args, kwargs))
        return _iterate_later(self._open_stream)(ASYNC, raw, args, kwargs)

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

    # -- calls that need compaction, and async results; the same code for sync and async -----------

    async def _await_reply(
        self, awaitable: Awaitable[Any], given: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Await the result of a quiet call, and do with the reply what ``synchronous`` does."""
        before = GiveUps.count
        try:
            raw = await awaitable
        except Exception as error:
            found = self.state.detect(error)
            if found is None or gave_up_since(before, error):
                raise
            refused = Reply(token_limit=found, error=error)
        else:
            if type(raw) is not dict and streams.has(type(raw), ASYNC.iterates):
                return await self._open_stream(ASYNC, raw, args, kwargs)
            found = detect_in_reply(raw)
            if found is None:
                tokens = self.reader.note(raw, given)
                if self._matters(tokens, given, args, kwargs):
                    await self._look_after(ASYNC, raw, tokens, args, kwargs)
                return raw
            refused = Reply(token_limit=found, raw=raw)
        return await self._handle(ASYNC, args, kwargs, refused)

    async def _open_stream(
        self, io: IO, stream: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Read the stream of a quiet call up to its first content, and return it as if unread, or
        recover.
        """
        before = GiveUps.count
        reply = await streams.opened(io, stream, self.state.detect, self.binding.quiet)
        if reply.token_limit is None:
            given = self.binding.messages(args, kwargs)
            if self.state.prepares and self._may_prepare(None, given):
                await self._look_after(io, None, None, args, kwargs)
            return reply.raw
        if reply.error is not None and gave_up_since(before, reply.error):
            raise reply.error
        return await self._handle(io, args, kwargs, reply)

    async def _handle(
        self, io: IO, args: tuple[Any, ...], kwargs: dict[str, Any], refused: Reply | None = None
    ) -> Any:
        """Carry out a call that is not quiet: with records to look up, a trigger, a ``History``, or
        after a refusal.

        If compacter itself fails, the result is that of the unwrapped function, or the provider's
        own exception. Only ``CompactionError`` is passed on.
        """
        if refused is None:
            args, kwargs = self.binding.as_list(args, kwargs, histories=False)
        call = await self.reader.read(io, args, kwargs)
        if isinstance(call, str):
            return await self._call_unchanged(io, args, kwargs, refused, call)
        if refused is not None:
            self.state.prepare_from = None  # The window may be known from now on.
            call.last = refused
            call.trace = refused.error.__traceback__ if refused.error is not None else None
        failure: Exception
        try:
            raw = await call.conduct(
                call.policy.complete() if refused is None else call.policy.recover(refused)
            )
        except CompactionError:
            raise
        except Exception as error:  # noqa: BLE001 - handled below, outside of this block
            failure = error
        else:
            shape = None if io.asynchronous else streams.shape(type(raw))
            if shape in ("awaitable", "async stream"):
                return self._wrap_result(shape, raw, None, args, kwargs)
            return raw if call.history is None else self._install_after(call, call.history, raw)
        finally:
            call.close()
        last = call.last
        if last is not None and last.error is not None:
            self._raise(last.error, call, failure)
        self.state.log.failed("compaction", failure)
        if last is not None:
            return last.raw
        return await self._call_unchanged(
            io, args, kwargs, None, f"it raised {type(failure).__name__}"
        )

    def _raise(self, theirs: Exception, call: WrappedCall, failure: Exception) -> NoReturn:
        """Raise the wrapped function's exception, with compacter's frames removed from its
        traceback.
        """
        if failure is not theirs:
            self.state.log.failed("compaction", failure)
            reason = (
                failure
                if isinstance(failure, FunctionError)
                else (f"it raised {type(failure).__name__}")
            )
            add_note(theirs, f"compacter could not compact: {reason}")
        elif call.gave_up:
            mark_given_up(theirs)
        trace = call.trace
        while trace is not None and trace.tb_frame.f_globals.get("__package__") == __package__:
            trace = trace.tb_next
        raise theirs.with_traceback(trace)

    def _install_after(self, call: WrappedCall, history: History, raw: Any) -> Any:
        """Return the reply, and install the compacted messages in the ``History`` once the reply is
        complete.
        """
        request = call.policy.request
        if request.messages is request.original:
            return raw

        def install() -> None:
            if not history.install(call.version, request.messages, self.state.redaction):
                self.state.history_changed(None)

        if streams.shape(type(raw)) is not None:
            return streams.when_done(raw, install)
        install()
        return raw

    async def _call_unchanged(
        self,
        io: IO,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        refused: Reply | None,
        reason: str,
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

    def _matters(
        self, tokens: int | None, given: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> bool:
        """Return whether a quiet call is to be looked at more closely. A quick estimate."""
        state = self.state
        if state.prepares and self._may_prepare(tokens, given):
            return True
        if not state.event_hooks or not tokens or type(given) is not list:
            # A list without usage in its reply tells nothing.
            return bool(state.event_hooks) and type(given) is not list
        beside = [value for value in (*args, *kwargs.values()) if value is not given]
        return may_be_cut(given, tokens, beside=beside, earlier=self.measured)

    async def _look_after(
        self, io: IO, raw: Any, tokens: int | None, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Send an event if the server has silently truncated the prompt, and have the next
        compaction made ahead if the call has reached the size for it.

        ``raw`` is the reply, ``None`` for a stream; ``tokens`` are those of its usage.
        """
        prepares = self.state.prepares
        call = await self.reader.read(io, args, kwargs, learns=prepares)
        if isinstance(call, str):
            return
        read = tokens_read(raw)
        if self.state.event_hooks and read:
            await call.conduct(call.policy.cut_silently(read))
        if prepares:
            note = partial(self._note_size, call, tokens)
            await call.safely("preparation", note)

    def _may_prepare(self, tokens: int | None, given: Any) -> bool:
        """Return whether a quiet call may have reached the size at which a compaction is made
        ahead. A quick estimate.
        """
        least = self.state.prepare_from
        if least is None:
            return True
        if tokens:
            return tokens >= least
        if least == sys.maxsize or not isinstance(given, Sequence) or isinstance(given, str):
            return False
        enough = least * _LEAST_CHARACTERS
        return weight(list(given), enough) >= enough

    async def _note_size(self, call: WrappedCall, tokens: int | None) -> None:
        policy = call.policy
        begin, _ = limits(policy.options, policy.calibration, policy.request.output_tokens)
        least = sys.maxsize if begin is None else int(begin * NOTED)
        self.state.prepare_from = min(least, self.state.prepare_from or least)
        if tokens:
            policy.note_usage(tokens)
        await call.conduct(policy.prepare(tokens or 0))


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
    assigned = [name for name in functools.WRAPPER_ASSIGNMENTS if hasattr(function, name)]
    updated = functools.WRAPPER_UPDATES if hasattr(function, "__name__") else ()
    wrapped = functools.update_wrapper(shaped, function, assigned=assigned, updated=updated)
    setattr(wrapped, WRAPPED_BY, state.name)
    return wrapped
