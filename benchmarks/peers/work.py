"""The work that every peer is given, in the peer's own environment. `worker` calls one of `TASKS` by its letter."""

from __future__ import annotations

import gc
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from base import Message, Peer, Settings, tokens

from compacter.testing import ChatRules, ScriptedModel, TokenLimitError

Make = Callable[[Settings], Peer]
SUMMARY = (
    "The user keeps the stores of a country and asks about one town after the other. For each of them the"
    " shelves were looked up with the tool stock, which gives a number, what is missing and a price. In "
    "most towns three shelves were empty, and filling them up costs seven times the number of the town. "
    "Nothing was ordered so far; the user only wants to know. Prices rise by thirteen from one shelf to "
    "the next. The first shelves are hardly ever short of anything, while the sixth is short everywhere. "
    "It was agreed that answers name the town first, then the shelves, then the sum. No town was left "
    "out, and none was asked about twice. The book of stores is written after each answer. What remains "
    "to be done: the towns that follow, and a list of all sums at the end. Open: whether the capital has "
    "stores of its own, which nobody could say. A question about transport was put off until the prices "
    "are known, since carts are paid by weight. The user likes short answers, with figures and without "
    "advice. Nobody has complained, and the work goes on as before, town by town, in the order of the map"
    " t"
)
REPLY = {
    "choices": [{"message": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 90, "completion_tokens": 9, "total_tokens": 99},
}
MARK = re.compile(r"\bm(\d+)x\b")
ENDLESS = 10**9


# -- histories ---------------------------------------------------------------------------------------------------------


def turn(number: int, *, parallel: int = 1) -> list[Message]:
    """A question, one or more calls, their results, an answer. Each message has a mark that is found again."""
    first = number * (parallel + 3)
    words = f"m{first}x Now the store in town {number}: what is missing there, and what does it cost to fill it up? "
    ids = [f"call_{number}_{one}" for one in range(parallel)]
    calls = [
        {"id": one, "type": "function", "function": {"name": "stock", "arguments": json.dumps({"town": number})}}
        for one in ids
    ]
    shelves = json.dumps([{"shelf": shelf, "missing": shelf % 7, "price": shelf * 13 + number} for shelf in range(12)])
    results = [
        {"role": "tool", "tool_call_id": one, "content": f"m{first + 2 + at}x {shelves}"} for at, one in enumerate(ids)
    ]
    answer = f"m{first + 2 + parallel}x In town {number} three shelves are empty; it costs {number * 7} to fill them. "
    return [
        {"role": "user", "content": words * 2},
        {"role": "assistant", "content": f"m{first + 1}x I look it up.", "tool_calls": calls},
        *results,
        {"role": "assistant", "content": answer * 2},
    ]


def history(size: int, *, parallel: int = 1) -> list[Message]:
    """About so many messages; the last is the user's."""
    found: list[Message] = [{"role": "system", "content": "You keep the stores of a country. "}]
    number = 0
    while len(found) < size - 1:
        found += turn(number, parallel=parallel)
        number += 1
    return [*found, {"role": "user", "content": "What is missing in the next town?"}]


def marks(messages: list[Message]) -> set[str]:
    return set(MARK.findall(json.dumps(messages, default=str)))


class Summarizer:
    """Counts, remembers what it was shown, and fails as it is told."""

    def __init__(self, text: str = SUMMARY, fault: str = "") -> None:
        self.text, self.fault = text, fault
        self.calls = self.tokens = 0
        self.shown: set[str] = set()

    def __call__(self, prompt: str) -> str:
        self.calls += 1
        self.tokens += len(prompt) // 4
        if self.fault == "raises":
            raise RuntimeError("the summarizer is down")
        if self.fault == "overflows":
            raise TokenLimitError(
                "too long", message="maximum context length is 100 tokens", status_code=400,
                code="context_length_exceeded", kind="invalid_request_error", body={},
            )  # fmt: skip
        self.shown |= set(MARK.findall(prompt))
        return {"empty": "", "inflates": prompt * 2, "refuses": "I'm sorry, but I can't help with that."}.get(
            self.fault, self.text
        )


# -- (a) nothing to do -------------------------------------------------------------------------------------------------


def idle(make: Make, *, size: int, seconds: float = 0.15) -> dict[str, Any]:
    """Nanoseconds that a call takes longer than the bare one, by the best of several rounds."""
    peer = make(Settings(ENDLESS, 0.7, Summarizer()))
    native = peer.read(history(size))
    bound = peer.bound(_replies)
    return {"ns": _best(lambda: bound(native), seconds) - _best(lambda: _replies(native), seconds / 3)}


def _replies(_: object) -> dict[str, Any]:
    return REPLY


def _best(action: Callable[[], Any], seconds: float) -> float:
    """Nanoseconds of one call: the least of rounds of at least a millisecond each."""
    action()
    count, taken = 1, 0.0
    while taken < 1_000_000:
        begun = time.perf_counter_ns()
        for _ in range(count):
            action()
        taken = time.perf_counter_ns() - begun
        if taken < 1_000_000:
            count *= 4
    best, until = taken / count, time.perf_counter() + seconds
    while time.perf_counter() < until:
        begun = time.perf_counter_ns()
        for _ in range(count):
            action()
        best = min(best, (time.perf_counter_ns() - begun) / count)
    return best


# -- (b) one compaction ------------------------------------------------------------------------------------------------


def fold(make: Make, *, size: int, times: int = 5, whole: bool = True) -> dict[str, Any]:
    """Milliseconds of one compaction with a summarizer that answers at once; or of choosing what to fold alone."""
    messages = history(size)
    best = float("inf")
    for _ in range(times):
        peer = make(Settings(tokens(messages) // 2, 0.7, Summarizer()))
        native = peer.read(messages)
        gc.collect()
        begun = time.perf_counter()
        peer.fold(native) if whole else peer.plan(native)
        best = min(best, time.perf_counter() - begun)
        if best > 2:
            break
    return {"ms": best * 1000}


# -- (c) a conversation that grows -------------------------------------------------------------------------------------


def grow(make: Make, *, turns: int, resend: bool, window: int = 8_000) -> dict[str, Any]:
    """What a caller pays who keeps one list, or who sends its whole history each time."""
    summarizer = Summarizer()
    peer = make(Settings(window, 0.7, summarizer))
    model = ScriptedModel(window=window, replies="Done, and written down in the book of stores.", strict=True)
    whole = history(3)[:1]
    native = peer.read(whole)
    call = peer.bound(lambda sent: model.completion("any", peer.write(sent)))
    found: dict[str, Any] = {"answered": 0}
    for number in range(turns):
        for step in _steps(number):
            whole += step
            native = peer.read(whole) if resend else [*native, *peer.read(step)]
            try:
                native, reply = call(native)
            except Exception as error:  # noqa: BLE001 - told in the table
                found["stopped"] = f"turn {number}: {type(error).__name__}"
                break
            answer = reply["choices"][0]["message"]
            whole.append(answer)
            native = [*native, *peer.read([answer])]
        else:
            found["answered"] += 1
            continue
        break
    sent = set().union(*(marks(list(request.messages)) for request in model.requests[-1:])) if model.requests else set()
    lost = marks(whole) - sent - summarizer.shown
    return found | {
        "summaries": summarizer.calls, "summary_tokens": summarizer.tokens, "refused": model.rejected,
        "broken": model.invalid, "uncached": model.uncached_tokens, "lost": len(lost),
    }  # fmt: skip


def _steps(number: int) -> list[list[Message]]:
    """A turn as its two requests see it: the question with the tool's result, as an agent sends it at once."""
    question, call, result, _ = turn(number)
    return [[question, call, result]]


# -- (d) a summarizer that fails ---------------------------------------------------------------------------------------


def fault(make: Make, *, kind: str) -> dict[str, Any]:
    """Whether the call is answered, and whether what left the request was read by anybody."""
    summarizer = Summarizer(fault=kind)
    messages = history(200)
    window = tokens(messages) // 2
    peer = make(Settings(window, 0.7, summarizer))
    model = ScriptedModel(window=window, replies="Done.")
    kept: list[Message] = []
    try:
        call = peer.bound(lambda sent: model.completion("any", peer.write(sent)))
        kept = peer.write(call(peer.read(messages))[0])
    except Exception as error:  # noqa: BLE001 - told in the table
        return {"answered": False, "error": type(error).__name__, "lost": 0}
    sent = [request for request in model.requests if not request.refused and not request.invalid]
    said = json.dumps(list(sent[-1].messages), default=str)
    nothing = kind in {"empty", "raises", "overflows", "refuses"}
    gone = marks(messages) - marks(list(sent[-1].messages))
    # What is gone from the list that the program keeps cannot come back; what is gone from one request can.
    forever = marks(messages) - marks(kept)
    said_sorry = "I can't help" in said
    return {
        "answered": True, "gone": len(gone), "lost": len(forever) if nothing else 0, "sorry": said_sorry,
        "summary": 0 if nothing else 1,
    }  # fmt: skip


# -- (i) pairs ---------------------------------------------------------------------------------------------------------


def pairs(make: Make, *, ratio: float) -> dict[str, Any]:
    """Histories of which one compaction leaves a list that a provider refuses, lost the question, or raised."""
    rules, broken, raised, question, cases = ChatRules(), 0, 0, 0, 0
    for name, messages in shapes():
        peer = make(Settings(max(1, tokens(messages) // 2), ratio, Summarizer("They looked at stores.")))
        cases += 1
        try:
            made = peer.write(peer.fold(peer.read(json.loads(json.dumps(messages)))))
        except Exception:  # noqa: BLE001 - counted
            raised += 1
            continue
        broken += rules(made) is not None
        question += not any(_asks(message, messages) for message in made)
        del name
    return {"cases": cases, "broken": broken, "raised": raised, "question": question}


def _asks(message: Message, messages: list[Message]) -> bool:
    asked = [one for one in messages if one["role"] == "user"][-1]["content"]
    return message["role"] == "user" and str(asked) in str(message["content"])


def shapes() -> list[tuple[str, list[Message]]]:
    """Conversations shaped as real ones are: valid, and none of them is tidy."""
    found: list[tuple[str, list[Message]]] = []
    found += [(f"{parallel} parallel calls", history(60, parallel=parallel)) for parallel in (1, 2, 5)]
    steps: list[Message] = [{"role": "user", "content": "m1x Count all stores of the country, one by one."}]
    for number in range(40):
        steps += turn(number)[1:3]
    found.append(("one long turn", steps))
    reused = json.loads(re.sub(r"call_\d+_(\d)", r"call_\1", json.dumps(history(60, parallel=2))))
    found.append(("ids used again", reused))
    talk = [
        message for message in history(120) if message["role"] in {"user", "system"} or not message.get("tool_calls")
    ]
    found.append(("no tools", [message for message in talk if message["role"] != "tool"]))
    large = history(40)
    large[3]["content"] += " and so on" * 3_000
    found.append(("a large result at the start", large))
    late = history(40)
    late[-3]["content"] += " and so on" * 3_000
    found.append(("a large result at the end", late))
    open_end = history(60)[:-1]
    found.append(("ends with a result", open_end[: len(open_end) - 1]))
    short = [
        *history(6)[:1],
        {"role": "user", "content": "word " * 4_000},
        *turn(1)[1:],
        {"role": "user", "content": "And?"},
    ]
    found.append(("a large question", short))
    return found


# -- (k) detection -----------------------------------------------------------------------------------------------------


class ProviderError(Exception):
    """As an SDK raises it: a text, a status, a body."""

    def __init__(self, text: str, status: int | None, code: Any) -> None:
        super().__init__(text)
        self.status_code, self.code = status, code


def detect(make: Make, *, file: str) -> dict[str, Any]:
    """Token limits found, and false alarms, among real error texts. Others' texts: they are not part of the project."""
    peer = make(Settings(1_000, 0.7, Summarizer()))
    counts = {"overflow": [0, 0], "not_overflow": [0, 0]}
    for line in Path(file).read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        if case["ambiguous"]:
            continue
        error = ProviderError(case["message"], case["http_status"], case["code"])
        for link in reversed(case.get("chain") or []):  # What it was raised from.
            inner = ProviderError(link["message"], link.get("http_status"), None)
            inner.__cause__, error.__cause__ = error.__cause__, inner
        answer = peer.detects(error, f"{case['code'] or ''} {case['message']}")
        if answer is None:
            return {}
        counts[case["kind"]][0] += answer
        counts[case["kind"]][1] += 1
    return {"found": counts["overflow"], "alarms": counts["not_overflow"]}


TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    "idle": idle, "fold": fold, "grow": grow, "fault": fault, "pairs": pairs, "detect": detect,
}  # fmt: skip
