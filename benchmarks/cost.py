"""What real runs of agents cost at list prices: with the whole history, cut, in the usual loop, and
with compacter.

Each run is sent step by step, from its start, to a stand-in with a window of a share of the run and
a prompt cache: that holds the longest beginning which a request has in common with the one before,
in whole 128 tokens, from 1,024 on. Summaries go through the same cache. The summarizer writes at
most 600 tokens: the lines with the rarest names. A token is four characters. *Known* is the share
of the names in each later reply of the model, said before, that stand in its request.

Run: ``python benchmarks/cost.py --data FOLDER``; ``COMPACTER_DATA`` is the default, a folder with
``conversations.jsonl`` (``format``, ``messages``). Prints a table and ends with one JSON line.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replay import TooLongError, telling

from compacter import Compacter
from compacter.messages.format import MessageFormat, get_format
from compacter.messages.parts import Kind

CHARS_PER_TOKEN = 4
PRICES = {"input": 2.0, "write": 2.5, "cached": 0.2, "output": 10.0}
"""US dollars for a million tokens: Claude Sonnet's list price."""
SMALLEST_RUN, LARGEST_RUN = 40_000, 600_000
FEWEST_RESULTS = 20
SUMMARY = 2_400
"""Characters of a summary."""
_INSTRUCTIONS = ("The record ends here.", "Write a summary of this conversation")
_BLOCK, _LEAST = 128, 1_024


@dataclass
class Books:
    """Tokens of all runs, and what the requests knew."""

    tokens: Counter[str] = field(default_factory=Counter)
    summaries: int = 0
    refused: int = 0
    lost: int = 0
    needed: int = 0
    known: int = 0

    @property
    def dollars(self) -> float:
        """The bill."""
        return sum(count * PRICES[kind] for kind, count in self.tokens.items()) / 1e6


