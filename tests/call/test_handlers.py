"""Carrying effects out: waiting for another process's summary, and what a memory must not keep."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
import trio
from tests.conversations import Chat, talk

from compacter import Compacter, InProcessMemory
from compacter.call import handlers, lead
from compacter.call.state import State
from compacter.options import Options
from compacter.runtime import models
from compacter.runtime.io import SYNC, run
from compacter.testing import ScriptedModel, ScriptedSummarizer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from compacter import CompactionEvent, CompactionPlan
    from compacter.memory import Record


class HeldElsewhere(InProcessMemory):
    """A memory in which another process makes the same summary at first; other claims are
    granted.
    """

    blocking = True

    def __init__(self, *, asked_in_vain: int) -> None:
        super().__init__()
        self.asked_in_vain = asked_in_vain
        self.first = ""
        self.asked = self.released = 0

    def claim(self, key: str, seconds: float) -> Any:
        self.first = self.first or key
        self.asked += key == self.first
        return (
            None
            if key == self.first and self.asked <= self.asked_in_vain
            else SimpleNamespace(release=self.release)
        )

    def release(self) -> None:
        self.released += 1


@pytest.mark.parametrize("program", ["sync", "asyncio", "trio"])
def test_a_summary_that_another_process_makes_is_waited_for(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lead, "_CLAIM_POLL", 0)
    memory = HeldElsewhere(asked_in_vain=3)
    asked_before_the_summary: list[int] = []

    def summarizer(messages: list[Chat]) -> str:
        asked_before_the_summary.append(memory.asked)
        return "They asked."

    model = ScriptedModel(window=900)

    async def acompletion(model_name: str, messages: list[Chat]) -> Any:
        return model.completion(model_name, messages)

    middle = Compacter(summarizer=summarizer, memory=memory)
    if program == "sync":
        middle.wrap(model.completion)("m", talk())
    elif program == "asyncio":
        asyncio.run(middle.wrap(acompletion)("m", talk()))
    else:
        trio.run(middle.wrap(acompletion), "m", talk())

    assert asked_before_the_summary[0] == 4
    assert memory.released >= 1


def test_a_claim_is_released_before_the_model_answers() -> None:
    """So that calls which wait for the summary need not wait for the answer too."""
    memory = HeldElsewhere(asked_in_vain=0)
    model = ScriptedModel(window=900)
    released = list[int]()

    def completion(model_name: str, messages: list[Chat]) -> Any:
        released.append(memory.released)
        return model.completion(model_name, messages)

    Compacter(summarizer="extractive", memory=memory).wrap(completion)("m", talk())
    assert released == [0, 1]


def test_a_claim_that_is_granted_after_the_end_of_its_call_is_released() -> None:
    memory = HeldElsewhere(asked_in_vain=0)
    waiting = lead.Lead(State(Options(memory=memory)), SYNC)
    waiting.close()
    run(waiting.take("key", 1.0))
    assert memory.released == 1


def test_it_is_waited_for_as_long_as_the_timeout_allows() -> None:
    memory = HeldElsewhere(asked_in_vain=10**9)
    middle = Compacter(summarizer=ScriptedSummarizer(), memory=memory, timeout=0.01)

    middle.wrap(ScriptedModel(window=900).completion)("m", talk())

    assert middle.totals.rounds == 1


def test_other_processes_are_waited_for_again_once_a_memory_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lead, "_CLAIM_POLL", 0)

    class Away(HeldElsewhere):
        away = True

        def claim(self, key: str, seconds: float) -> Any:
            if self.away:
                raise OSError("no connection")
            return super().claim(key, seconds)

    memory = Away(asked_in_vain=3)
    middle = Compacter(summarizer="extractive", memory=memory)
    completion = middle.wrap(ScriptedModel(window=900).acompletion)
    asyncio.run(completion("m", talk()))
    memory.away = False
    asyncio.run(completion("m", talk(30)[1:]))

    assert middle.totals.rounds == 2
    assert memory.asked == 4


def test_messages_that_have_no_key_are_folded_all_the_same() -> None:
    odd = [{**message, "mine": object()} for message in talk()]
    model = ScriptedModel(window=900, strict=False)
    middle = Compacter(summarizer="extractive")
    assert middle.wrap(model.completion)("m", odd)["choices"]
    assert middle.totals.rounds == 1


def test_what_a_memory_needs_to_find_something_is_not_taken_from_the_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]
    for module in (handlers, lead):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    class Slow(InProcessMemory):
        def empty(self) -> bool:
            return False

        def find(self, keys: Sequence[str]) -> Sequence[Record]:
            clock[0] += 100.0
            return super().find(keys)

    async def summarizer(messages: list[Chat]) -> str:
        await asyncio.sleep(0)
        return "They talked of many things."

    events: list[CompactionEvent] = []
    middle = Compacter(
        summarizer=summarizer, memory=Slow(), timeout=50, on_compaction=events.append
    )

    asyncio.run(middle.wrap(ScriptedModel(window=900).acompletion)("m", talk()))

    assert clock[0] >= 100
    assert [event.fallback for event in events] == [False]


@pytest.mark.parametrize("blocking", [True, False])
async def test_a_memory_that_blocks_is_used_beside_the_event_loop(blocking: bool) -> None:
    threads: set[int] = set()

    class Watched(InProcessMemory):
        def find(self, keys: Sequence[str]) -> Sequence[Record]:
            threads.add(threading.get_ident())
            return super().find(keys)

    memory = Watched()
    memory.blocking = blocking
    middle = Compacter(summarizer="extractive", memory=memory)
    history = talk()
    completion = middle.wrap(ScriptedModel(window=900).acompletion)
    for _ in range(2):
        await completion("m", history)

    assert threads
    assert (threading.get_ident() in threads) is not blocking


@pytest.mark.parametrize("known", [None, 1_800])
def test_a_remembered_window(known: int | None) -> None:
    """A window in a record is known to another Compacter, unless that one knows another."""
    memory = InProcessMemory()
    options: dict[str, Any] = {"summarizer": "extractive", "memory": memory, "recall": None}
    first, second = (Compacter(**options) for _ in range(2))
    first.wrap(ScriptedModel(window=900).completion)("m", talk())
    model = ScriptedModel(window=known or 900)
    completion = second.wrap(model.completion)
    if known:
        completion("m", talk(60)[1:])
    completion("m", talk())
    assert model.rejected == bool(known)
    assert second._state.calibration("m").window == (known or 900)


@pytest.mark.parametrize("program", ["asyncio", "trio"])
def test_a_summary_by_litellm_does_not_block_the_event_loop(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[bool, bool]] = []

    def completion(*, awaited: bool = False, **options: Any) -> Any:
        asked.append((awaited, threading.current_thread() is threading.main_thread()))
        return asyncio.sleep(0, "They asked.") if awaited else "They asked."

    monkeypatch.setattr(models, "completion", completion)
    model = ScriptedModel(window=900)
    chat = Compacter(summarizer="gpt-4o").wrap(model.acompletion)
    if program == "asyncio":
        asyncio.run(chat("m", talk()))
    else:
        trio.run(chat, "m", talk())
    assert asked == [(program == "asyncio",) * 2]


def test_a_summarizer_keeps_its_own_default_of_an_option_that_is_not_known() -> None:
    asked: list[str] = []

    def summarizer(messages: list[Chat], model: str = "mine") -> str:
        asked.append(model)
        return "They asked."

    for model in (None, "the call's"):
        Compacter(summarizer=summarizer).compact(talk(), model=model)
    assert asked == ["mine", "the call's"]


async def test_a_summarizer_that_blocks_does_not_block_the_event_loop() -> None:
    threads: list[int] = []

    def summarizer(messages: list[Chat]) -> str:
        threads.append(threading.get_ident())
        return "They asked."

    await Compacter(summarizer=summarizer).wrap(ScriptedModel(window=900).acompletion)("m", talk())
    assert threads
    assert threading.get_ident() not in threads


class TestTheTimeout:
    """One budget of 50 seconds for all rounds: the summary of the first takes 40, so the second
    waits for 10.
    """

    @pytest.fixture
    def clock(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        now = [0.0]
        for module in (handlers, lead):
            monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
        monkeypatch.setattr(lead, "_CLAIM_POLL", 0)
        return now

    def fold_twice(self, clock: list[float], memory: InProcessMemory) -> None:
        async def summarizer(messages: list[Chat]) -> str:
            clock[0] += 40 if clock[0] == 0 else 0
            await asyncio.sleep(0)
            return "They asked."

        middle = Compacter(summarizer=summarizer, memory=memory, timeout=50, compact_ratio=0.5)
        # It states no numbers, so the first round cannot aim.
        model = ScriptedModel(window=400, style="bedrock")
        asyncio.run(middle.wrap(model.acompletion)("m", talk()))
        assert middle.totals.rounds >= 2

    def test_bounds_the_wait_for_another_process(self, clock: list[float]) -> None:
        class GrantsOnce(InProcessMemory):
            blocking = True

            def claim(self, key: str, seconds: float) -> Any:
                if clock[0] == 0:
                    return SimpleNamespace(release=lambda: None)
                clock[0] += 1
                return None if clock[0] < 1_000 else SimpleNamespace(release=lambda: None)

        self.fold_twice(clock, GrantsOnce())
        assert 50 <= clock[0] <= 55  # One look more for each round.


class TestWhatASummaryCost:
    """By the model that the reply names; else by the call's own, if that one was asked."""

    REPLY: ClassVar[Any] = {
        "choices": [{"message": {"content": "They asked."}}],
        "usage": {"prompt_tokens": 700, "completion_tokens": 6},
    }

    def cost(self, model: str, reply: dict[str, Any], *, own: bool) -> float | None:
        """Of a summary by the wrapped function itself, or by a function of the user's own."""
        costs: list[float | None] = []
        scripted = ScriptedModel(window=900)

        def completion(model: str, messages: list[Chat], **options: Any) -> Any:
            if "record of a conversation" in str(messages):
                return reply
            return scripted.completion(model, messages, **options)

        summarizer = (lambda messages: reply) if own else None
        middle = Compacter(
            summarizer=summarizer, on_compaction=lambda event: costs.append(event.cost)
        )
        middle.wrap(completion)(model, talk())
        return costs[0]

    @pytest.mark.parametrize("own", [False, True])
    def test_is_known_of_a_reply_that_names_a_model_with_a_price(self, own: bool) -> None:
        known = self.cost("a-model-of-ones-own", {**self.REPLY, "model": "gpt-4o"}, own=own)
        assert known is not None
        assert known > 0

    def test_of_a_function_whose_reply_names_no_model_is_not_known(self) -> None:
        assert self.cost("gpt-4o", self.REPLY, own=True) is None


