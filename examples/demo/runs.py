"""The same run three times: with a bare client, with the usual loop, and with compacter."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from compacter import Compacter, CompactionEvent
from compacter.events import PassagesRecalled

from .model import Message, Policy, Summarizer, provider, text_of
from .usual_loop import with_usual_loop
from .world import ORDER, SYSTEM, Fact, Job

Complete = Callable[..., Any]


@dataclass
class Need:
    """What a late job needed, what was used for it, and the line that said so."""

    step: int
    fact: Fact
    used: str
    line: str
    """Line of the request with the answer; empty if there was none."""
    place: str
    """``quote``, ``summary`` or ``message``: where it stood."""

    @property
    def is_right(self) -> bool:
        """Whether the newest statement was used."""
        return self.used == self.fact.value


@dataclass
class Run:
    """One of the three: the agent's loop, and the books of it."""

    name: str
    jobs: Sequence[Job]
    sizes: list[int] = field(default_factory=list)
    """Tokens of each accepted request."""
    needs: list[Need] = field(default_factory=list)
    summaries: int = 0
    quotes: int = 0
    ended: str = ""
    """The error that ended it; empty while it goes on."""

    def __post_init__(self) -> None:
        self.policy = Policy(self.jobs)
        self.model = provider(self.policy)
        self.complete: Complete = self.model.completion

    def steps(self) -> Iterator[None]:
        """Make the calls of the agent, one by one, until the queue is empty or a call fails."""
        history: list[Message] = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": ORDER},
        ]
        for step, job in enumerate(self.jobs):
            self.policy.step = step
            if step:
                history.append(
                    {"role": "tool", "tool_call_id": f"call_{step - 1}", "content": job.result}
                )
            if job.user:
                history.append({"role": "user", "content": job.user})
            try:
                reply = self.complete(model="gpt-4", messages=history)
            except Exception as error:  # noqa: BLE001 - whatever ends an agent is shown
                self.ended = f"step {step}: {getattr(error, 'status_code', '')} {_code(error)}"
                return
            message = reply["choices"][0]["message"]
            history.append(message)
            self.sizes.append(self.model.requests[-1].tokens)
            if job.fact is not None:
                used = json.loads(message["tool_calls"][0]["function"]["arguments"])["use"]
                self.needs.append(Need(step, job.fact, used, *self._where(job.fact)))
            yield

    def _where(self, fact: Fact) -> tuple[str, str]:
        """Return the newest line of the last request that answers a need, and where it stood."""
        for message in reversed(self.model.requests[-1].messages):
            text = text_of(message)
            place = "summary" if "compacter" in text or "Summary so far" in text else "message"
            for line in reversed(text.split("\n")):
                if re.search(fact.reading, line.replace('\\"', '"')):
                    quoted = text.rfind("[compacter: quoted", 0, text.index(line)) >= 0
                    return line.strip(), "quote" if quoted else place
        return "", ""

    @property
    def right(self) -> int:
        """Needs that were met with the newest statement."""
        return sum(need.is_right for need in self.needs)

    @property
    def tokens(self) -> int:
        """Tokens of all requests so far, refused ones too."""
        return self.model.tokens_sent


def _code(error: Exception) -> str:
    return str(getattr(error, "code", "") or type(error).__name__)


def make_runs(jobs: Sequence[Job]) -> tuple[Run, Run, Run]:
    """Return the three runs; the second and the third have the same summarizer."""
    bare = Run("a bare client", jobs)
    loop = Run("the usual loop", jobs)
    summarizer = Summarizer()

    def count(messages: Sequence[Message], **options: Any) -> str:
        loop.summaries += 1
        return summarizer(messages, **options)

    loop.complete = with_usual_loop(loop.model.completion, count)
    wrapped = Run("compacter", jobs)

    def note(event: object) -> None:
        wrapped.summaries += isinstance(event, CompactionEvent)
        wrapped.quotes += isinstance(event, PassagesRecalled)

    compacter = Compacter(summarizer=Summarizer(), on_event=note)
    wrapped.complete = compacter.wrap(wrapped.model.completion)
    return bare, loop, wrapped
