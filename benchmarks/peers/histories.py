"""Conversations, a summarizer that counts, and a provider that keeps the books: what the work is
made of.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
import urllib.request
from collections.abc import Sequence
from random import Random
from typing import Any

from base import Message, Settings, tokens

from compacter.testing import chat_fault, invalid_request_error, token_limit_error

LENGTH = 1_000
"""Characters of a summary."""
TOWN = re.compile(r"\btown (\d+)")
MARK = re.compile(r"\bm(\d+)x\b")
REPLY = {
    "choices": [{"message": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 90, "completion_tokens": 9, "total_tokens": 99},
}


# -- histories -------------------------------------------------------------------------------------


def turn(number: int, *, parallel: int = 1) -> list[Message]:
    """A question, one or more calls, their results, an answer. Each message has a mark that is
    found again.
    """
    first = number * (parallel + 3)
    words = (
        f"m{first}x Now the store in town {number}: what is missing there, and what "
        f"does it cost to fill it up? "
    )
    ids = [f"call_{number}_{one}" for one in range(parallel)]
    calls = [
        {
            "id": one,
            "type": "function",
            "function": {"name": "stock", "arguments": json.dumps({"town": number})},
        }
        for one in ids
    ]
    shelves = json.dumps(
        [
            {"shelf": shelf, "missing": shelf % 7, "price": shelf * 13 + number}
            for shelf in range(12)
        ]
    )
    results = [
        {"role": "tool", "tool_call_id": one, "content": f"m{first + 2 + at}x {shelves}"}
        for at, one in enumerate(ids)
    ]
    answer = (
        f"m{first + 2 + parallel}x In town {number} three shelves are empty; it costs "
        f"{number * 7} to fill them. "
    )
    return [
        {"role": "user", "content": words * 2},
        {"role": "assistant", "content": f"m{first + 1}x I look it up.", "tool_calls": calls},
        *results,
        {"role": "assistant", "content": answer * 2},
    ]


def history(size: int, *, parallel: int = 1, first: int = 0) -> list[Message]:
    """About so many messages, from that turn on; the last is the user's."""
    found: list[Message] = [{"role": "system", "content": "You keep the stores of a country. "}]
    number = first
    while len(found) < size - 1:
        found += turn(number, parallel=parallel)
        number += 1
    return [
        *found,
        {"role": "user", "content": (f"What is missing in the next town, number {number}?")},
    ]


def shapes() -> list[list[Message]]:
    """Conversations shaped as real ones are: valid, and none of them is tidy."""
    found = [history(60, parallel=parallel) for parallel in (1, 2, 5)]
    steps: list[Message] = [
        {"role": "user", "content": ("m1x Count all stores of the country, one by one.")}
    ]
    for number in range(40):
        steps += turn(number)[1:3]
    found.append(steps)  # One long turn.
    # Ids again.
    found.append(
        json.loads(re.sub(r"call_\d+_(\d)", r"call_\1", json.dumps(history(60, parallel=2))))
    )
    found.append(
        [one for one in history(120) if one["role"] != "tool" and not one.get("tool_calls")]
    )
    large = history(40)
    large[3]["content"] += " and so on" * 3_000
    found.append(large)
    late = history(40)
    late[-3]["content"] += " and so on" * 3_000
    found.append(late)
    found.append(history(60)[:-2])  # It ends with a result.
    question = {"role": "user", "content": "word " * 4_000}
    found.append([history(6)[0], question, *turn(1)[1:], {"role": "user", "content": "And?"}])
    return found


PEOPLE = (
    "Anneke",
    "Bruno",
    "Celia",
    "Dragan",
    "Elif",
    "Farid",
    "Greta",
    "Hugo",
    "Ines",
    "Jonte",
    "Kaja",
    "Levin",
)
THINGS = (
    "ladder",
    "kettle",
    "ledger",
    "parcel",
    "carpet",
    "violin",
    "saddle",
    "mirror",
    "basket",
    "bucket",
    "candle",
)
PLACES = (
    "cellar",
    "office",
    "bakery",
    "harbour",
    "market",
    "garage",
    "chapel",
    "library",
    "station",
    "orchard",
)
SAYINGS = (
    "{one} keeps the {thing} number {number} in the {place}.",
    "The {thing} that {one} bought from {other} costs {number} euros.",
    "{one} meets {other} at the {place} at {number} past nine.",
    "The {place} is called {number}, after the {thing} of {one}.",
    "{one} carries {number} of the {thing}s to the {place}.",
    "{other} told {one} that the {thing} weighs {number} kilos.",
)
ANSWERS = (
    "Good to know, I have that.",
    "I see. What else is on your mind?",
    "Noted. Go on, if you like.",
)


def chat(subject: str, facts: Sequence[str], length: int, *, seed: int) -> list[Message]:
    """A talk of so many characters in which a user tells much of one kind; the facts stand in its
    first half.
    """
    chance = Random(seed)
    found: list[Message] = []
    pending = list(facts)
    size = 0
    while size < length:
        said = chance.choice(SAYINGS).format(
            one=chance.choice(PEOPLE),
            other=chance.choice(PEOPLE),
            thing=chance.choice(THINGS),
            place=chance.choice(PLACES),
            number=chance.randint(10, 9_999),
        )
        if pending and size > length / 2 * (len(facts) - len(pending)) / len(facts):
            said = pending.pop(0)
        found.append({"role": "user", "content": said})
        found.append({"role": "assistant", "content": chance.choice(ANSWERS)})
        size += sum(len(one["content"]) for one in found[-2:])
    return [{"role": "system", "content": f"You help to plan {subject}."}, *found]


