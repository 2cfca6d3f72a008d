"""Files and functions of compacter that one overflow enters: ``python tests/way.py`` prints them as JSON.

It runs in an interpreter of its own, so that nothing which other tests loaded, configured or left behind counts.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import compacter
from compacter import Compacter

if TYPE_CHECKING:
    from types import FrameType

PACKAGE = Path(compacter.__file__).parent
TEXTS = ("text_of", "bounded", "fold", "normalise", "_decoded", "_mended", "sentences")
LEAVES = ("messages/", *(f"overflow/signals.py {name}" for name in TEXTS))
"""Readers of one message or one text; a person who follows a call reads what they are named after, not them."""


class TooLongError(Exception):
    code = "context_length_exceeded"


def conversation(turns: int) -> list[dict[str, str]]:
    talk = [{"role": "system", "content": "You are terse."}]
    for number in range(turns):
        talk.append({"role": "user", "content": f"Question {number}: what about harbour number {number}? " * 8})
        talk.append({"role": "assistant", "content": f"Harbour {number} takes ships of {number} metres. " * 8})
    return [*talk, {"role": "user", "content": "Which harbour was the first?"}]


def followed(turns: int) -> tuple[set[str], set[tuple[str, str]]]:
    """Files and functions that one overflow enters, from the refusal to the answer, a summary included."""
    answers = iter([TooLongError("maximum context length is 2000 tokens, but you sent 5000 tokens"), "Harbour 0."])

    def completion(*, model: str, messages: list[Any]) -> dict[str, Any]:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return {"choices": [{"message": {"role": "assistant", "content": answer}, "finish_reason": "stop"}]}

    call = Compacter(summarizer=lambda messages: "They spoke of harbours.").wrap(completion)
    files: set[str] = set()
    functions: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(str(PACKAGE)):
            return
        inner = str(Path(code.co_filename).relative_to(PACKAGE))
        files.add(inner)
        if not code.co_name.startswith("<") and not f"{inner} {code.co_qualname}".startswith(LEAVES):
            functions.add((inner, code.co_qualname))

    sys.setprofile(note)
    try:
        call(model="gpt-4o", messages=conversation(turns))
    finally:
        sys.setprofile(None)
    return files, functions


if __name__ == "__main__":
    followed(30)  # Modules are loaded by the first one.
    files, functions = followed(30)
    json.dump({"files": sorted(files), "functions": sorted(functions)}, sys.stdout, indent=1)
