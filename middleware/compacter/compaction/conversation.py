"""A history, read once: kinds and sizes of its messages, steps that must stay together, and protected messages.

The second part assembles a compacted list from it, and checks whether that list may be sent.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise

from compacter.messages.fields import field as field_of
from compacter.messages.format import FILLERS, Message, MessageFormat
from compacter.messages.parts import Broken, Kind
from compacter.summary import message as summary_message

_STAYING = re.compile(b"[%c%c]" % (Kind.SYSTEM, Kind.UNKNOWN))
"""Kinds of messages that are always kept."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """One list of messages and the facts read from it. Made by :meth:`of`, once for each list.

    Parallel tuples have one element per message. Sizes are data sizes in characters.
    """

    format: MessageFormat
    messages: tuple[Message, ...] = field(repr=False)
    kinds: tuple[Kind, ...] = field(repr=False)
    sizes: tuple[int, ...] = field(repr=False)
    """Data size of each message; 0 for those before ``start``."""
    steps: tuple[int, ...] = field(repr=False)
    """Indexes at which a step begins, ascending. A step ends where the next one begins."""
    open: int | None
    """Index at which the last step begins, if some of its calls have no result yet."""
    broken: tuple[Broken, ...]
    """Calls without results and results without a call, in order, except the calls of an open last step."""
    pinned: tuple[int, ...]
    """Indexes of the pinned messages."""
    rules: tuple[str, ...]
    """Rules declared by the program, which every summary contains."""
    start: int
    """Index at which the model's context begins: that of the provider's newest compaction, else 0."""
    size: int
    """Data size of all messages from ``start`` on."""
    prior: int | None = None
    """Index of the summary message at the head of the history, if it has one."""
    protected: tuple[bool, ...] = field(default=(), repr=False)
    """Whether each message must be kept: system messages, messages of another format, the provider's own compaction and
    all before it but summary messages, pinned messages, the last user message, and the other messages of their
    steps."""
    lead: int = 0
    """Index for a summary message: after the leading system messages, or the provider's own compaction."""
    last_user: int | None = None
    """Index of the last genuine user message, not a summary message or a filler."""
    heads: tuple[int, ...] = field(default=(0,), repr=False)
    """For each index, the total size of the unprotected messages before it; the last element is ``free``."""
    free: int = 0
    """Data size of all unprotected messages."""

    @classmethod
    def of(
        cls,
        messages: Sequence[Message],
        format: MessageFormat,  # noqa: A002 - that is what it is
        *,
        pinned: Sequence[int] = (),
        rules: Sequence[str] = (),
    ) -> Conversation:
        """Read ``messages``. ``pinned`` are the indexes of messages to keep verbatim, ``rules`` the declared rules."""
        held = tuple(messages)
        outline = format.outline(held)
        kinds, sizes = outline.kinds, outline.sizes
        codes = bytes(kinds)  # Searched at the speed of C.
        native = codes.rfind(Kind.COMPACTED)
        start = native if native >= 0 else None
        if start:
            sizes = [0] * start + sizes[start:]
        found = cls(
            format=format,
            messages=held,
            kinds=tuple(kinds),
            sizes=tuple(sizes),
            steps=tuple(outline.steps),
            open=outline.open,
            broken=outline.broken,
            pinned=tuple(pinned),
            rules=tuple(rules),
            start=start or 0,
            size=sum(sizes),
        )
        lead, prior = found._summary_after(0 if start is None else found.step(start)[1])
        if Kind.OTHER in codes and codes.find(Kind.USER, 0 if prior is None else prior + 1) < 0:
            # No message has the role of a user: the meaning of the other unknown roles cannot be relied on either.
            unknown = (
                Kind.UNKNOWN if kind is Kind.OTHER and field_of(message, "role") is not None else kind
                for kind, message in zip(kinds, held, strict=True)
            )
            found = replace(found, kinds=tuple(unknown))
        return found._settled(prior, start, lead)  # noqa: SLF001

    def _summary_after(self, index: int) -> tuple[int, int | None]:
        """Return the index after the system messages that begin at ``index``, and that of the summary message there."""
        kinds, messages = self.kinds, self.messages
        while index < len(kinds) and kinds[index] is Kind.SYSTEM:
            index += 1
        at = index + (index < len(kinds) and messages[index] == self.format.filler("assistant"))
        text = self.format.plain_text(messages[at]) if at < len(kinds) and kinds[at] is Kind.USER else None
        return index, None if text is None or summary_message.parse(text) is None else at

    def _settled(self, prior: int | None, start: int | None, lead: int) -> Conversation:
        """Return a copy with the fields that depend on the prior summary and the provider's own compaction."""
        codes = bytes(self.kinds)
        last = codes.rfind(Kind.USER)
        if last == prior:
            last = codes.rfind(Kind.USER, 0, prior)
        staying = {found.start() for found in _STAYING.finditer(codes)}
        for index in (*self.pinned, last, -1 if start is None else start):
            if index >= 0:
                staying.update(range(*self.step(index)))
        if start:
            # Summary messages before the provider's compaction are not read any more, and are dropped.
            behind = [0, *(self.step(at)[1] for at in range(start) if codes[at] == Kind.COMPACTED)]
            staying.update(set(range(start)).difference(at for _, at in map(self._summary_after, behind)))
        protected, foldable = [False] * len(codes), list(self.sizes)
        for index in staying:
            protected[index], foldable[index] = True, 0
        heads = tuple(accumulate(foldable, initial=0))
        return replace(
            self,
            prior=prior,
            protected=tuple(protected),
            lead=lead,
            last_user=last if last >= 0 else None,
            heads=heads,
            free=heads[-1],
        )

    def step(self, index: int) -> tuple[int, int]:
        """Return the beginning and end of the step that contains this message, as a half-open range."""
        at = bisect_right(self.steps, index) - 1
        return self.steps[at], self.steps[at + 1] if at + 1 < len(self.steps) else len(self.kinds)

    def with_messages(self, messages: Sequence[Message]) -> Conversation:
        """Read a list made of messages of this one and new ones; pinned messages stay pinned."""
        wanted = {id(self.messages[index]) for index in self.pinned}
        pinned = [index for index, message in enumerate(messages) if id(message) in wanted] if wanted else ()
        return Conversation.of(messages, self.format, pinned=pinned, rules=self.rules)

    def without_native(self) -> Conversation | None:
        """Return a copy in which the provider's own compaction is the prior summary; ``None`` if it is not readable.

        Everything before it is folded too, as it must not return to the model's context.
        """
        if not self.kinds or self.kinds[self.start] is not Kind.COMPACTED:
            return None
        if not self.format.compacted(self.messages[self.start]):
            return None
        lead = next(index for index, kind in enumerate(self.kinds) if kind is not Kind.SYSTEM)
        return self._settled(self.start, None, lead)

    def prior_text(self) -> str:
        """Return the text of the prior summary, or an empty string."""
        if self.prior is None:
            return ""
        message = self.messages[self.prior]
        return self.format.compacted(message) or self.format.plain_text(message) or ""