def marks(messages: object) -> set[str]:
    """Those of the messages that stand in there."""
    return set(
        MARK.findall(messages if isinstance(messages, str) else json.dumps(messages, default=str))
    )


# -- the summarizer --------------------------------------------------------------------------------


def _summary(prompt: str) -> str:
    """What a model would say of these histories: of as many towns as there is room for, evenly
    chosen.
    """
    towns = list(dict.fromkeys(TOWN.findall(prompt)))
    most = min(len(towns), 45)
    sums = ", ".join(
        f"{int(town) * 7} in town {town}"
        for town in (towns[at * len(towns) // most] for at in range(most))
    )
    return (
        "The user asks for one town after the other what is missing in its store, and "
        "what it costs to fill it up. Each time "
        "the assistant looked it up with the tool stock, which lists shelves, what is "
        "missing on them, and prices. Three "
        f"shelves are empty in each town. To fill them it costs {sums}"
    )[:LENGTH]


class Summarizer:
    """Counts, remembers what it was shown, and fails as it is told."""

    def __init__(self, text: str = "", fault: str = "", seconds: float = 0) -> None:
        self.text = text
        self.fault = fault
        self.seconds = seconds
        self.calls = self.tokens = 0
        self.shown: set[str] = set()
        self._lock = threading.Lock()

    def __call__(self, prompt: str) -> str:
        if self.seconds:
            time.sleep(self.seconds)
        return self.answer(prompt)

    async def wait(self, prompt: str) -> str:
        """The same, awaited."""
        await asyncio.sleep(self.seconds)
        return self.answer(prompt)

    def answer(self, prompt: str) -> str:
        """Its text, or what its fault is."""
        with self._lock:
            self.calls += 1
            self.tokens += len(prompt) // 4
        if self.fault == "raises":
            raise RuntimeError("the summarizer is down")
        if self.fault == "overflows":
            raise token_limit_error("openai", limit=100, input_tokens=len(prompt) // 4)
        self.shown |= marks(prompt)
        return {
            "empty": "",
            "inflates": prompt * 2,
            "refuses": ("I'm sorry, but I can't help with that."),
        }.get(self.fault, self.text or _summary(prompt))

    def settings(self, window: int, ratio: float = 0.7, timeout: float | None = None) -> Settings:
        """A peer's, with this summarizer."""
        return Settings(window, ratio, self, self.wait, timeout)


class Excerpt(Summarizer):
    """Says again, word for word, as many of the conversation's sentences as there is room for,
    evenly chosen.
    """

    def __init__(self, sentences: Sequence[str], characters: int) -> None:
        super().__init__()
        self.sentences = sentences
        self.characters = characters

    def answer(self, prompt: str) -> str:
        super().answer(prompt)
        found = [sentence for sentence in self.sentences if sentence in prompt]
        most = max(1, self.characters * len(found) // max(1, sum(map(len, found))))
        step = max(1.0, len(found) / most)
        return " ".join(found[int(at * step)] for at in range(min(most, int(len(found) / step))))


def _asked(url: str, messages: list[Message], most: int) -> str:
    """What the model of an OpenAI-compatible server answers."""
    body = json.dumps({"messages": messages, "max_tokens": most, "temperature": 0}).encode()
    request = urllib.request.Request(  # noqa: S310 - whoever runs this names the server
        f"{url}/chat/completions", body, {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=300) as reply:  # noqa: S310 - whoever runs this names the server
        return str(json.load(reply)["choices"][0]["message"]["content"])


class Writer(Summarizer):
    """A model's own summaries."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url

    def answer(self, prompt: str) -> str:
        super().answer(prompt)
        return _asked(self.url, [{"role": "user", "content": prompt}], 200)


# -- the provider ----------------------------------------------------------------------------------


class Provider:
    """Refuses what is too long or broken, and counts. ``compacter.testing`` has one that copies
    each request.
    """

    def __init__(self, window: int) -> None:
        self.window = window
        self.refused = self.broken = self.uncached = self.sent = 0
        self.last: list[Message] = []
        """The newest request that was answered."""

    def completion(self, messages: list[Message]) -> dict[str, Any]:
        """A reply, or the provider's error."""
        size = tokens(messages)
        if size > self.window:
            self.refused += 1
            raise token_limit_error("openai", limit=self.window, input_tokens=size)
        fault = chat_fault(messages)
        if fault:
            self.broken += 1
            raise invalid_request_error(message=fault)
        same = 0  # A prompt cache holds what the last request began with that was answered.
        for one, other in zip(self.last, messages, strict=False):
            if one != other:
                break
            same += 1
        self.uncached += tokens(messages[same:])
        self.sent += size
        self.last = list(messages)
        return {
            "choices": [
                {"message": {"role": "assistant", "content": REPLIED}, "finish_reason": "stop"}
            ],
            "usage": {"prompt_tokens": size, "completion_tokens": 12, "total_tokens": size + 12},
        }

    def forget(self) -> None:
        """Keep no request."""
        self.last = []

    async def acompletion(self, messages: list[Message]) -> dict[str, Any]:
        """The same; other tasks run before the answer, as with a network."""
        await asyncio.sleep(0)
        return self.completion(messages)


class Speaker(Provider):
    """The same, and a model answers what is accepted."""

    def __init__(self, window: int, url: str) -> None:
        super().__init__(window)
        self.url = url

    def completion(self, messages: list[Message]) -> dict[str, Any]:
        """A model's reply."""
        reply = super().completion(messages)
        reply["choices"][0]["message"]["content"] = _asked(self.url, messages, 40)
        return reply


REPLIED = "Done, and written down in the book of stores."
