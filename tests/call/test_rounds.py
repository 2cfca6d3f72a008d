"""The rounds of a call whose refusals state no number, or one that cannot be: how large the next
request is, and when nothing can help.
"""

from __future__ import annotations

import json
import random
from itertools import pairwise
from typing import Any

import pytest
import tenacity
from tests.conversations import bot, talk, user
from tests.dialects import DIALECTS, Dialect
from tests.effort import times

from compacter import Compacter, CompactionEvent, Summarize, Truncate
from compacter.compaction.sizes import LEAST_SUMMARY

TALKS = {name: (dialect.user, dialect.answer) for name, dialect in DIALECTS.items()}
SAID = "They read the plans of the boat house, one after the other."


class TooLongError(Exception):
    """A provider's refusal."""


class Server:
    """A model that refuses without numbers. It counts characters of JSON as four to a token, and
    states its usage or not.
    """

    def __init__(self, window: int, *, usage: bool = True) -> None:
        self.window = window
        self.usage = usage
        self.sent: list[list[Any]] = []

    def count(self, messages: list[Any]) -> int:
        return len(json.dumps(messages, ensure_ascii=False)) // 4

    def __call__(self, *, model: str, messages: list[Any]) -> dict[str, Any]:
        self.sent.append(messages)
        tokens = self.count(messages)
        if tokens > self.window:
            raise TooLongError("Your input exceeds the context window of this model.")
        reply: dict[str, Any] = {"choices": [{"message": bot("ok"), "finish_reason": "stop"}]}
        return reply | (
            {"usage": {"prompt_tokens": tokens, "completion_tokens": 1}} if self.usage else {}
        )


def summarize(messages: list[Any]) -> str:
    return SAID