# -- a compacted list --------------------------------------------------------------------------------------------------


def assemble(
    conversation: Conversation, keep: Sequence[int], summary: Message | None, *, alternate: bool
) -> list[Message]:
    """Return the messages at the indexes ``keep``, with ``summary`` after the leading system messages.

    If roles must ``alternate``, a filler is put between two new neighbours of the same role, and before a first message
    that is not the user's.
    """
    form, messages, lead = conversation.format, conversation.messages, conversation.lead
    places: list[int | None] = [*keep]
    if summary is not None:
        places.insert(bisect_left(keep, lead), None)
    if not alternate:
        return [summary if place is None else messages[place] for place in places]
    out: list[Message] = []
    roles = list(map(form.speaker, messages))
    user_first = next((role for role in roles if role != "system"), "") == "user"
    last, last_place = "", -1
    for place in places:
        message = summary if place is None else messages[place]
        role = form.speaker(message)
        if role in ("user", "assistant"):
            if not last and role == "assistant" and user_first:
                out.append(form.filler("user"))
            elif role == last and (last_place < 0 or any(gone != "system" for gone in roles[last_place + 1 : place])):
                out.append(form.filler("assistant" if role == "user" else "user"))
        if role != "system":
            last, last_place = role, -1 if place is None else place
        out.append(message)
    return out


def violations(before: Conversation, after: Conversation, *, alternate: bool, edited: bool = False) -> list[str]:
    """Return what is wrong with ``after`` as a compaction of ``before``; an empty list if nothing is.

    ``edited`` allows changed copies of messages (a cleared tool result, a shortened message) besides the summary and
    fillers.
    """
    if not after.messages:
        return ["nothing is left"]
    found: list[str] = []
    positions, _ = kept_and_discarded(before.messages, after.messages)
    kept = [position for position in positions if position is not None]
    if kept != sorted(kept):
        found.append("messages changed their order")
    present = set(kept)
    for index, stays in enumerate(before.protected):
        if stays and index not in present:
            found.append(f"message {index}, which must stay, is gone")
            break
    if after.size >= before.size:
        found.append(f"the history did not get smaller ({before.size} to {after.size} characters)")
    halves = Counter((half.what, half.call_id) for half in after.broken) - Counter(
        (half.what, half.call_id) for half in before.broken
    )
    found.extend(f"{what} {call_id!r}" for what, call_id in halves)
    if after.open is not None and before.open is None:
        found.append("a call lost its results")
    if edited:
        _find_edited(before, after, positions)
    found.extend(_strangers(before, after, positions, alternate=alternate))
    if alternate:
        found.extend(_turns(before, after, positions))
    return found


