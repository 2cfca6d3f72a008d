"""Reading a call of a wrapped function: its messages, their format, model and limits, and what is
known of the conversation; and what quiet calls teach of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from compacter.call.arguments import Binding, characters_sent
from compacter.call.recover import Policy
from compacter.call.request import Request
from compacter.call.sizes import expected_tokens
from compacter.call.state import State
from compacter.call.wrapped_call import WrappedCall
from compacter.compaction.plan import Calibration
from compacter.io import IO, is_large
from compacter.memory.record import conversation_digest
from compacter.messages.format import Message, MessageFormat, get_format
from compacter.messages.recognise import UnknownFormatError, recognise
from compacter.messages.usage import HAS_USAGE, tokens_read


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the calls of one wrapped function."""

    state: State
    function: Callable[..., Any]
    binding: Binding

    async def read(
        self, io: IO, args: tuple[Any, ...], kwargs: dict[str, Any], *, learns: bool = True
    ) -> WrappedCall | str:
        """Return this call as an object, or the reason, as a sentence, why it cannot be
        compacted.

        ``learns``: whether to calibrate by the last reply; never on behalf of a hook, which must
        not change what is sent.
        """
        state = self.state
        binding = self.binding.of_call(args, kwargs)
        large = bool(
            io.asynchronous
            and state.safely("reading", lambda: is_large(binding.messages(args, kwargs)))
        )
        read = partial(
            state.safely,
            "reading",
            lambda: self._read(io, binding, args, kwargs, large=large, learns=learns),
        )
        found: WrappedCall | str | None = await io.thread(read) if large else read()
        return "its messages could not be read" if found is None else found

    def _read(
        self,
        io: IO,
        binding: Binding,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        large: bool,
        learns: bool,
    ) -> WrappedCall | str:
        state = self.state
        options = self.state.options
        facts = binding.read(args, kwargs)
        if facts.elsewhere:
            return facts.elsewhere
        given = facts.messages
        messages = list[Message]()
        history = given if hasattr(given, "pinned_ids") else None
        if isinstance(given, str):
            messages = [{"role": "user", "content": given}] if given else []
        elif history is not None or (
            isinstance(given, Sequence) and not isinstance(given, (bytes, bytearray))
        ):
            messages = list(given)
        if not messages:
            name = binding.messages_param
            remedy = f'pass them as {name}=... or name theirs: wrap(function, messages_param="...")'
            return f"the call has no messages in its argument {name!r}; {remedy}"
        try:
            form, quoted = self._recognise(binding, messages)
        except UnknownFormatError as error:
            return str(error)
        if isinstance(given, str):
            messages[0] = form.say("user", given)
        called = (
            facts.model
            or getattr(self.function, "__qualname__", None)
            or type(self.function).__qualname__
        )
        rules = getattr(history, "rules", ())
        named = options.conversation or getattr(history, "conversation", "")
        request = Request(
            format=form,
            original=messages,
            messages=messages,
            overhead=sum(map(characters_sent, facts.beside)),
            output_tokens=facts.output_tokens,
            output_option=facts.output_option,
            model=facts.model,
            digest=named or conversation_digest(form, messages),
            pin=state.pin,
            pinned_by_history=frozenset() if history is None else history.pinned_ids(),
            rules=options.with_declared(rules),
            archive=getattr(history, "archive", None),
            alternate=options.alternate_roles,
        )
        calibration = state.calibration(called)
        if learns and state.last_reply is not None and not state.proactive:
            self._learn_from_last(request, calibration)
        if state.proactive or state.prepares:
            # The digest of the first message alone, so that a new conversation is recognised at its
            # second call; the endpoint, as two tenants may begin alike.
            begun = named or conversation_digest(form, messages, 1)
            known = state.conversation(f"{facts.endpoint}\0{begun}")
        else:
            known = state.conversation(f"{facts.endpoint}\0{request.digest}")
        scope = (called, form.name, facts.endpoint, state.scope, *([repr(rules)] if rules else []))
        call = WrappedCall(
            state=state,
            io=io,
            model=called,
            large=large,
            function=self.function,
            binding=binding,
            args=args,
            kwargs=kwargs,
            policy=Policy(
                options,
                request,
                calibration,
                known,
                detect=state.detect,
                proactive=state.proactive or state.prepares,
                watched=bool(state.event_hooks),
            ),
            scope="\0".join(scope),
            as_passed=not quoted and history is None,
            history=history,
            version=getattr(history, "version", 0),
        )
        call.policy.world = call.world
        return call

    def _recognise(self, binding: Binding, messages: list[Message]) -> tuple[MessageFormat, bool]:
        """Return the format of a call's messages, and whether any had quotes, which are removed
        from the list. Raises ``UnknownFormatError``.
        """
        from compacter.recall.frame import strip

        form = get_format(binding.wire_format or recognise(messages, param=binding.messages_param))
        kept = strip(messages, form)
        quoted = kept != messages
        if kept:
            messages[:] = kept
        return form, quoted

    # -- calibration by quiet calls ----------------------------------------------------------------

    def note(self, raw: Any, given: Any) -> int | None:
        """Record three integers of a quiet call, for ``_learn_from_last``; return its tokens."""
        if type(given) is list and given and raw is not None and type(raw) is not str:
            tokens: int | None
            try:
                if type(raw) is not dict:
                    tokens = raw.usage.prompt_tokens
                elif raw.get("usage") is None and HAS_USAGE.isdisjoint(raw):
                    self.state.last_reply = None  # Without a search, which takes a microsecond.
                    return None
                else:
                    tokens = raw["usage"]["prompt_tokens"]
            except Exception:  # noqa: BLE001 - another API's reply, or an unknown type
                tokens = None
            if type(tokens) is not int:  # Not a closure, which would slow down every call.
                tokens = self.state.safely("reading", partial(tokens_read, raw))
            self.state.last_reply = (tokens, len(given), id(given[-1])) if tokens else None
            return tokens or None
        return None

    def _learn_from_last(self, request: Request, calibration: Calibration) -> None:
        """Calibrate by the usage of the last reply, if its request was an earlier state of this
        conversation.
        """
        known = self.state.last_reply
        self.state.last_reply = None
        if known is None:  # Another thread was first.
            return
        tokens, count, last = known
        if count > len(request.original) or id(request.original[count - 1]) != last:
            return
        read = request.conversation
        if read.start >= count:
            return  # The provider has compacted it since.
        size = sum(read.sizes[:count]) + request.overhead
        # The token count of a truncated prompt does not belong to its characters.
        if expected_tokens(size, tokens, calibration) is None:
            calibration.learn(size, tokens)
