"""One call of a wrapped function: it calls that function, and uses memory and quotes."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from compacter.call import streams
from compacter.call.arguments import Binding
from compacter.call.nested import GiveUps, gave_up_since
from compacter.call.one_summary import OneSummary
from compacter.call.perform import Performer, Performs
from compacter.call.prepare import Prepare, Prepared
from compacter.call.recover import Policy
from compacter.compaction.conversation import Conversation
from compacter.effects import (
    AskSummarizer,
    Call,
    Effect,
    Emit,
    Quote,
    Remember,
    Remembered,
)
from compacter.events import PassagesRecalled
from compacter.io import Stopped
from compacter.memory.match import Matcher, View
from compacter.memory.protocol import BaseMemory
from compacter.memory.record import prefix_digest
from compacter.messages.fields import Unencodable, json_text
from compacter.messages.format import Message, MessageFormat
from compacter.messages.refusals import detect_in_reply
from compacter.messages.replies import Reply
from compacter.single_flight import LONGEST_WAIT
from compacter.summary import message as summary_message

if TYPE_CHECKING:
    from compacter.history import History

T = TypeVar("T")


@dataclass(kw_only=True, eq=False)
class WrappedCall(Performer):
    """One call of a wrapped function: the caller's arguments, and the values read from them. Closed
    at its end.
    """

    function: Callable[..., Any]
    binding: Binding
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    policy: Policy
    scope: str
    """Part of each record's key; the same for calls that may share a summary."""
    as_passed: bool
    """Whether ``request.original`` is what the caller passed: no ``History``, and without quotes of
    an earlier call."""
    history: History | None
    """The ``History`` that was passed in place of a list."""
    version: int
    """Its version at the time of the call."""
    ahead: bool = False
    """Whether it makes or reads a compaction that is not in force yet."""
    last: Reply | None = field(default=None, init=False)
    """Last reply of the wrapped function."""
    trace: TracebackType | None = field(default=None, init=False)
    """Traceback of that reply's ``error`` when it was raised."""
    # Views that this call has read from memory or made, each with the id of its record.
    _views: list[tuple[Sequence[Message], str]] = field(default_factory=list, init=False)
    one_summary: OneSummary = field(init=False)
    """Its part in sharing a summary with other calls."""

    def __post_init__(self) -> None:
        self.one_summary = OneSummary(self)

    def close(self, *, for_good: bool = True) -> None:
        """Release this call's flight and claim; ``for_good``: also a claim that is granted
        later.
        """
        self.one_summary.release(for_good=for_good)

    async def _call(self, effect: Call) -> Reply:
        before = GiveUps.count
        last = self.last
        if last is not None and last.token_limit is not None and last.error is None:
            await streams.close(self.io, last.raw)
        args = self.args
        kwargs = self.kwargs
        unchanged = self.as_passed and effect.messages is self.policy.request.original
        try:
            if effect.options or not unchanged:
                # The caller's own object if nothing was compacted: it may be a text, or a list that
                # the function adds to.
                messages = (
                    self.binding.messages(args, kwargs) if unchanged else list(effect.messages)
                )
                args, kwargs = self.binding.replace(args, kwargs, messages, effect.options)
            try:
                raw = self.function(*args, **kwargs)
            except StopIteration as error:
                if self.io.asynchronous:
                    raise
                raise Stopped(error) from None
            if self.io.asynchronous and inspect.isawaitable(raw):
                raw = await raw
            if streams.has(type(raw), self.io.iterates):
                reply = await streams.opened(self.io, raw, self.state.detect, self.binding.quiet)
            else:
                reply = Reply(raw=raw, token_limit=detect_in_reply(raw))
        except Exception as error:
            self.last = Reply(error=error)
            self.trace = error.__traceback__
            if gave_up_since(before, error):
                return self.last
            raise
        self.last = reply
        if reply.error is not None:
            self.trace = reply.error.__traceback__
            return Reply(error=reply.error) if gave_up_since(before, reply.error) else reply
        return reply

    def _request(self, effect: AskSummarizer) -> tuple[Callable[[], Any], bool]:
        """As above; without the option ``summarizer`` the request goes to the wrapped function
        itself.
        """
        if self.state.options.summarizer is not None:
            return super()._request(effect)
        binding = self.binding
        form = self.policy.request.format
        limit = effect.max_tokens
        messages = [dict(message) for message in effect.messages]
        if effect.prefix is None:
            args, kwargs = binding.summary_call(self.args, self.kwargs, form, messages, limit)
        else:
            instruction = messages[0]["content"]
            args, kwargs = binding.native_call(
                self.args, self.kwargs, form, effect.prefix, instruction, limit
            )
        return partial(binding.summary_function or self.function, *args, **kwargs), False

    # -- memory and quotes -------------------------------------------------------------------------

    async def _look_up(self, effect: Remembered) -> View | None:
        if effect.head:
            await self._lead(effect.head)
        view = await self.view(effect)
        if view is not None:
            self._views.append((view, view.record))
            is_first = self.state.note_record(view.record)
            if not effect.head:
                self.state.count("records_reused", self.model or "")
                if is_first:  # Another process, or another ``Compacter``, has made it.
                    self.state.totals.add(reused=1)
        return view

    @property
    def timeout(self) -> float | None:
        """Limit for the summaries, in seconds. There is always one for those made ahead: a
        summarizer that hangs would keep its place for ever.
        """
        return self.state.options.timeout or (LONGEST_WAIT if self.ahead else None)

    @property
    def store(self) -> tuple[BaseMemory | None, Matcher | None]:
        """The memory for this call's compactions, and its matcher."""
        state = self.state
        return state.memory_of_prepared() if self.ahead else (state.memory, state.matcher)

    async def view(self, effect: Remembered | Prepared) -> View | None:
        """Return the view of the effect's messages from the memory."""
        memory, matcher = self.store
        if memory is None or matcher is None:
            return None
        policy = self.policy
        form = policy.request.format
        view = await self._use(memory, matcher.view, self.scope, form, effect.messages)
        if view is not None:
            policy.calibration.window = policy.calibration.window or view.window
        return view

    async def _remember(self, effect: Remember) -> None:
        record = await self._save(effect)
        if record and not self.ahead:
            self._views.append((effect.after, record))
            self.state.note_record(record)
            recall = self.state.options.recall
            if recall is not None and recall.embed is not None:
                await self.io.thread(partial(self._embed_compacted, effect))

    def _embed_compacted(self, effect: Remember) -> None:
        request = self.policy.request
        view = Conversation.of(effect.after, request.format)
        asked = Quote(effect.before, view, 0, request.archive, request.digest, sent=False)
        self.state.embed_compacted(asked, tuple(self._views))

    async def _save(self, effect: Remember) -> str | None:
        """Store a compaction, and return the record's id."""
        memory, matcher = self.store
        redact = self.state.options.redact
        form = self.policy.request.format
        window = self.policy.calibration.window
        if (
            memory is None
            or matcher is None
            or (redact and holds_secrets(redact, form, effect.before, effect.after))
        ):
            return None
        return await self._use(
            memory,
            matcher.remember,
            self.scope,
            form,
            effect.before,
            effect.after,
            window,
            effect.origins,
        )

    async def _lead(self, head: Sequence[Message]) -> None:
        """Become the call that compacts this head, or wait for the call that already does."""
        began = time.monotonic()
        digest = partial(prefix_digest, self.policy.request.format, head, self.scope)
        try:
            key = await self.io.thread(digest) if self.large else digest()
        except Unencodable:
            return  # The head has no key, so other calls cannot be found.
        await self.one_summary.lead(key)
        self._spent += time.monotonic() - began

    async def _offer(self, effect: Prepare) -> None:
        from compacter.call.preparer import offer

        try:
            await offer(self, effect)
        except Unencodable:
            pass  # It could not be remembered.
        except Exception as error:  # noqa: BLE001 - the call has succeeded
            self.state.log.failed("preparation", error)

    async def _wait_for_prepared(self, effect: Prepared) -> Sequence[Message] | None:
        from compacter.call.preparer import find_prepared_view

        began = time.monotonic()
        view = await find_prepared_view(self, effect)
        self._spent += time.monotonic() - began
        return view

    async def _find_quotes(self, effect: Quote) -> str:
        started = time.monotonic()
        find = partial(self.state.quotation, effect, tuple(self._views))
        recall = self.state.options.recall
        # The archive of a short ``History`` may be large, and not indexed yet; the user's functions
        # may be slow.
        functions = () if recall is None else (recall.rank, recall.embed)
        slow = self.large or effect.archive or any(one is not None for one in functions)
        found = await self.io.thread(find) if slow else find()
        if found is None:
            return ""
        if not effect.sent:
            return found.text
        event = PassagesRecalled(
            model=self.model,
            conversation=effect.digest,
            passages=len(found.passages),
            characters=len(found.text),
            tokens=self.policy.calibration.tokens(len(found.text)),
            duration=time.monotonic() - started,
        )
        await self.emit(Emit(event))
        return found.text

    async def _use(
        self, memory: BaseMemory, work: Callable[..., Coroutine[Any, Any, T]], *given: object
    ) -> T | None:
        """Return the result of using the memory; ``None`` if it fails."""
        action = partial(work, *given, io=self.io, large=self.large)
        used: T | None = await self.safely("memory", action)
        self.state.log_reports(memory)
        return used

    performs: ClassVar[Mapping[type[Effect[Any]], Performs]] = {
        **Performer.performs,
        Call: _call,
        Remembered: _look_up,
        Remember: _remember,
        Quote: _find_quotes,
        Prepare: _offer,
        Prepared: _wait_for_prepared,
    }


def holds_secrets(
    redact: Callable[[str], str],
    form: MessageFormat,
    before: Sequence[Message],
    after: Sequence[Message],
) -> bool:
    """Return whether an edited message, which would be stored itself, contains text that ``redact``
    removes.

    Summaries are redacted already, and unchanged messages are stored as positions.
    """
    verbatim = set(map(id, before))
    for message in after:
        if (
            id(message) in verbatim
            or summary_message.parse(form.plain_text(message) or "") is not None
        ):
            continue
        text = json_text(form.content(message))
        try:
            if redact(text) != text:
                return True
        except Exception:  # noqa: BLE001 - a message that cannot be redacted is not stored
            return True
    return False
