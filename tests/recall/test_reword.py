"""A question that finds nothing has the summarizer asked for other words, once."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from compacter import Compacter, Quotes
from compacter.events import PassagesRecalled
from compacter.recall.frame import is_quotes
from compacter.testing import ScriptedModel

FACT = "The spare key of the boathouse hangs behind the copper kettle in the pantry."
ASKED = "How can one open the marina shed?"
WORDS = "key, boathouse, kettle, lock, pier"
Chat = list[dict[str, Any]]


def house(*said: str) -> Chat:
    """Return a long conversation about a house, with further messages of the user's."""
    texts = [FACT, "Noted, I see."]
    for room in range(60):
        texts += [f"Room {room} wants paint number {room * 7}, and new curtains."]
        texts += [f"Paint {room * 7} for room {room} stands on the list now."]
    texts += [text for each in said for text in (each, "Fine.")]
    roles = ["user", "assistant"] * len(texts)
    return [{"role": role, "content": text} for role, text in zip(roles, texts, strict=False)][:-1]


class Program:
    """A program with a small model. ``reply`` is what its summarizer answers to a request for other
    words, or a function that does.
    """

    def __init__(self, reply: str | Callable[[], Any] = WORDS, **options: Any) -> None:
        self.reply = reply
        self.prompts: list[str] = []
        self.limits: list[int] = []
        self.events: list[Any] = []
        self.model = ScriptedModel(window=1_000)
        options.setdefault("summarizer", self.summarize)
        options.setdefault("recall", Quotes(reword=True))
        self.compacter = Compacter(on_event=self.events.append, **options)

    def answer(self, prompt: str, limit: int) -> Any:
        if "single words" not in prompt:
            return "They spoke of the house."
        self.prompts.append(prompt)
        self.limits.append(limit)
        return self.reply() if callable(self.reply) else self.reply

    def summarize(self, messages: Chat, max_tokens: int) -> Any:
        return self.answer(messages[-1]["content"], max_tokens)

    def ask(self, *said: str) -> str:
        """Have a conversation with these messages, and return the quotes in the last request."""
        call = self.compacter.wrap(self.model.completion)
        for count in range(len(said) + 1):
            call(model="m", messages=house("Go on.", *said[:count]))
        return self.quotes

    @property
    def quotes(self) -> str:
        request = self.model.requests[-1].messages
        return "\n".join(one["content"] for one in request if is_quotes(one["content"]))

    @property
    def recalled(self) -> list[PassagesRecalled]:
        return [event for event in self.events if isinstance(event, PassagesRecalled)]


def test_a_question_is_answered_by_the_words_that_the_summarizer_gave() -> None:
    program = Program()

    assert FACT in program.ask(ASKED)
    [event] = program.recalled
    assert event.reworded == WORDS
    [prompt] = program.prompts
    assert ASKED in prompt
    assert len(prompt) <= 4_000
    assert program.limits == [200]


def test_it_is_off_by_default() -> None:
    program = Program(recall=Quotes())

    assert program.ask(ASKED) == ""
    assert program.prompts == []


@pytest.mark.parametrize(
    "said",
    [
        "Where does the spare key of the boathouse hang?",  # Found by its own words.
        "Marina, great, thank you.",  # Asks nothing.
    ],
)
def test_nothing_is_asked_without_need(said: str) -> None:
    program = Program()
    quotes = program.ask(said)

    assert program.prompts == []
    assert (FACT in quotes) is ("boathouse" in said)
    assert all(event.reworded == "" for event in program.recalled)


def test_nothing_is_asked_for_what_stands_in_view() -> None:
    program = Program()
    program.ask("The gate of the vineyard squeaks in the wind.", "Does the vineyard gate squeak?")

    assert program.prompts == []


def test_nothing_is_asked_where_nothing_was_compacted() -> None:
    program = Program()
    program.compacter.wrap(program.model.completion)(
        model="m", messages=[{"role": "user", "content": ASKED}]
    )

    assert program.prompts == []


def test_the_same_question_is_asked_once_and_gets_the_same_bytes() -> None:
    program = Program()
    program.ask(ASKED)
    program.reply = "curtains"
    sent = json.dumps(program.model.requests[-1].messages)
    program.compacter.wrap(program.model.completion)(model="m", messages=house("Go on.", ASKED))

    assert json.dumps(program.model.requests[-1].messages) == sent
    assert len(program.prompts) == 1
    assert [event.reworded != "" for event in program.recalled] == [True, True]


def fail() -> Any:
    raise ConnectionError("down")


@pytest.mark.parametrize("reply", [fail, "", "zzz qqq", lambda: {"choices": []}])
def test_a_summarizer_that_gives_no_words_changes_nothing(reply: Any) -> None:
    plain = Program(recall=Quotes())
    program = Program(reply)

    assert program.ask(ASKED) == plain.ask(ASKED) == ""
    assert program.model.requests[-1].messages == plain.model.requests[-1].messages
    assert len(program.prompts) == 1
    program.compacter.wrap(program.model.completion)(model="m", messages=house("Go on.", ASKED))
    assert len(program.prompts) == 1  # Nor is it asked again.


def test_a_summarizer_that_is_slow_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compacter.call.perform._MOST_SECONDS", 0.05)

    def answer_late() -> str:
        time.sleep(1)
        return WORDS

    program = Program(answer_late)
    began = time.monotonic()

    assert program.ask(ASKED) == ""
    assert time.monotonic() - began < 0.9


def test_what_it_costs_is_counted() -> None:
    usage = {"prompt_tokens": 70, "completion_tokens": 9}
    message = {"role": "assistant", "content": WORDS}
    program = Program(lambda: {"choices": [{"message": message}], "usage": usage})
    program.ask()
    before = program.compacter.totals
    calls, tokens = before.summarizer_calls, before.input_tokens
    program.ask(ASKED)

    after = program.compacter.totals
    assert (after.summarizer_calls - calls, after.input_tokens - tokens) == (1, 70)


def test_what_redact_takes_out_is_not_in_the_prompt() -> None:
    program = Program(redact=lambda text: text.replace("marina", "[removed]"))
    program.ask(ASKED)

    [prompt] = program.prompts
    assert "[removed] shed" in prompt
    assert "marina" not in prompt


def test_without_a_summarizer_the_wrapped_function_is_asked() -> None:
    program = Program(summarizer=None)
    program.model = ScriptedModel(
        window=1_000,
        replies=lambda messages: program.answer(messages[-1]["content"], 0),
    )
    call = program.compacter.wrap(program.model.completion)
    call(model="m", messages=house("Go on."))
    call(model="m", messages=house("Go on.", ASKED))

    assert FACT in program.quotes
    assert len(program.prompts) == 1


@pytest.mark.parametrize("is_async", [False, True])
def test_an_async_program_has_the_words_too(is_async: bool) -> None:
    program = Program()

    async def summarize(messages: Chat, max_tokens: int) -> Any:
        await asyncio.sleep(0)
        return program.summarize(messages, max_tokens)

    options: dict[str, Any] = {"summarizer": summarize if is_async else program.summarize}
    call = Compacter(recall=Quotes(reword=True), **options).wrap(program.model.acompletion)

    async def run() -> None:
        await call(model="m", messages=house("Go on."))
        await call(model="m", messages=house("Go on.", ASKED))

    asyncio.run(run())
    assert FACT in program.quotes
    assert len(program.prompts) == 1
