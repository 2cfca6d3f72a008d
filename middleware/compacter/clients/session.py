"""One call that has something to do: its request, its world, and the History it may be keeping."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from compacter.clients.replies import tokens_of
from compacter.clients.world import World
from compacter.flow.calibration import Calibration
from compacter.flow.recover import Request
from compacter.flow.trigger import Pulse
from compacter.messages.format import Message


class Kept(Protocol):
    """What a ``History`` is to a call: something that takes over what the call's compactions made of it."""

    @property
    def version(self) -> int:
        """Counts changes."""
        ...

    def install(self, version: int, messages: Sequence[Message]) -> bool:
        """Take the list over, if ``version`` is still the present one."""
        ...


class Session:
    """Made when a call leaves the quiet path."""

    def __init__(
        self, world: World, request: Request, calibration: Calibration, pulse: Pulse, history: Kept | None
    ) -> None:
        self.world = world
        self.request = request
        self.calibration = calibration
        self.pulse = pulse
        self.history = history
        self._version = history.version if history is not None else 0

    def learn(self, messages: Sequence[Message], overhead: int, reply: Any) -> None:
        """Calibrate by an earlier reply, if its messages are a beginning of these."""
        own = self.request.original
        if (
            not messages
            or len(messages) > len(own)
            or own[0] is not messages[0]
            or own[len(messages) - 1] is not messages[-1]
        ):
            return
        tokens, _ = tokens_of(reply)
        self.calibration.learn(sum(map(self.request.wire.size, messages)) + overhead, tokens)

    def settled(self) -> None:
        """The call has succeeded: the History gets what the compactions made of it, unless it has changed meanwhile."""
        made = self.world.made
        if self.history is not None and made is not None and not self.history.install(self._version, made):
            self.world.engine.aborted(None)
