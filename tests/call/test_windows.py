"""Windows that calls learn by answers and refusals, and servers that accept one request."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from compacter import Compacter
from compacter.events import PassagesRecalled, PreparationFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conversations import Chat

LINE = "The crane at the pier was looked at, and its rope is in order. "


def talk(turns: int) -> list[Chat]:
    return [
        {"role": "user" if turn % 2 == 0 else "assistant", "content": f"{turn}: {LINE * 6}"}
        for turn in range(2 * turns + 1)
    ]


def tokens(messages: list[Any]) -> int:
    return sum(len(message["content"]) for message in messages) // 4


class Server:
    """A model that answers requests up to its window, and says no number when it refuses."""

    def __init__(self, window: int, *, states: bool = True) -> None:
        self.window = window
        self.states = states
        self.sent: list[int] = []
        self.refused = 0

    def __call__(self, messages: list[Any], **_: Any) -> dict[str, Any]:
        size = tokens(messages)
        self.sent.append(size)
        if size > self.window:
            self.refused += 1
            said = f"the maximum context length is {self.window} tokens, you sent {size} tokens"
            raise ValueError(said if self.states else "context_length_exceeded")
        usage = {"prompt_tokens": size, "completion_tokens": 1}
        return {"choices": [{"message": {"role": "assistant", "content": "Yes."}}], "usage": usage}


def summarize(messages: list[Chat]) -> str:
    return "They went over the cranes at the pier, one after the other."


def grow(completion: Any, turns: int) -> None:
    for turn in range(2, turns):
        completion(messages=talk(turn), model="m")


def test_a_window_that_has_grown_is_used() -> None:
    """The trigger follows a server that takes more than it once refused."""
    server = Server(2_000)
    compacter = Compacter(summarizer=summarize, trigger_tokens=0.9)
    completion = compacter.wrap(server)
    grow(completion, 12)
    assert compacter.window("m") == 2_000
    server.window = 40_000
    completion(messages=[{"role": "user", "content": "Another talk. " + LINE * 200}], model="m")
    assert compacter.window("m") is None


@pytest.mark.parametrize("states", [True, False])
@pytest.mark.parametrize(
    ("options", "turns"),
    [
        ({}, 160),
        ({"trigger_tokens": 0.8}, 40),
        ({"trigger_tokens": 100_000}, 40),
        ({"prepare_tokens": 0.7}, 120),
        ({"prepare_tokens": 0.7, "trigger_tokens": 0.8}, 120),
    ],
    ids=str,
)
def test_a_window_that_has_grown_is_found_by_a_conversation_that_is_compacted_below_it(
    options: dict[str, Any], turns: int, *, states: bool
) -> None:
    """Also if each of its messages asks for quotes, for which there is no room."""
    server = Server(2_000, states=states)
    compacter = Compacter(summarizer=summarize, min_calls_between=0, **options)
    completion = compacter.wrap(server)
    for turn in range(turns):
        asked = {"role": "user", "content": f"What of the rope of crane {turn // 2}? {LINE}"}
        completion(messages=[*talk(turn)[:-1], asked], model="m")
        compacter.drain(20)
        if server.refused:
            server.window = 20_000

    assert max(server.sent[-turns // 2 :]) > 2_000


@pytest.mark.parametrize("states", [True, False])
def test_a_window_that_has_not_grown_is_tried_ever_more_rarely(*, states: bool) -> None:
    server = Server(2_000, states=states)
    compacter = Compacter(summarizer=summarize, trigger_tokens=0.8, min_calls_between=0)
    grow(compacter.wrap(server), 200)

    assert compacter.totals.rounds > 30
    assert 3 <= server.refused <= 8


def test_without_numbers_later_compactions_are_made_before_a_refusal() -> None:
    """Once a request was answered and one refused, a share of the window can be computed."""
    server = Server(3_000, states=False)
    compacter = Compacter(summarizer=summarize, trigger_tokens=0.9, min_calls_between=0)
    grow(compacter.wrap(server), 60)
    assert compacter.totals.rounds >= 3
    assert server.refused <= 3
    window = compacter.window("m")
    assert window is not None
    assert 2_000 < window < 4_000


def test_without_numbers_there_is_room_for_quotes() -> None:
    events: list[object] = []
    server = Server(3_000, states=False)
    completion = Compacter(summarizer=summarize, on_event=events.append).wrap(server)
    history = talk(2)
    history[1]["content"] += " The spare key of the boathouse hangs behind the blue barometer."
    for turn in range(30):
        history += talk(1)[:2]
        completion(messages=[*history, {"role": "user", "content": f"Go on with {turn}."}])
    completion(
        messages=[*history, {"role": "user", "content": "Where is the key of the boathouse?"}]
    )
    assert any(isinstance(event, PassagesRecalled) for event in events)


@pytest.mark.parametrize(
    "options",
    [
        {"base_url": "http://127.0.0.1:1"},
        {"extra_headers": {"anthropic-beta": "context-1m"}},
        {"extra_body": {"options": {"num_ctx": 32_768}}},
    ],
)
def test_what_makes_another_window_has_one_of_its_own(options: dict[str, Any]) -> None:
    """A window that one server states is not taken for another's of the same model."""
    server = Server(2_000)
    compacter = Compacter(summarizer=summarize, trigger_tokens=0.9)
    completion = compacter.wrap(server)
    grow(completion, 12)
    server.window = 20_000
    server.sent.clear()
    for turn in range(12, 15):
        completion(messages=talk(turn), model="m", **options)
    assert server.sent == [tokens(talk(turn)) for turn in range(12, 15)]


