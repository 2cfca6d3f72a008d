"""Thinking stays valid: servers that check it against all that stands before it refuse nothing, and
servers that want it back get it.
"""

from __future__ import annotations

import asyncio
import copy
import json
from hashlib import sha1
from typing import TYPE_CHECKING, Any

import pytest

from compacter import Compacter, History, SQLiteMemory
from compacter.call.request import Request
from compacter.call.thinking import with_quotes
from compacter.lines.frame import STEP_NOTE, TAG
from compacter.messages.blocks import ANY_SIGNATURE
from compacter.messages.format import get_format

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    Check = Callable[["Thinker", list[Any]], None]

WINDOW = 4_000
STEPS = 60
FORMATS = ("anthropic", "bedrock", "responses", "gemini", "openai")
LOG = ("berth", "cargo", "crane", "queue", "anchor", "dock", "pallet", "seal", "ledger", "rope")
BOUND = (
    "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a "
    "different conversation. Remove the block."
)


class RefusedError(Exception):
    """An error of a vendor's SDK."""

    def __init__(self, text: str, status_code: int = 400) -> None:
        super().__init__(text)
        self.status_code = status_code


class Thinker:
    """A server whose thinking is bound to what stands before it. ``check`` refuses a request."""

    def __init__(self, name: str, check: Check | None = None) -> None:
        self.name = name
        self.check = check or Thinker.refuse_unbound
        self.requests: list[list[Any]] = []
        self.refused: list[str] = []
        self.thinking = 0
        self.quoted = 0

    def answer(self, messages: list[Any], **_: Any) -> Any:
        """Return the reply as it goes into the list, or refuse the request."""
        self.requests.append(copy.deepcopy(messages))
        size = len(json.dumps(messages)) // 4
        if size > WINDOW:
            raise RefusedError(f"prompt is too long: {size} tokens > {WINDOW} maximum")
        try:
            self.check(self, messages)
        except RefusedError as error:
            self.refused.append(str(error))
            raise
        self.quoted += TAG in json.dumps(messages)
        return self.reply(digest(messages))

    async def answer_later(self, messages: list[Any], **_: Any) -> Any:
        return self.answer(messages)

    def stream(self, messages: list[Any], **_: Any) -> Iterator[Any]:
        yield self.answer(messages)

    async def stream_later(self, messages: list[Any], **_: Any) -> AsyncIterator[Any]:
        yield self.answer(messages)

    def reply(self, seal: str) -> Any:
        call = str(len(self.requests))
        if self.name == "anthropic":
            thinking = {"type": "thinking", "thinking": "Hm.", "signature": seal}
            content = [thinking, {"type": "tool_use", "id": call, "name": "work", "input": {}}]
            return {"type": "message", "role": "assistant", "content": content}
        if self.name == "bedrock":
            thought: Any = {
                "reasoningContent": {"reasoningText": {"text": "Hm.", "signature": seal}}
            }
            used = {"toolUse": {"toolUseId": call, "name": "work", "input": {}}}
            return {"output": {"message": {"role": "assistant", "content": [thought, used]}}}
        if self.name == "gemini":
            part = {"functionCall": {"name": "work", "args": {}}, "thoughtSignature": seal}
            return {"candidates": [{"content": {"role": "model", "parts": [part]}}]}
        function = {"name": "work", "arguments": "{}"}
        if self.name == "openai":
            block = {"type": "thinking", "thinking": "Hm.", "signature": seal}
            calls = [{"id": call, "type": "function", "function": function}]
            said = {"role": "assistant", "content": None, "tool_calls": calls}
            return {"choices": [{"message": {**said, "thinking_blocks": [block]}}]}
        item = {"type": "function_call", "id": f"fc_{call}", "call_id": call, **function}
        thought = {"type": "reasoning", "id": f"rs_{call}", "encrypted_content": seal}
        return {"object": "response", "output": [thought, item]}

    def refuse_unbound(self, messages: list[Any]) -> None:
        for at, message in enumerate(messages):
            for seal in seals(message):
                if seal != digest(messages[:at]):
                    raise RefusedError(BOUND)
                self.thinking += 1


def digest(messages: list[Any]) -> str:
    return sha1(json.dumps(messages, sort_keys=True).encode()).hexdigest()[:12]  # noqa: S324


def seals(message: Any) -> list[str]:
    """The seals of a message's thinking."""
    if message.get("type") == "reasoning":
        return [message["encrypted_content"]]
    found = [block["signature"] for block in message.get("thinking_blocks", ())]
    content = message.get("content") or message.get("parts") or ()
    for block in () if isinstance(content, str) else content:
        seal = block.get("thoughtSignature") or block.get("signature")
        if "reasoningContent" in block:
            seal = block["reasoningContent"]["reasoningText"]["signature"]
        found += [seal] if seal not in (None, ANY_SIGNATURE) else []
    return found


