"""A conversation with a call: it asks for effects, the test answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from tests import conversations

from compacter.call.effects import Find, Forget, Save, Send
from compacter.effects import Approve, Ask, Effect, Emit, Flow
from compacter.events import Event
from compacter.messages.refusals import detect_sealed
from compacter.messages.replies import Reply
from compacter.options import Options

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conversations import Chat

E = TypeVar("E")


class Dialogue:
    """A policy at work, and what it has said so far. What a test does not ask for is answered
    with "nothing there", a further request for a summary with the summary before it.
    """

    def __init__(self, flow: Flow[Any]) -> None:
        self.flow = flow
        self.events: list[Event] = []
        self.effects: list[str] = []
        self.result: Any = None
        self.ended = False
        self._summary: Reply | None = None
        self._pending: Any = None

    def expect(self, kind: type[E]) -> E:
        """Go on until the flow asks for this; anything else that matters is a failure."""
        while True:
            effect = self._next()
            if isinstance(effect, kind):
                return effect
            self.answer(self._usual(effect))

    def answer(self, outcome: object = None) -> None:
        """Send the outcome of the effect that was expected."""
        if isinstance(outcome, Reply):
            self._summary = outcome
        self._step(lambda: self.flow.send(outcome))

    def fail(self, error: Exception) -> None:
        """Throw into the flow what the effect raised; a token limit comes as the reply to a
        call.
        """
        if isinstance(self._pending, Send):
            flow: Any = self.flow
            call = flow.gi_frame.f_locals["call"]
            limit = call.options.detect(error) or detect_sealed(error)
        else:
            limit = None
        if limit:
            reply = Reply(token_limit=limit, error=error)
            self._step(lambda: self.flow.send(reply))
            return
        self._step(lambda: self.flow.throw(error))

    def end(self) -> Any:
        """Go on to the flow's end, and return what it returned."""
        while not self.ended:
            self.answer(self._usual(self._next()))
        return self.result

    def _next(self) -> Any:
        if self._pending is None and not self.ended:
            self._step(lambda: self.flow.send(None))
        assert self._pending is not None, f"the flow ended with {self.result!r}"
        return self._pending

    def _step(self, action: Callable[[], Effect[Any]]) -> None:
        self._pending = None
        try:
            effect = action()
        except StopIteration as stop:
            self.ended = True
            self.result = stop.value
        else:
            self._pending = effect
            self.effects.append(type(self._pending).__name__)

    def _usual(self, effect: Any) -> object:
        match effect:
            case Emit():
                self.events.append(effect.event)
                return effect.event
            case Approve():
                return effect.plan
            case Find() | Save() | Forget():
                return None
            case Ask() if self._summary is not None:
                return self._summary
            case _:
                raise AssertionError(f"the flow asks for {effect!r}, which the test did not expect")

    def told(self) -> list[str]:
        return [type(event).__name__ for event in self.events]


def make_options(*, attempts: int = 4, **options: Any) -> Options:
    return Options(**{"max_retries": attempts - 1, "recall": None, **options})


SUMMARY = Reply("They asked ten questions.", input_tokens=700, output_tokens=6, finish="stop")


@pytest.fixture
def begin() -> type[Dialogue]:
    """Begins a dialogue with a flow."""
    return Dialogue


@pytest.fixture
def options() -> Callable[..., Options]:
    """Options of a Compacter."""
    return make_options


@pytest.fixture
def talk() -> Callable[..., list[Chat]]:
    """A system prompt, ten short turns unless told otherwise, a last question."""
    return lambda turns=10, size=100: conversations.talk(turns, size)


@pytest.fixture
def summary() -> Reply:
    """A good answer of a summarizer."""
    return SUMMARY
