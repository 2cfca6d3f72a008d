"""The work of a server: many conversations at once, many callers of one, streams."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from base import Native, Peer, tokens
from histories import Provider, Summarizer, history, marks

from compacter.testing import token_limit_error

Make = type[Peer]
Found = dict[str, Any]
Call = Callable[[Native], tuple[Native, Any]]
ENDLESS = 10**9


def talking(peer: Peer, provider: Provider) -> Call:
    """A peer's call of the scripted provider."""
    return peer.bound(lambda sent: provider.completion(peer.write(sent)))


# -- (e) many conversations at once ----------------------------------------------------------------


def live(
    make: Make, *, conversations: int, size: int, seconds: float = 12, traced: int = 10
) -> Found:
    """What a conversation costs that was folded and goes on: time, and bytes beside the caller's
    own messages.

    Each caller resends its history, as a server does. As many as ``seconds`` allow; the bytes are
    those that ``tracemalloc`` counts for the first few, with a peer of their own.
    """
    window = tokens(history(size)) // 2
    summarizer = Summarizer()
    provider = Provider(window)
    peers = [make(summarizer.settings(window))]
    read = peers[0].read
    natives = [read(history(size, first=number * size)) for number in range(traced)]
    kept: list[Any] = []
    call = talking(peers[0], provider)
    # What is loaded at the first fold is not counted.
    call(read(history(size, first=traced * size)))
    gc.collect()
    tracemalloc.start()
    for native in natives:
        if make.alone:
            peers.append(make(summarizer.settings(window)))
            call = talking(peers[-1], provider)
        kept.append(call(native)[0])
    provider.forget()  # The books are not the peer's.
    summarizer.shown.clear()
    gc.collect()
    own = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return {"bytes": own / traced / size, **_timed(make, conversations, size, seconds, window)}


def _timed(make: Make, conversations: int, size: int, seconds: float, window: int) -> Found:
    summarizer = Summarizer()
    provider = Provider(window)
    peer = make(summarizer.settings(window))
    call = talking(peer, provider)
    begun: list[tuple[Native, Call]] = []
    first = 0.0
    until = time.monotonic() + seconds
    while len(begun) < conversations and time.monotonic() < until:
        if make.alone:
            peer = make(summarizer.settings(window))
            call = talking(peer, provider)
        native = peer.read(history(size, first=len(begun) * size))
        first += _seconds(call, native)
        begun.append((native, call))
    made = summarizer.calls
    summarizer.calls = 0
    again = 0.0
    count = 0
    until = time.monotonic() + seconds
    for native, own in begun:
        again += _seconds(own, native)
        count += 1
        if time.monotonic() > until:
            break
    return {
        "conversations": len(begun),
        "first": first / len(begun) * 1000,
        "again": again / count * 1000,
        "asked": count,
        "summaries": made,
        "summaries_again": summarizer.calls,
    }


def _seconds(call: Call, native: Native) -> float:
    begun = time.perf_counter()
    call(native)
    return time.perf_counter() - begun


# -- (g) streams -----------------------------------------------------------------------------------


def stream(make: Make, *, chunks: int = 200, times: int = 40) -> Found:
    """Nanoseconds to a stream's first token and to each further chunk, beside the bare one; chunks
    held back.
    """
    peer = make(Summarizer().settings(ENDLESS))
    native = peer.read(history(200))
    asked = [0]

    def produce(_: object) -> Iterator[Found]:
        for number in range(chunks):
            asked[0] = number
            yield _chunk(
                {"role": "assistant", "content": ""} if not number else {"content": "word "}
            )

    bound = peer.bound(produce, stream=True)

    def measured(call: Callable[[Any], Any]) -> tuple[float, float, int]:
        """The least time to the first word and for each further one; words that came when the next
        was asked for.
        """
        first_of = each_of = float("inf")
        held = 0
        for _ in range(times):
            begun = time.perf_counter_ns()
            got = 0
            first = 0
            for chunk in call(native):
                if chunk["choices"][0]["delta"].get("content"):
                    got += 1
                    held += asked[0] > got
                    first = first or time.perf_counter_ns()
            first_of = min(first_of, first - begun)
            each_of = min(each_of, (time.perf_counter_ns() - first) / (got - 1))
        return first_of, each_of, held

    bare = measured(produce)
    ours = measured(lambda sent: bound(sent)[1])
    beside = {"first": [ours[0], bare[0]], "chunk": [ours[1], bare[1]]}
    return {"beside": beside, "held": ours[2] / times, "inside": _inside(make)}


