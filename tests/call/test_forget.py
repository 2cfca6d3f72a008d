"""``Compacter.forget``: the newest compaction of a conversation is not used any more."""

from __future__ import annotations

import asyncio
import copy
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from tests import conversations
from tests.conversations import bot, user

from compacter import Compacter, History, SQLiteMemory
from compacter.errors import ConfigurationError
from compacter.testing import ScriptedModel, ScriptedSummarizer

if TYPE_CHECKING:
    from pathlib import Path


class Desk:
    """Calls of a model, whose windows the tests choose, and a Compacter that numbers summaries."""

    def __init__(self, **options: Any) -> None:
        self.compacter = Compacter(
            summarizer=ScriptedSummarizer(self.summarize), recall=None, **options
        )
        self.small = ScriptedModel(window=700)
        self.large = ScriptedModel(window=90_000)
        self.chat = self.compacter.wrap(self.call)
        self.window = 0

    def summarize(self, _: object) -> str:
        return f"Summary {self.count + 1}: Question 1 and Answer 1."

    @property
    def count(self) -> int:
        return self.compacter.totals.rounds

    def call(self, messages: list[Any], **options: Any) -> Any:
        self.sent = list(messages)
        model = self.large if self.window else self.small
        return model.completion("m", messages, **options)

    def ask_large(self, talk: list[Any]) -> list[Any]:
        """Return what a model with a large window is sent for this talk."""
        self.window = 1
        self.chat(talk)
        self.window = 0
        return self.sent


def compacted_twice(desk: Desk) -> list[Any]:
    talk = conversations.talk()
    desk.chat(talk)
    talk = [*talk, bot("So."), *conversations.talk()[1:]]
    desk.chat(talk)
    assert desk.count == 2
    assert "Summary 2:" in str(desk.sent)
    return [*talk, bot("Well."), user("Go on.")]


def test_the_next_call_begins_from_the_older_compaction_and_then_from_the_whole_list() -> None:
    desk = Desk()
    talk = compacted_twice(desk)
    desk.compacter.forget(talk)
    assert "Summary 1:" in str(desk.ask_large(talk))
    assert "Summary 1:" in str(desk.ask_large(talk))
    desk.compacter.forget(talk)
    assert desk.ask_large(talk) == talk
    desk.compacter.forget(talk)
    assert desk.ask_large(talk) == talk
    assert desk.count == 2


def test_twice_forgets_two() -> None:
    desk = Desk()
    talk = compacted_twice(desk)
    desk.compacter.forget(talk)
    desk.compacter.forget(talk)
    assert desk.ask_large(talk) == talk


def test_what_is_compacted_anew_is_used_again() -> None:
    desk = Desk()
    talk = conversations.talk()
    desk.chat(talk)
    desk.compacter.forget(talk)
    desk.chat(talk)
    assert "Summary 2:" in str(desk.sent)
    assert "Summary 2:" in str(desk.ask_large(talk))
    assert desk.count == 2


def test_other_conversations_keep_theirs() -> None:
    desk = Desk()
    talk = conversations.talk()
    other = [user("Another beginning."), *talk[1:]]
    desk.chat(talk)
    desk.chat(other)
    desk.compacter.forget(talk)
    assert "Summary 2:" in str(desk.ask_large(other))
    assert desk.ask_large(talk) == talk


def test_it_is_forgotten_in_a_stored_memory_for_other_processes_too(tmp_path: Path) -> None:
    one, other = (Desk(memory=SQLiteMemory(tmp_path / "m.db")) for _ in range(2))
    talk = conversations.talk()
    one.chat(talk)
    assert "Summary 1:" in str(other.ask_large(talk))
    one.compacter.forget(talk)
    assert one.ask_large(talk) == talk
    assert other.ask_large(talk) == talk


def test_async_calls_forget_too() -> None:
    compacter = Compacter(summarizer=ScriptedSummarizer("Short."), recall=None)
    model = ScriptedModel(window=700)
    chat = compacter.wrap(model.acompletion)
    talk = conversations.talk()

    async def main() -> None:
        await chat("m", talk)
        compacter.forget(talk)
        await chat("m", talk)

    asyncio.run(main())
    assert compacter.totals.rounds == 2


@pytest.mark.parametrize("memory", [{}, {"memory": None}])
def test_without_a_compaction_it_does_nothing(memory: Any) -> None:
    desk = Desk(**memory)
    talk = conversations.talk()
    desk.compacter.forget(talk)
    desk.chat(talk)
    desk.chat(talk)
    assert desk.count == (2 if memory else 1)


def test_no_list_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="list of messages"):
        Compacter().forget("Hello.")


class TestUndo:
    def test_puts_back_what_was_replaced_and_keeps_what_came_since(self) -> None:
        compacter = Compacter(summarizer=ScriptedSummarizer("Short."))
        talk = conversations.talk()
        history = History(talk, compacter=compacter)
        history.compact()
        history.append(bot("So."))
        assert history.undo()
        assert history.messages == [*talk, bot("So.")]
        assert not history.archive
        assert not history.undo()

    def test_the_older_compaction_stays(self) -> None:
        history = History(
            conversations.talk(), compacter=Compacter(summarizer=ScriptedSummarizer("Short."))
        )
        history.compact()
        history.extend(conversations.talk()[1:])
        before = history.messages
        history.compact()
        assert history.undo()
        assert history.messages == before
        assert history.archive

    def test_the_next_call_does_not_use_the_compaction_of_the_call_before(self) -> None:
        desk = Desk()
        talk = conversations.talk()
        history = History(talk, compacter=desk.compacter)
        chat: Any = desk.chat
        chat(history)
        assert "Summary 1:" in str(history.messages)
        assert history.undo()
        desk.window = 1
        chat(history)
        assert desk.sent == talk
        assert history.messages == talk

    def test_what_was_changed_since_is_left_alone(self) -> None:
        history = History(
            conversations.talk(), compacter=Compacter(summarizer=ScriptedSummarizer("Short."))
        )
        assert not history.undo()
        history.compact()
        history[1] = user("Another.")
        changed = history.messages
        assert not history.undo()
        assert history.messages == changed

    def test_copies_and_snapshots_are_made_as_before(self) -> None:
        history = History(conversations.talk(), compacter=Compacter(summarizer="extractive"))
        history.compact()
        assert history.copy().undo()
        assert not pickle.loads(pickle.dumps(history)).undo()  # noqa: S301 - our own
        assert copy.deepcopy(history) == history
        history.restore(history.snapshot())
        assert not history.undo()
