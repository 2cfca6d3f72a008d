"""The quotes of one request: the room for them, and the compaction that makes room.

Pure. Quotes only take room that is free. A question or an agent's step, for which there are quotes
and no room, has the next compaction made now: it is due soon, as the request fills the window.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from compacter.call.sizes import FEWEST_QUOTED, Room, room_for_quotes
from compacter.call.smaller import SmallerRequest
from compacter.compaction.trigger import GROWN
from compacter.effects import Quote

if TYPE_CHECKING:
    from compacter.recall.passages import Quotes

_ENOUGH = 1_000
"""Room in characters in which the best passage and its answer fit, with their frame; with more,
no quotes means that none were found."""


@dataclass(eq=False)
class QuotedRequest(SmallerRequest):
    """The request that is sent next, with quotes."""

    _sought: bool = field(default=False, init=False)
    """Whether this call has looked for quotes without room for them: once is enough."""

    async def add_quotes(self) -> None:
        """Add quotes for the question of the request, if messages were compacted."""
        recall = self.options.recall
        if recall is None or not self._may_quote():
            return
        room = self._room_for_quotes(recall)
        text = (await self._quote(room, room.characters)) if room.characters else ""
        if not text and room.characters < min(room.wanted, _ENOUGH):
            await self._make_room(recall, room)

    def _may_quote(self) -> bool:
        """Return whether there may be quotes: not if no messages were compacted."""
        request = self.request
        if not self.quotes or (request.messages is request.original and not request.archive):
            return False
        last_round = len(self.tried) == self.options.max_retries
        if self._window is None and self.tried and last_round:
            # They may be refused, and then the request could not be sent without them.
            return False
        return request.conversation.last_user is not None

    @property
    def _window(self) -> int | None:
        return self.calibration.window or self.threshold()

    def _room_for_quotes(self, recall: Quotes) -> Room:
        return room_for_quotes(self.request, recall, self.calibration, self._window)

    async def _quote(self, room: Room, characters: int, *, sent: bool = True) -> str:
        """Return quotes of up to so many characters, and add them to the request if ``sent``."""
        request = self.request
        question = Quote(
            request.original,
            request.conversation,
            characters,
            request.archive,
            request.digest,
            room.tokens_of_one,
            sent,
        )
        text = await self.world.quote(question)
        if text and sent:
            self.request = replace(request, quotes=text)
        return text

    async def _make_room(self, recall: Quotes, room: Room) -> None:
        """Compact the history and add quotes, if there are any for the question; send an event if
        that cannot be.
        """
        if self._window is None or self._sought or room.wanted < FEWEST_QUOTED:
            return
        self._sought = True
        if not (await self._quote(room, room.wanted, sent=False)):
            return
        state = self.state
        if self.tried or self.is_held_back:
            await self.emit_skipped("quotes", "cool_down")
        elif self.request.size <= state.full * GROWN:
            await self.emit_skipped("quotes", "no_progress")
        else:
            target = max(1, self.request.conversation.size + room.free)
            done = await self.compact_to(target, quotes=room.wanted)
            room = self._room_for_quotes(recall)
            text = (await self._quote(room, room.characters)) if room.characters else ""
            state.full = 0 if text else self.request.size
            if done and not text:
                await self.emit_skipped("quotes", "no_progress")
