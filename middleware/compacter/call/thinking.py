"""Keep thinking valid for providers that check it against all that stands before it, as Claude's
newer models do: https://docs.claude.com/en/docs/build-with-claude/extended-thinking.

A compaction changes what stands before: with it all thinking so far is left out, and the record
says from where on thinking is newer. So that this stays valid, the quotes of earlier calls stay
where they stood until the next compaction, and further quotes come behind it. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from compacter.call.effects import Save
from compacter.call.request import ConversationState, Request
from compacter.compaction.calibration import Calibration
from compacter.effects import Flow
from compacter.lines.frame import anchor, blocks_of, is_of_step
from compacter.memory.record import Bound, message_key

# Quotes of one conversation whose places are kept.
_MOST_STANDING = 200


def begin_anew(
    request: Request, calibration: Calibration, *, stores: object = True
) -> Flow[Request]:
    """Return the request without quotes and without the model's thinking. The thinking is no longer
    valid, because the messages before it have changed. If ``stores`` is true, the messages to send
    are stored in the memory as the new view of the conversation.
    """
    view = (yield from Save(request.messages)) if stores else ""
    prior = request.conversation.prior
    # Thinking behind a provider's own compaction is valid with it.
    keeps = prior is not None and request.format.blocks_before(request.messages[prior])
    older = 0 if calibration.wants_thinking or keeps else len(request.messages)
    bound = Bound(view or request.bound.view, older)
    return replace(request, bound=bound, quotes="", places={})


def last_thinking(request: Request) -> int:
    """Return the index of the last message with thinking that is valid, or -1."""
    older = request.bound.older
    signed = request.format.signed(request.messages[older:])
    return max((older + at for at, is_signed in enumerate(signed) if is_signed), default=-1)


def leaves_out_thinking(request: Request, since: int = 0) -> bool:
    """Return whether the request lacks thinking of its messages from an index on."""
    return any(request.format.signed(request.messages[since : request.bound.older]))


def with_standing(request: Request, state: ConversationState) -> Request:
    """Return the request with the quotes of earlier calls where they stood, if thinking needs
    them.
    """
    places = {
        block: at
        for (bound, block), (at, key) in state.stood.items()
        if bound == request.bound
        if at < len(request.messages) and key == message_key(request.format, request.messages[at])
    }
    if not places or min(places.values()) > last_thinking(request):
        return request
    return _with_places(request, places)


def with_quotes(request: Request, text: str) -> Request:
    """Return the request with further quotes: behind all valid thinking. Quotes for a question that
    stands before some are left out.
    """
    places = dict(request.places)
    last = last_thinking(request)
    end = len(request.messages) - 1
    for block in blocks_of(text):
        at = anchor(request.conversation, block)
        # Quotes for a step stand behind that message.
        if at + is_of_step(block) <= last:
            at = end if is_of_step(block) else -1
        if block not in places and at >= 0:
            places[block] = at
    return _with_places(request, places)


def note_standing(request: Request, state: ConversationState) -> None:
    """Note where the quotes of an answered request stand."""
    stood = state.stood
    for block, at in request.places.items():
        key = message_key(request.format, request.messages[at])
        if request.bound.view and key:
            stood[request.bound, block] = at, key
    while len(stood) > _MOST_STANDING:
        del stood[next(iter(stood))]


def _with_places(request: Request, places: Mapping[str, int]) -> Request:
    order = sorted(places, key=lambda block: (places[block], is_of_step(block)))
    return replace(
        request, quotes="\n".join(order), places={block: places[block] for block in order}
    )
