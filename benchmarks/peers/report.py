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
    chapters = (_tasks, _answers, _grow, _fault, _detect)
    page = [_head(whole), *(chapter(results, pictures) for chapter in chapters)]
    (root / "docs" / "benchmarks.md").write_text(
        "\n".join(part for part in page if part), encoding="utf-8"
    )
    (root / "docs" / "charts.md").write_text(_charts(results, pictures), encoding="utf-8")
    if release:
        _remember(root / "benchmarks" / "history.jsonl", whole)


# -- the page --------------------------------------------------------------------------------------

_HEAD = """\
# Benchmarks

Each figure is written by the program that measured it, into [`figures.json`](../benchmarks/figures.json) or
`results.json` and from there into this page. [`benchmarks/README.md`](../benchmarks/README.md) has the times and the rest.

## A real model

A model of 1.5 billion parameters (Qwen2.5-Coder, on the processor, temperature 0) is the clerk of a ferry: it reads notes
until they no longer fit in a window of 2,048 tokens, and then sends cars to their lanes with a tool. An answer
is right if it names the right tool and lane; 12 cars a run, seeds 1 and 2. `make bench-model` (1.1 GB, an hour).

| | right |
|---|---|
| full history, window 16,384 | - of - |
| the usual loop | - of - |
| compacter, the model summarizes | - of - |
| compacter, no summarizer | - of - |

A dash was not run yet. *The usual loop* is what everybody writes first: catch the error, summarize the oldest 70 %, retry.

## Public benchmarks, offline

| | in the request | |
|---|---|---|
| LoCoMo, window 10 % | - of - answers | - with `recall=None` |
| COMPINT, window 25 % | - % of - | inside a message in the middle - % |

[LoCoMo](https://arxiv.org/abs/2402.17753): questions about chats of months. An answer counts if its words
stand in one line of the request; there is no summarizer (`python benchmarks/locomo.py --share 0.1`). [COMPINT](https://arxiv.org/abs/2608.11242):
constraints that a user states in passing, in four
wordings. The summarizer leaves them out (`python benchmarks/constraints.py --share 0.25`, chats drawn with seed 5). Each program says at its top which files it needs.

Where others do better: in the table of `compaction-conformance-kit`, which `make peers` does not install, `compact` by
hand comes fourth to fifth, behind checklists that know its labels. It was tried by hand, so its figures are not here.

## What stands of a model's summary

Nine summaries in the forms and languages that models choose: sections, prose, a handoff, a table, JSON, tags, German,
French, Japanese. The next request has - % of their sentences, and - of - summaries whole. The summaries also have orders
that nobody gave: - of these stand there as a rule or under a speaker. `python benchmarks/kept.py`; nothing in it is drawn by chance.

## Beside others

The same work for compacter and for what else there is, in one run: `make peers`. Each peer is set up as its own manual
advises, in an [adapter](https://github.com/m-mizutani/gollem) of at most 90 lines that says what was chosen and why. If a
peer does better, the line under the table names it.

*compacter without quotes* is compacter with `recall=None`: no peer quotes what was compacted ([recall](recall.md)).
*gollem (port)* is the Go middleware that compacter is modelled on, ported from its documented behaviour. More figures
(times, streams, many callers, memory, pairing rules, installed sizes) are in `results.json` beside the adapters;
[three charts](charts.md) show times and costs.

{machine}. {versions}{missing} The rows of compacter about facts, answers, failures and errors are of 2026-11-28; those of
the peers and all times are of 2026-11-26.

Not shown: what a large model does with what is in its request, and the summaries that it would write.
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
    return f"Ahead of compacter here: {'; '.join(told)}.\n" if told else ""


def _figures(results: Results, place: str, name: str) -> dict[str, float]:
    return {peer: found[name] for peer, found in results.get(place, {}).items() if name in found}


def _less(one: float, other: float) -> bool:
    return one < other


# -- the chapters ----------------------------------------------------------------------------------


def _charts(results: Results, pictures: Path) -> str:
    """The page of charts, and the charts."""
    idle = _figures(results, "idle/2000", "ns")
    fold = {peer: ms * 1e6 for peer, ms in _figures(results, "fold/2000", "ms").items()}
    grown = results.get("grow/200/resend", {})
    spent = {
        peer: float(row["summary_tokens"]) for peer, row in grown.items() if row.get("summaries")
    }
    charts = (
        ("idle", "Time added to a call with nothing to do, 2,000 messages", idle, _time),
        ("compaction", "One compaction of 2,000 messages", fold, _time),
        ("grow", "Tokens that summaries cost, 200 turns, history resent", spent, _count),
    )
    parts = [_CHARTS]
    for name, title, values, shown in charts:
        if values:
            (pictures / f"{name}.svg").write_text(bars(title, values, shown), encoding="utf-8")
            parts.append(f"![{title}]({pictures.name}/{name}.svg)\n")
    return "\n".join(parts)


_CHARTS = """\
# Charts