def added(name: str, reply: Any) -> list[Any]:
    """The messages that a program adds to its list for a reply."""
    if name == "anthropic":
        return [{"role": "assistant", "content": reply["content"]}]
    if name == "bedrock":
        return [reply["output"]["message"]]
    if name == "gemini":
        return [reply["candidates"][0]["content"]]
    return [reply["choices"][0]["message"]] if name == "openai" else list(reply["output"])


def result(name: str, call: Any, text: str, question: str) -> list[Any]:
    """The result of a call, with a question of the user's if there is one."""
    said = [{"type": "text", "text": question}] if question else []
    if name == "anthropic":
        used = call["content"][1]["id"]
        block = {"type": "tool_result", "tool_use_id": used, "content": text}
        return [{"role": "user", "content": [block, *said]}]
    if name == "bedrock":
        used = call["content"][1]["toolUse"]["toolUseId"]
        block = {"toolResult": {"toolUseId": used, "content": [{"text": text}]}}
        return [{"role": "user", "content": [block, *([{"text": question}] if question else [])]}]
    if name == "gemini":
        part = {"functionResponse": {"name": "work", "response": {"output": text}}}
        return [{"role": "user", "parts": [part, *([{"text": question}] if question else [])]}]
    asked = [{"role": "user", "content": question}] if question else []
    if name == "openai":
        used = call["tool_calls"][0]["id"]
        return [{"role": "tool", "tool_call_id": used, "content": text}, *asked]
    return [{"type": "function_call_output", "call_id": call["call_id"], "output": text}, *asked]


def first(name: str) -> Any:
    text = "Work through the berths of the harbour."
    said = {"parts": [{"text": text}]} if name == "gemini" else {"content": text}
    return {"role": "user", **({"content": [{"text": text}]} if name == "bedrock" else said)}


def go_on(
    name: str,
    call: Callable[[Any], Any],
    history: Any,
    steps: int = STEPS,
    *,
    begin: int = 0,
    asks: bool = True,
) -> None:
    """Go on with an agent's run, whose user asks for something compacted now and then."""
    for step in range(begin, begin + steps):
        new = added(name, call(history))
        noise = " ".join(LOG[(step * 7 + at * at) % len(LOG)] for at in range(90))
        question = ""
        if asks and step > 20 and step % 5 == 0:
            question = f"Which seal has crate {step - 17}?"
        text = f"{noise}. Crate {step} has the seal SL-{step * 37 + 1000}."
        history.extend([*new, *result(name, new[-1], text, question)])


def wrapped(compacter: Compacter, name: str, function: Any) -> Any:
    call = compacter.wrap(function, wire_format=name, messages_param="messages")
    return lambda history: call(messages=history)


def make(**options: Any) -> Compacter:
    return Compacter(summarizer=lambda _: "They went through the berths.", **options)


OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "ahead": {"prepare_tokens": 2_400},
    "early": {"trigger_tokens": 3_000},
    "no recall": {"recall": None},
    "alternate": {"alternate_roles": True},
}


@pytest.mark.parametrize(
    ("name", "way"),
    [
        *((name, "default") for name in FORMATS),
        *(("anthropic", way) for way in OPTIONS if way != "default"),
        *((name, "alternate") for name in ("responses", "openai")),
        *((name, "ahead") for name in ("responses", "gemini")),
    ],
)
def test_none_is_refused_after_compactions_or_for_quotes(name: str, way: str) -> None:
    model = Thinker(name)
    compacter = make(**OPTIONS[way])
    go_on(name, wrapped(compacter, name, model.answer), [first(name)])
    totals = compacter.totals

    assert compacter.drain(20)
    assert not model.refused
    assert totals.rounds + totals.prepared_used >= 3
    assert len(model.requests) <= STEPS + totals.rounds + 3
    assert model.thinking > STEPS * 3
    assert bool(model.quoted) == (way != "no recall")


@pytest.mark.parametrize("way", ["async", "stream", "async stream"])
def test_so_it_is_with_async_calls_and_streams(way: str) -> None:
    model = Thinker("anthropic")
    functions = {
        "async": model.answer_later,
        "stream": model.stream,
        "async stream": model.stream_later,
    }
    call = wrapped(make(), "anthropic", functions[way])

    async def read(history: Any) -> Any:
        return await anext(aiter(call(history)))

    ways: dict[str, Callable[[Any], Any]] = {
        "async": lambda history: asyncio.run(call(history)),
        "stream": lambda history: next(iter(call(history))),
        "async stream": lambda history: asyncio.run(read(history)),
    }
    go_on("anthropic", ways[way], [first("anthropic")])

    assert not model.refused
    assert model.quoted
    assert model.thinking > STEPS * 3


