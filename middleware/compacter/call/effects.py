"""The effects that the policy asks for, and the two drivers that carry them out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from compacter.compaction.cut import CompactionPlan
from compacter.events import Event
from compacter.messages.format import Message
from compacter.overflow import TokenLimit

T = TypeVar("T")


class Effect(Generic[T]):
    """One request to the world; ``outcome = yield from effect``."""

    __slots__ = ()

    def __iter__(self) -> Generator[Effect[Any], Any, T]:
        outcome: T = yield self
        return outcome


Flow = Generator[Effect[Any], Any, T]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A reply, and whether it says (with HTTP 200) that the request is too long."""

    reply: object
    found: TokenLimit | None = None


@dataclass(frozen=True, slots=True)
class Call(Effect[Outcome]):
    """Call the wrapped function with these messages."""

    messages: Sequence[Message]
    options: Mapping[str, object]
    """Options that differ from the caller's (such as a lowered ``max_tokens``)."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a summarizer answered, read. Tokens as its usage states them."""

    text: str
    input_tokens: int = 0
    output_tokens: int = 0
    finish: str | None = None
    refused: bool = False
    called_tool: bool = False
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class AskSummarizer(Effect[Answer]):
    """Send a ready prompt to the summarizer."""

    messages: Sequence[Mapping[str, str]]
    """OpenAI-style ``role`` and ``content``."""
    max_tokens: int
    prefix: Sequence[Message] | None = None
    """With ``summary_request="native"``: the conversation's own messages, to which the instruction is appended."""


@dataclass(frozen=True, slots=True)
class Tell(Effect[None]):
    """Tell hooks, totals and the log of an event."""

    event: Event


@dataclass(frozen=True, slots=True)
class AskPlan(Effect["CompactionPlan | None"]):
    """Show the plan to ``before_compaction``; the outcome is the plan to carry out, or ``None`` for a veto."""

    plan: CompactionPlan


@dataclass(frozen=True, slots=True)
class Recall(Effect["list[Message] | None"]):
    """Look for a compacted view of the caller's messages; the outcome is the view, or ``None``."""

    messages: Sequence[Message]


@dataclass(frozen=True, slots=True)
class Claim(Effect[bool]):
    """Be the one who folds this head, or wait for the one who does: True when another one just did."""

    messages: Sequence[Message]


@dataclass(frozen=True, slots=True)
class Remember(Effect[None]):
    """Keep ``after`` as the view of ``before`` (the caller's own messages)."""

    before: Sequence[Message]
    after: Sequence[Message]


@dataclass(frozen=True, slots=True)
class Sleep(Effect[None]):
    """Wait this many seconds before the next attempt."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Clock(Effect[float]):
    """Monotonic seconds."""


@dataclass(frozen=True, slots=True)
class Usage(Effect[int]):
    """Input tokens that a reply states, cache reads counted; 0 where it states none."""

    reply: object


class HandOver(BaseException):
    """Raised by ``perform`` in a sync program whose reply has to be awaited: the flow goes on in ``adrive``.

    No error, and no flow may catch it.
    """

    flow: Flow[Any]
    effect: Effect[Any]

    def __init__(self, reply: Awaitable[Any]) -> None:
        super().__init__("the flow goes on in the caller's event loop")
        self.reply = reply


def drive(flow: Flow[T], perform: Callable[[Effect[Any]], Any]) -> T:
    """Run a flow to its end. Whatever ``perform`` raises is thrown into it, but for what is no ``Exception``."""
    handed_over = False
    try:
        effect = next(flow)
        while True:
            try:
                outcome = perform(effect)
            except HandOver as handing:
                handed_over, handing.flow, handing.effect = True, flow, effect
                raise
            except Exception as error:  # noqa: BLE001 - the flow decides what an error means
                effect = flow.throw(error)
            else:
                effect = flow.send(outcome)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        if not handed_over:
            flow.close()


async def adrive(
    flow: Flow[T], perform: Callable[[Effect[Any]], Awaitable[Any]], effect: Effect[Any] | None = None
) -> T:
    """As ``drive``; a cancellation closes the flow and passes on. ``effect`` is where a flow handed over stands."""
    try:
        effect = next(flow) if effect is None else effect
        while True:
            try:
                outcome = await perform(effect)
            except Exception as error:  # noqa: BLE001 - the flow decides what an error means
                effect = flow.throw(error)
            else:
                effect = flow.send(outcome)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        flow.close()