def _chunk(delta: Found) -> Found:
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}


def _inside(make: Make) -> str:
    """What comes of a refusal that arrives as the stream's first event, inside HTTP 200."""
    messages = history(200)
    window = tokens(messages) // 2

    def produce(sent: Any) -> Iterator[Found]:
        if tokens(sent) > window:
            raise token_limit_error("openai", limit=window, input_tokens=tokens(sent))
        yield _chunk({"content": "Done."})

    # A peer that counts was told ten times as much, as for a server that was started with less.
    peer = make(Summarizer().settings(window * 10))
    try:
        reply = peer.bound(lambda sent: produce(peer.write(sent)), stream=True)(
            peer.read(messages)
        )[1]
        return (
            "answers"
            if [chunk["choices"][0]["delta"]["content"] for chunk in reply] == ["Done."]
            else "broken"
        )
    except Exception as error:  # noqa: BLE001 - told in the table
        return type(error).__name__


# -- (h) many callers at once ----------------------------------------------------------------------


@dataclass
class Caller:
    """One of those that send a conversation at the same moment."""

    peer: Peer
    native: Native
    own: set[str]
    """The marks of its conversation."""
    provider: Provider
    mixed: bool = False
    """Whether its request held another conversation's messages."""
    failed: str = ""

    def _written(self, sent: Native) -> list[Found]:
        messages = self.peer.write(sent)
        self.mixed = self.mixed or bool(marks(messages) - self.own)
        return messages

    def thread(self) -> None:
        """Its call in a thread."""
        try:
            self.peer.bound(lambda sent: self.provider.completion(self._written(sent)))(self.native)
        except Exception as error:  # noqa: BLE001 - told in the table
            self.failed = type(error).__name__

    async def task(self) -> None:
        """Its call in an event loop."""
        try:
            await self.peer.abound(lambda sent: self.provider.acompletion(self._written(sent)))(
                self.native
            )
        except Exception as error:  # noqa: BLE001 - told in the table
            self.failed = type(error).__name__


@dataclass
class Crowd:
    """Callers of some conversations, through one object where it is for more than one
    conversation.
    """

    make: Make
    callers: int
    conversations: int
    size: int
    window: int
    summarizer: Summarizer = field(default_factory=lambda: Summarizer(seconds=0.02))

    def gather(self) -> list[Caller]:
        """All of them, their messages read."""
        provider = Provider(self.window)
        talks = [
            history(self.size, first=number * self.size) for number in range(self.conversations)
        ]
        objects = self.conversations if self.make.alone else 1
        peers = [self.make(self.summarizer.settings(self.window)) for _ in range(objects)]
        found = []
        for number in range(self.callers):
            peer = peers[number % objects]
            talk = talks[number % self.conversations]
            found.append(Caller(peer, peer.read(talk), marks(talk), provider))
        return found


def crowd(make: Make, *, callers: int, conversations: int, threads: bool, size: int = 60) -> Found:
    """Several callers send each conversation at once: summaries made, against those that single
    callers need.
    """
    if threads and make.waits:
        return {"failed": "async alone"}
    window = tokens(history(size)) // 2
    single = Crowd(make, 1, 1, size, window, Summarizer())
    single.gather()[0].thread()
    many = Crowd(make, callers, conversations, size, window)
    gathered = many.gather()
    begun = time.perf_counter()
    if threads:
        running = [threading.Thread(target=caller.thread, daemon=True) for caller in gathered]
        for one in running:
            one.start()
        for one in running:
            one.join()
    else:

        async def tasks() -> None:
            await asyncio.gather(*(caller.task() for caller in gathered))

        asyncio.run(tasks())
    failed = [caller.failed for caller in gathered if caller.failed]
    return {
        "summaries": many.summarizer.calls,
        "least": conversations * single.summarizer.calls,
        "callers": callers,
        "failed_calls": len(failed),
        "mixed": sum(caller.mixed for caller in gathered),
        "error": "".join(failed[:1]),
        "seconds": time.perf_counter() - begun,
    }
