"""A compacted list, compared with the conversation that it was made of: where its messages come
from, whether it may be sent, and the fillers that it needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import compress

from compacter.compaction.conversation import Conversation, content_of
from compacter.compaction.sizes import MARGIN
from compacter.messages.format import FILLERS, Message, MessageFormat
from compacter.messages.parts import Kind
from compacter.summary import message as summary_message


def origins_of(before: Sequence[Message], after: Sequence[Message]) -> tuple[int | None, ...]:
    """Return for each message of ``after`` the index of the same object in ``before``; ``None`` for
    a new message, and for one that is out of order.

    An object that occurs several times is matched from the end, since the oldest messages are
    compacted.
    """
    known = set(map(id, before))
    left = iter(range(len(before) - 1, -1, -1))
    origins = [
        next((index for index in left if before[index] is message), None)
        if id(message) in known
        else None
        for message in reversed(after)
    ]
    return tuple(reversed(origins))


def _bytes(conversation: Conversation) -> int:
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in conversation.texts())


def check(
    before: Conversation, messages: Sequence[Message], *, alternate: bool, edits: bool = False
) -> tuple[Conversation, list[str]]:
    """Read the result of a strategy for ``before``. Return the new conversation, and a list of its
    faults, which is empty if it may be sent.

    If roles must ``alternate``, fillers are added. With ``edits``, the list may contain changed
    copies, if it has as many messages as ``before``.
    """
    if not messages:
        return before, ["nothing is left"]
    form = before.format
    origins = list(origins_of(before.messages, messages))
    if edits and len(messages) == len(before.messages):
        for index, origin in enumerate(origins):
            speaks = form.speaker(messages[index]) == form.speaker(before.messages[index])
            if origin is None and speaks and not before.protected[index]:
                origins[index] = index
    kept = [origin for origin in origins if origin is not None]
    gone = set(compress(range(len(before.messages)), before.protected)).difference(kept)
    faults = [f"message {index}, which must stay, is gone" for index in sorted(gone)]
    faults += _faults_of_new(before, messages, origins)
    after, faults_of_pairs = _read_result(before, messages, origins, alternate=alternate)
    # An English summary of a Chinese conversation has more characters, but far fewer bytes and
    # tokens.
    if after.size >= before.size and _bytes(after) >= MARGIN * _bytes(before):
        faults.append(f"the history did not get smaller ({before.size} to {after.size} characters)")
    return after, faults + faults_of_pairs


def _read_result(
    before: Conversation,
    messages: Sequence[Message],
    origins: Sequence[int | None],
    *,
    alternate: bool,
) -> tuple[Conversation, list[str]]:
    """Return a list that was made of ``before``, with fillers if roles must ``alternate``, and the
    faults of its pairs of calls and results.
    """
    if alternate:
        messages = with_fillers(before, messages, origins)
    after = before.with_messages(messages)
    halves = Counter((half.what, half.call_id) for half in after.broken) - Counter(
        (half.what, half.call_id) for half in before.broken
    )
    faults = [f"{what} {call_id!r}" for what, call_id in halves]
    if after.end < len(after.messages) and before.end == len(before.messages):
        faults.append("a call lost its results")
    return after, faults


def _faults_of_new(
    before: Conversation, messages: Sequence[Message], origins: Sequence[int | None]
) -> Iterator[str]:
    """Yield the faults of the new messages in a result."""
    form = before.format
    kept = [origin for origin in origins if origin is not None]
    new = [place for place, origin in enumerate(origins) if origin is None]
    if len(new) > 1:
        yield f"{len(new)} messages are neither original nor the summary"
    lead = sum(origin < before.lead for origin in kept)
    prior = before.prior
    originals = set(map(id, before.messages))
    for place in new:
        message = messages[place]
        if id(message) in originals:
            yield "messages changed their order"
        is_summary = summary_message.parse(form.plain_text(message) or "") is not None
        if place < lead:
            yield "a message stands before the system prompt"
        elif is_summary and place > lead:
            yield "the summary does not stand right after the system prompt"
        if message is None or form.speaker(message) == "system":
            yield "a new message has the system's role, or is not a message"
        if place == len(kept) > lead:
            yield "the newest message is not one of the conversation's"
        if is_summary and prior in kept and not before.protected[prior or 0]:
            yield "the prior summary stands beside the new one"


def with_restored(
    compacted: Conversation, messages: Sequence[Message], *, alternate: bool
) -> tuple[Conversation, list[str]]:
    """Return a compacted conversation with messages of the program right behind its summary, and a
    list of faults, which is empty if it may be sent. If roles must ``alternate``, fillers are
    added.
    """
    form = compacted.format
    place = compacted.prior or 0
    rest = compacted.messages[place + 1 :]
    speakers = [form.speaker(message) for message in messages]
    faults = [
        f"message {index} has the system's role, or is not a message of {form.name}"
        for index, speaker in enumerate(speakers)
        if speaker == "system" or form.read(messages[index])[0] is Kind.UNKNOWN
    ]
    if faults:
        return compacted, faults
    summary = compacted.messages[place]
    text = summary_message.with_restored(
        form.plain_text(summary) or "", [content_of(message, form) for message in messages]
    )
    summary = form.with_blocks_before(text, form.blocks_before(summary))
    whole = [*compacted.messages[:place], summary, *messages, *rest]
    origins = origins_of(compacted.messages, whole)
    return _read_result(compacted, whole, origins, alternate=alternate)


def with_fillers(
    before: Conversation, messages: Sequence[Message], origins: Sequence[int | None]
) -> list[Message]:
    """Return the messages with a filler between two new neighbours of the same role, and before a
    first message that is not the user's.
    """
    form = before.format
    spoken = (role for role in map(form.speaker, before.messages) if role != "system")
    opens = next(spoken, "")
    result: list[Message] = []
    last = ""
    previous: int | None = None
    is_parted = True
    for message, origin in zip(messages, origins, strict=True):
        # Messages that were neighbours before, or had only instructions between them, need no
        # filler.
        is_parted = is_parted or origin is None or previous is None or origin > previous + 1
        previous = origin
        role = form.speaker(message)
        if not last and role == "assistant" and opens == "user":
            result.append(form.filler("user"))
        elif role == last and is_parted and role in FILLERS:
            result.append(form.filler("assistant" if role == "user" else "user"))
        if role != "system":
            last = role
            is_parted = False
        result.append(message)
    return result


def join_users(
    form: MessageFormat,
    messages: Sequence[Message],
    origins: Sequence[int | None],
    prior: int | None = None,
) -> list[Message]:
    """Return the messages to send where roles must alternate. Two user messages that a compaction
    has made neighbours become one, in place of an assistant's filler between them. Servers that
    want the model's reasoning back refuse a filler, as it has none (DeepSeek).

    Args:
        form: Their format.
        messages: The compacted messages.
        origins: Index of each among the caller's own; ``None`` for a new one.
        prior: Index of their summary message, if it is among the caller's own.
    """
    joined: list[Message] = []
    previous: int | None = None
    filler = form.filler("assistant")
    for at, origin in enumerate(origins):
        message = messages[at]
        is_parted = origin is None or previous is None or origin != previous + 1
        if is_parted or messages[at - 1] == filler or at - 1 == prior:
            left = joined[:-1] if joined and joined[-1] == filler else joined
            if left and form.speaker(left[-1]) == form.speaker(message) == "user":
                message = form.join(left[-1], message)
                joined = left[:-1]
        joined.append(message)
        previous = origin
    return joined
