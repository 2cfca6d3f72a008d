"""Files and functions of compacter that one overflow enters: ``python tests/way.py`` prints them as
JSON.

It runs in an interpreter of its own, so that nothing which other tests loaded, configured or left
behind counts.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.conversations import TooLongError

import compacter
from compacter import Compacter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

PACKAGE = Path(compacter.__file__).parent
TEXTS = ("text_of", "limit_text", "fold", "normalise", "_decode_escape", "_mend", "sentences")
LEAVES = ("messages/", *(f"overflow/signals.py {name}" for name in TEXTS))
"""Readers of one message or one text; a person who follows a call reads what they are named after,
not them."""

MAKERS = ("__init__", "__new__")
BESIDE_STATE = ("compacter.events.", "compacter.effects.")
"""Modules whose objects are reports and questions, not state."""


def conversation(turns: int) -> list[dict[str, str]]:
    talk = [{"role": "system", "content": "You are terse."}]
    for number in range(turns):
        talk.append(
            {
                "role": "user",
                "content": (f"Question {number}: what about harbour number {number}? ") * 8,
            }
        )
        talk.append(
            {
                "role": "assistant",
                "content": (f"Harbour {number} takes ships of {number} metres. ") * 8,
            }
        )
    return [*talk, {"role": "user", "content": "Which harbour was the first?"}]


@dataclass
class Way:
    """Functions that one overflow enters, from the refusal to the answer, a summary included."""

    messages: Sequence[object]
    files: set[str] = field(default_factory=set)
    functions: set[tuple[str, str]] = field(default_factory=set)
    doors: set[str] = field(default_factory=set)
    """Functions that are entered from another room."""
    made: Counter[str] = field(default_factory=Counter)
    """Instances of each class of compacter, by its name."""
    passes: set[str] = field(default_factory=set)
    """Functions, with the argument's name, that are called with the whole list of messages."""
    readings: int = 0
    """Times that the parts of a message were made."""
    depth: int = 0
    """Most functions of compacter on the stack at once."""
    room_changes: int = 0
    """Times that control went from one room to another, returns included."""
    room: str = ""
    """The room that control is in."""

    def enter(self, file: str) -> None:
        """Note that control goes on in this file."""
        room = room_of(file)
        self.room_changes += bool(self.room) and room != self.room
        self.room = room

    def note(self, frame: FrameType, event: str, _: object) -> None:
        """Note one call or return; a profiler for ``sys.setprofile``."""
        inner = file_of(frame)
        if event == "call" and frame.f_code.co_name in MAKERS:
            made = frame.f_locals[frame.f_code.co_varnames[0]]
            kind = made if isinstance(made, type) else type(made)
            self.made[f"{kind.__module__}.{kind.__qualname__}"] += 1
        if inner and event == "return" and file_of(frame.f_back):
            self.enter(file_of(frame.f_back))
        if not inner or event != "call":
            return
        code = frame.f_code
        self.files.add(inner)
        below = callers(frame)
        self.depth = max(self.depth, 1 + len(below))
        self.enter(inner)
        if code.co_name.startswith("<"):
            return
        name = f"{inner} {code.co_qualname}"
        if below and room_of(below[0]) != room_of(inner):
            self.doors.add(name)
        if not name.startswith(LEAVES):
            self.functions.add((inner, code.co_qualname))
        self.readings += code.co_name == "all_parts"
        self.passes.update(f"{name}({argument})" for argument in self._whole_lists(frame))

    def state(self) -> list[str]:
        """Return the classes that hold the state of this call: all that it makes instances of, but
        reports, questions, and the pieces of text, of which there is one or more for each message.
        """
        return sorted(
            name
            for name, count in self.made.items()
            if name.startswith("compacter.")
            and not name.startswith(BESIDE_STATE)
            and count < len(self.messages)
        )

    def _whole_lists(self, frame: FrameType) -> Iterator[str]:
        """Yield the names of the arguments of a call that are the whole list of messages."""
        code = frame.f_code
        for argument in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
            value = frame.f_locals.get(argument)
            if (
                isinstance(value, (list, tuple))
                and len(value) >= len(self.messages)
                and value[0] is self.messages[0]
            ):
                yield argument


def room_of(file: str) -> str:
    """Return the folder of a file of the package; the file itself if it lies at the top."""
    return file.partition("/")[0]


def file_of(frame: FrameType | None) -> str:
    """Return the file of a frame, relative to the package; empty for other code."""
    name = frame.f_code.co_filename if frame is not None else ""
    return str(Path(name).relative_to(PACKAGE)) if name.startswith(str(PACKAGE)) else ""


def callers(frame: FrameType) -> list[str]:
    """Return the files of the functions of compacter that are on the stack below this one."""
    files: list[str] = []
    below = frame.f_back
    while below is not None:
        file = file_of(below)
        if file:
            files.append(file)
        below = below.f_back
    return files


def followed(turns: int) -> Way:
    """Follow one overflow."""
    talk = conversation(turns)
    way = Way(talk)
    answers = iter(
        [
            TooLongError("maximum context length is 2000 tokens, but you sent 5000 tokens"),
            "Harbour 0.",
        ]
    )

    def completion(*, model: str, messages: list[Any]) -> dict[str, Any]:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return {
            "choices": [
                {"message": {"role": "assistant", "content": answer}, "finish_reason": "stop"}
            ]
        }

    call = Compacter(summarizer=lambda messages: "They spoke of harbours.").wrap(completion)

    sys.setprofile(way.note)
    try:
        call(model="gpt-4o", messages=talk)
    finally:
        sys.setprofile(None)
    return way


if __name__ == "__main__":
    followed(30)  # Modules are loaded by the first one.
    way = followed(30)
    found = {
        "files": sorted(way.files),
        "functions": sorted(way.functions),
        "doors": sorted(way.doors),
        "passes": sorted(way.passes),
        "state": way.state(),
        "depth": way.depth,
        "room_changes": way.room_changes,
        "readings_per_message": round(way.readings / len(way.messages), 2),
    }
    json.dump(found, sys.stdout, indent=1)
