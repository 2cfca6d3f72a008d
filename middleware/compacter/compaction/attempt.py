"""One strategy's result, if it may be sent."""

from __future__ import annotations

import copy
from collections.abc import Generator, Sequence
from operator import is_
from typing import TYPE_CHECKING, Any

from compacter.compaction.check import violations
from compacter.compaction.clear import ClearToolResults
from compacter.compaction.conversation import Conversation
from compacter.compaction.shorten import Shorten
from compacter.compaction.summarize import Summarize, fall_back
from compacter.compaction.task import CompactionStrategy, CompactionTask, edits
from compacter.compaction.truncate import Truncate
from compacter.effects import Tell
from compacter.errors import CompactionError
from compacter.events import CompactionFailed
from compacter.messages.format import Message

if TYPE_CHECKING:
    from compacter.effects import Flow

_OURS = (ClearToolResults, Shorten, Summarize, Truncate)


def attempt(strategy: CompactionStrategy, task: CompactionTask) -> Flow[Conversation | None]:
    """What the strategy makes of the task's messages; ``None`` where it leaves them, or its result may not be sent.

    A result that may not be sent is told in an event. Where it was the last strategy's, the fallback's takes its place.
    Raises ``CompactionError`` where the strategy does.
    """
    tally, mark = task.tally, len(task.tally.names)
    tally.names.append(strategy.name)
    reason, kind = "", ""
    try:
        messages = yield from _asked(strategy, task)
    except CompactionError:
        raise
    except Exception as error:  # noqa: BLE001 - a broken strategy must not break the call
        reason, kind = "raised", type(error).__name__
    else:
        if len(messages) == len(task.messages) and all(map(is_, messages, task.messages)):
            del tally.names[mark:]
            return None
        made = task.conversation.with_messages(messages)
        faults = violations(task.conversation, made, alternate=task.alternate, edited=edits(strategy))
        if not faults:
            if tally.fallback and tally.names[mark] == strategy.name:
                del tally.names[mark]
            return made
        reason = f"is refused: {'; '.join(faults[:3])}"
    del tally.names[mark:]
    tally.summary = tally.ledger = ""
    yield from Tell(
        CompactionFailed(
            model=task.job.model,
            conversation=task.job.digest,
            trigger=task.job.trigger,
            reason=f"strategy {strategy.name} {reason}",
            error=kind,
        )
    )
    if not task.last or not task.plan.cut:
        return None
    result = fall_back(task)
    if result is None:
        return None
    made = task.conversation.with_messages(result)
    return None if violations(task.conversation, made, alternate=task.alternate) else made


def _asked(strategy: CompactionStrategy, task: CompactionTask) -> Flow[Sequence[Message]]:
    """What the strategy answers. Raises what it raises; ``ValueError`` if it changed a message in place."""
    if type(strategy) in _OURS:
        answer = strategy.compact(task)
        return (yield from answer) if isinstance(answer, Generator) else answer
    before = _copies(task.messages)
    try:
        answer = strategy.compact(task)
        found = list((yield from answer) if isinstance(answer, Generator) else answer)
    finally:
        # However it ended: the messages are the caller's.
        changed = _restored(before)
    if changed:
        raise ValueError("the strategy changed a message in place")
    return found


def _copies(messages: Sequence[Message]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Messages, or the members of objects, beside copies of them."""
    found = []
    for message in messages:
        members = message if isinstance(message, dict) else getattr(message, "__dict__", None)
        if isinstance(members, dict):
            try:
                found.append((members, copy.deepcopy(members)))
            except Exception:  # noqa: BLE001, S112 - what cannot be copied cannot be watched
                continue
    return found


def _restored(before: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> bool:
    """Whether a message had been changed; it is as it was again."""
    changed = [(members, copied) for members, copied in before if members != copied]
    for members, copied in changed:
        members.clear()
        members.update(copied)
    return bool(changed)
