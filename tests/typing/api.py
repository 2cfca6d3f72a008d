"""The public API as type checkers see it; read by mypy and pyright, never run.

An expectation of an error is an ignore comment: both checkers complain about one that is not
needed.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Literal, Protocol, assert_type, overload

import litellm
import openai
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from tenacity import stop_after_delay

from compacter import (
    ClearToolResults,
    Compacter,
    CompacterError,
    CompactionEvent,
    CompactionPlan,
    CompactionResult,
    CompactionStrategy,
    History,
    InProcessMemory,
    Shorten,
    Summarize,
    TokenLimit,
    Truncate,
    compacted,
    detect_token_limit,
)
from compacter.events import Totals

Chat = dict[str, Any]
compacter = Compacter()


# A function keeps its exact type.


def say(messages: list[Chat], *, depth: int = 0) -> str:
    raise NotImplementedError


async def asay(messages: list[Chat], *, depth: int = 0) -> str:
    raise NotImplementedError


def stream(messages: list[Chat]) -> Iterator[bytes]:
    raise NotImplementedError


async def astream(messages: list[Chat]) -> AsyncIterator[bytes]:
    yield b""


@overload
def either(messages: list[Chat], *, stream: Literal[True]) -> Iterator[str]: ...
@overload
def either(messages: list[Chat], *, stream: Literal[False] = ...) -> str: ...
def either(messages: list[Chat], *, stream: bool = False) -> Iterator[str] | str:
    raise NotImplementedError


async def functions_stay_what_they_are() -> None:
    assert_type(compacter.wrap(say)([], depth=1), str)
    assert_type(compacter.wrap(stream)([]), Iterator[bytes])
    assert_type(compacter.wrap(astream)([]), AsyncIterator[bytes])
    assert_type(await compacter.wrap(asay)([]), str)
    assert_type(compacter.wrap(say, messages_param="messages", wire_format="openai")([]), str)
    assert_type(compacter(say)([]), str)
    assert_type(functools.partial(say, depth=1)([]), str)


def overloads_stay() -> None:
    wrapped = compacter.wrap(either)
    assert_type(wrapped([], stream=True), Iterator[str])
    assert_type(wrapped([], stream=False), str)
    assert_type(wrapped([]), str)


def wrong_arguments_are_still_wrong() -> None:
    compacter.wrap(say)([], deep=1)  # type: ignore[call-arg]
    compacter.wrap(say)(7)  # type: ignore[arg-type]
    compacter.wrap(either)([], stream="yes")  # type: ignore[call-overload]


class Agent:
    def __init__(self, name: str) -> None:
        self.name = name

    def chat(self, messages: list[Chat]) -> int:
        raise NotImplementedError

    @compacter
    def decorated(self, messages: list[Chat]) -> int:
        raise NotImplementedError

    @compacted
    async def bare(self, messages: list[Chat]) -> int:
        raise NotImplementedError

    def __call__(self, messages: list[Chat]) -> float:
        raise NotImplementedError


async def methods_and_objects_stay_what_they_are(agent: Agent) -> None:
    assert_type(compacter.wrap(agent.chat)([]), int)
    assert_type(agent.decorated([]), int)
    assert_type(await agent.bare([]), int)
    assert_type(compacter.wrap(agent), Agent)
    assert_type(compacter.wrap(agent).name, str)
    assert_type(compacter.wrap(agent)([]), float)


# The decorator, bare and called.


@compacted
def bare(messages: list[Chat]) -> str:
    raise NotImplementedError


@compacted(compact_ratio=0.5, max_retries=2)
def called(messages: list[Chat]) -> str:
    raise NotImplementedError


@compacted(summarizer="extractive")
async def acalled(messages: list[Chat]) -> str:
    raise NotImplementedError


async def decorated_functions_stay_what_they_are() -> None:
    assert_type(bare([]), str)
    assert_type(called([]), str)
    assert_type(await acalled([]), str)
    called(7)  # type: ignore[arg-type]


# Clients keep their type, and so do the vendors' functions.


def clients_stay_what_they_are(client: openai.OpenAI, aclient: openai.AsyncOpenAI) -> None:
    assert_type(compacter.wrap(client), openai.OpenAI)
    assert_type(compacter.wrap(aclient), openai.AsyncOpenAI)
    create = compacter.wrap(client.chat.completions.create)
    assert_type(create(model="m", messages=[]), ChatCompletion)
    assert_type(create(model="m", messages=[], stream=True), openai.Stream[ChatCompletionChunk])
    create(model="m")  # type: ignore[call-overload]


class Completion(Protocol):
    def __call__(self, model: str, messages: list[Any]) -> object: ...


def vendors_functions_fit_where_they_fitted() -> None:
    taken: Completion = compacter.wrap(litellm.completion)
    awaited: Callable[..., Awaitable[object]] = compacter.wrap(litellm.acompletion)
    del taken, awaited


# Options.


def options_are_checked() -> None:
    Compacter(compact_ratio="half")  # type: ignore[arg-type]
    Compacter(ratio=0.5)  # type: ignore[call-arg]
    Compacter(object())  # type: ignore[arg-type]
    compacted(ratio=0.5)  # type: ignore[call-overload]
    Compacter(fallback="forget")  # type: ignore[arg-type]
    Compacter(
        compact_ratio=0.5,
        max_retries=stop_after_delay(30),
        summarizer=lambda messages: "text",
        strategy=[ClearToolResults(), Summarize(), Truncate(), Shorten()],
        fallback=("extractive", "truncate"),
        pin=lambda message: message["role"] == "system",
        trigger_tokens=0.8,
        memory=InProcessMemory(),
        detect=lambda error: "too long" in str(error),
        on_compaction=[lambda event: event.summary],
        on_event=repr,
        before_compaction=lambda plan: plan.cut > 3,
        redact=lambda text: text,
    )
    Compacter(strategy=[ClearToolResults(), Summarize()], memory=None, fallback=None, timeout=None)


class Window:
    """A strategy of a user's own."""

    name = "window"

    def compact(self, plan: CompactionPlan) -> list[Any]:
        return plan.keep(
            range(len(plan.messages) - 5, len(plan.messages)), note="Older messages are gone."
        )


def a_strategy_of_ones_own_is_one() -> None:
    window: CompactionStrategy = Window()
    Compacter(strategy=window)


# Hooks keep their type too.


@compacter.on_compaction
def hook(event: CompactionEvent) -> int:
    return event.attempt


@compacter.on_compaction
async def ahook(event: CompactionEvent) -> None: ...


async def hooks_stay_what_they_are(event: CompactionEvent) -> None:
    assert_type(hook(event), int)
    await ahook(event)


# Results.


async def results_have_types(error: Exception) -> None:
    assert_type(compacter.compact([]), CompactionResult)
    assert_type(await compacter.acompact([], budget=1_000), CompactionResult)
    assert_type(compacter.plan([]), CompactionPlan)
    assert_type(compacter.totals, Totals)
    assert_type(compacter.compact([]).messages, list[Any])
    assert_type(compacter.compact([]).discarded, tuple[Any, ...])
    assert_type(compacter.compact([]).event, CompactionEvent | None)
    assert_type(detect_token_limit(error), TokenLimit | None)
    assert_type(History([])[0], Any)
    if isinstance(error, CompacterError):
        raise error


# Options of a block.


async def options_of_a_block_are_typed() -> None:
    with compacter.using(conversation="t-17", focus="the API") as inside:
        assert_type(inside, None)
    compacter.using(focus=17)  # type: ignore[arg-type]
    compacter.using(fokus="")  # type: ignore[call-arg]
