"""Results that no model has answered yet: what it asked for."""

from __future__ import annotations

from typing import Any

import pytest
from tests.compaction.conftest import plan, refused

from compacter import ClearToolResults, Compacter, CompactionPlan, Shorten, Summarize
from compacter.compaction.calibration import Calibration
from compacter.compaction.conversation import Conversation
from compacter.messages.format import get_format
from compacter.options import Options

OPENAI = get_format("openai")


def say(role: str, size: int) -> dict[str, Any]:
    return {"role": role, "content": "x" * size}


def look(*sizes: int) -> list[dict[str, Any]]:
    """A message with as many calls, and their results of these sizes."""
    function = {"name": "look", "arguments": "{}"}
    calls = [{"id": f"c{at}", "type": "function", "function": function} for at in range(len(sizes))]
    results = [
        {
            "role": "tool",
            "tool_call_id": f"c{at}",
            "content": f"line of {at}\n" * (size // 10) + "." * (size % 10),
        }
        for at, size in enumerate(sizes)
    ]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *results]


class TooLongError(Exception):
    code = "context_length_exceeded"


def requests(messages: list[Any], window: int, **options: Any) -> tuple[list[Any], list[Any]]:
    """The request that a provider with this window, in characters, accepts; and all events."""
    sent: list[Any] = []
    events: list[Any] = []

    def completion(*, messages: list[Any], model: str) -> str:
        size = sum(map(OPENAI.size, messages))
        if size > window:
            raise TooLongError(
                f"This model's maximum context length is {window // 4} tokens. However, your "
                f"messages resulted in {size // 4} tokens."
            )
        sent[:] = messages
        return "ok"

    options = {"recall": None, "summarizer": "extractive", **options}
    compacter = Compacter(on_event=events.append, **options)
    compacter.wrap(completion)(model="m", messages=messages)
    return sent, events


def work(messages: list[Any], **facts: Any) -> CompactionPlan:
    facts = {"trigger": "token_limit", "is_required": True, **facts}
    return refused(conversation=Conversation(messages, OPENAI), calibration=Calibration(), **facts)


@pytest.mark.parametrize("ratio", [0.2, 0.7, 0.95, 1.0])
@pytest.mark.parametrize("target", [None, 9_000, 2_000])
@pytest.mark.parametrize("ending", [[], [say("user", 20)]], ids=["last", "user behind"])
def test_stay_whatever_the_ratio(ratio: float, target: int | None, ending: list[Any]) -> None:
    """Results that no model has answered stay, whatever the ratio and the room for quotes."""
    talk = [say("user", 10), *look(900), *look(900), *look(2_500, 2_500), *ending]

    for reserved in (0, 2_000):
        made = plan(
            Options(compact_ratio=ratio),
            work(talk, target=target, reserved=reserved * bool(target)),
        )
        assert 0 < made.cut <= 5


def test_answered_results_go() -> None:
    """Once a model has answered them, results are compacted as all else is."""
    talk = [say("user", 10), *look(900), *look(2_500), say("assistant", 20), say("user", 20)]

    assert plan(Options(), work(talk, target=2_000)).cut == 5


def test_results_that_are_too_many() -> None:
    """Results that even shortened ones leave no room for are compacted."""
    talk = [say("user", 10), *look(*[900] * 20)]

    assert plan(Options(), work(talk, target=9_000)).cut == 0
    assert plan(Options(), work(talk, target=7_000)).cut == len(talk)


def test_by_hand_without_a_budget() -> None:
    """A compaction by hand without a budget compacts unread results if there is nothing else."""
    made = Compacter(compact_ratio=0.5)

    assert made.plan([say("user", 10), *look(400)]).cut == 3
    assert made.plan([say("user", 10), say("assistant", 400), *look(900)]).cut == 2


OLDER = [say("user", 10), *look(900), *look(900), *look(300)]
"""2,128 characters, all of which but the request may be compacted."""


