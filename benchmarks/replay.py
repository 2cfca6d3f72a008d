"""What settings keep of conversations of your own: each call is made again, through a window that
is too small, against a stand-in that refuses what is too long.

At a few of the calls it looks which identifiers, file paths and numbers of three digits, that the
assistant went on to use after this place and that stand in what may be compacted, were in the
request that came through. It measures what the model could have known, not what it would have said.

Run: ``python benchmarks/replay.py FILES``, conversations as ``compacter plan``
reads them. Prints a table and ends with one JSON line.
"""

from __future__ import annotations

import argparse
import json
import re
from itertools import product
from statistics import fmean
from typing import Any

from compacter import Compacter, Truncate
from compacter.messages.parts import Kind
from compacter.tools.cli.files import Transcript, read_transcripts

CHARS_PER_TOKEN = 4
_WORD = re.compile(r"[^\s\"'`<>(){}\[\],;|=*]{3,160}")
_NUMBER = re.compile(r"[$€£]?\d[\d.:%-]*")
_TELLING = re.compile(
    r"(?:[A-Za-z]:)?[\w.~-]*[/\\][\w./\\~-]+|[\w-]+\.[A-Za-z]{1,5}|[\w.+-]+@[\w.-]+|"
    r"(?=[^\d]*\d)(?=[^A-Za-z]*[A-Za-z])[\w.:#+-]+|[A-Za-z]+_\w+|[a-z]+[A-Z]\w+"
)


class TooLongError(Exception):
    """The stand-in's refusal of a request that does not fit."""

    status_code = 400
    code = "context_length_exceeded"


def telling(text: str) -> set[str]:
    """The identifiers, file paths and numbers of three digits or more in a text."""
    words = {word.strip(".,:;!?-") for word in _WORD.findall(text)}
    return {
        word
        for word in words
        if (sum(map(str.isdigit, word)) >= 3 if _NUMBER.fullmatch(word) else "://" in word)
        or _TELLING.fullmatch(word)
    }


def replay(file: Transcript, window: int, cuts: int, options: dict[str, Any]) -> dict[str, Any]:
    """Make the calls of a conversation again, and say what was in the requests at the cuts."""
    wire = file.format
    sent: list[Any] = []
    refused = 0

    def complete(*, messages: list[Any], model: str) -> dict[str, Any]:
        nonlocal sent, refused
        tokens = sum(map(wire.size, messages)) // CHARS_PER_TOKEN
        if tokens > window:
            refused += 1
            raise TooLongError(
                f"{model}: maximum context length is {window} tokens, you sent {tokens}."
            )
        sent = messages
        return {}

    read = wire.outline(file.messages)
    texts = [
        " ".join(part.text for part in each.readable) for each in wire.parts_of_each(file.messages)
    ]
    calls = [
        at
        for at, kind in enumerate(read.kinds)
        if kind is Kind.ASSISTANT and sum(read.sizes[:at]) > window * CHARS_PER_TOKEN
    ]
    chosen = {calls[len(calls) * place // (cuts + 1)] for place in range(1, cuts + 1)} & {*calls}
    compacter = Compacter(**options)
    call = compacter.wrap(complete, wire_format=wire.name)
    shares: list[float] = []
    lost = 0
    for at in calls:
        try:
            call(messages=file.messages[:at], model="replayed")
        except TooLongError:
            lost += 1
            sent = []
        if at in chosen and (share := kept(wire, sent, read.kinds, texts, at)) is not None:
            shares.append(share)
    rounds = compacter.totals.rounds
    return {"shares": shares, "refused": refused, "lost": lost, "compactions": rounds}


def kept(wire: Any, sent: list[Any], kinds: Any, texts: list[str], at: int) -> float | None:
    """Share of what is used from this call on, and may have been compacted, that was sent."""
    last = max((place for place in range(at) if kinds[place] is Kind.USER), default=-1)
    stays = {place for place in range(at) if kinds[place] is Kind.SYSTEM} | {last}
    sure = telling(" ".join(texts[place] for place in stays if place >= 0))
    could = telling(" ".join(texts[place] for place in range(at) if place not in stays)) - sure
    later = (place for place in range(at, len(texts)) if kinds[place] is Kind.ASSISTANT)
    needed = telling(" ".join(texts[place] for place in later)) & could
    if not needed:
        return None
    request = "\n".join(part.text for each in wire.parts_of_each(sent) for part in each.readable)
    return sum(word in request for word in needed) / len(needed)


def main() -> None:
    """Replay each file with each setting, and print what was kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--window", type=int, default=8_000, help="tokens (8000)")
    parser.add_argument("--cuts", type=int, default=3, help="calls to look at (3)")
    parser.add_argument("--ratio", type=float, nargs="*", default=[0.5, 0.7])
    parser.add_argument("--recall", type=float, nargs="*", default=[0.0, 0.15])
    parser.add_argument("--model", help="a litellm model that summarizes, beside the others")
    given = parser.parse_args()
    files = [file for name in given.files for file in read_transcripts(name)]
    ways: dict[str, dict[str, Any]] = {
        "extractive": {"summarizer": "extractive"},
        "truncate": {"strategy": Truncate(), "summarizer": "extractive"},
        **({given.model: {"summarizer": given.model}} if given.model else {}),
    }
    rows = []
    print("kept   refused  lost  compactions  setting")
    for (name, way), ratio, recall in product(ways.items(), given.ratio, given.recall):
        options = {**way, "compact_ratio": ratio, "recall": recall or None}
        played = [replay(file, given.window, given.cuts, options) for file in files]
        shares = [share for each in played for share in each["shares"]]
        counts = {key: sum(each[key] for each in played) for key in ("refused", "lost")}
        counts["compactions"] = sum(each["compactions"] for each in played)
        share = fmean(shares) if shares else None
        row = {"setting": name, "ratio": ratio, "recall": recall, "kept": share, **counts}
        rows.append(row)
        shown = "   – " if share is None else f"{share:5.0%}"
        print(
            f"{shown} {counts['refused']:8} {counts['lost']:5} {counts['compactions']:12}  "
            f"{name}, ratio {ratio:g}, recall {recall:g}"
        )
    print(json.dumps({"replay": {"window": given.window, "files": len(files), "settings": rows}}))


if __name__ == "__main__":
    main()
