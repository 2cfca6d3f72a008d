"""Reading a call of a wrapped function: its messages, their format, model and limits, and what is
known of the conversation; and what quiet calls teach of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from compacter.call.arguments import characters_sent
from compacter.call.call import Call
from compacter.call.perform import Performer
from compacter.call.recalls import with_recall
from compacter.call.request import Request, expected_tokens
from compacter.call.state import State
from compacter.compaction.conversation import find_pinned
from compacter.compaction.sizes import Calibration
from compacter.memory.record import conversation_digest
from compacter.messages.format import Message, get_format
from compacter.messages.recognise import UnknownFormatError, recognise


def read_call(world: Performer, *, learns: bool) -> Call | str:
    """Read the arguments into the world of a call, and return the call, or the reason why it cannot
    be compacted.

    ``learns``: whether to calibrate by the last reply; never on behalf of a hook, which must not
    change what is sent.
    """
    from compacter.recall.frame import strip

    state = world.state
    options = state.options
    binding = world.binding
    facts = binding.read(world.args, world.kwargs)
    if facts.elsewhere:
        return facts.elsewhere
    given = facts.messages
    history = given if hasattr(given, "pinned_ids") else None
    is_text = isinstance(given, str)
    if is_text:
        given = [{"role": "user", "content": given}] if given else []
    messages: list[Message] = [*given] if isinstance(given, Sequence) else []
    name = binding.param_of(world.kwargs)
    if not messages:
        remedy = f'pass them as {name}=... or name theirs: wrap(function, messages_param="...")'
        return f"the call has no messages in its argument {name!r}; {remedy}"
    try:
        form = get_format(binding.wire_format or recognise(messages, param=name))
    except UnknownFormatError as error:
        return str(error)
    # Without the quotes of an earlier call, which a program has put into its history.
    stripped = strip(messages, form) or messages
    world.as_passed = history is None and stripped == messages
    messages = stripped
    if is_text:
        messages = [form.say("user", facts.messages)]
    function = world.function
    called = facts.model or getattr(function, "__qualname__", None) or type(function).__qualname__
    rules = getattr(history, "rules", ())
    named = options.conversation or getattr(history, "conversation", "")
    tools: tuple[object, ...] = ()
    if options.recall is not None and options.recall.tool:
        tools = with_recall(binding, facts, form.name, getattr(function, "__name__", ""))
    by_history = frozenset[int]() if history is None else history.pinned_ids()
    request = Request(
        format=form,
        original=messages,
        messages=messages,
        overhead=sum(map(characters_sent, (*facts.beside, *tools[-1:]))),
        output_tokens=facts.output_tokens,
        output_option=facts.output_option,
        model=facts.model,
        digest=named or conversation_digest(form, messages),
        find_pinned=partial(find_pinned, state.pin, format=form, by_history=by_history)
        if state.pin or by_history
        else lambda _: (),
        rules=options.with_declared(rules),
        archive=getattr(history, "archive", None),
        alternate=options.alternate_roles,
        tools=tools,
    )
    calibration = state.calibration(called, facts.place)
    if learns and not state.proactive:
        _learn_from_last(state, request, calibration)
    notes_sizes = state.proactive or state.prepares
    # The digest of the first message alone, so that a new conversation is recognised at its second
    # call; the endpoint, as two tenants may begin alike.
    begun = named or conversation_digest(form, messages, 1 if notes_sizes else 3)
    world.model = called
    world.scope = "\0".join(
        (called, form.name, facts.endpoint, state.scope, *([repr(rules)] if rules else []))
    )
    world.place = facts.place
    world.history = history
    world.version = getattr(history, "version", None)
    world.conversation = state.conversation(f"{facts.endpoint}\0{begun}")
    world.request = request
    world.calibration = calibration
    return Call(
        options,
        request,
        calibration,
        world.conversation,
        watched=bool(state.event_hooks),
        world=world.world,
    )


def _learn_from_last(state: State, request: Request, calibration: Calibration) -> None:
    """Calibrate by the usage of the last reply, if its request was an earlier state of this
    conversation.
    """
    noted = state.last_reply
    state.last_reply = None
    if noted is None:
        return
    tokens, count, last = noted
    calibration.take(tokens)
    if count > len(request.original) or id(request.original[count - 1]) != last:
        return
    read = request.conversation
    if read.start >= count:
        return  # The provider has compacted it since.
    size = sum(read.sizes[:count]) + request.overhead
    # The token count of a truncated prompt does not belong to its characters.
    if expected_tokens(size, tokens, calibration) is None:
        calibration.learn(size, tokens)
