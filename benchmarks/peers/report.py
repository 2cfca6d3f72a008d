"""From results to ``docs/benchmarks.md``: tables, pictures in light and dark, and the line for the
history.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Results = dict[str, Any]
OWN = "compacter"
QUIET = "compacter without quotes"


def machine() -> dict[str, Any]:
    """Where and when, and how busy it was: processes that wanted a core in the minute before, one
    of them our own.
    """
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "system": platform.system(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
    }


def write(root: Path, whole: Results, *, release: bool) -> None:
    """The page, its pictures, and for a release the line of the history."""
    results = whole["results"]
    pictures = root / "docs" / "benchmarks"
    pictures.mkdir(exist_ok=True)
    chapters = (
        _idle,
        _fold,
        _grow,
        _answers,
        _fault,
        _pairs,
        _detect,
        _crowd,
        _stream,
        _live,
        _weight,
        _settings,
    )
    page = [_head(whole), *(chapter(results, pictures) for chapter in chapters), _TAIL]
    (root / "docs" / "benchmarks.md").write_text(
        "\n".join(part for part in page if part), encoding="utf-8"
    )
    if release:
        _remember(root / "benchmarks" / "history.jsonl", whole)


# -- the page --------------------------------------------------------------------------------------

_HEAD = """\
# Benchmarks

