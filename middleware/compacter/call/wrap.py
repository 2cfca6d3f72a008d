"""A function for a function: the calls of one wrapped function, sync, async, and streams of both."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence
from dataclasses import replace
from typing import Any

from compacter.call import streams
from compacter.call.arguments import Binding
from compacter.call.effects import HandOver, Tell, adrive, drive
from compacter.call.perform import World
from compacter.call.recover import Refusal, Request, keeps_pins, recover
from compacter.call.request import Session, tokens_of
from compacter.call.state import Engine
from compacter.call.streams import is_async_stream
from compacter.call.trigger import converse, cut_silently, truncated
from compacter.memory.match import conversation_digest
from compacter.messages.format import Message, recognise, wire
from compacter.models import window
from compacter.overflow import TokenLimit, detect_in_reply

Function = Callable[..., Any]


class Calls:
    """The calls of one wrapped function."""

    def __init__(self, engine: Engine, function: Function, binding: Binding) -> None:
        self.engine = engine
        self.function = function
        self.binding = binding

    # -- the shapes --------------------------------------------------------------------------------------------------

    def synchronous(self) -> Function:
        """A function for a function."""
        engine, function, detect = self.engine, self.function, self.engine.detect
        idle, count_call, is_stream = engine.idle, engine.count_call, streams.streams
        guarded, recovered, streamed, awaited = self._guarded, self._recovered, self._streamed, self._awaited
        binding, event_hooks, checked = self.binding, engine.event_hooks, self._checked

        def call(*args: Any, **kwargs: Any) -> Any:
            count_call()
            if not idle() or binding.has_history(args, kwargs):
                return guarded(args, kwargs)
            try:
                reply = function(*args, **kwargs)
            except Exception as error:
                found = detect(error)
                if found is None:
                    raise
                refusal = Refusal(found, error)
            else:
                if is_stream(type(reply)):
                    return streamed(reply, args, kwargs)
                if hasattr(reply, "__await__"):
                    return awaited(reply, args, kwargs)
                found = detect_in_reply(reply)
                if found is None:
                    if event_hooks:
                        checked(args, kwargs, reply)
                    engine.last_reply = (args, kwargs, reply)
                    return reply
                refusal = Refusal(found, None, reply)
            return recovered(args, kwargs, refusal)

        return call

    def asynchronous(self) -> Function:
        """A coroutine function for a coroutine function."""
        engine, function, detect = self.engine, self.function, self.engine.detect
        idle, count_call = engine.idle, engine.count_call
        aguarded, arecovered, astreamed = self._aguarded, self._arecovered, self._astreamed
        binding, event_hooks, achecked = self.binding, engine.event_hooks, self._achecked

        async def call(*args: Any, **kwargs: Any) -> Any:
            count_call()
            if not idle() or binding.has_history(args, kwargs):
                return await aguarded(args, kwargs)
            try:
                reply = await function(*args, **kwargs)
            except Exception as error:
                found = detect(error)
                if found is None:
                    raise
                refusal = Refusal(found, error)
            else:
                if is_async_stream(reply):
                    return await astreamed(reply, args, kwargs)
                found = detect_in_reply(reply)
                if found is None:
                    if event_hooks:
                        await achecked(args, kwargs, reply)
                    engine.last_reply = (args, kwargs, reply)
                    return reply
                refusal = Refusal(found, None, reply)
            return await arecovered(args, kwargs, refusal)

        return call

    def generator(self, *args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        """A generator for a generator: nothing is called before its first chunk is asked for."""
        self.engine.count_call()
        chunks = self._guarded(args, kwargs)
        try:
            return (yield from chunks)
        finally:
            streams.shut(chunks)

    async def async_generator(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """As ``generator``."""
        self.engine.count_call()
        chunks = await self._aguarded(args, kwargs)
        try:
            async for chunk in chunks:
                yield chunk
        finally:
            await streams.ashut(chunks)

    # -- what happens when something happens ---------------------------------------------------------------------------

    def _guarded(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call with a memory to look into, a trigger to check, or a History to keep."""
        session = self._session(args, kwargs)
        if session is None:
            args, kwargs = self.binding.as_list(args, kwargs)
            return self.function(*args, **kwargs)
        world = session.world
        try:
            session.request = self._recalled(session)
            reply = drive(
                converse(self.engine.options, session.request, session.calibration, session.pulse),
                world.perform,
            )
        except HandOver as handing:
            return self._handed_over(session, handing)
        finally:
            world.close()
        return _kept(session, reply)

    async def _handed_over(self, session: Session, handing: HandOver) -> Any:
        """The rest of a call to a plain function that returned an awaitable."""
        session.world.first = handing.reply
        try:
            reply = await adrive(handing.flow, session.world.aperform, handing.effect)
        finally:
            session.world.close()
        return _kept(session, reply)

    async def _aguarded(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        session = self._session(args, kwargs)
        if session is None:
            args, kwargs = self.binding.as_list(args, kwargs)
            reply = self.function(*args, **kwargs)
            return await reply if isinstance(reply, Awaitable) else reply
        world = session.world
        try:
            if self.engine.blocking:
                import asyncio

                session.request = await asyncio.to_thread(self._recalled, session)
            else:
                session.request = self._recalled(session)
            reply = await adrive(
                converse(self.engine.options, session.request, session.calibration, session.pulse),
                world.aperform,
            )
        finally:
            world.close()
        return _kept(session, reply)

    def _recovered(self, args: tuple[Any, ...], kwargs: dict[str, Any], refusal: Refusal) -> Any:
        session = self._session(args, kwargs)
        if session is None:
            return self._unchanged(kwargs, refusal)
        session.world.refused = refusal.reply
        try:
            return drive(
                recover(self.engine.options, session.request, session.calibration, refusal),
                session.world.perform,
            )
        except HandOver as handing:
            return self._handed_over(session, handing)
        finally:
            session.world.close()

    async def _arecovered(self, args: tuple[Any, ...], kwargs: dict[str, Any], refusal: Refusal) -> Any:
        session = self._session(args, kwargs)
        if session is None:
            return self._unchanged(kwargs, refusal)
        session.world.refused = refusal.reply
        try:
            return await adrive(
                recover(self.engine.options, session.request, session.calibration, refusal),
                session.world.aperform,
            )
        finally:
            session.world.close()

    def _streamed(self, stream: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not hasattr(type(stream), "__next__"):
            # An async stream that a plain function made: nobody can await here, so it is looked into later.
            return self._later(stream, args, kwargs)
        opening = streams.look(stream)
        found = self._told(opening)
        if found is None:
            return streams.replay(stream, opening)
        refusal = Refusal(found, opening.error, None if opening.error else streams.replay(stream, opening))
        if opening.error is not None:
            streams.shut(stream)
        return self._recovered(args, kwargs, refusal)

    async def _astreamed(self, stream: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        opening = await streams.alook(stream)
        found = self._told(opening)
        if found is None:
            return streams.replay(stream, opening)
        refusal = Refusal(found, opening.error, None if opening.error else streams.replay(stream, opening))
        if opening.error is not None:
            await streams.ashut(stream)
        return await self._arecovered(args, kwargs, refusal)

    def _checked(self, args: tuple[Any, ...], kwargs: dict[str, Any], reply: Any) -> None:
        """Tell the hooks when the server has cut the prompt silently; only looked for where somebody listens."""
        told = self._cut_silently(args, kwargs, reply)
        if told is not None:
            session, effect = told
            session.world.perform(effect)

    async def _achecked(self, args: tuple[Any, ...], kwargs: dict[str, Any], reply: Any) -> None:
        """As ``_checked``."""
        told = self._cut_silently(args, kwargs, reply)
        if told is not None:
            session, effect = told
            await session.world.aperform(effect)

    def _cut_silently(self, args: tuple[Any, ...], kwargs: dict[str, Any], reply: Any) -> tuple[Session, Tell] | None:
        tokens, _ = tokens_of(reply)
        session = self._session(args, kwargs) if tokens else None
        if session is None:
            return None
        expected = cut_silently(session.request, session.calibration, tokens)
        return None if expected is None else (session, truncated(session.request, expected, tokens))

    async def _awaited(self, reply: Awaitable[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A plain function that returned an awaitable (``lambda **kw: acompletion(**kw)``)."""
        try:
            result = await reply
        except Exception as error:
            found = self.engine.detect(error)
            if found is None:
                raise
            refusal = Refusal(found, error)
        else:
            if is_async_stream(result):
                return await self._astreamed(result, args, kwargs)
            found = detect_in_reply(result)
            if found is None:
                if self.engine.event_hooks:
                    await self._achecked(args, kwargs, result)
                return result
            refusal = Refusal(found, None, result)
        return await self._arecovered(args, kwargs, refusal)

    async def _later(self, stream: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AsyncIterator[Any]:
        chunks = await self._astreamed(stream, args, kwargs)
        try:
            async for chunk in chunks:
                yield chunk
        finally:
            await streams.ashut(chunks)

    def _told(self, opening: streams.Opening) -> TokenLimit | None:
        return self.engine.detect(opening.error) if opening.error is not None else opening.found

    def _unchanged(self, kwargs: dict[str, Any], refusal: Refusal) -> Any:
        if refusal.error is None:
            return refusal.reply
        reason = self.binding.held_elsewhere(kwargs) or (
            f"the call has no messages in its argument {self.binding.messages_param!r}"
        )
        refusal.error.add_note(f"compacter did nothing: {reason}")
        raise refusal.error

    # -- reading a call ------------------------------------------------------------------------------------------------

    def _session(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Session | None:
        """What the flow needs to know of this call; ``None`` when it holds no messages that could be compacted."""
        if self.binding.held_elsewhere(kwargs):
            return None
        given = self.binding.messages(args, kwargs)
        history, messages = as_messages(given)
        if not messages:
            return None
        form = wire(self.binding.wire_format or recognise(messages, param=self.binding.messages_param))
        model = self.binding.model(args, kwargs)
        name = model or getattr(self.function, "__qualname__", type(self.function).__qualname__)
        calibration = self.engine.calibration(name)
        if calibration.window is None:
            calibration.window = window(model)
        option, limit = self.binding.output_limit(kwargs)
        conversation = conversation_digest(form, messages)
        request = Request(
            wire=form, original=messages, messages=messages, overhead=self.binding.overhead(kwargs),
            output_tokens=limit, output_option=option, model=model, conversation=conversation,
            pinned_by_history=history.pinned_ids() if history is not None else frozenset(),
        )  # fmt: skip
        world = World(self.engine, form, name, self.function, self.binding, args, kwargs)
        session = Session(world, request, calibration, self.engine.pulse(conversation), history)
        if not self.engine.proactive:
            self._learn_from_last(session)
        return session

    def _learn_from_last(self, session: Session) -> None:
        """Calibrate by the usage of the last reply, if it was to an earlier state of this conversation."""
        last, self.engine.last_reply = self.engine.last_reply, None
        if last is None:
            return
        args, kwargs, reply = last
        _, messages = as_messages(self.binding.messages(args, kwargs))
        session.learn(messages, self.binding.overhead(kwargs), reply)

    def _recalled(self, session: Session) -> Request:
        request = session.request
        view = self.engine.view(session.world.model, request.wire, request.original)
        if view is None or not keeps_pins(self.engine.options, request, view):
            return request
        # A History that is sent as it was compacted before becomes that, too, once the call has succeeded.
        session.world.made = view
        return replace(request, messages=view)


def _kept(session: Session, reply: Any) -> Any:
    """The reply; a History that was passed gets what the compactions made of it, once the reply is complete."""
    if session.history is None or session.world.made is None:
        return reply
    if streams.streams(type(reply)):
        return streams.when_done(reply, session.settled)
    session.settled()
    return reply


def as_messages(given: Any) -> tuple[Any, list[Message]]:
    """The History that was passed, if one was, and the messages of it, or those passed, as a list of our own."""
    if hasattr(given, "pinned_ids"):
        return given, list(given)
    if isinstance(given, str):
        return None, [{"role": "user", "content": given}] if given else []
    if isinstance(given, Sequence) and not isinstance(given, (bytes, bytearray)):
        return None, list(given)
    return None, []


def wrap_function(
    engine: Engine, function: Function, binding: Binding, *, asynchronous: bool | None = None
) -> Function:
    """The function with compaction around it: same signature, same kind (sync, async, generator).

    ``asynchronous`` says what cannot be seen: that a plain function's result is always awaited (a decorated
    coroutine function, as the SDKs have them).
    """
    calls = Calls(engine, function, binding)
    if _is(inspect.isasyncgenfunction, function):
        shaped: Function = calls.async_generator
    elif _is(inspect.isgeneratorfunction, function):
        shaped = calls.generator
    elif asynchronous or _is(inspect.iscoroutinefunction, function):
        shaped = calls.asynchronous()
    else:
        shaped = calls.synchronous()
    if shaped in (calls.async_generator, calls.generator):
        shaped = _as_function(shaped, asynchronous=shaped == calls.async_generator)
    wrapped = (
        functools.wraps(function)(shaped)
        if hasattr(function, "__name__")
        else functools.update_wrapper(
            shaped,
            function,
            assigned=(name for name in functools.WRAPPER_ASSIGNMENTS if hasattr(function, name)),
            updated=(),
        )
    )
    wrapped.__wrapped__ = function
    return wrapped


def _is(question: Callable[[Any], bool], function: Function) -> bool:
    inner = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    return question(inner) or (not inspect.isroutine(inner) and question(type(inner).__call__))


def _as_function(shaped: Function, *, asynchronous: bool) -> Function:
    if asynchronous:

        async def stream(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            chunks = shaped(*args, **kwargs)
            try:
                async for chunk in chunks:
                    yield chunk
            finally:
                await chunks.aclose()

        return stream

    def each(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        return (yield from shaped(*args, **kwargs))

    return each
