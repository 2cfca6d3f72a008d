"""The work that every peer is given, in the peer's own environment. `worker` calls one of `TASKS`
by its name.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from base import Settings, tokens
from formats import FORMATS
from histories import (
    REPLY,
    Excerpt,
    Provider,
    Speaker,
    Summarizer,
    Writer,
    chat,
    history,
    marks,
    shapes,
    turn,
)
from traffic import Found, Make, crowd, live, stream, talking

from compacter.testing import chat_fault

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "examples"))

ENDLESS = 10**9


# -- (a) nothing to do -----------------------------------------------------------------------------


def idle(make: Make, *, size: int, seconds: float = 0.15) -> Found:
    """Nanoseconds of a call and of the bare one, the best of several rounds in turn; sync and
    async.
    """
    peer = make(Summarizer().settings(ENDLESS))
    native = peer.read(history(size))
    bound = peer.bound(_replies)
    abound = peer.abound(_areplies)

    async def waited(call: Callable[[Any], Awaitable[Any]], count: int) -> float:
        begun = time.perf_counter_ns()
        for _ in range(count):
            await call(native)
        return time.perf_counter_ns() - begun

    def done(call: Callable[[Any], Any], count: int) -> float:
        begun = time.perf_counter_ns()
        for _ in range(count):
            call(native)
        return time.perf_counter_ns() - begun

    with asyncio.Runner() as runner:
        return {
            "beside": {
                "ns": _beside(
                    lambda count: done(bound, count), lambda count: done(_replies, count), seconds
                ),
                "async": _beside(
                    lambda count: runner.run(waited(abound, count)),
                    lambda count: runner.run(waited(_areplies, count)),
                    seconds,
                ),
            }
        }


def _replies(_: object) -> Found:
    return REPLY


async def _areplies(_: object) -> Found:
    return REPLY


def _beside(
    ours: Callable[[int], float], bare: Callable[[int], float], seconds: float
) -> list[float]:
    """Nanoseconds of one call of each: the least of rounds of at least a millisecond."""
    best = []
    rounds: list[tuple[Callable[[int], float], int]] = []
    for action in (ours, bare):
        action(1)
        count = 1
        while (taken := action(count)) < 1_000_000:
            count *= 4
        best.append(taken / count)
        rounds.append((action, count))
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        for at, (action, count) in enumerate(rounds):
            best[at] = min(best[at], action(count) / count)
    return best


# -- (b) one compaction ----------------------------------------------------------------------------


def fold(make: Make, *, size: int, times: int = 5, whole: bool = True) -> Found:
    """Milliseconds of one compaction with a summarizer that answers at once; or of choosing what to
    fold alone.
    """
    messages = history(size)
    best = float("inf")
    for _ in range(times):
        peer: Any = make(Summarizer().settings(tokens(messages) // 2))
        native = peer.read(messages)
        gc.collect()
        begun = time.perf_counter()
        peer.fold(native) if whole else peer.plan(native)
        best = min(best, time.perf_counter() - begun)
        if best > 1:
            break
    return {"ms": best * 1000}


# -- (c) a conversation that grows -----------------------------------------------------------------


def grow(
    make: Make, *, turns: int, resend: bool, window: int = 8_000, seconds: float = 60
) -> Found:
    """What a caller pays who keeps one list, or who sends its whole history each time."""
    summarizer = Summarizer()
    provider = Provider(window)
    peer = make(summarizer.settings(window))
    whole = history(3)[:1]
    native = peer.read(whole)
    call = talking(peer, provider)
    found: Found = {"answered": 0}
    begun = time.monotonic()
    for number in range(turns):
        # The question with the tool's result, as an agent sends it at once.
        step = turn(number)[:3]
        whole += step
        native = peer.read(whole) if resend else peer.more(native, step)
        try:
            native, reply = call(native)
        except Exception as error:  # noqa: BLE001 - told in the table
            found["stopped"] = f"turn {number}: {type(error).__name__}"
            break
        answer = reply["choices"][0]["message"]
        whole.append(answer)
        native = peer.more(native, [answer])
        found["answered"] += 1
        if time.monotonic() > begun + seconds:
            found["stopped"] = f"{seconds:.0f} s"
            break
    lost = marks(whole) - marks(provider.last) - summarizer.shown
    return found | {
        "summaries": summarizer.calls,
        "summary_tokens": summarizer.tokens,
        "refused": provider.refused,
        "broken": provider.broken,
        "uncached": provider.uncached,
        "lost": len(lost),
        "seconds": time.monotonic() - begun,
    }


# -- (d) a summarizer that fails -------------------------------------------------------------------


def fault(make: Make, *, kind: str) -> Found:
    """Whether the call is answered, and whether what left the request was read by anybody."""
    summarizer = Summarizer(fault=kind, seconds=3_600 if kind == "hangs" else 0)
    messages = history(200)
    provider = Provider(tokens(messages) // 2)
    peer = make(summarizer.settings(provider.window, timeout=1))
    try:
        call = talking(peer, provider)
        kept = peer.write(call(peer.read(messages))[0])
    except Exception as error:  # noqa: BLE001 - told in the table
        return {"answered": False, "error": type(error).__name__, "lost": 0}
    # What is gone from the list that the program keeps cannot come back; what is gone from one
    # request can.
    lost = marks(messages) - marks(kept) - (summarizer.shown if kind == "inflates" else set())
    return {"answered": True, "lost": len(lost)}


# -- (i) pairs -------------------------------------------------------------------------------------


def pairs(make: Make, *, ratio: float) -> Found:
    """Histories of which one compaction leaves a list that a provider refuses, lost the question,
    or raised.
    """
    found: Found = {}
    for wire_format in make.formats:
        write, rules = FORMATS.get(wire_format, (list, chat_fault))
        broken = raised = gone = 0
        for messages in shapes():
            peer = make(
                Summarizer("They looked at stores.").settings(max(1, tokens(messages) // 2), ratio)
            )
            try:
                if wire_format == "openai":
                    made = peer.write(peer.fold(peer.read(json.loads(json.dumps(messages)))))
                else:
                    made = peer.fold_as(wire_format, write(messages))
            except Exception:  # noqa: BLE001 - counted
                raised += 1
                continue
            asked = [one for one in messages if one["role"] == "user"][-1]["content"]
            broken += rules(made) is not None
            gone += not any(
                one.get("role") == "user" and json.dumps(asked)[1:-1] in json.dumps(one)
                for one in made
            )
        found[wire_format] = {
            "cases": len(shapes()),
            "broken": broken,
            "raised": raised,
            "gone": gone,
        }
    return found


# -- (j) what reaches the model --------------------------------------------------------------------


def answers(
    make: Make, *, share: float, length: int = 40_000, each: int = 10, url: str = ""
) -> Found:
    """Facts of long chats that stand in the request, word for word, when they are asked for.

    The window is a share of the chat. The summarizer says again as many of the user's sentences as
    a fifth of the window holds, evenly chosen: the same for all, and no better than chance. With
    the ``url`` of a server a model writes the summaries and answers; *right* are answers that hold
    the expected words.
    """
    questions = import_module("questions")
    reached = total = failed = right = 0
    for number, (subject, facts) in enumerate(questions.STORIES.items()):
        talk = chat(subject, [fact for fact, _, _ in facts], length, seed=number)
        window = int(tokens(talk) * share)
        said = [one["content"] for one in talk if one["role"] == "user"]
        summarizer: Summarizer = Writer(url) if url else Excerpt(said, window * 4 // 5)
        provider = Speaker(window, url) if url else Provider(window)
        peer = make(summarizer.settings(window))
        call = talking(peer, provider)
        kept = peer.read(talk)
        for at, (fact, question, expected) in enumerate(facts[:each]):
            total += 1
            try:
                now, reply = call(
                    peer.more(
                        kept, [{"role": "user", "content": f"{question} Answer in a few words."}]
                    )
                )
            except Exception:  # noqa: BLE001 - counted
                failed += 1
                continue
            right += expected.lower() in reply["choices"][0]["message"]["content"].lower()
            reached += fact in json.dumps(provider.last, ensure_ascii=False)
            if not at and peer.keeps:  # What it keeps from then on, but without the question.
                kept = peer.without_last(now)
    return {
        "reached": reached,
        "asked": total,
        "failed_calls": failed,
        **({"right": right} if url else {}),
    }


# -- (n) what an agent still knows -----------------------------------------------------------------


class Teller(Summarizer):
    """Summaries of the benchmark ``tasks``."""

    def __init__(self, write: Callable[[str], str]) -> None:
        super().__init__()
        self.write = write

    def answer(self, prompt: str) -> str:
        super().answer(prompt)
        return self.write(prompt)


def tasks(make: Make, *, summarizer: str, window: int = 8_192, steps: int = 240) -> Found:
    """Which facts of an agent's first half are right when they are needed late; see ``tasks.py``."""
    tasks = import_module("tasks")
    outcomes: Counter[tuple[str, str, str]] = Counter()
    sent = 0
    ended = ""
    for name in tasks.WORLDS:
        provider = Provider(window)
        peer = make(Teller(tasks.Summarizer(summarizer, 4_000)).settings(window))
        call = talking(peer, provider)
        native = peer.read([])

        def send(new: list[Any], *, peer: Any = peer, call: Any = call, of: Any = provider) -> str:
            nonlocal native
            native, _ = call(peer.more(native, new))
            return str(tasks.text_of(of.last))

        made, error = tasks.play(tasks.make_world(name, 1, steps), send)
        outcomes += made
        sent += provider.sent
        ended = ended or error
    return {**tasks.shares(outcomes), "sent": sent, "stopped": ended}