The same work for compacter and for what else there is, in one run: `make peers`. Each peer is set up as its own manual
advises, in an [adapter](https://github.com/m-mizutani/gollem) of at most 90 lines that says what was chosen and why. Timed rounds go
from one peer to the next, and the best round of each counts. A figure that is not ours to win is here all the same, and
named under its table.

*compacter without quotes* is compacter with `recall=None`: no peer quotes what was compacted ([recall](recall.md)), and
quotes cost time and tokens. *twenty lines* is what everybody writes first: catch the error, summarise, try again.
*gollem (port)* is the Go middleware that compacter is modelled on, ported from its documented behaviour.

{machine}. {versions}{missing}
"""


def _head(whole: Results) -> str:
    runs = list(whole["rows"].values())
    first = runs[-1] if runs else machine()
    loads = [run["load"] for run in runs] or [first["load"]]
    busy = f"{min(loads)} to {max(loads)} processes wanting one of them"
    said = (
        f"{first['date']}, Python {first['python']}, {first['system']}, "
        f"{first['cores']} cores, {busy}"
    )
    named = [
        f"{name} {version}"
        for name, version in whole["versions"].items()
        if version and name != QUIET
    ]
    absent = ", ".join(whole["missing"])
    missing = (
        (f" Not installed in the last run, so of an earlier one where they are here: {absent}.")
        if absent
        else ""
    )
    text = _HEAD.format(machine=said, versions=f"Versions: {', '.join(named)}.", missing=missing)
    return text.replace("https://github.com/m-mizutani/gollem", "../benchmarks/peers/README.md")


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [
        f"| {' | '.join(head)} |",
        f"|{'---|' * len(head)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def _chapter(title: str, said: str, *parts: str) -> str:
    return "\n".join([f"## {title}\n\n{said}\n", *(part for part in parts if part)])


def _time(nanoseconds: float) -> str:
    if nanoseconds < 1_000:
        return f"{max(nanoseconds, 0):.0f} ns"
    for unit, size in (("us", 1e3), ("ms", 1e6), ("s", 1e9)):
        if nanoseconds < size * 1_000 or unit == "s":
            return f"{nanoseconds / size:.3g} {unit}"
    return ""


def _failed(found: Mapping[str, Any] | None) -> str:
    """What a cell says that has no figure."""
    return "-" if not found else str(found.get("failed", "-")).split(":")[0]


def _cell(found: Mapping[str, Any] | None, name: str, shown: Callable[[float], str]) -> str:
    return shown(found[name]) if found and name in found else _failed(found)


def _peers(results: Results, places: list[str]) -> list[str]:
    return list(dict.fromkeys(peer for place in places for peer in results.get(place, {})))


def _places(results: Results, kind: str) -> list[str]:
    """In order of size, whatever was run last."""
    found = [place for place in results if place.startswith(f"{kind}/")]
    return sorted(found, key=lambda place: [float(part) for part in re.findall(r"[\d.]+", place)])


def _others(
    cells: Mapping[str, float], better: Callable[[float, float], bool], *, slack: float = 1.0
) -> list[str]:
    """The peers whose figure is better than compacter's, by more than the noise where times are
    compared.
    """
    ours = cells.get(OWN)
    if ours is None:
        return []
    return [
        peer
        for peer, value in cells.items()
        if peer not in {OWN, QUIET} and better(value * slack, ours)
    ]


def _lost(what: list[tuple[str, list[str]]]) -> str:
    """The line under a table: where others are ahead."""
    told = [f"{name}: {', '.join(peers)}" for name, peers in what if peers]
    return (
        f"Ahead of compacter here: {'; '.join(told)}.\n"
        if told
        else ("Nobody is ahead of compacter here.\n")
    )


def _figures(results: Results, place: str, name: str) -> dict[str, float]:
    return {peer: found[name] for peer, found in results.get(place, {}).items() if name in found}


def _less(one: float, other: float) -> bool:
    return one < other


# -- the chapters ----------------------------------------------------------------------------------


def _matrix(results: Results, kind: str, name: str, scale: float) -> tuple[str, str]:
    """A table by size, and who is ahead at which of them."""
    places = _places(results, kind)
    rows = [
        [
            peer,
            *(
                _cell(results[place].get(peer), name, lambda value: _time(value * scale))
                for place in places
            ),
        ]
        for peer in _peers(results, places)
    ]
    sizes = [f"{int(place.split('/')[1]):,}" for place in places]
    ahead = [
        (size, _others(_figures(results, place, name), _less, slack=1.1))
        for size, place in zip(sizes, places, strict=True)
    ]
    return _table(["", *(f"{size} messages" for size in sizes)], rows), _lost(ahead)


def _idle(results: Results, pictures: Path) -> str:
    values = _figures(results, "idle/2000", "ns")
    if not values:
        return ""
    (pictures / "idle.svg").write_text(
        bars(("Time added to a call with nothing to do, 2,000 messages"), values, _time)
    )
    table, lost = _matrix(results, "idle", "ns", 1)
    atable, alost = _matrix(results, "idle", "async", 1)
    return _chapter(
        "A call on which nothing happens",
        "Time added to the bare call. A peer that waits for the provider's refusal "
        "adds a `try`; one that counts before each\n"
        "call pays for each message. compacter binds arguments, looks for earlier "
        "compactions, and learns from the reply's\n"
        "usage. About 0.16 us of each figure are the loop that this benchmark puts "
        "around a call (0.29 us in an async program),\n"
        "which is all that the twenty lines add. agent-framework, context-guardian and "
        "semantic-kernel have async methods alone: what a sync program adds to\n"
        "them is an event loop.",
        f"![Time added to a call]({pictures.name}/idle.svg)\n",
        table,
        lost,
        "In an async program:\n",
        atable,
        alost,
    )


def _fold(results: Results, pictures: Path) -> str:
    if not _places(results, "fold"):
        return ""
    values = {peer: ms * 1e6 for peer, ms in _figures(results, "fold/2000", "ms").items()}
    (pictures / "compaction.svg").write_text(
        bars("One compaction of 2,000 messages", values, _time)
    )
    plans, _unused = _matrix(results, "plan", "ms", 1e6)
    table, lost = _matrix(results, "fold", "ms", 1e6)
    return _chapter(
        "One compaction",
        (
            "Choosing what to compact, which `Compacter.plan` does alone; the others do not "
            "tell it apart from the rest:"
        ),
        plans,
        "The whole, with a summarizer that answers at once. compacter also checks the "
        "list that goes out against the provider's\n"
        "rules, checks the summary's claims, and fills what is left of its room with "
        "lines quoted from the conversation. A real\n"
        "summary takes seconds. deepagents and context-guardian write what they compact to files.\n",
        f"![One compaction]({pictures.name}/compaction.svg)\n",
        table,
        lost,
    )


def _grow(results: Results, pictures: Path) -> str:
    names = {
        "summaries": "summaries",
        "summary_tokens": "summarizer's tokens",
        "refused": "refused",
        "uncached": "uncached tokens",
        "broken": "broken lists",
        "lost": "never read",
    }
    parts = []
    for place in _places(results, "grow"):
        turns, style = place.split("/")[1:]
        found = results[place]
        rows = [[peer, *_grown(row, list(names))] for peer, row in found.items()]
        whole = {peer: row for peer, row in found.items() if row.get("answered") == int(turns)}
        ahead = [
            (said, _others({peer: row[name] for peer, row in whole.items()}, _less))
            for name, said in names.items()
        ]
        if OWN not in whole:
            ahead = [("all turns answered", list(whole))]
        who = "resends its whole history" if style == "resend" else "keeps one list"
        parts += [
            f"### {int(turns):,} turns, a caller that {who}\n",
            _table(["", "answered", *names.values(), "a turn"], rows),
        ]
        parts.append(_lost(ahead))
        if place == "grow/200/resend":
            values = {
                peer: float(row["summary_tokens"])
                for peer, row in found.items()
                if row.get("summaries")
            }
            svg = bars(
                "Tokens that summaries cost, 200 turns, history resent",
                values,
                lambda value: f"{value:,.0f}",
            )
            (pictures / "grow.svg").write_text(svg)
            parts.append(f"![Tokens that summaries cost]({pictures.name}/grow.svg)\n")
    if not parts:
        return ""
    return _chapter(
        "A conversation that grows",
        "Turns with a tool each, through a window of 8,000 tokens. A caller *keeps* "
        "one list, and lets it be replaced where the\n"
        "peer does that; or it *resends* its whole history each time, as a stateless "
        "server does. *Never read*: messages that\n"
        "left the request and were never shown to the summarizer; litellm has none. "
        "Quotes come where a question\n"
        "bears on what was compacted, and no prompt cache holds them: compare the row "
        "without them. *A turn*: time with\n"
        "all that this benchmark itself does, two peers running at once. A peer that "
        "was stopped after so many seconds is not\n"
        "compared. The summarizer takes any length: a model of this window would "
        "refuse most of what is sent to it by those\n"
        "that summarise a whole history again.",
        *parts,
    )


def _grown(row: Results, names: list[str]) -> list[str]:
    if "answered" not in row:
        return [_failed(row), *[""] * 7]
    stopped = f" ({row['stopped']})" if "stopped" in row else ""
    spent = _time(row["seconds"] / max(1, row["answered"]) * 1e9)
    return [f"{row['answered']:,}{stopped}", *(f"{row[name]:,}" for name in names), spent]


def _answers(results: Results, _: Path) -> str:
    places = _places(results, "answers")
    if not places:
        return ""

    def cell(found: Results | None) -> str:
        if not found or "reached" not in found:
            return _failed(found)
        refused = f", {found['failed_calls']} calls refused" if found["failed_calls"] else ""
        return f"{found['reached']} of {found['asked']}{refused}"

    rows = [
        [peer, *(cell(results[place].get(peer)) for place in places)]
        for peer in _peers(results, places)
    ]
    ahead = [
        (place, _others(_figures(results, place, "reached"), lambda one, other: one > other))
        for place in places
    ]
    return _chapter(
        "Answers that reach the model",
        "Sixty facts of six made-up chats of 40,000 characters, stated in their first "
        "half among some hundred sentences of the\n"
        "same kind, and each asked for at the end: does the sentence stand in the "
        "request, word for word? The window is a share\n"
        "of the chat. The summarizer is the same for all, says again what fills a "
        "fifth of the window, and chooses evenly, which\n"
        "is chance: a good model's summary holds more. What is above that is what the "
        "peer itself keeps or finds again.",
        _table(
            ["the window is", *(f"{place.split('/')[1]} % of the chat" for place in places)], rows
        ),
        _lost(ahead),
        *_model(results),
    )


def _model(results: Results) -> list[str]:
    found = {peer: row for peer, row in results.get("model/40", {}).items() if "right" in row}
    if not found:
        return []
    rows = [
        [peer, *(f"{row[name]} of {row['asked']}" for name in ("reached", "right"))]
        for peer, row in found.items()
    ]
    ahead = [
        (
            said,
            _others(
                {peer: row[name] for peer, row in found.items()}, lambda one, other: one > other
            ),
        )
        for name, said in (("reached", "in the request"), ("right", "answered rightly"))
    ]
    said = (
        "With the demo's model of 135 million parameters writing the summaries and "
        "answering, chats of 7,000 characters in a\n"
        "window of two fifths of them, two questions each (`PEERS_ARGS=--model`). So "
        "small a model answers few questions even\n"
        "where the fact is before it:\n"
    )
    return [
        said,
        _table(["", "in the request", "answered rightly"], rows),
        _lost(ahead),
    ]


def _fault(results: Results, _: Path) -> str:
    places = [place for place in results if place.startswith("fault/")]
    if not places:
        return ""

    def cell(place: str, row: Results | None) -> str:
        if not row or "answered" not in row:
            return "hangs" if place == "fault/hangs" and "over" in _failed(row) else _failed(row)
        if not row["answered"]:
            return f"raises `{row['error']}`"
        return f"answers; {row['lost']} messages lost" if row["lost"] else "answers"

    peers = _peers(results, places)
    rows = [[peer, *(cell(place, results[place].get(peer)) for place in places)] for peer in peers]
    unharmed = [row[0] for row in rows if all(one == "answers" for one in row[1:])]
    return _chapter(
        "A summarizer that fails",
        "Two hundred messages, twice the window. *Lost*: left the history that the "
        "program keeps, with no summary of them.\n"
        "litellm trims and asks nobody. A summarizer that *hangs* answers after an "
        "hour; compacter (`timeout`) and\n"
        "context-guardian have a time limit for it, set to a second here, and the "
        "others rely on that of the model's client,\n"
        "after which it raises.",
        _table(["the summary is", *(place.split("/")[1] for place in places)], rows),
        f"Answers in all of these, and loses nothing: {', '.join(unharmed) or 'nobody'}.\n",
    )


def _pairs(results: Results, _: Path) -> str:
    places = _places(results, "pairs")
    names = ("cases", "broken", "gone", "raised")
    sums: dict[tuple[str, str], list[int]] = {}
    for place in places:
        for peer, found in results[place].items():
            for wire_format, row in found.items():
                if isinstance(row, dict):
                    old = sums.get((wire_format, peer), [0] * 4)
                    sums[wire_format, peer] = [
                        one + row[name] for one, name in zip(old, names, strict=True)
                    ]
    if not sums:
        return ""
    parts = []
    for wire_format in dict.fromkeys(wire_format for wire_format, _ in sums):
        found = {peer: row for (one, peer), row in sums.items() if one == wire_format}
        ahead = [
            (said, _others({peer: row[at] for peer, row in found.items()}, _less))
            for at, said in ((1, "broken"), (2, "last question gone"), (3, "raised"))
        ]
        table = _table(
            [wire_format, "compactions", "broken", "last question gone", "raised"],
            [[peer, *map(str, row)] for peer, row in found.items()],
        )
        parts += [table, _lost(ahead)]
    return _chapter(
        "Lists that a provider accepts",
        "Ten conversations shaped as real ones are (parallel calls, ids used again, "
        "one long turn, large messages), one compaction\n"
        "each at ten ratios. *Broken*: the list that goes out is one that the "
        "provider's rules refuse, as\n"
        "[`formats.py`](../benchmarks/peers/README.md) writes them down. The other "
        "formats are judged for those that take a\n"
        "provider's own messages; the rest have a type of their own and leave each "
        "provider to an adapter.",
        *parts,
    )


def _detect(results: Results, _: Path) -> str:
    found = {
        peer: row
        for peer, row in results.get("detect", {}).items()
        if "found" in row and peer != QUIET
    }
    if not found:
        return ""
    rows = [
        [peer, *(f"{hits} of {most}" for hits, most in (row["found"], row["alarms"]))]
        for peer, row in found.items()
    ]
    ahead = [
        (
            "found",
            _others(
                {peer: row["found"][0] for peer, row in found.items()},
                lambda one, other: one > other,
            ),
        ),
        ("false alarms", _others({peer: row["alarms"][0] for peer, row in found.items()}, _less)),
    ]
    return _chapter(
        "Is it a token limit?",
        "Errors that users of providers, gateways and servers have reported, each with its "
        "source\n([`errors.jsonl`](../benchmarks/errors.jsonl)). Most wordings were known when "
        "compacter's detector was written, as to the authors of the\nothers. Peers that do not "
        "look at errors are not here.",
        _table(["", "found", "false alarms"], rows),
        _lost(ahead),
    )


def _crowd(results: Results, _: Path) -> str:
    places = [place for place in ("crowd/tasks", "crowd/threads") if place in results]
    if not places:
        return ""
    parts = []
    for place in places:
        rows = []
        for peer, row in results[place].items():
            if "summaries" not in row:
                rows.append([peer, _failed(row), *[""] * 4])
                continue
            failed = f"{row['failed_calls']}" + (
                f" (`{row['error']}`)" if row["failed_calls"] else ""
            )
            rows.append(
                [
                    peer,
                    f"{row['summaries']:,}",
                    f"{row['least']:,}",
                    failed,
                    f"{row['mixed']}",
                    f"{row['seconds']:.1f} s",
                ]
            )
        said = (
            "1,000 tasks, 40 for each of 25 conversations"
            if place == "crowd/tasks"
            else "64 threads, 8 for each of 8"
        )
        head = [said, "summaries", "would suffice", "calls failed", "another's messages", "time"]
        parts.append(_table(head, rows))
        found = {peer: row for peer, row in results[place].items() if "summaries" in row}
        extra = {
            peer: row["summaries"] / max(1, row["least"])
            for peer, row in found.items()
            if row["least"]
        }
        spent = {peer: row["seconds"] for peer, row in found.items()}
        parts.append(
            _lost(
                [("summaries", _others(extra, _less)), ("time", _others(spent, _less, slack=1.1))]
            )
        )
    return _chapter(
        "Many callers at once",
        "The same overlong conversation is sent by several callers at the same moment, "
        "through one object where a peer's object\n"
        "is for more than one conversation, as branches of an agent or a client's "
        "retries do. A summary takes 20 ms. litellm\n"
        "makes none. Strands' and haystack's sync calls hold up an event loop; who has "
        "async methods alone has no threads here.\n"
        "LlamaIndex' memory is set and read in two steps, between which another task comes.",
        *parts,
    )


def _stream(results: Results, _: Path) -> str:
    found = results.get("stream", {})
    if not found:
        return ""
    rows = []
    for peer, row in found.items():
        if "first" not in row:
            rows.append([peer, _failed(row), *[""] * 3])
            continue
        inside = (
            row["inside"] if row["inside"] in {"answers", "broken"} else f"raises `{row['inside']}`"
        )
        rows.append([peer, _time(row["first"]), _time(row["chunk"]), f"{row['held']:.0f}", inside])
    ahead = [
        ("first token", _others(_figures(results, "stream", "first"), _less, slack=1.1)),
        ("each chunk", _others(_figures(results, "stream", "chunk"), _less, slack=1.1)),
        ("held back", _others(_figures(results, "stream", "held"), _less)),
    ]
    return _chapter(
        "Streams",
        "Two hundred chunks after 200 messages on which nothing happens: what is added "
        "to the first token and to each further\n"
        "chunk, and how many chunks of content wait for the next one. The others hand "
        "the stream through, so nothing is added to\n"
        "a chunk; they cannot mend what comes after the stream was opened either. "
        "Last: a refusal as the stream's first event,\n"
        "from a server whose window is smaller than was said.",
        _table(
            ["", "first token", "each chunk", "chunks held back", "refused inside the stream"], rows
        ),
        _lost(ahead),
    )


def _live(results: Results, _: Path) -> str:
    places = _places(results, "live")
    if not places:
        return ""
    parts = []
    for place in places:
        count, size = place.split("/")[1].split("x")
        rows = []
        found = results[place]
        for peer, row in found.items():
            if "bytes" not in row:
                rows.append([peer, _failed(row), *[""] * 4])
                continue
            again = f"{row['summaries_again']} of {row['asked']:,}"
            rows.append(
                [
                    peer,
                    f"{row['conversations']:,}",
                    f"{row['bytes']:,.0f} bytes",
                    _time(row["first"] * 1e6),
                    _time(row["again"] * 1e6),
                    again,
                ]
            )
        head = [
            "",
            "conversations",
            "kept a message",
            "the compacting call",
            "the next call",
            "summaries at the next call",
        ]
        parts += [
            f"### {int(count):,} conversations of {int(size):,} messages\n",
            _table(head, rows),
        ]
        names = {
            "bytes": "kept a message",
            "first": "the compacting call",
            "again": "the next call",
        }
        parts.append(
            _lost(
                [
                    (said, _others(_figures(results, place, name), _less, slack=1.1))
                    for name, said in names.items()
                ]
            )
        )
    return _chapter(
        "Many conversations",
        "Each is twice the window, compacted once, and sent again in full, as a server's "
        "clients do; as many of them as fit into\n"
        "four seconds. *Kept*: what `tracemalloc` counts beside the caller's own "
        "messages while the conversation lives, spread\n"
        "over all of its messages, the summary included; compacter's default memory "
        "ends at 64 MB and a thousand conversations,\n"
        "and drops first what it can make again ([memory](memory.md)). Who keeps "
        "nothing makes the summary again at the next call: where that\n"
        "takes no time, the summarizer answered at once.",
        *parts,
    )


def _weight(results: Results, _: Path) -> str:
    found = {
        peer: row
        for peer, row in results.get("weight", {}).items()
        if "mb" in row and peer != QUIET
    }
    if not found:
        return ""
    rows = []
    for peer, row in found.items():
        name, size = row["largest"]
        rows.append(
            [
                peer,
                f"{row['import_ms']:.0f} ms",
                f"{row['mb']:.0f} MB",
                str(row["packages"]),
                f"{name}, {size:.0f} MB",
            ]
        )
        if "without_litellm" in row:
            least = row["without_litellm"]
            name, size = least["largest"]
            rows.append(
                [
                    f"{peer}, litellm left out",
                    f"{row['import_ms']:.0f} ms",
                    f"{least['mb']:.0f} MB",
                    str(least["packages"]),
                    f"{name}, {size:.0f} MB",
                ]
            )
    names = {"import_ms": "import", "mb": "size", "packages": "packages"}
    ahead = [
        (said, _others({peer: row[name] for peer, row in found.items()}, _less, slack=1.1))
        for name, said in names.items()
    ]
    ours = found.get(OWN, {})
    ratio = ours["import_ms"] / ours["dependencies_ms"] if "dependencies_ms" in ours else None
    said = (
        "What importing takes (`import compacter; compacter.Compacter()`, of the "
        "others the class that compacts), in a process of\n"
        "its own, and what an installation weighs: the files of the wheels without "
        "extras, without bytecode. compacter works\n"
        "without litellm where no function of litellm is wrapped, and does not import it before."
    )
    if ratio:
        said += (
            f" Its import takes {ratio:.1f} times that of\nits dependencies alone "
            f"(pydantic, structlog, tenacity)."
        )
    return _chapter(
        "What it weighs",
        said,
        _table(["", "import", "installed", "packages", "of which the largest"], rows),
        _lost(ahead),
    )


def _settings(results: Results, _: Path) -> str:
    found = {
        place: results[place].get(OWN, {}) for place in results if place.startswith("settings/")
    }
    names = {
        "summaries": "summaries",
        "summary_tokens": "summarizer's tokens",
        "refused": "refused",
        "uncached": "uncached tokens",
        "reached 10": "of 60 facts at 10 %",
        "reached 20": "at 20 %",
    }
    rows = [
        [f"`{place.partition('/')[2]}`", *(f"{row[name]:,}" for name in names)]
        for place, row in found.items()
        if "reached 20" in row
    ]
    if not rows:
        return ""
    return _chapter(
        "Settings",
        "What compacter's own options change of the growing conversation (200 turns, "
        "resent) and of the facts that reach the\n"
        "model. Smaller quotes cost less and find less; larger ones find no more.\n"
        "`trigger_tokens` avoids the refusals.",
        _table(["", *names.values()], rows),
    )


_TAIL = (Path(__file__).parent / "tried.md").read_text(encoding="utf-8")


# -- pictures --------------------------------------------------------------------------------------


def bars(title: str, values: Mapping[str, float], shown: Callable[[float], str]) -> str:
    """A bar chart on a logarithmic scale, which follows the reader's light or dark theme."""
    ordered = sorted(values.items(), key=lambda pair: pair[1])
    least = math.log10(max(min(values.values(), default=1), 1e-9)) - 0.5
    most = math.log10(max(values.values(), default=10)) if values else 1
    height = 40 + 26 * len(ordered)
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {height}" role="img" '
            f'aria-label="{title}">'
        ),
        (
            "<style>text{font:13px "
            "system-ui,sans-serif;fill:#1f2328}.bar{fill:#8b949e}.own{fill:#0969da}"
        ),
        "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.bar{fill:#6e7681}.own{fill:#58a6ff}}</style>",
        f"<title>{title}</title>",
        f'<text x="8" y="20" font-weight="600">{title} (logarithmic)</text>',
    ]
    for number, (name, value) in enumerate(ordered):
        top = 34 + 26 * number
        width = 6 + 420 * (math.log10(max(value, 1e-9)) - least) / max(most - least, 1e-9)
        own = "own" if name == OWN else "bar"
        parts += [
            f'<text x="180" y="{top + 15}" text-anchor="end">{name}</text>',
            f'<rect class="{own}" x="188" y="{top + 2}" width="{width:.0f}" height="18" rx="3"/>',
            f'<text x="{194 + width:.0f}" y="{top + 15}">{shown(value)}</text>',
        ]
    return "\n".join([*parts, "</svg>\n"])


