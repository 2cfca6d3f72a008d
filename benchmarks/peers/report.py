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
    """The tables of the page, whose sentences stay as they are; the charts; and for a release the
    line of the history.
    """
    results = whole["results"]
    page = root / "docs" / "benchmarks.md"
    text = page.read_text(encoding="utf-8")
    for title, table in tables(results).items():
        text = _replaced(
            text, rf"(?m)^## {re.escape(title)}\n\n[^|]*^(\|(?:.|\n)*?)\n(?=\n## |\Z)", table
        )
    text = _replaced(text, r"(?m)^(\d{4}-\d\d-\d\d.*, Python .*)$", machines(whole))
    page.write_text(text, encoding="utf-8")
    _draw(results, root / "docs" / "benchmarks")
    if release:
        _remember(root / "benchmarks" / "history.jsonl", whole)


def _replaced(text: str, pattern: str, new: str) -> str:
    """Return the text with the group of the only match replaced; raises ``ValueError`` if it does
    not match once.
    """
    found = list(re.finditer(pattern, text))
    if len(found) != 1:
        raise ValueError(f"docs/benchmarks.md has {len(found)} places for: {new[:80]}")
    return text[: found[0].start(1)] + new.rstrip("\n") + text[found[0].end(1) :]


# -- the page --------------------------------------------------------------------------------------


def tables(results: Results) -> dict[str, str]:
    """The tables by the titles of their sections, each with the line below it."""
    made = {
        "What an agent still knows": _tasks(results),
        "Answers that reach the model": _answers(results),
        "A caller that resends its whole history": _grow(results),
        "A summarizer that fails": _fault(results),
        "Is it a token limit?": _detect(results),
    }
    return {title: table for title, table in made.items() if table}


def machines(whole: Results) -> str:
    """The line that says when, where and with which versions the rows were measured."""
    runs = list(whole["rows"].values()) or [machine()]
    dates = sorted({run["date"] for run in runs})
    loads = [run["load"] for run in runs]
    last = runs[-1]
    named = [
        f"{name} {version}"
        for name, version in whole["versions"].items()
        if version and name != QUIET
    ]
    absent = ", ".join(whole["missing"])
    missing = (
        f" Not installed in the last run, so of an earlier one where they are here: {absent}."
        if absent
        else ""
    )
    return (
        f"{' to '.join(dict.fromkeys((dates[0], dates[-1])))}, Python {last['python']}, "
        f"{last['system']}, {last['cores']} cores, {min(loads)} to {max(loads)} processes wanting "
        f"one of them. Versions: {', '.join(named)}.{missing}"
    )


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [
        f"| {' | '.join(head)} |",
        f"|{'---|' * len(head)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


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


def _draw(results: Results, pictures: Path) -> None:
    """The charts of ``docs/charts.md``."""
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
    pictures.mkdir(exist_ok=True)
    for name, title, values, shown in charts:
        if values:
            (pictures / f"{name}.svg").write_text(bars(title, values, shown), encoding="utf-8")


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _tasks(results: Results) -> str:
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
    return "\n".join((_table(_TASKS, rows), _lost(ahead)))


_TASKS = ["", "right", "by the user", "by a tool", "by itself", "wrong", "tokens", "summarizer"]


def _more(one: float, other: float) -> bool:
    return one > other


def _grow(results: Results) -> str:
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
    return "\n".join((_table(["", "answered", *names.values(), "a turn"], rows), _lost(ahead)))


def _grown(row: Results, names: list[str]) -> list[str]:
    if "answered" not in row:
        return [_failed(row), *[""] * 7]
    stopped = f" ({row['stopped']})" if "stopped" in row else ""
    spent = _time(row["seconds"] / max(1, row["answered"]) * 1e9)
    return [f"{row['answered']:,}{stopped}", *(f"{row[name]:,}" for name in names), spent]


def _answers(results: Results) -> str:
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
    head = ["the window is", *(f"{place.split('/')[1]} % of the chat" for place in places)]
    return "\n".join((_table(head, rows), _lost(ahead)))


def _fault(results: Results) -> str:
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
    head = ["the summary is", *(place.split("/")[1] for place in places)]
    below = f"Answers in all of these, and loses nothing: {', '.join(unharmed) or 'nobody'}.\n"
    return "\n".join((_table(head, rows), below))


def _detect(results: Results) -> str:
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
    return "\n".join((_table(["", "found", "false alarms"], rows), _lost(ahead)))


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