From the same run as [the tables](benchmarks.md). *usual loop* and *gollem (port)* wait for a refusal and add a `try` to a call. compacter
binds arguments, looks for earlier compactions and learns from the reply's usage. A library that counts before each call
pays for each message. The summarizer here answers at once; a real one takes seconds.
"""


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _tasks(results: Results, _: Path) -> str:
    """The kinder of two summarizers for each peer."""
    places = _places(results, "tasks")
    kinder: dict[str, tuple[str, Results]] = {}
    for place in places:
        for peer, row in results[place].items():
            old = kinder.get(peer)
            if old is None or row.get("right", -1) > old[1].get("right", -1):
                kinder[peer] = (place.split("/")[1], row)
    if not kinder:
        return ""
    base = kinder.get("usual loop", ("", {}))[1].get("sent", 0)
    rows = []
    for peer in _peers(results, places):
        kind, row = kinder[peer]
        if "right" not in row:
            rows.append([peer, _failed(row), *[""] * 6])
            continue
        shares = [f"{row[name]:.2f}" for name in ("right", "user", "tool", "agent", "wrong")]
        tokens = f"{row['sent'] / base:.2f}" if base and not row["stopped"] else row["stopped"]
        rows.append([peer, *shares, tokens, kind])
    ahead = [
        (
            "right",
            _others(
                {peer: row["right"] for peer, (_, row) in kinder.items() if "right" in row}, _more
            ),
        )
    ]
    return _chapter("What an agent still knows", _ABOUT_TASKS, _table(_TASKS, rows), _lost(ahead))


_TASKS = ["", "right", "by the user", "by a tool", "by itself", "wrong", "tokens", "summarizer"]
_ABOUT_TASKS = """\
An agent works 240 steps, about six windows of 8,192 tokens. Forty-five facts of nine kinds come up in the first half of
each of two worlds (seed 1): ids, numbers, files, rules, corrections, decisions, errors, todo lists. Each is needed once in
the last quarter; the user, a tool's result or the agent's own sentence asks for it. A program plays the model
([`tasks.py`](../benchmarks/tasks.py)) and acts on the newest statement in its request. *Right* is the newest statement,
*wrong* an outdated one; a need counts as *distracted*, not right, if something stands behind the program's newest message
(none of compacter's). *Tokens* are the tokens sent, as a multiple of the
usual loop's. Two programs write the summaries: *even* takes
lines by chance, *attentive* gives half of its room to sentences; each row has the one that suits the peer better."""


def _more(one: float, other: float) -> bool:
    return one > other


def _grow(results: Results, _: Path) -> str:
    names = {
        "summaries": "summaries",
        "summary_tokens": "summarizer's tokens",
        "refused": "refused",
        "uncached": "uncached tokens",
        "broken": "broken lists",
        "lost": "never read",
    }
    found = results.get("grow/200/resend", {})
    if not found:
        return ""
    rows = [[peer, *_grown(row, list(names))] for peer, row in found.items()]
    whole = {peer: row for peer, row in found.items() if row.get("answered") == 200}
    ahead = [
        (said, _others({peer: row[name] for peer, row in whole.items()}, _less))
        for name, said in names.items()
    ]
    if OWN not in whole:
        ahead = [("all turns answered", list(whole))]
    return _chapter(
        "A caller that resends its whole history",
        "As a stateless server does: 200 turns with a tool each, through a window of 8,000 tokens. "
        "If the\ncaller keeps one compacted list, the usual loop makes about as many summaries as "
        "compacter. *Never read*: messages that left the\nrequest and that no summarizer read. "
        "This summarizer takes any length. A model with this window would refuse most requests "
        "of\nthe peers that summarize the whole history each time.",
        _table(["", "answered", *names.values(), "a turn"], rows),
        _lost(ahead),
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
        "same kind, and each asked for at the end. A fact counts if its sentence is in the request, "
        "word for word. The window is a share\nof the chat. All have the same summarizer, which picks "
        "lines at random; a good model's summary has more facts.",
        _table(
            ["the window is", *(f"{place.split('/')[1]} % of the chat" for place in places)], rows
        ),
        _lost(ahead),
    )


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
        "litellm trims and asks nobody. *Hangs*: it answers after an hour. compacter "
        "(`timeout`) and context-guardian stop\n"
        "waiting after a second; the others wait for their client's timeout, and then raise.",
        _table(["the summary is", *(place.split("/")[1] for place in places)], rows),
        f"Answers in all of these, and loses nothing: {', '.join(unharmed) or 'nobody'}.\n",
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
        "source\n([`errors.jsonl`](../benchmarks/errors.jsonl)). The authors of all these "
        "detectors knew most of the wordings. Peers\nthat do not look at errors are left out.",
        _table(["", "found", "false alarms"], rows),
        _lost(ahead),
    )


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
    """Ratios to the usual loop, which no release of ours changes, and figures that no machine
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
            results.get(place, {}).get(peer, {}).get(name) for peer in (OWN, "usual loop")
        )
        if ours and theirs:
            found[f"{place} {name} to usual loop"] = round(ours / theirs, 4)
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