def kept_and_discarded(
    before: Sequence[Message], after: Sequence[Message]
) -> tuple[list[int | None], tuple[Message, ...]]:
    """Return the index in ``before`` of each message of ``after``, by identity, and the messages that are gone.

    An object that occurs several times is matched from the end, in order, since the oldest messages are folded.
    """
    bound, place = len(before), len(after)
    while bound and place and before[bound - 1] is after[place - 1]:
        bound, place = bound - 1, place - 1
    end = range(bound, len(before))
    # Before the common end there are only a summary and the few messages that are held.
    first, wanted = after[:place], set(map(id, after[:place]))
    places: dict[int, list[int]] = {}
    for index, message in enumerate(before[:bound]):
        if id(message) in wanted:
            places.setdefault(id(message), []).append(index)
    found: list[int | None] = []
    for message in reversed(first):
        left = places.get(id(message))
        origin = left.pop(bisect_left(left, bound) - 1) if left else None
        found.append(origin)
        bound = bound if origin is None else min(bound, origin)
    kept = set(found)
    gone = tuple(message for index, message in enumerate(before[: end.start]) if index not in kept)
    return [*reversed(found), *end], gone


def _find_edited(before: Conversation, after: Conversation, positions: list[int | None]) -> None:
    """Set the positions of edited copies: each replaces one message of the same speaker, between the same others."""
    speaker = before.format.speaker
    previous: list[int] = []  # For each index, the nearest original before it.
    for position in positions:
        previous.append(position if position is not None else previous[-1] if previous else -1)
    following = len(before.messages)
    for place in range(len(positions) - 1, -1, -1):
        position = positions[place]
        if position is None:
            origin, role = following - 1, speaker(after.messages[place])
            while origin > previous[place] and speaker(before.messages[origin]) != role:
                origin -= 1
            if origin <= previous[place]:
                continue
            position = positions[place] = origin
        following = position


def _strangers(
    before: Conversation, after: Conversation, positions: Sequence[int | None], *, alternate: bool
) -> list[str]:
    """Return what is wrong with the new messages: only one summary is allowed, and fillers if roles alternate."""
    made = {place for place, position in enumerate(positions) if position is None}
    known = list(map(after.format.filler, FILLERS)) if alternate else []
    fillers = {place for place in made if after.messages[place] in known}
    notes = sorted(made - fillers)
    found: list[str] = []
    kept = [position for position in positions if position is not None]
    # A filler may be at the beginning, and between new neighbours.
    gaps = 1 + sum(later > earlier + 1 for earlier, later in pairwise(kept))
    if len(notes) > 1 or len(fillers) > gaps:
        found.append(f"{len(made)} messages are neither original nor the summary")
    lead = after.lead
    # A filler may stand before the provider's own compaction, which is before the summary.
    first = min(notes if before.start else made, default=len(positions))
    tagged = [
        place
        for place in notes
        if summary_message.parse(after.format.plain_text(after.messages[place]) or "") is not None
    ]
    if any(place - sum(lead <= filler < place for filler in fillers) != lead for place in tagged):
        found.append("the summary does not stand right after the system prompt")
    elif any(position is not None and position < before.lead for position in positions[first:]):
        found.append("a message stands before the system prompt")
    if any(after.kinds[place] is Kind.SYSTEM for place in made):
        found.append("a made message speaks as the system")
    if len(positions) - 1 in made and any(position is not None for position in positions[lead:]):
        found.append("the newest message is not one of the conversation's")
    prior = before.prior
    if tagged and prior is not None and not before.protected[prior] and prior in positions:
        found.append("the prior summary stands beside the new one")
    return found


def _turns(before: Conversation, after: Conversation, positions: Sequence[int | None]) -> list[str]:
    found: list[str] = []
    first = next((role for role in map(before.format.speaker, before.messages) if role != "system"), "")
    last: tuple[str, int | None] | None = None
    for message, position in zip(after.messages, positions, strict=True):
        role = after.format.speaker(message)
        if role == "system":
            continue
        if last is None and role == "assistant" and first == "user":
            found.append("the assistant speaks first")
        if last and role == last[0] and role in ("user", "assistant"):
            neighbours = last[1] is not None and position == last[1] + 1
            if not neighbours:
                found.append(f"two {role} messages in a row")
        last = role, position
    return found
