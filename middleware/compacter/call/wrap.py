"""Wrappers of functions, coroutine functions, and generator functions of both kinds.

A quiet call needs nothing from compacter, and the wrappers do as little as possible for it. Then
come the reply of a quiet call, every other call (`WrappedFunction._handle`), and its arguments.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from types import CoroutineType
from typing import Any

from compacter.call import streams
from compacter.call.arguments import Args, Binding, CallFacts, Named, characters_sent, needs_list
from compacter.call.call import Call
from compacter.call.handlers import Handlers
from compacter.call.log import outside
from compacter.call.policy import complete, recover, take_in
from compacter.call.pump import pump
from compacter.call.recalls import answered, fault_of, joined, with_recall
from compacter.call.request import Request
from compacter.call.state import IN_FORCE, GiveUps, State, mark_given_up
from compacter.call.target import Target
from compacter.call.warm import detected
from compacter.compaction.conversation import find_pinned
from compacter.errors import CompactionError, ConfigurationError, FunctionError, add_note
from compacter.memory.record import UNBOUND, conversation_digest, openings
from compacter.messages.format import Message, MessageFormat, get_format
from compacter.messages.recognise import UnknownFormatError, recognise
from compacter.messages.refusals import detect_empty, detect_in_reply
from compacter.messages.replies import HAS_USAGE, Reply, stated_tokens, tokens_read, usage_in
from compacter.runtime.io import ASYNC, IO, READS, SYNC, is_kind, is_large, run

Function = Callable[..., Any]
OWN_OPTIONS = "compacter_options"
"""Name of the argument with options for one call; it is not passed to the wrapped function."""
WRAPPED_BY = "__compacter__"
"""Attribute of a wrapped function or client: the name of its Compacter's state."""


