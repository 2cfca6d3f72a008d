"""One conversation with tools, in each message format, and one compaction carried out step
by step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
from tests.dialects import DIALECTS, parts_of

from compacter.call.pump import pump
from compacter.compaction.calibration import Calibration
from compacter.compaction.conversation import Conversation
from compacter.compaction.cut import plan_compaction
from compacter.compaction.plan import CompactionPlan
from compacter.compaction.run import compact
from compacter.compaction.sizes import Sizes
from compacter.effects import Approve, Ask, Effect, Emit
from compacter.messages.format import FORMATS, FormatName, MessageFormat, get_format
from compacter.messages.replies import Reply
from compacter.options import Options
from compacter.runtime.io import IO, SYNC, run

Item = dict[str, Any]


@dataclass(frozen=True)
class Form:
    """How a message format writes a word, and a call of one tool with its result."""

    name: FormatName

    @property
    def format(self) -> MessageFormat:
        return get_format(self.name)

    def say(self, role: str, text: str) -> Item:
        said: Item = self.format.say("user" if role == "user" else "assistant", text)
        return said

    def look(self, number: int, text: str, tool: str = "look") -> list[Item]:
        """A call and its result; ids come again."""
        name = f"call_{number % 2}"
        dialect = DIALECTS[self.name]
        return [*dialect.calls([(name, tool, {})]), *dialect.results([(name, tool, text)])]

    def errand(self, results: list[str], tools: list[str] | None = None) -> list[Item]:
        """A task, one tool call for each result, and a last answer and question."""
        items = [self.say("user", "Count the ships.")]
        for number, text in enumerate(results):
            items += self.look(number, text, tools[number] if tools else "look")
        return [*items, self.say("assistant", "Seven."), self.say("user", "And now?")]

    def results(self, items: list[Item]) -> list[str]:
        """The results' texts, in order."""
        entries = [
            entry
            for index, item in enumerate(items)
            for entry in parts_of(self.format, item, index)
        ]
        return [entry.text for entry in entries if entry.kind == "result"]

    def broken(self, items: list[Item]) -> list[str]:
        return [half.call_id for half in self.format.outline(items).broken]


@pytest.fixture(params=FORMATS)
def form(request: pytest.FixtureRequest) -> Form:
    """Each message format in turn."""
    return Form(request.param)


def refused(
    conversation: Conversation, calibration: Calibration | None = None, **facts: Any
) -> CompactionPlan:
    """A compaction that is to be planned; after a refusal unless the facts say otherwise."""
    options = Options()
    sizes = Sizes(options, calibration or Calibration())
    facts = {"trigger": "token_limit", **facts}
    return CompactionPlan(conversation=conversation, options=options, sizes=sizes, **facts)


def plan(options: Options, work: CompactionPlan) -> CompactionPlan:
    """The plan with these options, with its cut."""
    sizes = replace(work.sizes, options=options)
    return plan_compaction(replace(work, options=options, sizes=sizes))


def carried_out(
    options: Options,
    work: CompactionPlan,
    *answers: str | Reply | Exception,
    told: list[Any] | None = None,
) -> tuple[list[Ask], Any]:
    """The requests to a summarizer, and the compaction; the last answer is given again. Events are
    put into ``told``.
    """
    world = World(answers, told if told is not None else [])
    made = run(pump(compact(plan(options, work)), world))
    if made is None:
        return world.asked, None
    after, event = made
    world.told.append(event)
    return world.asked, SimpleNamespace(
        messages=list(after.messages), event=event, fits=work.fits_size(after.size)
    )


class World:
    """Answers a compaction."""

    io: IO = SYNC
    large = False

    def __init__(self, answers: tuple[str | Reply | Exception, ...], told: list[Any]) -> None:
        self.asked: list[Ask] = []
        self.answers = answers
        self.told = told

    async def perform(self, effect: Effect[Any], /) -> Any:
        match effect:
            case Ask():
                self.asked.append(effect)
                answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
                if isinstance(answer, Exception):
                    raise answer
                return Reply(answer) if isinstance(answer, str) else answer
            case Emit():
                self.told.append(effect.event)
                return effect.event
            case Approve():
                self.told.append(effect.plan)
                return effect.plan
        raise AssertionError(f"a compaction asks for {effect!r}")
