"""Putting a compacted list together: the summary in its place, turns alternating where they must."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from compacter.messages.format import Message, Wire

FILLERS: Final[Mapping[Literal["user", "assistant"], str]] = {"user": "Continue.", "assistant": "Understood."}
"""The short messages that stand between two messages of one role where turns must alternate."""


def assemble(
    wire: Wire,
    messages: Sequence[Message],
    keep: Sequence[int],
    summary: Message | None,
    *,
    alternate: bool,
) -> list[Message]:
    """The messages at the indexes ``keep`` in order, ``summary`` after the whole system prefix.

    Where turns must ``alternate``, a filler goes between two neighbours of one role that were none before,
    and before a first message that is not the user's.
    """
    prefix = 0
    while prefix < len(keep) and keep[prefix] == prefix and wire.speaker(messages[prefix]) == "system":
        prefix += 1
    out: list[Message] = [messages[index] for index in keep[:prefix]]
    before: int | None = None
    speaker = ""
    if summary is not None:
        out.append(summary)
        speaker = "user"
    for index in keep[prefix:]:
        message = messages[index]
        if alternate:
            role = wire.speaker(message)
            if role != "system":
                if not speaker and role == "assistant" and index > 0 and _first_speaker(wire, messages) == "user":
                    out.append(wire.say("user", FILLERS["user"]))
                elif role == speaker and role in FILLERS and not _neighbours(wire, messages, before, index):
                    other: Literal["user", "assistant"] = "assistant" if role == "user" else "user"
                    out.append(wire.say(other, FILLERS[other]))
                speaker, before = role, index
        out.append(message)
    return out


def _neighbours(wire: Wire, messages: Sequence[Message], before: int | None, index: int) -> bool:
    return before is not None and all(
        wire.speaker(messages[between]) == "system" for between in range(before + 1, index)
    )


def _first_speaker(wire: Wire, messages: Sequence[Message]) -> str:
    return next((role for role in map(wire.speaker, messages) if role != "system"), "")
