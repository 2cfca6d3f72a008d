"""``with compacter.using(...)``: options for the calls inside it, and for no others."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests import conversations

from compacter import Compacter, History
from compacter.errors import ConfigurationError
from compacter.testing import ScriptedModel, ScriptedSummarizer


class Desk:
    """A Compacter, and the names of the conversations of its events."""

    def __init__(self, **options: Any) -> None:
        self.summarizer = ScriptedSummarizer("Short.")
        self.compacter = Compacter(summarizer=self.summarizer, memory=None, **options)
        self.names: list[str] = []
        self.compacter.on_compaction(lambda event: self.names.append(event.conversation))
        model = ScriptedModel(window=700)
        self.chat = self.compacter.wrap(model.completion)
        self.achat = self.compacter.wrap(model.acompletion)

    def call(self, **more: Any) -> Any:
        return self.chat(model="m", messages=conversations.talk(), **more)

    async def acall(self, **more: Any) -> Any:
        return await self.achat(model="m", messages=conversations.talk(), **more)

    @property
    def prompt(self) -> str:
        return self.summarizer.prompts[-1]


@pytest.fixture
def desk() -> Desk:
    return Desk(conversation="usual")


def test_it_holds_inside_and_ends_with_the_block(desk: Desk) -> None:
    with desk.compacter.using(conversation="t-17", focus="the API"):
        desk.call()
        assert desk.prompt.endswith("about: the API")
    desk.call()
    assert desk.names == ["t-17", "usual"]
    assert "about: the API" not in desk.prompt


def test_it_ends_with_an_error_too(desk: Desk) -> None:
    with pytest.raises(KeyError), desk.compacter.using(conversation="t-17"):
        raise KeyError
    desk.call()
    assert desk.names == ["usual"]


def test_an_inner_one_adds_to_the_outer_one(desk: Desk) -> None:
    with desk.compacter.using(conversation="outer", focus="the API"):
        with desk.compacter.using(conversation="inner"):
            desk.call()
            assert desk.prompt.endswith("about: the API")
        desk.call()
    assert desk.names == ["inner", "outer"]


def test_options_of_one_call_win(desk: Desk) -> None:
    with desk.compacter.using(conversation="t-17", focus="the API"):
        desk.call(compacter_options={"conversation": "mine"})
        assert desk.prompt.endswith("about: the API")
    assert desk.names == ["mine"]


def test_a_call_can_still_be_made_as_if_nothing_were_wrapped(desk: Desk) -> None:
    with desk.compacter.using(conversation="t-17"), pytest.raises(Exception, match="context"):
        desk.call(compacter_options=False)


def test_another_compacter_keeps_its_own(desk: Desk) -> None:
    other = Desk(conversation="other")
    with desk.compacter.using(conversation="t-17"):
        other.call()
        with other.compacter.using(conversation="t-18"):
            desk.call()
            other.call()
    assert other.names == ["other", "t-18"]
    assert desk.names == ["t-17"]


def test_each_thread_keeps_its_own(desk: Desk) -> None:
    together = threading.Barrier(4)

    def work(number: int) -> None:
        with desk.compacter.using(conversation=f"t-{number}"):
            together.wait()
            desk.call()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    desk.call()
    assert sorted(desk.names[:-1]) == [f"t-{number}" for number in range(4)]
    assert desk.names[-1] == "usual"


def test_each_task_keeps_its_own_and_tasks_inside_have_that_of_their_block(desk: Desk) -> None:
    async def work(number: int) -> None:
        with desk.compacter.using(conversation=f"t-{number}"):
            await asyncio.sleep(0)
            async with asyncio.TaskGroup() as group:
                group.create_task(desk.acall())

    async def main() -> None:
        await asyncio.gather(*map(work, range(4)), desk.acall())

    asyncio.run(main())
    assert sorted(desk.names) == [*(f"t-{number}" for number in range(4)), "usual"]


@pytest.mark.parametrize("stream", [False, True])
def test_it_holds_for_async_calls_and_streams(desk: Desk, stream: bool) -> None:
    async def main() -> None:
        with desk.compacter.using(conversation="t-17"):
            reply = await desk.acall(stream=stream)
        if stream:  # It was opened inside.
            assert [chunk async for chunk in reply]

    asyncio.run(main())
    assert desk.names == ["t-17"]


def test_it_holds_for_compactions_by_hand(desk: Desk) -> None:
    with desk.compacter.using(conversation="t-17", focus="the API"):
        result = desk.compacter.compact(conversations.talk())
        assert desk.prompt.endswith("about: the API")
        History(conversations.talk(), compacter=desk.compacter).compact()
        assert desk.prompt.endswith("about: the API")
        assert desk.compacter.plan(conversations.talk()).digest == "t-17"
    assert result.event
    assert result.event.conversation == "t-17"


def test_hooks_totals_and_memory_are_those_of_the_compacter() -> None:
    model = ScriptedModel(window=700)
    compacter = Compacter(summarizer=ScriptedSummarizer("Short."))
    chat = compacter.wrap(model.completion)
    with compacter.using(conversation="t-17"):
        chat(model="m", messages=conversations.talk())
    count = len(model.requests)
    chat(model="m", messages=conversations.talk())
    assert len(model.requests) == count + 1
    assert (compacter.totals.calls, compacter.totals.rounds) == (2, 1)


def test_a_quiet_call_is_counted_once(desk: Desk) -> None:
    with desk.compacter.using(conversation="t-17"):
        desk.chat(model="m", messages=[conversations.user("Hello.")])
    assert desk.compacter.totals.calls == 1


@pytest.mark.parametrize("bad", [{"conversation": 5}, {"conversatoin": "t"}])
def test_a_mistake_is_raised_on_entering(desk: Desk, bad: Any) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(bad))), desk.compacter.using(**bad):
        pass


def test_a_generator_that_is_closed_elsewhere_raises_nothing(desk: Desk) -> None:
    def numbers() -> Any:
        with desk.compacter.using(conversation="t-17"):
            yield 1

    begun = numbers()
    thread = threading.Thread(target=next, args=(begun,))
    thread.start()
    thread.join()
    begun.close()
    desk.call()
    assert desk.names == ["usual"]