class Provider:
    """The stand-in: a window, a cache, and a summarizer behind the same door."""

    def __init__(self, books: Books, form: MessageFormat, window: int) -> None:
        self.books = books
        self.form = form
        self.window = window
        self.before = ""
        self.sent = ""
        self._texts: dict[int, tuple[Any, str]] = {}

    def text(self, message: Any) -> str:
        """The text of a message, with calls and results."""
        known = self._texts.get(id(message))
        if known is None or known[0] is not message:
            parts = self.form.parts_of_each((message,))[0].readable
            known = message, "\n".join(f"{part.name} {part.text}" for part in parts)
            self._texts[id(message)] = known
        return known[1]

    def complete(self, *, messages: Sequence[Any], **_: Any) -> Any:
        """Return a reply with its usage, or refuse what is longer than the window."""
        text = "\n".join(map(self.text, messages))
        if len(text) > self.window:
            self.books.refused += 1
            count, most = len(text) // CHARS_PER_TOKEN, self.window // CHARS_PER_TOKEN
            raise TooLongError(f"maximum context length is {most} tokens, you sent {count}.")
        cached = common(text, self.before) // CHARS_PER_TOKEN
        cached = cached // _BLOCK * _BLOCK if cached >= _LEAST else 0
        rest = len(text) // CHARS_PER_TOKEN - cached
        self.books.tokens["cached"] += cached
        if any(text in self.text(messages[-1]) for text in _INSTRUCTIONS):
            said = self.summarize("\n".join(map(self.text, messages[:-1])) or text)
            self.books.tokens["input"] += rest  # It is not sent again: no cache keeps it.
        else:
            said = "Noted."
            self.books.tokens["write"] += rest
            self.before = self.sent = text
        return self._reply(said, cached, rest)

    def summarize(self, text: str) -> str:
        """Return the lines with the names that are rarest in a text, in their order."""
        lines = [line.strip()[:300] for line in text.splitlines() if len(line.strip()) > 20]
        names = [telling(line) for line in lines]
        count = Counter(name for each in names for name in each)
        best = [max((1 / count[name] for name in each), default=0.0) for each in names]
        room = SUMMARY
        taken = []
        for at in sorted(range(len(lines)), key=lambda at: (-best[at], -at)):
            if len(lines[at]) < room:
                taken.append(at)
                room -= len(lines[at]) + 1
        said = "\n".join(lines[at] for at in sorted(taken)) or "Nothing of note."
        self.books.summaries += 1
        self.books.tokens["output"] += len(said) // CHARS_PER_TOKEN
        return said

    def _reply(self, said: str, cached: int, rest: int) -> Any:
        read = {"cached_tokens": cached}
        if self.form.name == "anthropic":
            usage: Any = {"input_tokens": rest, "cache_read_input_tokens": cached}
            return {
                "type": "message",
                "content": [{"type": "text", "text": said}],
                "stop_reason": "end_turn",
                "usage": {**usage, "output_tokens": 2},
            }
        if self.form.name == "responses":
            item = {"type": "message", "role": "assistant", "content": [_output(said)]}
            usage = {"input_tokens": cached + rest, "input_tokens_details": read}
            done = {"object": "response", "status": "completed", "output": [item]}
            return {**done, "usage": {**usage, "output_tokens": 2}}
        usage = {"prompt_tokens": cached + rest, "prompt_tokens_details": read}
        choice = {"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        return {"choices": [choice], "usage": {**usage, "completion_tokens": 2}}


def common(one: str, other: str) -> int:
    """Return the number of characters with which two texts begin alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def _output(text: str) -> Any:
    return {"type": "output_text", "text": text}


Step = Callable[[Sequence[Any]], None]


def whole(provider: Provider) -> Step:
    """Send everything, through a window that holds it."""
    provider.window = 10**9
    return lambda messages: provider.complete(messages=messages)


def by_hand(provider: Provider, share: float, *, summarizes: bool) -> Step:
    """Replace the oldest share of what is sent when it no longer fits, and go on from there."""
    form = provider.form
    kept: list[Any] = []
    seen = 0

    def step(messages: Sequence[Any]) -> None:
        nonlocal seen
        kept.extend(messages[seen:])
        seen = len(messages)
        for _ in range(4):
            try:
                provider.complete(messages=kept)
            except TooLongError:
                begin = 1 if form.speaker(kept[0]) == "system" else 0
                most = begin + int((len(kept) - begin) * share)
                starts = [at for at in form.outline(kept).steps if begin < at <= most]
                cut = starts[-1] if starts else most
                head = "\n".join(map(provider.text, kept[begin:cut]))
                kept[begin:cut] = []
                if summarizes:
                    said = f"Summary of what was said before: {provider.summarize(head)}"
                    provider.books.tokens["input"] += len(head) // CHARS_PER_TOKEN
                    kept.insert(begin, form.say("user", said))
            else:
                return
        raise TooLongError

    return step


def compacted(make: Callable[[], Compacter]) -> Callable[[Provider], Step]:
    """Return the way of a Compacter."""

    def way(provider: Provider) -> Step:
        compacter = make()
        call = compacter.wrap(
            provider.complete, wire_format=provider.form.name, messages_param="messages"
        )

        def step(messages: Sequence[Any]) -> None:
            call(messages=list(messages), model="gpt-4")
            compacter.drain(20)

        return step

    return way


WAYS: dict[str, Callable[[Provider], Step]] = {
    "the whole history": whole,
    "cut: the newest 30 %": lambda provider: by_hand(provider, 0.7, summarizes=False),
    "the usual loop": lambda provider: by_hand(provider, 0.7, summarizes=True),
    "compacter": compacted(Compacter),
    "compacter, transcripts": compacted(lambda: Compacter(redact=str)),
    "compacter, for_agents()": compacted(Compacter.for_agents),
    "compacter, extractive": compacted(lambda: Compacter(summarizer="extractive")),
}


def play(record: Any, way: Callable[[Provider], Step], share: float, books: Books) -> None:
    """Send a run step by step."""
    form = get_format(record["format"])
    messages = record["messages"]
    provider = Provider(books, form, 0)
    texts = [provider.text(message) for message in messages]
    kinds = form.outline(messages).kinds
    size = sum(map(len, texts))
    provider.window = int(size * share)
    step = way(provider)
    said: set[str] = set()
    so_far = 0
    for at, text in enumerate(texts):
        names = telling(text)
        if kinds[at] is Kind.ASSISTANT and at and kinds[at - 1] is not Kind.ASSISTANT:
            try:
                step(messages[:at])
            except TooLongError:
                books.lost += 1
                provider.sent = ""
            if so_far > size * share:
                needed = names & said
                books.needed += len(needed)
                books.known += sum(name in provider.sent for name in needed)
        said |= names
        so_far += len(text)


def runs(path: Path, most: int) -> list[Any]:
    """The runs of agents with enough results of tools, of a size that a window divides."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        form = get_format(record["format"])
        read = form.outline(record["messages"])
        results = sum(kind is Kind.RESULT for kind in read.kinds)
        if results >= FEWEST_RESULTS and SMALLEST_RUN <= sum(read.sizes) <= LARGEST_RUN:
            found.append(record)
    return found[:most]


def main() -> None:
    """Print the table of all ways."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("COMPACTER_DATA"))
    parser.add_argument("--share", type=float, nargs="*", default=[0.25, 0.5])
    parser.add_argument("--runs", type=int, default=99)
    given = parser.parse_args()
    if given.data is None or not (given.data / "conversations.jsonl").exists():
        print(json.dumps({"skipped": "needs COMPACTER_DATA"}))
        return
    logging.disable(logging.CRITICAL)
    records = runs(given.data / "conversations.jsonl", given.runs)
    rows = []
    print("| way | window | dollars | summaries | refused | known |\n|---|---|---|---|---|---|")
    for share in given.share:
        for name, way in WAYS.items():
            books = Books()
            for record in records:
                play(record, way, share, books)
            known = books.known / max(1, books.needed)
            print(
                f"| {name} | {share:.0%} | {books.dollars:.2f} | {books.summaries} | "
                f"{books.refused} | {known:.3f} |",
                flush=True,
            )
            row = {
                "way": name,
                "share": share,
                "dollars": round(books.dollars, 2),
                "lost": books.lost,
            }
            rows.append({**row, "known": round(known, 3), "summaries": books.summaries})
    print(json.dumps({"cost": {"runs": len(records), "ways": rows}}))


if __name__ == "__main__":
    main()
