"""A History against a plain list with pins: whatever is done to it, in whatever order."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.effort import times

from compacter import Compacter, CompactionError, History, InvalidHistoryError
from compacter.messages.format import get_format
from compacter.summary import message as summary_message
from compacter.testing import ScriptedModel, ScriptedSummarizer, TokenLimitError

Chat = dict[str, Any]
OPENAI = get_format("openai")
SIZES = st.integers(1, 400)


class HistoryMachine(RuleBasedStateMachine):
    """The model is the list of everything ever said, in order, and which of it is pinned
    or gone.
    """

    def __init__(self) -> None:
        super().__init__()
        self.number = 0
        self.history = History()
        self.pinned: list[Chat] = []
        self.said: list[Chat] = []
        self.discarded: list[Chat] = []

    @initialize(ratio=st.sampled_from([0.2, 0.5, 0.9, 1.0]))
    def begin(self, ratio: float) -> None:
        self.compacter = Compacter(
            summarizer=ScriptedSummarizer("They spoke."), compact_ratio=ratio
        )
        self.events: list[Any] = []
        self.compacter.on_compaction(self.events.append)
        self.history = History(compacter=self.compacter)
        self._append({"role": "system", "content": "You are terse."})

    def _text(self, size: int) -> str:
        self.number += 1
        return f"{self.number} ".ljust(size, "x")

    def _append(self, *messages: Chat, pinned: bool = False) -> None:
        for message in messages:
            self.history.append(message, pinned=pinned)
            self.said.append(message)
            if pinned:
                self.pinned.append(message)

    def _own(self) -> list[Chat]:
        """The messages of the list that were said, not made."""
        return [message for message in self.history if any(message is one for one in self.said)]

    # What a program does

    @rule(size=SIZES, pinned=st.booleans())
    def user(self, size: int, pinned: bool) -> None:
        self._append(
            {"role": "user", "content": self._text(size)}, pinned=pinned and self.number % 4 == 0
        )

    @rule(size=SIZES)
    def assistant(self, size: int) -> None:
        self._append({"role": "assistant", "content": self._text(size)})

    @rule(size=SIZES, count=st.integers(1, 3))
    def errand(self, size: int, count: int) -> None:
        ids = [f"call_{place}" for place in range(count)]
        function = {"name": "f", "arguments": "{}"}
        calls = [{"id": name, "type": "function", "function": function} for name in ids]
        self._append(
            {"role": "assistant", "content": None, "tool_calls": calls},
            *({"role": "tool", "tool_call_id": name, "content": self._text(size)} for name in ids),
        )

    @precondition(lambda self: len(self.history) > 1)
    @rule(data=st.data())
    def pin_and_unpin(self, data: st.DataObject) -> None:
        message = data.draw(st.sampled_from(self._own()))
        index = next(place for place, one in enumerate(self.history) if one is message)
        if self.history.pins[index]:
            self.history.unpin(index)
            self.pinned = [one for one in self.pinned if one is not message]
        else:
            self.history.pin(index)
            self.pinned.append(message)

    @rule()
    def compact(self) -> None:
        before = self.history.snapshot()
        try:
            result = self.history.compact()
        except CompactionError:
            assert self.history.snapshot() == before
        else:
            assert list(self.history) == result.messages
            self._gone(result.discarded)

    @rule(share=st.floats(0.3, 0.95))
    def call(self, share: float) -> None:
        tokens = ScriptedModel().count(tuple(self.history), {})
        model = ScriptedModel(window=max(10, int(tokens * share)))
        before = self.history.snapshot()
        own = self._own()
        try:
            self.compacter.wrap(model.completion)("m", self.history)
        except TokenLimitError:
            assert self.history.snapshot() == before
        else:
            assert list(self.history) == list(model.requests[-1].messages)
            self._gone(
                message for message in own if not any(message is one for one in self.history)
            )
        assert model.invalid == 0

    @rule()
    def call_that_fails(self) -> None:
        before = self.history.snapshot()

        def broken(messages: Any) -> None:
            raise ConnectionError

        with pytest.raises(ConnectionError):
            self.compacter.wrap(broken)(messages=self.history)
        assert self.history.snapshot() == before

    @rule()
    def store_and_restore(self) -> None:
        restored = History(compacter=self.compacter)
        restored.restore(self.history.snapshot())
        assert restored == self.history
        # The program goes on with the restored one: equal messages, other objects.
        places = {id(old): new for old, new in zip(self.history, restored, strict=True)}
        self.said = [places.get(id(message), message) for message in self.said]
        self.pinned = [places.get(id(message), message) for message in self.pinned]
        self.history = restored

    @rule(text=st.sampled_from(["", "{}", "[]", '{"version": 7}']))
    def restore_rubbish(self, text: str) -> None:
        before = self.history.snapshot()
        with pytest.raises(InvalidHistoryError):
            self.history.restore(text)
        assert self.history.snapshot() == before

    def _gone(self, messages: Any) -> None:
        gone = [message for message in messages if any(message is one for one in self.said)]
        told = [message for event in self.events for message in event.discarded]
        assert all(any(message == one for one in told) for message in gone)
        self.discarded.extend(gone)

    # What always holds

    @invariant()
    def nothing_is_lost(self) -> None:
        assert len(self._own()) + len(self.discarded) == len(self.said)

    @invariant()
    def order_is_kept(self) -> None:
        places = {id(message): place for place, message in enumerate(self.said)}
        numbers = [places[id(message)] for message in self._own()]
        assert numbers == sorted(numbers)

    @invariant()
    def pins_are_right(self) -> None:
        pinned = [
            message for message, stays in zip(self.history, self.history.pins, strict=True) if stays
        ]
        assert sorted(map(id, pinned)) == sorted(map(id, self.pinned))

    @invariant()
    def pairs_are_whole(self) -> None:
        assert OPENAI.outline(list(self.history)).broken == ()

    @invariant()
    def the_system_prompt_and_at_most_one_summary(self) -> None:
        if self.said:
            assert self.history[0]["role"] == "system"
        made = [
            message
            for message in self.history
            if str(message["content"]).startswith(summary_message.TAG)
        ]
        assert len(made) <= 1

    @invariant()
    def the_sizes_of_list_and_pins_agree(self) -> None:
        assert len(self.history.pins) == len(self.history)
        assert copy.copy(list(self.history)) == list(self.history)


TestHistory = HistoryMachine.TestCase
TestHistory.settings = settings(
    max_examples=times(12, long=80), stateful_step_count=30, deadline=None
)
