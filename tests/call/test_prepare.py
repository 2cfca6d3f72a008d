"""Compactions made ahead: nobody waits for a summary."""

from __future__ import annotations

import asyncio
import contextvars
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
import trio

from compacter import Compacter, CompactionPlan, InProcessMemory, SQLiteMemory
from compacter.errors import ConfigurationError
from compacter.events import CompactionEvent, CompactionReused, CompactionSkipped, PreparationFailed
from compacter.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conversations import Chat

WINDOW = 1_000
AT = 700
SAID = "They talked about barrels and the price of each of them."


class Writer:
    """A summarizer whose work a test holds up until it lets go."""

    def __init__(self, *, held: bool = False) -> None:
        self.began = threading.Semaphore(0)
        self.go = threading.Event()
        self.asked: list[list[Chat]] = []
        self.fails = False
        if not held:
            self.go.set()

    def __call__(self, messages: list[Chat], **_: Any) -> str:
        self.asked.append(messages)
        self.began.release()
        assert self.go.wait(30)
        if self.fails:
            raise ConnectionError("no route to the model")
        return SAID


class Talk:
    """One conversation that a program keeps and resends: 100 tokens a turn."""

    def __init__(self, completion: Any, *, name: str = "one") -> None:
        self.completion = completion
        self.messages: list[Chat] = [{"role": "system", "content": f"You are clerk {name}."}]
        self.number = 0

    def question(self) -> list[Chat]:
        """The messages with one more question."""
        self.number += 1
        question = f"Question {self.number} of {self.messages[0]['content']}".ljust(196, "?")
        self.messages.append({"role": "user", "content": question})
        return list(self.messages)

    def ask(self) -> list[Chat]:
        sent = self.question()
        self.completion(model="m", messages=sent)
        self.answer()
        return sent

    def go_on(self, calls: int, compacter: Compacter | None = None) -> None:
        """Ask again and again; what ``compacter`` makes ahead is waited for each time."""
        for _ in range(calls):
            self.ask()
            if compacter is not None:
                compacter.drain(30)

    def answer(self) -> None:
        answer = f"Answer {self.number}".ljust(196, ".")
        self.messages.append({"role": "assistant", "content": answer})

    async def aask(self) -> None:
        await self.completion(model="m", messages=self.question())
        self.answer()


@pytest.fixture
def writer() -> Iterator[Writer]:
    writer = Writer()
    yield writer
    writer.go.set()


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel(window=WINDOW)


def make(writer: Any, **options: Any) -> tuple[Compacter, list[Any]]:
    events: list[Any] = []
    given = {"prepare_tokens": AT, "recall": None, **options}
    return Compacter(summarizer=writer, on_event=events.append, **given), events


def begin(writer: Any, model: ScriptedModel, **options: Any) -> tuple[Talk, Compacter, list[Any]]:
    compacter, events = make(writer, **options)
    return Talk(compacter.wrap(model.completion)), compacter, events


def of(events: list[Any], kind: type) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def used(events: list[Any]) -> list[CompactionReused]:
    """Uses of a compaction before which the call did not begin from it."""
    return [event for event in of(events, CompactionReused) if not event.began]


def is_compacted(messages: Any) -> bool:
    return any(SAID in str(message["content"]) for message in messages)


