"""Files and functions of compacter that one overflow enters: ``python tests/way.py`` prints them as
JSON.

It runs in an interpreter of its own, so that nothing which other tests loaded, configured or left
behind counts.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import compacter
from compacter import Compacter

if TYPE_CHECKING:
    from types import FrameType

PACKAGE = Path(compacter.__file__).parent
TEXTS = ("text_of", "bounded", "fold", "normalise", "_decoded", "_mended", "sentences")
LEAVES = ("messages/", *(f"overflow/signals.py {name}" for name in TEXTS))
"""Readers of one message or one text; a person who follows a call reads what they are named after,
not them."""


class TooLongError(Exception):
    code = "context_length_exceeded"


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
    """What one overflow enters, from the refusal to the answer, a summary included."""

    messages: int
    files: set[str] = field(default_factory=set)
    functions: set[tuple[str, str]] = field(default_factory=set)
    passes: set[str] = field(default_factory=set)
    """Functions, with the argument's name, that are called with the whole list of messages."""
    readings: int = 0
    """Times that the parts of a message were made."""


def followed(turns: int) -> Way:
    """Follow one overflow."""
    talk = conversation(turns)
    way = Way(len(talk))
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

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(str(PACKAGE)):
            return
        inner = str(Path(code.co_filename).relative_to(PACKAGE))
        way.files.add(inner)
        if code.co_name.startswith("<"):
            return
        name = f"{inner} {code.co_qualname}"
        way.readings += code.co_name == "all_parts"
        for argument in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
            value = frame.f_locals.get(argument)
            if isinstance(value, (list, tuple)) and len(value) >= len(talk) and value[0] is talk[0]:
                way.passes.add(f"{name}({argument})")
        if not name.startswith(LEAVES):
            way.functions.add((inner, code.co_qualname))

    sys.setprofile(note)
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
        "passes": sorted(way.passes),
        "readings_per_message": round(way.readings / way.messages, 2),
    }
    json.dump(found, sys.stdout, indent=1)
