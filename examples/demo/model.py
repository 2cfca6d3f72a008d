"""The program that plays the model, and the one that plays the summarizer."""

from __future__ import annotations

import json
import random
import re
from typing import TYPE_CHECKING, Any

from compacter.testing import ScriptedModel

from .world import Job

if TYPE_CHECKING:
    from collections.abc import Sequence

WINDOW = 8_192
ROOM = 2_400
"""Characters that the summarizer writes at most."""

Message = dict[str, Any]


def text_of(message: Message) -> str:
    """Return what a model reads of a message."""
    content = message.get("content") or ""
    said = content if isinstance(content, str) else "\n".join(part["text"] for part in content)
    called = [call["function"]["arguments"] for call in message.get("tool_calls") or ()]
    return "\n".join([said, *called])


class Policy:
    """Acts on what its request says, and on nothing else.

    It does the newest job with the newest line of the request that answers it. A line that did not
    arrive could not be used by any model.
    """

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._jobs = jobs
        self.step = 0

    def __call__(self, messages: Sequence[Message]) -> Message:
        """Return the reply to a request: a sentence, and a call of the tool."""
        job = self._jobs[self.step]
        request = "\n".join(map(text_of, messages)).replace('\\"', '"')
        used = "nothing"
        if job.fact is not None and job.fact.need in request:
            used = (re.findall(job.fact.reading, request) or ["unknown"])[-1]
        call = {"name": "do_job", "arguments": json.dumps({"job": self.step, "use": used})}
        calls = [{"id": f"call_{self.step}", "type": "function", "function": call}]
        return {"content": job.note, "tool_calls": calls}


class Summarizer:
    """Writes a summary of lines of what it reads: half of its room goes to sentences, as people and
    decisions have them, the rest to lines by chance.
    """

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, messages: Sequence[Message], **_: Any) -> str:
        """Return the summary of the text in a prompt."""
        self.calls += 1
        text = "\n".join(map(text_of, messages))
        lines = [line.strip() for line in text.split("\n") if 20 < len(line.strip()) < 400]
        order = list(range(len(lines)))
        random.Random(self.calls).shuffle(order)
        said = [at for at in order if lines[at].endswith(".")]
        taken = _fit(said, lines, ROOM // 2)
        taken |= _fit(order, lines, ROOM - sum(len(lines[at]) for at in taken))
        return "\n".join(lines[at] for at in sorted(taken))


def _fit(order: Sequence[int], lines: Sequence[str], room: int) -> set[int]:
    taken = set()
    for at in order:
        if len(lines[at]) < room:
            taken.add(at)
            room -= len(lines[at])
    return taken


def provider(policy: Policy) -> ScriptedModel:
    """Return a provider with a window of 8,192 tokens that refuses as OpenAI's does."""
    return ScriptedModel(window=WINDOW, replies=policy)