class TestItIsMadeAhead:
    def test_once_a_reply_shows_the_size(self, writer: Writer, model: ScriptedModel) -> None:
        talk, compacter, _ = begin(writer, model)
        talk.ask()
        while model.requests[-1].tokens < AT:
            assert writer.asked == []
            talk.ask()
            assert compacter.drain(30)
        assert len(writer.asked) == 1

    @pytest.mark.parametrize("streams", [False, True])
    def test_and_nothing_is_read_while_a_request_is_far_smaller(
        self, streams: bool, writer: Writer, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def answer(**options: Any) -> Any:
            reply = model.completion(**options)
            return iter([reply["choices"][0]["message"]]) if streams else reply

        compacter, _ = make(writer)
        talk = Talk(compacter.wrap(answer))
        talk.ask()  # The model is calibrated by its first reply.
        with monkeypatch.context() as patch:
            patch.setattr("compacter.call.request.Conversation", pytest.fail)
            talk.ask()
            assert model.requests[-1].tokens < AT / 2
        talk.go_on(8, compacter)
        assert writer.asked

    def test_from_what_was_said_then(self, writer: Writer, model: ScriptedModel) -> None:
        talk, compacter, events = begin(writer, model)
        talk.go_on(11, compacter)
        sent = talk.ask()
        last = model.requests[-1]
        assert is_compacted(last.messages)
        # What was said meanwhile stays verbatim behind it.
        assert list(last.messages[-6:]) == sent[-6:]
        (use,) = used(events)
        assert use.prepared
        assert len(writer.asked) == 1

    def test_with_one_refusal_at_most(self, writer: Writer, model: ScriptedModel) -> None:
        """Where the window is unknown the first refusal states it."""
        talk, compacter, _ = begin(writer, model)
        talk.go_on(40, compacter)
        assert sum(request.refused for request in model.requests) == 1
        assert compacter.totals.prepared_used >= 3

    def test_for_a_trigger_too(self, writer: Writer, model: ScriptedModel) -> None:
        talk, compacter, events = begin(writer, model, trigger_tokens=900)
        talk.go_on(30, compacter)
        assert not any(request.refused for request in model.requests)
        assert {event.trigger for event in of(events, CompactionEvent)} == {"prepared"}
        assert max(request.tokens for request in model.requests) < 900

    def test_of_replies_without_usage_and_of_streams_by_an_estimate(self, writer: Writer) -> None:
        model = ScriptedModel(window=WINDOW, usage=False)
        talk, compacter, _ = begin(writer, model)
        talk.go_on(8)
        for _ in range(2):
            talk.messages.append({"role": "user", "content": "And then?"})
            list(talk.completion(model="m", messages=list(talk.messages), stream=True))
        assert compacter.drain(30)
        assert len(writer.asked) == 1

    def test_at_a_share_of_a_known_window(self, writer: Writer, model: ScriptedModel) -> None:
        talk, compacter, events = begin(writer, model, prepare_tokens=0.7)
        talk.go_on(9)
        assert writer.asked == []
        (told,) = of(events, CompactionSkipped)
        assert (told.trigger, told.reason) == ("prepared", "unknown_window")
        talk.go_on(20, compacter)
        assert sum(request.refused for request in model.requests) == 1
        assert compacter.totals.prepared_used >= 1


class TestTheCallThatStartedIt:
    def test_is_not_delayed(self, model: ScriptedModel) -> None:
        writer = Writer(held=True)
        talk, compacter, _ = begin(writer, model)
        talk.go_on(8)
        assert writer.began.acquire(timeout=30)
        assert not compacter.drain(0)
        writer.go.set()
        assert compacter.drain(30)

    def test_does_not_fail_with_it(self, writer: Writer, model: ScriptedModel) -> None:
        writer.fails = True
        talk, compacter, events = begin(writer, model)
        talk.go_on(9, compacter)
        failed = of(events, PreparationFailed)
        assert failed
        assert failed[0].error == "ConnectionError"
        assert "no route" not in failed[0].model_dump_json()
        writer.fails = False
        talk.go_on(3, compacter)
        assert is_compacted(model.requests[-1].messages)

    def test_spares_a_failing_summarizer(self, writer: Writer, model: ScriptedModel) -> None:
        """It is asked again only after some calls."""
        writer.fails = True
        talk, compacter, events = begin(writer, model, min_calls_between=3, fallback=None)
        talk.go_on(9, compacter)
        assert len(of(events, PreparationFailed)) == 1

    def test_is_not_held_up_by_a_summarizer_that_hangs(self, model: ScriptedModel) -> None:
        writer = Writer(held=True)
        talk, compacter, events = begin(writer, model, timeout=0.05)
        talk.go_on(8)
        assert compacter.drain(30)
        assert [event.error for event in of(events, PreparationFailed)] == ["TimeoutError"]
        writer.go.set()


class TestACallThatComesDue:
    def test_waits_for_the_summary_that_is_being_made(self, model: ScriptedModel) -> None:
        writer = Writer(held=True)
        talk, _, events = begin(writer, model)
        talk.go_on(9)
        assert writer.began.acquire(timeout=30)
        due = threading.Thread(target=lambda: [talk.ask() for _ in range(3)])
        due.start()
        due.join(0.05)
        assert due.is_alive()
        writer.go.set()
        due.join(30)
        assert len(writer.asked) == 1
        assert len(used(events)) == 1

    def test_makes_it_itself_after_an_edit(self, writer: Writer, model: ScriptedModel) -> None:
        talk, compacter, events = begin(writer, model)
        talk.go_on(10, compacter)
        talk.messages[1] = {"role": "user", "content": "Something else.".ljust(196)}
        talk.ask()
        assert used(events) == []
        assert [event.trigger for event in of(events, CompactionEvent)] == [
            "prepared",
            "token_limit",
        ]

    def test_does_not_wait_for_itself(self, writer: Writer, model: ScriptedModel) -> None:
        talk, compacter, events = begin(writer, model)

        @compacter.on_compaction
        def repeat(event: CompactionEvent) -> None:
            if event.trigger == "prepared":
                long = [*talk.messages, {"role": "user", "content": "x" * 4 * (WINDOW - AT)}]
                talk.completion(model="m", messages=long)

        talk.go_on(8)
        assert compacter.drain(30)
        assert used(events)


class TestItIsACompactionLikeAnyOther:
    def test_in_events_and_totals(self, writer: Writer, model: ScriptedModel) -> None:
        talk, compacter, events = begin(writer, model)
        talk.go_on(12, compacter)
        (made,) = of(events, CompactionEvent)
        assert (made.trigger, made.attempt, made.summary) == ("prepared", 0, SAID)
        totals = compacter.totals
        assert (totals.prepared, totals.prepared_used, totals.rounds) == (1, 1, 1)
        assert totals.reused == len(of(events, CompactionReused)) - 1 > 0
        assert totals.summarizer_calls == 1

    def test_a_hook_may_veto_it(self, writer: Writer, model: ScriptedModel) -> None:
        plans: list[Any] = []

        def veto(plan: CompactionPlan) -> bool:
            plans.append(plan.trigger)
            return plan.trigger != "prepared"

        talk, compacter, _ = begin(writer, model, before_compaction=veto)
        talk.go_on(9, compacter)
        assert plans[:1] == ["prepared"]
        assert writer.asked == []

    def test_it_keeps_rules_and_is_redacted(self, writer: Writer, model: ScriptedModel) -> None:
        compacter, _ = make(
            writer,
            rules=["Answer in French."],
            redact=lambda text: text.replace("Question 2", "[gone]"),
        )
        talk = Talk(compacter.wrap(model.completion))
        talk.go_on(12, compacter)
        assert "Question 2" not in str(writer.asked)
        assert "Answer in French." in str(model.requests[-1].messages)

    @pytest.mark.parametrize("memory", ["none", "in-process", "sqlite"])
    def test_with_any_memory(
        self, memory: str, writer: Writer, model: ScriptedModel, tmp_path: Path
    ) -> None:
        memories: dict[str, Any] = {
            "none": lambda: None,
            "in-process": InProcessMemory,
            "sqlite": lambda: SQLiteMemory(tmp_path / "memory.db"),
        }
        talk, compacter, _ = begin(writer, model, memory=memories[memory]())
        talk.go_on(12, compacter)
        assert is_compacted(model.requests[-1].messages)
        assert len(writer.asked) == 1

    def test_another_process_with_the_same_memory_uses_it_and_makes_none(
        self, writer: Writer, model: ScriptedModel, tmp_path: Path
    ) -> None:
        here, _ = make(writer, memory=SQLiteMemory(tmp_path / "memory.db"))
        there, events = make(writer, memory=SQLiteMemory(tmp_path / "memory.db"))
        talk = Talk(here.wrap(model.completion))
        talk.go_on(8, here)
        talk.completion = there.wrap(model.completion)
        talk.go_on(4, there)
        assert [event.prepared for event in used(events)] == [True]
        assert len(writer.asked) == 1

    def test_it_is_nobody_elses(self, writer: Writer, model: ScriptedModel) -> None:
        compacter, _ = make(writer)
        completion = compacter.wrap(model.completion)
        talks = [Talk(completion, name=f"n{number}") for number in range(5)]
        for _ in range(14):
            for number, talk in enumerate(talks):
                talk.ask()
                assert f"clerk n{number}" in str(model.requests[-1].messages)
                others = {f"clerk n{other}." for other in range(5)} - {f"clerk n{number}."}
                assert not any(other in str(model.requests[-1].messages) for other in others)
            compacter.drain(30)


class TestWhereItRuns:
    def test_in_a_task_of_an_asyncio_program(self, model: ScriptedModel) -> None:
        request: contextvars.ContextVar[str] = contextvars.ContextVar("request")
        seen: list[Any] = []

        async def summarizer(messages: list[Chat]) -> str:
            seen.append((request.get(), threading.current_thread()))
            await asyncio.sleep(0)
            return SAID

        compacter, events = make(summarizer)

        async def program() -> None:
            request.set("r-18")
            talk = Talk(compacter.wrap(model.acompletion))
            for _ in range(12):
                await talk.aask()
                assert await compacter.adrain(30)

        asyncio.run(program())
        assert seen == [("r-18", threading.current_thread())]
        assert [event.prepared for event in used(events)] == [True]

    def test_under_trio_calls_work_and_nothing_is_made_ahead(
        self, writer: Writer, model: ScriptedModel
    ) -> None:
        compacter, _ = make(writer)

        async def acompletion(model_name: str, messages: list[Chat]) -> Any:
            return model.completion(model_name, messages)

        async def call(**given: Any) -> Any:
            return await wrapped(given["model"], given["messages"])

        wrapped = compacter.wrap(acompletion)

        async def program() -> None:
            talk = Talk(call)
            for _ in range(8):
                await talk.aask()
                assert await compacter.adrain(30)

        trio.run(program)
        assert writer.asked == []
        assert len(model.requests) >= 8

    def test_the_end_of_the_process_does_not_wait_for_it(self) -> None:
        program = """
import threading
from compacter import Compacter
from compacter.testing import ScriptedModel

began = threading.Event()

def hangs(messages):
    began.set()
    threading.Event().wait()

completion = Compacter(prepare_tokens=500, summarizer=hangs).wrap(ScriptedModel().completion)
words = [{"role": role, "content": "word " * 100} for role in ("user", "assistant") * 4]
completion("m", words)
completion("m", [*words, {"role": "user", "content": "And now?"}])
assert began.wait(30)
print("ended")
"""
        ended = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
        )
        assert (ended.stdout, ended.stderr) == ("ended\n", "")

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
    @pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
    def test_a_forked_child_inherits_none(self, model: ScriptedModel) -> None:
        writer = Writer(held=True)
        talk, compacter, _ = begin(writer, model)
        talk.go_on(8)
        assert writer.began.acquire(timeout=30)
        child = os.fork()
        if child == 0:
            os._exit(0 if compacter.drain(5) else 1)
        assert os.waitpid(child, 0)[1] == 0
        writer.go.set()
        assert compacter.drain(30)


class TestBadInput:
    @pytest.mark.parametrize(("prepare", "trigger"), [(800, 800), (0.8, 0.8), (0.9, 0.8)])
    def test_a_size_at_or_above_the_trigger_is_refused(self, prepare: Any, trigger: Any) -> None:
        with pytest.raises(ConfigurationError, match="prepare_tokens: must be below"):
            Compacter(prepare_tokens=prepare, trigger_tokens=trigger)

    @pytest.mark.parametrize("prepare", [True, -1, 0, "0.7", 1.5])
    def test_what_is_no_size_is_refused(self, prepare: Any) -> None:
        with pytest.raises(ConfigurationError, match="prepare_tokens"):
            Compacter(prepare_tokens=prepare)

    @pytest.mark.parametrize(("trigger", "prepare"), [(0.6, 0.525), (800, 700)])
    def test_for_agents_stays_below_a_trigger_of_ones_own(self, trigger: Any, prepare: Any) -> None:
        options = Compacter.for_agents(trigger_tokens=trigger).options
        assert options.prepare_tokens == pytest.approx(prepare)