class WrappedFunction:
    """One function that sends messages, and the code that runs around each call of it. The methods
    make a wrapper for each kind of function: plain, coroutine, generator, async generator.
    """

    def __init__(self, state: State, function: Function, binding: Binding) -> None:
        self.state = state
        self.in_force: Callable[[], object] = IN_FORCE.get
        """Returns whether a state of ``using`` may have to replace this one."""
        self.function = function
        self.binding = binding
        self.name = str(getattr(function, "__qualname__", type(function).__qualname__))
        self.returns_awaitable = False
        """Whether the plain function has returned an awaitable; later calls are then handled as
        async ones."""
        self.measured: dict[int, tuple[int, int, int]] = {}
        """Sizes of earlier calls, for `measure`."""

    # -- the wrappers: a quiet call creates no objects ---------------------------------------------

    def synchronous(self) -> Function:
        """Return the wrapper of a plain function, which may return a reply, a stream or an
        awaitable.
        """
        function = self.function
        binding = self.binding
        count_call = self.state.count_call
        idle = self.state.idle()
        in_force = self.in_force
        messages = binding.messages
        param = binding.messages_param
        shapes_of = streams.shapes
        read_reply = self._read_reply
        limit_since = self.state.limit_since
        late = self.state.late

        def call(*args: Any, **kwargs: Any) -> Any:
            if OWN_OPTIONS in kwargs or in_force():
                return self._with(kwargs.pop(OWN_OPTIONS, {}))(*args, **kwargs)
            count_call()
            given = kwargs.get(param)
            given = given if type(given) is list else messages(args, kwargs)
            reply = None
            is_quiet = idle() and not late
            if is_quiet and (type(given) is list or not needs_list(given)):
                before = GiveUps.count
                try:
                    raw = function(*args, **kwargs)
                except Exception as error:
                    limit = limit_since(before, error)
                    if limit is None:
                        raise
                    reply = Reply(token_limit=limit, error=error)
                else:
                    if type(raw) is not dict and (shapes := shapes_of(type(raw))):
                        return self._wrap_result(shapes, raw, args, kwargs)
                    reply = read_reply(raw, given, args, kwargs)
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
        idle = self.state.idle()
        in_force = self.in_force
        param = self.binding.messages_param
        late = self.state.late

        async def call(*args: Any, **kwargs: Any) -> Any:
            # Repeats the quiet path of `synchronous`: nested, a call is half as slow again.
            given = kwargs.get(param)
            if type(given) is not list or OWN_OPTIONS in kwargs or late or not idle() or in_force():
                return await begin(*args, **kwargs)
            count_call()
            return await self._settle(ASYNC, function(*args, **kwargs), given, args, kwargs)

        return call

    def generator(self) -> Function:
        """Return the wrapper of a generator function. It makes the call when the program reads the
        first chunk.
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

        return streams.iterate_later(
            WrappedFunction(self.state, begin, self.binding).asynchronous()
        )

    def _with(self, options: object) -> Function:
        """Return the wrapper with options in force and these; for ``False``, the function."""
        if options is False:
            return self.binding.bare or self.function
        if not isinstance(options, Mapping):
            raise ConfigurationError(f"{OWN_OPTIONS} takes a dict, or False, not {options!r}")
        state = self.state.in_force(options)
        other = WrappedFunction(state, self.function, self.binding)
        other.in_force = bool  # False.
        other.returns_awaitable = self.returns_awaitable
        return other.synchronous()

    # -- what a quiet call has returned ------------------------------------------------------------

    def _wrap_result(self, shapes: Sequence[str], raw: Any, args: Args, kwargs: Named) -> Any:
        """Return the result for a stream or an awaitable that a plain function returned."""
        outcome = raw, self.binding.messages(args, kwargs), args, kwargs
        if SYNC.iterates in shapes:
            return run(self._settle(SYNC, *outcome))
        if ASYNC.iterates in shapes:
            return streams.iterate_later(self._settle)(ASYNC, *outcome)
        self.returns_awaitable = True
        return self._settle(ASYNC, *outcome)

    async def _settle(self, io: IO, raw: Any, given: Any, args: Args, kwargs: Named) -> Any:
        """Return the result of a quiet call: awaited unless it is a stream, which is returned as if
        unread once its first content has come; or recover.
        """
        before = GiveUps.count
        try:
            # The first check is quicker, and almost always enough.
            if type(raw) is CoroutineType or streams.shapes(type(raw)) == ("__await__",):
                raw = await raw
            if type(raw) is dict or io.iterates not in streams.shapes(type(raw)):
                reply = self._read_reply(raw, given, args, kwargs)
                if reply is None:
                    return raw
            else:
                detect = functools.partial(self.state.limit_since, before)
                note = functools.partial(self._note_late, io, args, kwargs)
                reply = await streams.opened(io, raw, detect, self.binding.quiet, note)
                if reply.token_limit is None and not self._is_near(0, args, kwargs):
                    return reply.raw
        except Exception as error:
            limit = await detected(io, functools.partial(self.state.limit_since, before), error)
            if limit is None:
                raise
            reply = Reply(token_limit=limit, error=error)
        return await self._handle(io, args, kwargs, reply)

    def _read_reply(self, raw: Any, given: Any, args: Args, kwargs: Named) -> Reply | None:
        """Return the reply if it states a token limit, if a compaction may be made ahead, or if a
        hook may be told something; otherwise ``None``. Note its usage for the next call.
        """
        limit = detect_in_reply(raw) or detect_empty(raw)
        if limit is not None:
            return Reply(token_limit=limit, raw=raw)
        state = self.state
        tokens: int | None = None
        if type(given) is list and given and raw is not None and type(raw) is not str:
            tokens = stated_tokens(raw)
            if tokens is None and not (isinstance(raw, dict) and HAS_USAGE.isdisjoint(raw)):
                with state.safely("reading"):
                    tokens = tokens_read(raw)
            noted = tokens or 0, len(given), id(given[-1]), usage_in(raw)
            state.last_reply = noted if tokens else None
        return Reply(raw=raw) if self._is_near(tokens or 0, args, kwargs) else None

    def _is_near(self, tokens: int, args: Args, kwargs: Named) -> bool:
        """Return whether to read a quiet call of so many ``tokens``, 0 if unknown."""
        state = self.state
        if state.prepares or state.event_hooks:
            with state.safely("reading"):
                facts = self.binding.read(args, kwargs)
                return state.is_near(facts.model or self.name, facts, tokens, self.measured)
        return False

    def _note_late(self, io: IO, args: Args, kwargs: Named, error: Exception) -> None:
        """Note the token limit in the error that has ended a quiet call's stream, if it is one."""
        state = self.state
        with state.safely("reading"):
            if state.options.detect(error):
                read = self._read(io, args, kwargs, large=False, learns=True)
                if not isinstance(read, str):
                    read.note_late(error)

    # -- calls that need more; the same code for sync and async ------------------------------------

    async def _handle(self, io: IO, args: Args, kwargs: Named, reply: Reply | None = None) -> Any:
        """Carry out a call that is not quiet: with records to look up, a trigger, a ``History``, or
        after the reply to a quiet one. If compacter itself fails, return the unwrapped function's
        result or raise the provider's own exception. Only ``CompactionError`` is passed on.
        """
        args, kwargs = self.binding.as_list(args, kwargs, histories=False)
        # A hook must not change what is sent, so a call is not calibrated because of one.
        learns = reply is None or reply.token_limit is not None
        state = self.state
        times = 1 if state.proactive or state.late or (reply and reply.token_limit) else READS
        handlers = await self.read(io, args, kwargs, learns=learns, times=times)
        if isinstance(handlers, str):
            return await self._end(io, args, kwargs, reply, f"did nothing: {handlers}")
        call = handlers.call
        if reply is not None and reply.token_limit is None:
            with state.safely("reading"):
                await pump(take_in(call, reply.raw), handlers)
            return reply.raw
        handlers.take(reply)
        state.take_late(call.state)
        note = ""
        try:
            flow = complete(call) if reply is None else recover(call, reply)
            raw = await answered(handlers, await pump(flow, handlers))
        except CompactionError:
            raise
        except Exception as error:  # noqa: BLE001 - handled below, outside of this block
            if handlers.hands_back(error):
                if call.tried:
                    mark_given_up(error)
            else:
                self.state.log.failed("compaction", error)
                is_told = isinstance(error, FunctionError)
                reason = error if is_told else f"it raised {type(error).__name__}"
                note = f"could not compact: {reason}"
        else:
            shapes = () if io.asynchronous else streams.shapes(type(raw))
            if shapes and io.iterates not in shapes:
                handlers.io = ASYNC
                raw = self._wrap_result(shapes, raw, args, kwargs)
                return (joined if ASYNC.iterates in shapes else answered)(handlers, raw)
            self._install(handlers)
            return raw
        finally:
            handlers.close()
        return await self._end(io, args, kwargs, handlers.last, note)

    async def _end(self, io: IO, args: Args, kwargs: Named, last: Reply | None, note: str) -> Any:
        """Return or raise the wrapped function's last reply, with a note and without compacter's
        frames in its traceback; without a reply, call it as if it were not wrapped.
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

    def _install(self, handlers: Handlers) -> None:
        """Install the compacted messages in the ``History`` that was passed, if any were."""
        history: Any = handlers.history
        if history is None:
            return
        request = handlers.call.request
        history.bound = request.bound
        is_new = request.messages is not request.original
        version = handlers.version
        if is_new and not history.install(version, request.messages, self.state.redaction):
            self.state.history_changed(None)

    # -- reading a call ----------------------------------------------------------------------------

    async def read(
        self, io: IO, args: Args, kwargs: Named, *, learns: bool = True, times: int = 1
    ) -> Handlers | str:
        """Return the handlers of a call, or the reason, as a sentence, why it cannot be compacted.

        ``learns``: whether to calibrate by the last reply; ``times`` is as for `is_large`.
        """
        with self.state.safely("reading"):
            large = io.asynchronous and is_large(self.binding.messages(args, kwargs), times)
            read = functools.partial(self._read, io, args, kwargs, large=large, learns=learns)
            return await io.thread(read) if large else read()
        return "its messages could not be read"

    def _read(
        self, io: IO, args: Args, kwargs: Named, *, large: bool, learns: bool
    ) -> Handlers | str:
        """Read the messages, their format, model and limits, and look up their calibration and
        state.
        """
        from compacter.lines.frame import strip

        state = self.state
        binding = self.binding
        facts = binding.read(args, kwargs)
        if facts.elsewhere:
            return facts.elsewhere
        given = facts.messages
        history = given if hasattr(given, "pinned_ids") else None
        messages: list[Message] = [*given] if isinstance(given, Sequence) else []
        if isinstance(given, str) and given:
            messages = [{"role": "user", "content": given}]
        name = binding.param_of(kwargs)
        if not messages:
            remedy = f'pass them as {name}=... or name theirs: wrap(function, messages_param="...")'
            return f"the call has no messages in its argument {name!r}; {remedy}"
        try:
            form = get_format(binding.wire_format or recognise(messages, param=name))
        except UnknownFormatError as error:
            return str(error)
        messages = [form.say("user", given)] if isinstance(given, str) else messages
        # Without the quotes of an earlier call, which a program has put into its history.
        stripped = strip(messages, form) or messages
        named = state.options.conversation or getattr(history, "conversation", None) or ""
        request = self._request(facts, form, stripped, history, named)
        called = facts.model or self.name
        calibration = state.calibration(called, facts.place)
        # By the first message alone, a new conversation is recognised at its second call.
        count = 1 if state.proactive or state.prepares else 3
        begun = named or conversation_digest(request.openings or (), count)
        # Add the endpoint, as two tenants may begin alike.
        conversation = state.conversation(f"{facts.endpoint}\0{begun}")
        if learns and not state.proactive:
            state.learn_from_last(request, calibration, conversation)
        watched = bool(state.event_hooks)
        rules = map(repr, getattr(history, "rules", ()))
        return Handlers(
            state=state,
            io=io,
            call=Call(state.options, request, calibration, conversation, watched),
            target=Target(
                function=self.function,
                binding=binding,
                args=args,
                kwargs=kwargs,
                model=called,
                place=facts.place,
                as_passed=history is None and stripped == messages,
            ),
            large=large,
            scope="\0".join((called, form.name, facts.endpoint, state.scope, *rules)),
            history=history,
            version=getattr(history, "version", None),
        )

    def _request(
        self,
        facts: CallFacts,
        form: MessageFormat,
        messages: list[Message],
        history: Any,
        named: str,
    ) -> Request:
        """Return the request of a call as the caller made it; ``named`` is the conversation."""
        options = self.state.options
        first = openings(form, messages)
        name = getattr(self.function, "__name__", "")
        tools = with_recall(options.recall, self.binding, facts, form.name, name)
        by_history: frozenset[int] = getattr(history, "pinned_ids", frozenset)()
        return Request(
            format=form,
            original=messages,
            messages=messages,
            overhead=sum(map(characters_sent, (*facts.beside, *tools[-1:]))),
            output_tokens=facts.output_tokens,
            output_option=facts.output_option,
            model=facts.model,
            digest=named or conversation_digest(first),
            openings=first,
            find_pinned=functools.partial(
                find_pinned, self.state.pin, format=form, by_history=by_history
            ),
            rules=options.with_declared(getattr(history, "rules", ())),
            archive=getattr(history, "archive", None),
            alternate=options.alternate_roles,
            tools=tools,
            bound=getattr(history, "bound", UNBOUND),
        )


def wrap_function(
    state: State, function: Function, binding: Binding, *, asynchronous: bool | None = None
) -> Function:
    """Return the wrapper of a function, with the same signature and of the same kind (sync, async,
    generator).

    ``asynchronous`` states that the result of a plain function is always awaitable, which cannot be
    detected: methods of the SDKs are decorated coroutine functions.

    Raises ``ConfigurationError`` if a function cannot have the tool of ``Quotes(tool=True)``. A
    vendor's method is then called without it, as its client has others.
    """
    fault = fault_of(state.options.recall, binding)
    if fault and not binding.vendors:
        raise ConfigurationError(fault)
    calls = WrappedFunction(state, function, binding)
    if asynchronous or is_kind(inspect.iscoroutinefunction, function):
        shaped = calls.asynchronous()
    elif is_kind(inspect.isasyncgenfunction, function):
        shaped = calls.async_generator()
    elif is_kind(inspect.isgeneratorfunction, function):
        shaped = calls.generator()
    else:
        shaped = calls.synchronous()
    updated = functools.WRAPPER_UPDATES if hasattr(function, "__name__") else ()
    wrapped = functools.update_wrapper(shaped, function, updated=updated)
    setattr(wrapped, WRAPPED_BY, state.name)
    return wrapped