def plan(dice: random.Random, size: int) -> str:
    """So many characters, as a tool may print them: prose, or a table of numbers."""
    line = dice.choice(
        [
            "The beam is of oak, and {n} hands long. ",
            "plan {n}: {n} x {n}0, {n}7;\n",
            "{{n: {n}}}, ",
        ]
    )
    return "".join(line.format(n=n) for n in range(size // len(line) + 1))[:size]


def step(dialect: Dialect, dice: random.Random, number: int, window: int) -> list[Any]:
    """The messages that a program adds before its next call: a question, or calls and their
    results, which may be far larger than the window.
    """
    if dice.random() < 0.3:
        fixed = plan(dice, int(4 * window * dice.choice((0.01, 0.1, 0.5, 0.9, 1.2))))
        return [dialect.answer("Yes."), dialect.user(f"And house {number}? {fixed}")]
    names = [f"c{number}.{n}" for n in range(dice.randint(1, 6))]
    sizes = [int(4 * window * dice.choice((0.01, 0.05, 0.2, 0.5, 2))) for _ in names]
    return [
        *dialect.calls([(name, "read", {"path": name}) for name in names]),
        *dialect.results(
            [(name, "read", plan(dice, size)) for name, size in zip(names, sizes, strict=True)]
        ),
    ]


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("seed", range(times(12, long=60)))
def test_no_call_ends_that_a_smaller_request_would_have_saved(dialect: Dialect, seed: int) -> None:
    """Ten calls of a program that keeps all of its history: ends only what is too large with
    nothing but its question and a summary. No later round sends more than half of what was refused.
    """
    dice = random.Random(f"{dialect.name} {seed}")
    server = Server(dice.choice((1_000, 2_000, 4_000)), usage=dice.random() < 0.7)
    wrapped = Compacter(
        compact_ratio=dice.choice((0.05, 0.1, 0.3, 0.7, 0.7, 1.0)),
        max_retries=dice.choice((2, 3, 3, 6)),
        summarizer=dice.choice(("extractive", summarize)),
    ).wrap(server, wire_format=dialect.name)
    history = [dialect.user("Which plan is the cheapest?")]
    for number in range(10):
        history += step(dialect, dice, number, server.window) if number else []
        server.sent.clear()
        last = dialect.format.outline(history).kinds
        question = max(at for at, kind in enumerate(last) if kind.name == "USER")
        least = [history[question], dialect.user("x" * LEAST_SUMMARY)]
        try:
            wrapped(model="m", messages=list(history))
        except TooLongError:
            assert server.count([*least, dialect.answer("x" * 300)]) > server.window
        size = dialect.format.size
        sizes = [sum(map(size, messages)) for messages in server.sent]
        for refused, following in pairwise(sizes[1:]):
            # Shortened results have receipts, and some formats need a filler.
            most = max(refused // 2, size(history[question]) + LEAST_SUMMARY)
            assert following <= most * 1.02 + 300


def sizes(server: Server) -> list[int]:
    """Characters of each request."""
    return [sum(len(message["content"]) for message in messages) for messages in server.sent]


def refuse(server: Server, messages: list[Any], **options: Any) -> str:
    """Let a call end in a refusal, and return the note on it."""
    with pytest.raises(TooLongError) as refused:
        Compacter(summarizer=summarize, **options).wrap(server)(model="m", messages=messages)
    return str(refused.value.__notes__[0])


@pytest.mark.parametrize("ratio", [0.05, 0.1, 0.3, 0.7])
def test_the_first_round_is_the_ratios_each_later_one_half_and_the_last_the_smallest(
    ratio: float,
) -> None:
    server = Server(0)

    refuse(server, talk(200), compact_ratio=ratio, max_retries=4)

    first, second, third, fourth, fifth = sizes(server)
    assert second == pytest.approx((1 - ratio) * first, abs=500)
    assert third <= second / 2
    assert fourth <= third / 2
    assert fifth < len(SAID) + LEAST_SUMMARY


@pytest.mark.parametrize("ratio", [0.05, 0.1])
def test_the_last_round_is_no_larger_than_what_was_answered(ratio: float) -> None:
    """And no smaller than it need be: what was answered before may be sent again."""
    server = Server(5_000)
    wrapped = Compacter(
        summarizer="extractive", compact_ratio=ratio, max_retries=2, recall=None
    ).wrap(server)
    history = talk(100)
    wrapped(model="m", messages=history)
    answered = server.count(server.sent[-1])
    server.window = answered
    server.sent.clear()

    wrapped(model="m", messages=[*history, bot("Yes."), *talk(400)[1:]])

    assert len(server.sent) == 3
    assert 0.1 * answered < server.count(server.sent[-1]) <= answered


@pytest.mark.parametrize("stop", [3, tenacity.stop_after_attempt(4)])
def test_the_last_round_is_known_of_a_stop_of_tenacity_too(stop: Any) -> None:
    server = Server(0)

    refuse(server, talk(200), max_retries=stop)

    assert len(server.sent) == 4
    assert sizes(server)[-1] < len(SAID) + LEAST_SUMMARY


def test_a_round_of_the_ratio_that_reduces_nothing_goes_further_at_once() -> None:
    """Results that no model has answered are too short to be shortened, so they are compacted."""
    openai = DIALECTS["openai"]
    server = Server(450)
    results = [("c1", "read", "oak " * 80), ("c2", "read", "ash " * 80)]
    history = [
        user("x" * 800),
        *openai.calls([("c1", "read", {}), ("c2", "read", {})]),
        *openai.results(results),
    ]

    Compacter(summarizer=summarize).wrap(server)(model="m", messages=history)

    assert [len(messages) for messages in server.sent] == [4, 2]


class Desk:
    """A program whose instructions alone exceed the window, and what its calls cost."""

    def __init__(self, dialect: Dialect, *, is_async: bool = False, **options: Any) -> None:
        self.server = Server(2_000)
        self.asked = 0
        self.dialect = dialect
        self.history = [dialect.user("Never say a number. " * 500)]
        compacter = Compacter(
            summarizer=self.summarize, pin=lambda message: "Never" in str(message), **options
        )
        self.wrapped: Any = compacter.wrap(self.acomplete if is_async else self.server)
        self.is_async = is_async

    def summarize(self, messages: list[Any]) -> str:
        self.asked += 1
        return SAID

    async def acomplete(self, *, model: str, messages: list[Any]) -> Any:
        return self.server(model=model, messages=messages)

    async def call(self, number: int, model: str = "m") -> tuple[int, int, str]:
        """Return requests and requests for summaries of one more call, and the note on it."""
        name = f"c{number}"
        dialect = self.dialect
        self.history += [
            *dialect.calls([(name, "read", {"path": name})]),
            *dialect.results([(name, "read", f"plan {number}: oak. " * 40)]),
            dialect.answer("It is of oak."),
            dialect.user("Go on."),
        ]
        self.server.sent.clear()
        self.asked = 0
        note = ""
        try:
            given = self.wrapped(model=model, messages=list(self.history))
            if self.is_async:
                await given
        except TooLongError as error:
            note = str(error.__notes__[0])
        return len(self.server.sent), self.asked, note


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("memory", ["memory", None])
async def test_what_must_stay_and_was_refused_costs_one_request(
    dialect: Dialect, is_async: bool, memory: str | None
) -> None:
    desk = Desk(dialect, is_async=is_async, **({} if memory else {"memory": None}))

    calls = [await desk.call(number) for number in range(5)]

    assert calls[0][0] > 1
    assert [(requests, asked) for requests, asked, _ in calls[1:]] == [(1, 0)] * 4
    for *_, note in calls:
        assert "a pinned one: 10,000 characters" in note
        assert "remove its pin" in note
    assert "what must stay is too large by itself (nothing was tried)" in calls[-1][2]


async def test_with_one_round_a_call_it_is_known_after_two() -> None:
    """The second call goes on where the first one ended."""
    desk = Desk(DIALECTS["openai"], max_retries=1)

    calls = [(await desk.call(number))[:2] for number in range(4)]

    assert [requests for requests, _ in calls] == [2, 2, 1, 1]
    assert calls[2:] == [(1, 0)] * 2


async def test_another_model_is_asked_for_what_one_has_refused() -> None:
    desk = Desk(DIALECTS["openai"])
    for number in range(2):
        await desk.call(number)
    desk.history += [DIALECTS["openai"].answer("plan " * 4_000)]
    desk.server.window = 4_000

    assert (await desk.call(2, "larger"))[::2] == (2, "")


async def test_an_answer_to_as_large_a_request_refutes_it() -> None:
    desk = Desk(DIALECTS["openai"])
    for number in range(2):
        await desk.call(number)
    desk.server.window = 5_000
    assert (await desk.call(2))[::2] == (1, "")
    desk.history += [DIALECTS["openai"].answer("plan " * 6_000)]

    assert (await desk.call(3))[::2] == (2, "")


class Odd(Server):
    """A model that states a limit in its refusals, which may not be its window, and the tokens of
    the request, with some that are not in it.
    """

    def __init__(self, window: int, stated: int, *, hidden: int = 0) -> None:
        super().__init__(window)
        self.stated = stated
        self.hidden = hidden

    def count(self, messages: list[Any]) -> int:
        return super().count(messages) + self.hidden

    def __call__(self, *, model: str, messages: list[Any]) -> dict[str, Any]:
        try:
            return super().__call__(model=model, messages=messages)
        except TooLongError as error:
            tokens = self.count(messages)
            raise TooLongError(
                f"This model's maximum context length is {self.stated} tokens. However, your "
                f"messages resulted in {tokens} tokens."
            ) from error


@pytest.mark.parametrize("stated", [0, 1, 20, 99, 200, 300, 1_000, 2_000])
@pytest.mark.parametrize("size", [200, 1_000])
def test_whatever_limit_is_stated_a_call_pays_for_its_pieces(stated: int, size: int) -> None:
    """A limit that cannot be is ignored: it cuts no history into a piece for each message."""
    asked: list[Any] = []
    events: list[CompactionEvent] = []
    server = Odd(3_000, stated)

    def summarize(messages: list[Any]) -> str:
        asked.append(messages)
        return SAID

    wrapped = Compacter(summarizer=summarize, on_compaction=events.append).wrap(server)
    wrapped(model="m", messages=talk(size))

    assert len(asked) <= sum(2 * event.chunks + 2 for event in events)
    assert stated >= 256 or sum(event.chunks for event in events) <= len(events)


@pytest.mark.parametrize("stated", [20, 300])
@pytest.mark.parametrize("rules", [(), ("Pay in euro, and send nothing before Monday noon.",)])
def test_a_limit_below_what_was_answered_counts_as_none(
    stated: int, rules: tuple[str, ...]
) -> None:
    server = Odd(3_000, stated)
    wrapped = Compacter(summarizer=summarize, rules=rules).wrap(server)
    history = talk(30)
    wrapped(model="m", messages=history)
    answered = server.count(server.sent[-1])
    server.window = answered - 1

    wrapped(model="m", messages=[*history, bot("Yes."), user("Go on.")])

    assert len(server.sent) == 3
    assert server.count(server.sent[-1]) > 0.25 * answered


def test_a_server_that_takes_less_is_believed_when_it_states_that_again() -> None:
    server = Odd(20_000, 1_000)
    compacter = Compacter(summarizer=summarize, recall=None, compact_ratio=0.1)
    wrapped = compacter.wrap(server)
    wrapped(model="m", messages=talk(90))
    server.window = 1_000

    wrapped(model="m", messages=[*talk(90), bot("Yes."), user("Go on.")])

    assert compacter.window("m") == 1_000
    assert len(server.sent) == 4
    assert 0.7 * 1_000 < server.count(server.sent[-1]) <= 1_000


@pytest.mark.parametrize("hidden", [0, 300, 500])
def test_a_server_that_counts_what_is_not_in_the_request_answers(hidden: int) -> None:
    server = Odd(1_000, 1_000, hidden=hidden)
    results = [("c1", "read", plan(random.Random(1), 7_000))]
    history = [
        user("How long is the beam?"),
        *DIALECTS["openai"].calls([("c1", "read", {})]),
        *DIALECTS["openai"].results(results),
    ]

    Compacter(summarizer=summarize, max_retries=2).wrap(server)(model="m", messages=history)

    assert len(server.sent) <= 3
    assert len(server.sent[-1]) == 3


@pytest.mark.parametrize("limit", [120, 150])
def test_rules_that_leave_no_room_are_named(limit: int) -> None:
    server = Odd(limit, limit)
    rules = ("Pay in euro, and send nothing before Monday noon. " * 8,)

    note = refuse(server, talk(30), rules=rules)

    assert "declared rules take 406 characters" in note
    assert "declare fewer rules" in note


def test_rules_are_named_without_numbers_too() -> None:
    note = refuse(Server(0), talk(30), rules=("Pay in euro. " * 100,))

    assert "The largest part is the declared rules: 1,3" in note


@pytest.mark.parametrize("budget", [50, 300, 450])
@pytest.mark.parametrize("wire_format", ["openai", "bedrock"])
def test_by_hand_a_budget_that_cannot_be_kept_gives_a_result(budget: int, wire_format: str) -> None:
    """Also if the summarizer is down, and each strategy of a chain falls back."""

    def fail(messages: list[Any]) -> str:
        raise ConnectionError("no route to the summarizer")

    dialect = DIALECTS[wire_format]
    history = [
        *(said(f"Crate {n} stands here. " * 9) for n in range(9) for said in TALKS[wire_format]),
        dialect.user("And now? " * 60),
    ]
    compacter = Compacter(summarizer=fail, strategy=[Summarize(), Truncate()])

    result = compacter.compact(history, budget=budget, wire_format=wire_format)

    assert not result.fits
    assert result.event is not None
    assert result.event.fallback is True


def test_quotes_are_looked_for_again_after_a_compaction() -> None:
    """Pictures were estimated too small, so a request with quotes was refused: the next one has
    room for them.
    """
    server = Odd(1_000, 1_000)
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 300}}
    wrapped = Compacter(summarizer=lambda messages: "They plan a fair.").wrap(server)
    history = [user("I plan a fair in Lund."), bot("The code of Mr. Lind's locker is KX-zwolf.")]
    for stand in range(2):
        shown = {"type": "text", "text": f"What about stand {stand}? " + "It has tables. " * 9}
        history += [user([shown, picture]), bot("Fine.")]
    wrapped(model="m", messages=[*history, user("Go on.")])
    question = user("What is the code of Mr. Lind's locker?")
    for number in range(3):
        for stand in range(4):
            history += [user(f"And stand {number}.{stand}? {'It is near the door. ' * 12}")]
            history += [bot("Fine, noted.")]
        server.sent.clear()
        wrapped(model="m", messages=[*history, question])

        assert "KX-zwolf" in str(server.sent[-1])

    assert len(server.sent) == 2
    assert all("[compacter: quoted" in str(messages) for messages in server.sent)
