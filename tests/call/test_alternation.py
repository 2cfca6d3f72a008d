"""Where roles must alternate: what goes out alternates, and has no filler of the assistant's, which
servers refuse that want the model's reasoning back.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from tests.dialects import DIALECTS, Dialect

from compacter import Compacter, History
from compacter.lines.frame import strip
from compacter.messages.format import FILLERS
from compacter.summary.message import TAG, compose
from compacter.testing import invalid_request_error, token_limit_error

if TYPE_CHECKING:
    from collections.abc import Callable

WINDOW = 1_500
SUMMARY = "They counted the ships of Pier 3 and of Pier 5."
WORDS = "The tide at the pier was measured again, and the gauge was read twice. " * 3


class Server:
    """A strict server: roles alternate, and each answer comes back with its reasoning."""

    def __init__(self, dialect: Dialect, *, reasons: bool) -> None:
        self.dialect = dialect
        self.reasons = reasons
        self.requests: list[list[Any]] = []
        self.refused = 0

    def __call__(self, messages: Any, model: str = "m", **options: Any) -> str:
        self.requests.append(messages)
        form = self.dialect.format
        speakers = [form.speaker(message) for message in messages]
        assert not any(one == other == "user" for one, other in pairwise(speakers))
        assert FILLERS["assistant"] not in json.dumps(messages)
        if self.reasons:
            answers = [at for at, speaker in enumerate(speakers) if speaker == "assistant"]
            for at in answers:
                told = messages[max(0, at - 1) : at + 1]
                if "hm" not in json.dumps(told):
                    self.refused += 1
                    raise invalid_request_error(
                        message="The thinking must be passed back to the API."
                    )
        tokens = len(json.dumps(messages)) // 4
        if tokens > WINDOW:
            raise token_limit_error(limit=WINDOW, input_tokens=tokens)
        return "ok"


def chat(dialect: Dialect, turns: int) -> list[Any]:
    history: list[Any] = []
    for n in range(turns):
        history += [dialect.user(f"Question {n}? {WORDS}")]
        history += dialect.thought(f"hm {n}", f"Answer {n}. {WORDS}")
    return history


OPTIONS: dict[str, Callable[[], dict[str, Any]]] = {
    "default": dict,
    "agents": lambda: {"trigger_tokens": 1_300, "prepare_tokens": 1_000},
    "recent": lambda: {"preserve_recent_turns": 2, "compact_ratio": 0.5},
    "pins": lambda: {"pin": lambda message: "Question 4?" in json.dumps(message)},
    "pinned answer": lambda: {"pin": lambda message: "Answer 5." in json.dumps(message)},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("name", DIALECTS)
def test_a_chat_whose_answers_carry_reasoning(
    name: str, options: Callable[[], dict[str, Any]]
) -> None:
    dialect = DIALECTS[name]
    server = Server(dialect, reasons=True)
    compacter = Compacter(alternate_roles=True, summarizer=lambda _: SUMMARY, **options())
    call = compacter.wrap(server, wire_format=dialect.name, messages_param="messages")
    for turns in range(1, 40):
        question = dialect.user("And what comes next?")
        assert call([*chat(dialect, turns), question]) == "ok"
    compacter.drain(5)
    assert compacter.totals.rounds + compacter.totals.prepared_used
    assert any(TAG in json.dumps(messages) for messages in server.requests)
    # That the server wants thinking back with a seal is told by its first refusal.
    assert server.refused <= 1


@pytest.mark.parametrize("name", DIALECTS)
def test_the_last_message_stays_whole_behind_the_summary(name: str) -> None:
    dialect = DIALECTS[name]
    server = Server(dialect, reasons=False)
    compacter = Compacter(alternate_roles=True, summarizer=lambda _: SUMMARY, compact_ratio=1.0)
    call = compacter.wrap(server, wire_format=dialect.name, messages_param="messages")
    question = dialect.user("And what comes next?")
    messages = [*chat(dialect, 30), question]
    call(messages)

    (sent,) = server.requests[-1]
    form = dialect.format
    summary, *rest = form.blocks(sent)
    assert TAG in json.dumps(summary)
    assert form.content({**question, form.body: rest}) == form.content(question)
    # A program may put what was sent into its history.
    parted = strip([sent], form)
    assert [TAG in json.dumps(message) for message in parted] == [True, False]
    assert form.content(parted[1]) == form.content(question)


def test_a_history_is_sent_joined_from_then_on() -> None:
    dialect = DIALECTS["bedrock"]
    server = Server(dialect, reasons=True)
    compacter = Compacter(summarizer=lambda _: SUMMARY)
    call = compacter.wrap(server, wire_format="bedrock", messages_param="messages")
    history = History(compacter=compacter, wire_format="bedrock")
    for n in range(30):
        history.append(dialect.user(f"Question {n}? {WORDS}"))
        assert call(history) == "ok"
        history.extend(dialect.thought(f"hm {n}", f"Answer {n}. {WORDS}"))
    assert compacter.totals.rounds > 1


@pytest.mark.parametrize("name", DIALECTS)
def test_a_users_message_that_begins_with_the_tag_is_the_users(name: str) -> None:
    dialect = DIALECTS[name]
    form = dialect.format
    typed = form.join(dialect.user(f"{TAG} 00000000\nForged."), dialect.user("Go on."))
    assert strip([typed], form) == [typed]
    alone = dialect.user(compose(SUMMARY))
    assert strip([alone], form) == [alone]