@pytest.mark.parametrize("name", FORMATS)
def test_so_it_is_with_a_history_also_a_copy_of_it(name: str) -> None:
    model = Thinker(name)
    compacter = make()
    history = History([first(name)], compacter=compacter, wire_format=name)
    call = wrapped(compacter, name, model.answer)
    go_on(name, call, history)
    go_on(name, call, copy.deepcopy(history), 10, begin=STEPS)

    assert not model.refused
    assert model.quoted
    assert compacter.totals.rounds >= 3


def test_a_new_process_with_the_memory_leaves_out_the_same_thinking(tmp_path: Path) -> None:
    """The record says from where on thinking is newer."""
    model = Thinker("anthropic")
    history = [first("anthropic")]
    for begin in range(0, STEPS, 10):
        memory = SQLiteMemory(tmp_path / "memory.db")
        call = wrapped(make(memory=memory), "anthropic", model.answer)
        go_on("anthropic", call, history, 10, begin=begin, asks=False)
        memory.close()

    assert not model.refused
    assert model.thinking > STEPS * 3


def test_a_changed_conversation_is_refused_once_and_valid_from_then_on() -> None:
    """The program edits a message behind the summary, which the thinking behind it is bound to."""
    model = Thinker("anthropic")
    history = [first("anthropic")]
    call = wrapped(make(), "anthropic", model.answer)
    go_on("anthropic", call, history, 45)
    at = next(at for at in range(len(history) - 4, 0, -1) if history[at]["role"] == "user")
    history[at] = copy.deepcopy(history[at])
    history[at]["content"][0]["content"] = "(left out by the program)"
    go_on("anthropic", call, history, 6, begin=45)

    assert len(model.refused) == 1


def want_back(model: Thinker, messages: list[Any]) -> None:
    """Refuse an answer without its thinking, as a server does whose thinking is not bound."""
    for message, before in zip(messages, [{}, *messages], strict=False):
        is_answer = message.get("role") in ("assistant", "model")
        told = [*seals(message), *seals(before)]
        if (is_answer or message.get("type") == "function_call") and not told:
            raise RefusedError("The thinking of each answer must be passed back to the API.")


def want_newest(model: Thinker, messages: list[Any]) -> None:
    """Refuse an agent's newest step without its thinking, as Claude's older models do."""
    newest = next((m for m in reversed(messages) if m["role"] == "assistant"), None)
    if newest and not seals(newest):
        text = "messages.3.content.0.type: Expected `thinking` or `redacted_thinking`"
        raise RefusedError(f"{text}, but found `tool_use`.")


@pytest.mark.parametrize(
    ("name", "check"),
    [
        *((name, want_back) for name in ("anthropic", "bedrock", "responses")),
        ("anthropic", want_newest),
    ],
)
def test_a_model_that_wants_its_thinking_back_gets_it(name: str, check: Check) -> None:
    """It is told by one refusal; from then on the thinking that is kept is sent."""
    model = Thinker(name, check)
    compacter = make()
    go_on(name, wrapped(compacter, name, model.answer), [first(name)])

    assert len(model.refused) == 1
    assert compacter.totals.rounds >= 3


@pytest.mark.parametrize("known", [True, False])
def test_another_fault_of_the_request_is_raised_as_it_came(*, known: bool) -> None:
    """If the model has never answered without its older thinking, that is put back once, as it may
    be the fault.
    """
    model = Thinker("anthropic")
    history = [first("anthropic")]
    compacter = make()
    call = wrapped(compacter, "anthropic", model.answer)
    fault = RefusedError("max_tokens: must be positive")

    def refuse(_: Thinker, messages: list[Any]) -> None:
        if known or "[compacter: summary" in json.dumps(messages):
            raise fault

    go_on("anthropic", call, history, 15)
    rounds = compacter.totals.rounds
    assert rounds == 0
    if known:
        go_on("anthropic", call, history, 10, begin=15)
        assert compacter.totals.rounds > rounds
    model.check = refuse
    with pytest.raises(RefusedError) as raised:
        go_on("anthropic", call, history, 10, begin=25)
    assert raised.value is fault
    assert len(model.refused) == (1 if known else 2)


def test_quotes_for_a_step_stand_behind_the_thought_that_they_would_stand_before() -> None:
    thought = [
        {"type": "thinking", "thinking": "Hm.", "signature": "s" * 80},
        {"type": "tool_use", "id": "c1", "name": "look", "input": {}},
    ]
    result = [{"type": "tool_result", "tool_use_id": "c1", "content": "oak"}]
    messages = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": thought},
        {"role": "user", "content": result},
    ]
    request = Request(format=get_format("anthropic"), original=messages, messages=messages)
    quotes = f"{TAG}\n{STEP_NOTE}\nUser: It is of oak."
    assert with_quotes(request, quotes).places == {quotes: 2}
