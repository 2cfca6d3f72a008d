"""Signs of a request that may be too long, where nothing says so: whether to believe one, and how
to make the request smaller.

A sign alone means little: a picture may be bad, an agent may have nothing to say. So a smaller
request is tried once, where the conversation has grown large since it was answered.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from compacter.call.call import Call
from compacter.call.reduce import compact_history
from compacter.compaction.conversation import Conversation
from compacter.compaction.plan import CompactionPlan
from compacter.effects import Flow
from compacter.errors import CompactionError
from compacter.messages.format import Message
from compacter.messages.parts import Kind
from compacter.messages.refusals import BARE, BYTES, EMPTY
from compacter.overflow import TokenLimit

# Least share of a known window, and fewest tokens if none is known, from which a request may be too
# long.
_LEAST_SHARE = 0.5
_FEWEST_TOKENS = 4_000


def is_believed(call: Call, limit: TokenLimit) -> bool:
    """Return whether a sign may mean that the request is too long: a smaller one of this
    conversation was answered, this one is large, and what is new in it is no picture, which may be
    the reason itself. After a try that did not help, a larger request must have been answered.
    """
    request = call.request
    read = request.conversation
    newest = _newest_answer(read)
    if newest <= 0 or call.tried or not call.options.max_retries:
        return False
    answered = sum(read.sizes[:newest]) + request.overhead
    if answered <= call.state.doubted_size:
        return False
    if limit.source == BYTES and _has_media(read, 0, newest):
        return True
    if limit.source in (BARE, BYTES) and _has_media(read, newest, len(read.messages)):
        return False
    if limit.source == EMPTY and not limit.input_tokens and read.kinds[-1] is not Kind.USER:
        return False  # An agent may end its turn so, and the reply does not say that it wrote none.
    window = call.calibration.window
    least = window * _LEAST_SHARE if window else _FEWEST_TOKENS
    return call.calibration.tokens(request.size) >= least


def make_smaller(call: Call, limit: TokenLimit) -> Flow[str]:
    """Make the request smaller after a sign that it is too long. If the sign is that the request
    has too many bytes, old pictures are taken out, if it has any. Otherwise the history is
    compacted. Return a description of the step for the log; an empty text if nothing could be made
    smaller.
    """
    options = call.options
    read = call.request.conversation
    if limit.source == BYTES and _has_media(read, 0, _newest_answer(read)):
        call.options = options.model_copy(update={"strategy": (LeaveOutMedia(),), "fallback": ()})
    try:
        return (yield from compact_history(call, call.target(), "token_limit"))
    except CompactionError:
        return ""
    finally:
        call.options = options


def _newest_answer(read: Conversation) -> int:
    """Return the index of the newest message of the model; -1 without one."""
    return bytes(read.kinds).rfind(Kind.ASSISTANT)


def _has_media(read: Conversation, begin: int, end: int) -> bool:
    parts = read.parts_of_each(read.messages[begin:end])
    return any(part.kind == "media" for each in parts for part in each.every)


@dataclass(frozen=True, slots=True)
class LeaveOutMedia:
    """Strategy that replaces each picture or file before the model's newest message by a short
    note.
    """

    name: str = field(default="leave_out_media", init=False)
    edits: ClassVar[bool] = True

    def compact(self, plan: CompactionPlan) -> list[Message]:
        """Return the messages of ``plan`` with a note in place of each old picture or file."""
        read = plan.conversation
        newest = _newest_answer(read)
        return [
            read.format.without_media(message)
            if at < newest and not plan.protected[at]
            else message
            for at, message in enumerate(plan.messages)
        ]