# -- (l) compacter's own settings ------------------------------------------------------------------


def setting(make: Make, *, options: Found) -> Found:
    """What a setting of compacter's changes of (c) and (j)."""

    def changed(settings: Settings) -> Any:
        peer: Any = make(settings)
        peer.compacter = peer.compacter.replace(**options)
        return peer

    other: Any = changed
    found = grow(other, turns=200, resend=True)
    return found | {
        f"reached {percent}": answers(other, share=percent / 100)["reached"] for percent in (10, 20)
    }


# -- (k) detection ---------------------------------------------------------------------------------


class ProviderError(Exception):
    """As an SDK raises it: a text, a status, a code."""

    def __init__(self, text: str, status: int | None, code: Any) -> None:
        super().__init__(text)
        self.status_code = status
        self.code = code


def detect(make: Make, *, file: str) -> Found:
    """Token limits found, and false alarms, among the errors of ``benchmarks/errors.jsonl``."""
    peer = make(Summarizer().settings(1_000))
    counts = {True: [0, 0], False: [0, 0]}
    for line in Path(file).read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        error = ProviderError(case["text"], case["status"], case["code"])
        answer = peer.detects(error, f"{case['code'] or ''} {case['text']}")
        if answer is None:
            return {}
        counts[case["token_limit"]][0] += answer
        counts[case["token_limit"]][1] += 1
    return {"found": counts[True], "alarms": counts[False]}


TASKS: dict[str, Callable[..., Found]] = {
    "idle": idle,
    "fold": fold,
    "grow": grow,
    "fault": fault,
    "pairs": pairs,
    "answers": answers,
    "detect": detect,
    "setting": setting,
    "tasks": tasks,
    "live": live,
    "stream": stream,
    "crowd": crowd,
}