# -- the history -----------------------------------------------------------------------------------


def _remember(path: Path, whole: Results) -> None:
    """The version's line, in place of an earlier one of the same version."""
    line = ratios(whole)
    old = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    kept = [one for one in old if json.loads(one)["version"] != line["version"]]
    path.write_text("".join(f"{one}\n" for one in [*kept, json.dumps(line)]), encoding="utf-8")


def ratios(whole: Results) -> Results:
    """Ratios to the twenty lines, which no release of ours changes, and figures that no machine
    changes.
    """
    results = whole["results"]
    dates = [run["date"] for run in whole["rows"].values()]
    found: Results = {"date": max(dates, default=""), "version": whole["versions"].get(OWN, "")}
    for place, name in (
        ("idle/2000", "ns"),
        ("idle/2000", "async"),
        ("fold/2000", "ms"),
        ("grow/200/resend", "summary_tokens"),
        ("grow/200/keep", "uncached"),
    ):
        ours, theirs = (
            results.get(place, {}).get(peer, {}).get(name) for peer in (OWN, "twenty lines")
        )
        if ours and theirs:
            found[f"{place} {name} to twenty lines"] = round(ours / theirs, 4)
    plans = {
        size: results.get(f"plan/{size}", {}).get(OWN, {}).get("ms") for size in (2_000, 100_000)
    }
    if all(plans.values()):
        found["plan 100000 to 50 of 2000"] = round(plans[100_000] / plans[2_000] / 50, 3)
    for place, name in (("answers/10", "reached"), ("live/1000x1000", "bytes"), ("stream", "held")):
        if name in results.get(place, {}).get(OWN, {}):
            found[f"{place} {name}"] = round(results[place][OWN][name], 1)
    weight = results.get("weight", {}).get(OWN, {})
    if "dependencies_ms" in weight:
        found["import to its dependencies"] = round(
            weight["import_ms"] / weight["dependencies_ms"], 2
        )
    return found