@pytest.mark.parametrize("sizes", [(9_000, 7_000, 6_000), (3_000,) * 8, (200, 300, 20_000, 90)])
@pytest.mark.parametrize("options", [{}, {"compact_ratio": 0.2}, {"preserve_recent_turns": 1}])
def test_are_shortened_to_fair_shares(sizes: tuple[int, ...], options: dict[str, Any]) -> None:
    """Results that do not fit are shortened to one size, those below it not at all, and fill what
    the window leaves beside the summary.
    """
    sent, events = requests([*OLDER, *look(*sizes)], 10_000, **options)

    results = [len(message["content"]) for message in sent if message["role"] == "tool"]
    assert len(results) == len(sizes)
    assert sum(map(OPENAI.size, sent)) > 0.75 * 10_000
    most = max(results)
    for before, after in zip(sizes, results, strict=True):
        assert after == before or after > most - 150
    (event,) = [event for event in events if type(event).__name__ == "CompactionEvent"]
    assert event.strategy == "summarize+shorten"
    assert not event.fallback


@pytest.mark.parametrize("summarizer", ["extractive", lambda messages: "They look at a line."])
def test_a_small_task_before_them_stays(summarizer: Any) -> None:
    """A summary of the task alone would be no smaller, and would lose the order in it."""
    task = {"role": "user", "content": "Tell me whose server sent the mail, and nothing else. " * 6}

    sent, events = requests([task, *look(9_000), say("user", 30)], 6_000, summarizer=summarizer)

    assert sent[0] == task
    assert sum(map(OPENAI.size, sent)) > 0.8 * 6_000
    assert [event.strategy for event in events if hasattr(event, "strategy")] == ["shorten"]


def test_a_long_history_before_them_is_summarized_all_the_same() -> None:
    sent, _ = requests([*OLDER, *look(900), *look(9_000)], 6_000)

    assert any("[compacter: summary" in str(message["content"]) for message in sent)


def test_are_in_the_event_whole() -> None:
    """The event has the whole results that were shortened, beside the messages of the head."""
    newest = look(9_000, 9_000)

    _, events = requests([*OLDER, *newest], 10_000)

    (event,) = [event for event in events if type(event).__name__ == "CompactionEvent"]
    assert event.discarded == (*OLDER[1:], *newest[1:])


def test_are_shortened_alone() -> None:
    """Where nothing else may be compacted, no summary is asked for."""
    sent, events = requests([say("user", 10), *look(9_000, 9_000)], 10_000)

    assert len(sent) == 4
    assert 9_000 < sum(map(OPENAI.size, sent)) <= 10_000
    assert [event.strategy for event in events if hasattr(event, "strategy")] == ["shorten"]


def test_of_an_unknown_window_are_halved_once() -> None:
    """Without a known window unread results are halved, and compacted if that is not enough."""

    def completion(*, messages: list[Any], model: str) -> str:
        sizes.append(sum(map(OPENAI.size, messages)))
        if sizes[-1] > 2_500:
            raise TooLongError("This model's maximum context length was exceeded.")
        return "ok"

    sizes: list[int] = []
    compacter = Compacter(recall=None, summarizer="extractive")
    compacter.wrap(completion)(model="m", messages=[*OLDER, *look(9_000, 9_000)])

    assert len(sizes) == 4
    assert sizes[2] == pytest.approx(sizes[1] / 2, abs=200)


@pytest.mark.parametrize(
    ("first", "name"),
    [(Shorten(), "shorten"), (ClearToolResults(keep_recent=1), "clear_tool_results")],
)
def test_a_chain_ends_where_the_request_fits(first: Any, name: str) -> None:
    """The next strategy of a chain is not tried once the request fits."""
    talk = [*OLDER, *look(4_000), *look(4_000), *look(4_000), say("user", 10)]

    _, events = requests(talk, 10_000, strategy=[first, Summarize()])

    assert [event.strategy for event in events if hasattr(event, "strategy")] == [name]
