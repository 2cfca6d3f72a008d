"""Strategies of a user's own: ten lines are enough, and none of them can break a promise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.conversations import user

from compacter import Compacter, CompactionEvent, CompactionPlan, CompactionStrategy
from compacter.effects import Ask
from compacter.events import CompactionFailed
from compacter.messages.format import FILLERS, get_format
from compacter.testing import ScriptedModel, ScriptedSummarizer

Chat = dict[str, Any]
Answer = Callable[[CompactionPlan], Any]


class SlidingWindow:
    """The newest messages, and a note."""

    name = "sliding_window"

    def compact(self, task: CompactionPlan) -> list[Any]:
        newest = range(len(task.messages) - 6, len(task.messages))
        return task.keep(newest, note=f"{newest.start} older messages are not shown.")


class Important:
    """The tail, and what has digits in it."""

    name = "important"

    def compact(self, task: CompactionPlan) -> list[Any]:
        telling = [
            i for i in task.compacted if any(c.isdigit() for c in str(task.messages[i]["content"]))
        ]
        return task.keep([*telling, *range(task.cut, len(task.messages))])


class Says:
    """Answers what a test has written down."""

    name = "says"

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    def compact(self, task: CompactionPlan) -> Any:
        return self.answer(task)


def talk(turns: int = 14) -> list[Chat]:
    history: list[Chat] = [{"role": "system", "content": "You are terse."}]
    for number in range(turns):
        said = f"The bill is {number} euros. " if number % 5 == 0 else "Nice weather. "
        history.append({"role": "user", "content": said.ljust(160, "q")})
        call = {
            "id": f"c{number % 2}",
            "type": "function",
            "function": {"name": "look", "arguments": "{}"},
        }
        history.append({"role": "assistant", "content": None, "tool_calls": [call]})
        history.append(
            {"role": "tool", "tool_call_id": f"c{number % 2}", "content": "seen".ljust(160, "r")}
        )
        history.append({"role": "assistant", "content": "I see. ".ljust(160, "a")})
    return [*history, user("And now?")]


def run(strategy: Any, **options: Any) -> tuple[Any, list[Any]]:
    told: list[Any] = []
    options.setdefault("summarizer", ScriptedSummarizer("They talked."))
    result = Compacter(strategy=strategy, on_event=told.append, **options).compact(talk())
    return result, told


def test_a_sliding_window_keeps_the_newest_the_system_prompt_and_a_note() -> None:
    result, _ = run(SlidingWindow())
    assert isinstance(SlidingWindow(), CompactionStrategy)
    assert result.event.strategy == "sliding_window"
    assert result.messages[0] == talk()[0]
    assert "52 older messages are not shown." in result.messages[1]["content"]
    assert get_format("openai").outline(result.messages).broken == ()
    assert result.messages[-1] == talk()[-1]


def test_an_importance_scoring_one_keeps_what_it_scores() -> None:
    result, _ = run(Important())
    texts = [str(message["content"]) for message in result.messages]
    assert sum("euros" in text for text in texts) == 3
    assert sum("weather" in text for text in texts) < 5
    assert result.event.strategy == "important"


def test_one_may_measure_what_it_thinks_of_keeping_and_read_any_messages() -> None:
    seen: dict[str, Any] = {}

    def fitting(task: CompactionPlan) -> list[Any]:
        seen["head"], seen["read"] = (task.head, [part.text for part in task.parts([1, 2])])
        for count in range(len(task.messages), 0, -1):
            kept = task.keep(range(len(task.messages) - count, len(task.messages)))
            if task.fits(kept):
                seen["size"] = task.size(kept)
                return kept
        return task.keep([])

    result = Compacter(strategy=fitting).compact(talk(), budget=3_000)
    assert result.event is not None
    assert result.fits
    assert seen["head"] == tuple(talk()[1 : 1 + len(seen["head"])])
    assert seen["read"] == [talk()[1]["content"], "{}"]
    assert seen["size"] == result.event.compacted_data_size > 2_000


def test_one_may_ask_the_summarizer_and_its_costs_are_counted() -> None:
    def asks(task: CompactionPlan) -> Any:
        reply = yield Ask([user("Sum up.")], 100)
        return task.replace_head(reply.text)

    def fails(task: CompactionPlan) -> Any:
        yield Ask([user("Sum up.")], 100)
        raise LookupError("lost")

    usage = {"prompt_tokens": 9, "completion_tokens": 2}
    reply = {"choices": [{"message": {"content": "They talked."}}], "usage": usage}
    told: list[Any] = []
    compacter = Compacter(
        strategy=[fails, asks], summarizer=lambda messages: reply, on_event=told.append
    )
    event = compacter.compact(talk()).event
    assert event is not None
    assert (event.summary, event.summarizer_calls, event.input_tokens) == ("They talked.", 2, 18)
    (failed,) = [event for event in told if isinstance(event, CompactionFailed)]
    assert (failed.input_tokens, failed.output_tokens) == (9, 2)


def test_one_that_asks_for_something_else_is_told_of() -> None:
    def asks(task: CompactionPlan) -> Any:
        yield "a summary"
        return task.messages

    result, told = run(asks)
    assert result.event.fallback
    (failed,) = [event for event in told if isinstance(event, CompactionFailed)]
    assert failed.error == ""
    assert "yielded str; what helps: yield Ask" in failed.reason


def test_a_tuple_will_do_and_so_will_a_note_without_the_tag() -> None:
    note = user("(some left out)")
    result, _ = run(Says(lambda task: (task.messages[0], note, *task.messages[-9:])))
    assert result.event.strategy == "says"
    assert note in result.messages


def changed_in_place(task: CompactionPlan) -> list[Any]:
    task.messages[1]["content"] = "gone"
    return list(task.messages[:1] + task.messages[-5:])


async def later(task: CompactionPlan) -> list[Any]:
    return []


BROKEN: dict[str, Answer] = {
    "None": lambda task: None,
    "a lost last user message": lambda task: [*task.messages[:1], *task.messages[10:-1]],
    "half a pair": lambda task: [task.messages[0], *task.messages[3:]],
    "a message twice": lambda task: [task.messages[0], *[task.messages[4]] * 3, task.messages[-1]],
    "no message": lambda task: [task.messages[0], None, *task.messages[-5:]],
    "growth": lambda task: [
        *task.messages[:-1],
        {"role": "assistant", "content": "x" * 99},
        task.messages[-1],
    ],
    "changed copies, unannounced": lambda task: [
        {**m, "content": "x"} if m["role"] == "assistant" and m["content"] else m
        for m in task.messages
    ],
    "a change in place": changed_in_place,
    "a raise": lambda task: 1 // 0,
    "a coroutine's promise": lambda task: 7,
    "text": lambda task: "abc",
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_breaks_a_promise_is_caught_and_the_fallback_used(what: str) -> None:
    history = talk()
    told: list[Any] = []
    compacter = Compacter(strategy=Says(BROKEN[what]), on_event=told.append)
    result = compacter.compact(history)
    assert history == talk()
    assert result.event is not None
    assert (result.event.strategy, result.event.fallback) == ("extractive", True)
    assert get_format("openai").outline(result.messages).broken == ()
    (failed,) = [event for event in told if isinstance(event, CompactionFailed)]
    # It is the strategy's fault, not an exception of compacter's.
    assert failed.error == ("ZeroDivisionError" if what == "a raise" else "")
    assert failed.reason.startswith("strategy says ")
    if what in ("None", "text", "a coroutine's promise"):
        assert "not a list of messages; what helps: return plan." in failed.reason


def test_without_a_fallback_it_changes_nothing_and_the_provider_has_the_last_word() -> None:
    told: list[Any] = []
    compacter = Compacter(strategy=Says(BROKEN["half a pair"]), fallback=None, on_event=told.append)
    assert not compacter.compact(talk()).changed
    assert not any(isinstance(event, CompactionEvent) for event in told)


def test_the_fallback_truncate_says_that_messages_are_gone() -> None:
    result, _ = run(Says(BROKEN["a raise"]), fallback="truncate")
    assert (result.event.strategy, result.event.fallback) == ("truncate", True)
    assert "Earlier messages were left out without a summary." in str(result.messages)


def test_where_roles_alternate_a_list_in_which_they_do_not_gets_fillers() -> None:
    newest: Answer = lambda task: [task.messages[0], *task.messages[-9:-4], task.messages[-1]]  # noqa: E731
    plain, alternating = (
        run(Says(newest), alternate_roles=alternate)[0] for alternate in (False, True)
    )
    assert plain.event.strategy == alternating.event.strategy == "says"
    fillers = [message for message in alternating.messages if message not in plain.messages]
    assert fillers
    assert {message["content"] for message in fillers} <= set(FILLERS.values())


def test_one_that_does_nothing_is_no_failure() -> None:
    result, told = run(Says(lambda task: list(task.messages)))
    assert not result.changed
    assert not any(isinstance(event, CompactionFailed) for event in told)


def test_edits_that_are_announced_are_taken_one_for_one() -> None:
    class Terse(Says):
        edits = True

    def first_words(task: CompactionPlan) -> list[Any]:
        return [
            {**m, "content": "I see."} if m["role"] == "assistant" and m["content"] else m
            for m in task.messages
        ]

    result, _ = run(Terse(first_words))
    assert result.event.strategy == "says"
    assert len(result.discarded) == 14

    strangers = [user("a")] * 3
    stuffed = Terse(lambda task: [*first_words(task)[:-1], *strangers, task.messages[-1]])
    assert run(stuffed)[0].event.strategy == "extractive"


def test_it_works_in_a_call_as_well() -> None:
    model = ScriptedModel(window=700)
    Compacter(strategy=SlidingWindow()).wrap(model.completion)("m", talk())
    assert model.requests[-1].messages[-1] == talk()[-1]
    assert model.rejected == 1