CHUNKS: dict[str, list[Any]] = {
    "texts": ["They asked ", "of walls."],
    "deltas": [
        {"choices": [{"delta": {"content": text}}]} for text in ("They asked ", None, "of walls.")
    ],
    "older completions": [{"choices": [{"text": text}]} for text in ("They asked ", "of walls.")],
    "nothing to read": [{"choices": []}, {"choices": None}, "They asked of walls."],
}


class BothWays:
    """A stream like litellm's, of the last kind of chunks, that can be read in two ways; here in
    the sync one alone.
    """

    def __init__(self) -> None:
        self.chunks = iter(CHUNKS["nothing to read"])

    def __iter__(self) -> Iterator[Any]:
        return self.chunks

    def __next__(self) -> Any:
        return next(self.chunks)

    async def __anext__(self) -> Any:
        raise AssertionError("it was read asynchronously")


@pytest.mark.parametrize("kind", CHUNKS)
@pytest.mark.parametrize("program", ["sync", "async"])
@pytest.mark.parametrize("shape", ["sync", "async", "awaited", "both"])
def test_a_summarizer_may_stream_its_answer(kind: str, program: str, shape: str) -> None:
    def synchronous(messages: list[Chat]) -> Any:
        yield from CHUNKS[kind]

    async def asynchronous(messages: list[Chat]) -> Any:
        for chunk in CHUNKS[kind]:
            yield chunk

    async def awaited(messages: list[Chat]) -> Any:
        return asynchronous(messages)

    def both(messages: list[Chat]) -> Any:
        return BothWays()

    kinds: dict[str, Any] = {
        "sync": synchronous,
        "async": asynchronous,
        "awaited": awaited,
        "both": both,
    }
    summarizer = kinds[shape]

    model = ScriptedModel(window=900)
    summaries = list[str]()

    def told(event: CompactionEvent) -> None:
        summaries.append(event.summary)

    if program == "sync":
        Compacter(summarizer=summarizer, on_compaction=told).wrap(model.completion)("m", talk())
    else:
        asyncio.run(
            Compacter(summarizer=summarizer, on_compaction=told).wrap(model.acompletion)(
                "m", talk()
            )
        )

    assert ["They asked of walls." in summary for summary in summaries] == [True]