class BusyError(Exception):
    def __init__(self, status: int = 429) -> None:
        super().__init__("Too many requests")
        self.status_code = status


class OneSlot(Server):
    """A server that takes one request at a time, and whose summaries take until they are let go."""

    def __init__(self, status: int) -> None:
        super().__init__(4_000)
        self.status = status
        self.slot = threading.Lock()
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self.busy = 0

    def __call__(self, messages: list[Any], **_: Any) -> dict[str, Any]:
        if not self.slot.acquire(blocking=False):
            self.busy += 1
            # The summary ends some time after the refusal.
            threading.Timer(0.05, self.go_on.set).start()
            raise BusyError(self.status)
        try:
            if "<transcript>" in messages[0]["content"] or "record" in messages[-1]["content"]:
                self.go_on.clear()
                self.begun.set()
                self.go_on.wait(20)
                text = summarize(messages)
                return {"choices": [{"message": {"role": "assistant", "content": text}}]}
            return super().__call__(messages)
        finally:
            self.slot.release()


@pytest.mark.parametrize("status", [429, 503, 529])
def test_a_server_of_one_slot_answers_every_call_of_the_program(status: int) -> None:
    """A call that our own summary has crowded out waits for it, is sent again, and none is made
    ahead there from then on.
    """
    events: list[object] = []
    server = OneSlot(status)
    compacter = Compacter(prepare_tokens=1_500, on_event=events.append, timeout=20)
    completion = compacter.wrap(server)
    for turn in range(2, 10):
        completion(messages=talk(turn), model="m")
        if compacter._state.preparations:
            assert server.begun.wait(20)
    compacter.drain(20)
    assert server.busy == 1
    failures = [event for event in events if isinstance(event, PreparationFailed)]
    assert len(failures) == 1
    assert "one request at a time" in failures[0].reason
    server.begun.clear()
    for turn in range(2, 10):
        completion(messages=[{"role": "user", "content": "Another talk."}, *talk(turn)], model="m")
    assert not server.begun.is_set()


def test_a_busy_server_that_none_of_our_summaries_uses_is_the_programs_matter() -> None:
    calls: list[int] = []

    def completion(messages: list[Any], **_: Any) -> None:
        calls.append(len(messages))
        raise BusyError

    with pytest.raises(BusyError):
        Compacter(prepare_tokens=100).wrap(completion)(messages=talk(3))
    assert calls == [7]


class Late:
    """A stream that ends in a refusal after its first words."""

    def __init__(self, error: Exception | None, *, at_once: bool = False) -> None:
        self.error = error
        self.words = iter([] if at_once else ["The ", "first ", "words"])

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        for word in self.words:
            return word
        if self.error is not None:
            raise self.error
        raise StopIteration


@pytest.mark.parametrize("is_long_way", [False, True])
def test_after_a_refusal_in_the_middle_of_a_stream_the_next_call_is_compacted(
    *, is_long_way: bool
) -> None:
    """The error passes, as words were handed out; the window it states is used from then on."""
    events: list[object] = []
    sent: list[int] = []

    def chat(messages: list[Any], **_: Any) -> Late:
        size = tokens(messages)
        sent.append(size)
        said = f"the maximum context length is 2000 tokens, you sent {size} tokens"
        return Late(ValueError(said) if size > 2_000 else None)

    compacter = Compacter(
        summarizer=summarize,
        on_event=events.append,
        trigger_tokens=100_000 if is_long_way else None,
    )
    wrapped = compacter.wrap(chat)
    with pytest.raises(ValueError, match="maximum context length"):
        list(wrapped(messages=talk(20)))
    again = [*talk(20), {"role": "assistant", "content": "The first"}, *talk(0)]
    assert "".join(wrapped(messages=again)) == "The first words"
    assert sent[0] > 2_000 >= sent[1]
    assert len(sent) == 2
    assert [type(event).__name__ for event in events].count("CompactionEvent") == 1


@pytest.mark.parametrize("at_once", [False, True])
def test_other_errors_of_a_stream_change_nothing(*, at_once: bool) -> None:
    sent: list[int] = []

    def chat(messages: list[Any], **_: Any) -> Late:
        sent.append(tokens(messages))
        if len(sent) == 1:
            return Late(ConnectionError("the peer has gone"), at_once=at_once)
        return Late(None)

    wrapped = Compacter(summarizer=summarize).wrap(chat)
    with pytest.raises(ConnectionError):
        list(wrapped(messages=talk(20)))
    assert "".join(wrapped(messages=talk(20))) == "The first words"
    assert sent[0] == sent[1]
