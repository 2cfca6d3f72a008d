"""``after_compaction``: messages that the program puts back behind each summary."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from tests import conversations
from tests.conversations import user
from tests.dialects import DIALECTS, retold

from compacter import Compacter, CompactionEvent, History, SQLiteMemory
from compacter.events import CompactionFailed
from compacter.testing import ScriptedModel, ScriptedSummarizer

if TYPE_CHECKING:
    from pathlib import Path


class Agent:
    """A program that puts a file back; each time its newest version."""

    def __init__(self, window: int = 900, **options: Any) -> None:
        self.versions = 0
        self.events: list[Any] = []
        self.summarizer = ScriptedSummarizer(lambda _: f"Summary {self.versions}.")
        self.model = ScriptedModel(window=window)
        self.compacter = Compacter(
            **{
                "summarizer": self.summarizer,
                "after_compaction": self.read_again,
                "on_event": self.events.append,
                "recall": None,
                **options,
            }
        )
        self.chat = self.compacter.wrap(self.model.completion)

    def read_again(self, event: CompactionEvent) -> list[Any]:
        assert event.summary
        self.versions += 1
        return [user(f"parser.py, version {self.versions}:\nimport re")]

    @property
    def sent(self) -> str:
        return json.dumps(self.model.requests[-1].messages)

    @property
    def failures(self) -> list[str]:
        return [event.reason for event in self.events if isinstance(event, CompactionFailed)]


def test_they_stand_right_behind_the_summary() -> None:
    agent = Agent()
    talk = conversations.talk(24)
    agent.chat(model="m", messages=talk)
    system, summary, restored, *rest = agent.model.requests[-1].messages
    assert system == talk[0]
    assert "Summary 0." in summary["content"]
    assert restored == user("parser.py, version 1:\nimport re")
    assert rest == talk[-len(rest) :]


def test_later_calls_begin_with_them_and_ask_for_none() -> None:
    agent = Agent()
    talk = conversations.talk(24)
    agent.chat(model="m", messages=talk)
    agent.chat(model="m", messages=[*talk, conversations.bot("So."), user("Go on.")])
    assert agent.versions == 1
    assert "version 1" in agent.sent


def test_so_does_another_process(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    talk = conversations.talk(24)
    Agent(memory=SQLiteMemory(path)).chat(model="m", messages=talk)
    later = Agent(memory=SQLiteMemory(path))
    later.chat(model="m", messages=talk)
    assert later.versions == 0
    assert "version 1" in later.sent


@pytest.mark.parametrize("name", list(DIALECTS))
@pytest.mark.parametrize("alternate", [None, True])
def test_the_next_compaction_replaces_them_in_each_format(
    name: str, alternate: bool | None
) -> None:
    agent = Agent(alternate_roles=alternate)
    form = DIALECTS[name]
    read_again = agent.read_again
    compacter = agent.compacter.replace(
        after_compaction=lambda event: [form.user(read_again(event)[0]["content"])] * 2
    )
    messages = retold(name, conversations.talk(24))
    for turn in range(1, 4):
        result = compacter.compact(messages, wire_format=name)
        assert not agent.failures
        text = str(result.messages)
        assert text.count(f"version {turn}") == 2
        assert text.count("parser.py") == 2
        more = retold(name, conversations.history(9))
        messages = [*result.messages, *more, form.user("And now?")]
    assert all("parser.py" not in prompt for prompt in agent.summarizer.prompts)


def test_they_are_replaced_in_a_stateless_program_too() -> None:
    agent = Agent()
    talk = conversations.talk(24)
    for turn in range(1, 4):
        agent.chat(model="m", messages=talk)
        assert agent.versions == turn
        assert agent.sent.count("parser.py") == 1
        assert f"version {turn}" in agent.sent
        talk = [*talk, conversations.bot("So."), *conversations.talk(20)[1:]]
    assert not agent.failures


def test_a_pin_does_not_keep_them() -> None:
    agent = Agent(pin=lambda message: "parser.py" in str(message["content"]))
    talk = conversations.talk(24)
    first = agent.compacter.compact(talk).messages
    second = agent.compacter.compact([*first, *conversations.talk(9)[1:]]).messages
    assert str(second).count("parser.py") == 1


def test_an_async_function_is_awaited() -> None:
    agent = Agent()

    async def read_again(event: CompactionEvent) -> list[Any]:
        await asyncio.sleep(0)
        return agent.read_again(event)

    compacter = agent.compacter.replace(after_compaction=read_again)
    result = asyncio.run(compacter.acompact(conversations.talk()))
    assert "version 1" in str(result.messages)


def test_a_history_has_them_once() -> None:
    agent = Agent()
    history = History(conversations.talk(), compacter=agent.compacter)
    history.compact()
    history.extend(conversations.history(9))
    history.compact()
    assert str(history.messages).count("parser.py") == 1
    assert "version 2" in str(history.messages)


def test_as_many_of_the_first_as_fit_are_taken() -> None:
    files = [user(f"File {number}. ".ljust(900, "x")) for number in range(9)]
    agent = Agent(after_compaction=lambda event: files)
    agent.chat(model="m", messages=conversations.talk(24))
    sent = list(agent.model.requests[-1].messages)
    kept = [message for message in sent if message in files]
    assert kept == files[: len(kept)]
    assert 0 < len(kept) < len(files)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ([user("x" * 90_000)], "no room"),
        ([{"role": "system", "content": "Obey."}], "system's role"),
        ([7], "not a message"),
        ([{"role": "tool", "tool_call_id": "c1", "content": "Done."}], "orphan result 'c1'"),
    ],
)
def test_what_may_not_be_sent_is_refused_and_the_call_goes_on(answer: Any, reason: str) -> None:
    agent = Agent(after_compaction=lambda event: answer)
    assert agent.chat(model="m", messages=conversations.talk(24))
    assert [reason in failure for failure in agent.failures] == [True]


@pytest.mark.parametrize("answer", [None, [], (), "text", 7])
def test_no_messages_change_nothing(answer: Any) -> None:
    agent = Agent(after_compaction=lambda event: answer)
    plain = Agent(after_compaction=None)
    for each in (agent, plain):
        each.chat(model="m", messages=conversations.talk(24))
    assert agent.sent == plain.sent


def test_an_exception_of_it_changes_nothing() -> None:
    def fail(event: CompactionEvent) -> None:
        raise KeyError

    agent = Agent(after_compaction=fail)
    assert agent.chat(model="m", messages=conversations.talk(24))


def test_calls_of_tools_stay_with_their_results() -> None:
    pairs = [
        message
        for number in range(9)
        for message in (
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": f"c{number}",
                        "type": "function",
                        "function": {"name": "read", "arguments": "{}"},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": f"c{number}", "content": "x" * 700},
        )
    ]
    agent = Agent(after_compaction=lambda event: pairs)
    agent.chat(model="m", messages=conversations.talk(24))
    kept = [message for message in agent.model.requests[-1].messages if message in pairs]
    assert kept == pairs[: len(kept)]
    assert 0 < len(kept) < len(pairs)
    assert len(kept) % 2 == 0
    assert not agent.failures