def test_a_summarizer_may_make_the_very_call_that_it_works_for() -> None:
    model = ScriptedModel(window=900)
    nested = list[Any]()

    def summarizer(messages: Any) -> str:
        if not nested:
            nested.append("begun")
            nested.append(completion("m", history))
        return "They talked of many things."

    middle = Compacter(summarizer=summarizer)
    history = talk()
    completion = middle.wrap(model.completion)

    assert completion("m", history)["choices"] == nested[1]["choices"]
    assert model.rejected == 2  # The inner call and the outer one, once each.
    assert "They talked of many things." in str(model.requests[-1].messages)


class Halves:
    """A strategy that keeps half of each message."""

    name = "halves"
    edits = True

    def compact(self, plan: CompactionPlan) -> list[Chat]:
        cut = plan.cut
        short = [
            {**message, "content": message["content"][: len(message["content"]) // 2]}
            for message in plan.messages
        ]
        return [plan.messages[0], *short[1:cut], *plan.messages[cut:]]


def fails(text: str) -> str:
    raise ValueError("cannot be redacted")


@pytest.mark.parametrize(
    ("redact", "kept"),
    [
        (None, True),
        (lambda text: text.replace("a word that nobody said", "[gone]"), True),
        (lambda text: text.replace("Question", "[gone]"), False),
        (fails, False),
    ],
)
def test_an_edited_message_is_remembered_only_where_it_holds_nothing_to_redact(
    redact: Any, kept: bool
) -> None:
    memory = InProcessMemory()
    middle = Compacter(
        strategy=Halves(), compact_ratio=1.0, redact=redact, memory=memory, recall=None
    )

    middle.wrap(ScriptedModel(window=900).completion)("m", talk())

    assert middle.totals.rounds == 1
    assert memory.empty() is not kept
