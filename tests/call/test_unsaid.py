"""Signs of a request that may be too long, where nothing says so: what costs nothing, then what is
tried.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from compacter import Compacter, detect_token_limit
from compacter.events import CompactionEvent, RetriesExhausted

if TYPE_CHECKING:
    from collections.abc import Callable

Chat = dict[str, Any]
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 4_000}}
SUMMARY = "They counted the ships of Pier 3 and of Pier 5 in the harbour of Norre."


class StatusError(Exception):
    """An error of a server with this status, and with these words in its body."""

    def __init__(self, status: int, words: str = "") -> None:
        super().__init__(f"Error code: {status}")
        self.status_code = status
        self.body = {"error": {"message": words}} if words else None


def reply_of(text: str, finish: str = "stop", written: int | None = 5, **more: Any) -> Chat:
    usage = {} if written is None else {"prompt_tokens": 900, "completion_tokens": written}
    message = {"role": "assistant", "content": text, **more}
    return {"choices": [{"message": message, "finish_reason": finish}], "usage": usage}


def talk(turns: int, last: Any = "And what comes next?") -> list[Chat]:
    history: list[Chat] = []
    for n in range(turns):
        words = f"Report {n}: the tide at Pier {n} is {n * 7 + 13} feet. " * 10
        history += [
            {"role": "user", "content": f"Question {n}? {words}"},
            {"role": "assistant", "content": f"Answer {n}. {words}"},
        ]
    return [*history, {"role": "user", "content": last}]


def work(steps: int) -> list[Chat]:
    """A task, and steps of an agent; the newest message is a result."""
    history: list[Chat] = [{"role": "user", "content": "Read all the gauges."}]
    for n in range(steps):
        function = {"name": "read", "arguments": f'{{"gauge": {n}}}'}
        call = {"id": f"c{n}", "type": "function", "function": function}
        history += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": f"Gauge {n}: {n * 3} feet. " * 20},
        ]
    return history


LARGE = 24
"""Turns of more than 4,000 tokens."""


@dataclass
class Server:
    """A model that answers what is smaller than ``most`` characters; what else it does with the
    others, ``refuse`` says. Never one that says why.
    """

    refuse: Callable[[], Any]
    most: int = 15_000
    sizes: list[int] = field(default_factory=list)
    summaries: int = 0

    def completion(self, *, messages: list[Chat], **options: Any) -> Any:
        if "max_tokens" in options:
            self.summaries += 1
            return reply_of(SUMMARY)
        size = sum(len(str(message.get("content"))) for message in messages)
        self.sizes.append(size)
        return reply_of("Fine.") if size < self.most else self.refuse()


def raising(status: int, words: str = "") -> Callable[[], Any]:
    def refuse() -> Any:
        raise StatusError(status, words)

    return refuse


def run(server: Server, messages: list[Chat], compacter: Compacter | None = None) -> Any:
    """Return the reply of a call, or its exception."""
    call = (compacter or Compacter()).wrap(server.completion)
    try:
        return call(messages=messages)
    except StatusError as error:
        return error


# -- what costs nothing ----------------------------------------------------------------------------


QUIET: dict[str, tuple[Callable[[], Any], list[Chat]]] = {
    "an agent's empty end, with a count": (lambda: reply_of("", written=3), work(60)),
    "an agent's empty end in a stream without counts": (
        lambda: reply_of("", written=None),
        work(60),
    ),
    "an empty answer with reasoning": (
        lambda: reply_of("", written=0, reasoning_content="Hm."),
        talk(LARGE),
    ),
    "an empty answer whose reasoning is counted": (
        lambda: {
            **reply_of("", written=0),
            "usage": {
                "prompt_tokens": 9,
                "completion_tokens": 0,
                "completion_tokens_details": {"reasoning_tokens": 90},
            },
        },
        talk(LARGE),
    ),
    "a call": (
        lambda: reply_of("", "tool_calls", 0, tool_calls=work(1)[1]["tool_calls"]),
        talk(LARGE),
    ),
    "a filtered answer": (lambda: reply_of("", "content_filter", 0), talk(LARGE)),
    "an empty answer to a small request": (lambda: reply_of("", written=0), talk(6)),
    "an empty answer to the first request": (
        lambda: reply_of("", written=0),
        [{"role": "user", "content": "The harbour of Norre. " * 2_000}],
    ),
    "a bad picture's bare 400": (raising(400), talk(LARGE, [PICTURE])),
    "a bad picture's bare 413": (raising(413), talk(LARGE, [PICTURE])),
    "a bare 400 of a small request": (raising(400), talk(6)),
    "a bare 400 of the first request": (
        raising(400),
        [{"role": "user", "content": "The harbour of Norre. " * 2_000}],
    ),
    "a 400 that says why": (raising(400, "Unknown parameter: 'colour' of the request."), talk(30)),
    "a rate limit in a 413": (
        raising(413, "Rate limit reached for m on requests per min. Try again in 20s."),
        talk(LARGE),
    ),
    "another status": (raising(500), talk(LARGE)),
}


@pytest.mark.parametrize(("refuse", "messages"), QUIET.values(), ids=QUIET)
def test_costs_nothing(refuse: Callable[[], Any], messages: list[Chat]) -> None:
    events: list[Any] = []
    server = Server(refuse, most=0)

    outcome = run(server, messages, Compacter(on_event=events.append))

    assert server.summaries == 0
    assert len(server.sizes) == 1
    assert [event for event in events if not type(event).__name__.startswith("Silent")] == []
    if isinstance(outcome, StatusError):
        assert not hasattr(outcome, "__notes__")
    else:
        assert outcome == refuse()


def test_a_guess_that_did_not_help_teaches_nothing_and_is_made_once() -> None:
    events: list[Any] = []
    server = Server(raising(400), most=0)
    compacter = Compacter(on_event=events.append)
    call = compacter.wrap(server.completion)
    messages = talk(LARGE)
    for _ in range(3):
        with pytest.raises(StatusError):
            call(messages=list(messages), model="m")
    assert len(server.sizes) == 1 + 1 + 2  # One try, at the first of three calls.
    assert server.summaries == 1
    assert compacter.window("m") is None
    # The compaction is not remembered: the last call was sent whole.
    assert server.sizes[0] == server.sizes[-1]
    (given_up,) = [event for event in events if isinstance(event, RetriesExhausted)]
    assert "a refusal without a reason" in given_up.reason


def test_the_first_error_is_raised_with_a_note_that_names_the_option() -> None:
    error = run(Server(raising(400), most=0), talk(LARGE))

    assert "option detect" in error.__notes__[0]


def test_an_answer_is_handed_back_with_an_event() -> None:
    events: list[Any] = []
    empty = reply_of("", written=0)
    compacter = Compacter(on_event=events.append)

    assert run(Server(lambda: empty, most=0), talk(LARGE), compacter) is empty
    assert [type(event) for event in events[-1:]] == [RetriesExhausted]


def test_another_failure_of_the_smaller_request_hands_back_the_first_error() -> None:
    errors = [StatusError(400), StatusError(429, "Rate limit reached. Try again in 2s.")]
    left = list(errors)

    def refuse() -> Any:
        raise left.pop(0)

    assert run(Server(refuse, most=0), talk(LARGE)) is errors[0]
    assert left == []


def test_after_a_larger_request_was_answered_it_is_tried_again() -> None:
    server = Server(raising(400), most=0)
    call = Compacter().wrap(server.completion)
    with pytest.raises(StatusError):
        call(messages=talk(LARGE))
    server.most = 1_000_000
    call(messages=talk(LARGE + 4))
    server.most = 15_000
    server.sizes.clear()
    call(messages=talk(LARGE + 8))
    assert len(server.sizes) == 2


def test_no_round_is_made_where_none_is_allowed() -> None:
    server = Server(raising(400))
    assert isinstance(run(server, talk(LARGE), Compacter(max_retries=0)), StatusError)
    assert (len(server.sizes), server.summaries) == (1, 0)


@pytest.mark.parametrize("words", ["", "Bad Request", "Request exceeds the maximum size"])
@pytest.mark.parametrize("status", [400, 413])
def test_the_detector_says_none_of_all_of_them(status: int, words: str) -> None:
    assert detect_token_limit(StatusError(status, words)) is None


# -- what is tried ---------------------------------------------------------------------------------


TRIED: dict[str, Callable[[], Any]] = {
    "empty, nothing counted": lambda: reply_of("", written=0),
    "empty, without usage": lambda: reply_of("", written=None),
    "empty, cut off": lambda: reply_of("", "length", None),
    "cut off after a few tokens": lambda: reply_of("The", "length", 9),
    "bare 400": raising(400),
    "bare 413": raising(413),
    "a gateway's 400": raising(400, "Provider returned error"),
    "an HTTP phrase": raising(400, "Bad Request"),
    "too many bytes": raising(413, "Request too large (max 32MB). Try with a smaller file."),
    "size of messages": raising(400, "total message size 10176584 exceeds limit 2097152"),
}


@pytest.mark.parametrize("refuse", TRIED.values(), ids=TRIED)
def test_a_smaller_request_is_tried(refuse: Callable[[], Any]) -> None:
    events: list[Any] = []
    server = Server(refuse)
    compacter = Compacter(on_event=events.append)
    call = compacter.wrap(server.completion)

    for turns in (LARGE, LARGE + 1):
        reply = call(messages=talk(turns), model="m")
        assert reply["choices"][0]["message"]["content"] == "Fine."

    assert len(server.sizes) == 3  # The compaction is remembered.
    assert server.summaries == 1
    assert compacter.window("m") is None
    assert sum(isinstance(event, CompactionEvent) for event in events) == 1


async def test_so_it_is_in_async_programs() -> None:
    server = Server(raising(400))

    async def completion(*, messages: list[Chat], **options: Any) -> Any:
        return server.completion(messages=messages, **options)

    reply = await Compacter().wrap(completion)(messages=talk(LARGE))
    assert reply["choices"][0]["message"]["content"] == "Fine."


def chunks_of(text: str, finish: str, usage: Chat | None) -> list[Chat]:
    chunks: list[Chat] = [{"choices": [{"delta": {"role": "assistant", "content": ""}}]}]
    if text:
        chunks.append({"choices": [{"delta": {"content": text}}]})
    chunks.append({"choices": [{"delta": {}, "finish_reason": finish}]})
    return [*chunks, *([{"choices": [], "usage": usage}] if usage else [])]


@pytest.mark.parametrize("finish", ["stop", "length"])
@pytest.mark.parametrize("usage", [None, {"prompt_tokens": 6_000, "completion_tokens": 0}])
@pytest.mark.parametrize("helps", [True, False])
def test_a_stream_without_content_is_reopened_once(
    usage: Chat | None, finish: str, *, helps: bool
) -> None:
    empty = chunks_of("", finish, usage)
    server = Server(lambda: iter(empty), most=15_000 if helps else 0)

    def completion(*, messages: list[Chat], **options: Any) -> Any:
        reply = server.completion(messages=messages, **options)
        if isinstance(reply, dict) and options.get("stream"):
            return iter(chunks_of("Fine.", "stop", None))
        return reply

    got = list(Compacter().wrap(completion)(messages=talk(LARGE), stream=True))

    assert got == (chunks_of("Fine.", "stop", None) if helps else empty)
    assert len(server.sizes) == 2


def test_an_agents_stream_that_ends_empty_and_counts_its_output_is_handed_on_as_it_is() -> None:
    usage = {"prompt_tokens": 6_000, "completion_tokens": 2}
    empty = chunks_of("", "stop", usage)
    server = Server(lambda: iter(empty), most=0)

    assert list(Compacter().wrap(server.completion)(messages=work(60), stream=True)) == empty
    assert (len(server.sizes), server.summaries) == (1, 0)


def test_too_many_bytes_take_out_old_pictures_and_no_summary() -> None:
    def shot(n: int) -> list[Chat]:
        step = work(n + 1)[-2:]
        text = {"type": "text", "text": f"page {n}"}
        return [step[0], {**step[1], "content": [text, PICTURE]}]

    history: list[Chat] = [{"role": "user", "content": "Look at each page."}]
    for n in range(12):
        history += shot(n)
    server = Server(raising(413), most=20_000)
    events: list[Any] = []
    compacter = Compacter(on_event=events.append)
    call = compacter.wrap(server.completion)
    call(messages=history)
    call(messages=[*history, *shot(12)])

    assert server.summaries == 0
    assert len(server.sizes) == 3  # The smaller list is remembered.
    (event,) = [event for event in events if isinstance(event, CompactionEvent)]
    assert event.strategy == "leave_out_media"
    assert history[2]["content"][1] is PICTURE


def test_a_users_message_that_the_server_has_lost_is_a_request_that_is_too_long() -> None:
    server = Server(raising(500, "no user query found in messages"))
    reply = run(server, work(60))
    assert reply["choices"][0]["message"]["content"] == "Fine."


def test_without_a_users_message_nothing_was_lost() -> None:
    server = Server(raising(500, "no user query found in messages"), most=0)
    error = run(server, [{"role": "system", "content": "Read."}, *work(60)[1:]])
    assert isinstance(error, StatusError)
    assert (len(server.sizes), server.summaries) == (1, 0)
