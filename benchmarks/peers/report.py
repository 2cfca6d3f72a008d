"""From results to ``docs/benchmarks.md``: tables, pictures in light and dark, and the line for the history."""

from __future__ import annotations

import json
import math
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Results = dict[str, Any]


def machine() -> dict[str, Any]:
    """Where and when."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "system": platform.system(),
        "cores": os.cpu_count(),
    }


def write(root: Path, whole: Results, *, release: bool) -> None:
    """The page, its pictures, and for a release the line of the history."""
    results = whole["results"]
    pictures = root / "docs" / "benchmarks"
    pictures.mkdir(exist_ok=True)
    page = [_HEAD.format(**whole["machine"], versions=_versions(whole), missing=_missing(whole))]
    page.append(_idle(results, pictures))
    page.append(_fold(results))
    page.append(_grow(results, pictures))
    page.append(_fault(results))
    page.append(_pairs(results))
    page.append(_detect(results))
    page.append(_TAIL)
    text = "\n".join(part for part in page if part)
    (root / "docs" / "benchmarks.md").write_text(text, encoding="utf-8")
    if release:
        with (root / "benchmarks" / "history.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(_ratios(whole)) + "\n")


# -- the page ----------------------------------------------------------------------------------------------------------

_HEAD = """\
# Benchmarks

The same work for compacter and for what else there is, in one run: `make peers`. Each peer is set up as its own manual
advises, in an [adapter](../benchmarks/peers/README.md) of at most 60 lines that says what was chosen and why. Rounds go
from one peer to the next, and the best round of each counts. A figure that is not ours to win is here all the same.

{date}, Python {python}, {system}, {cores} cores that were busy with other work: compare figures with each other, and do
not take them for your machine's. {versions}{missing}
"""

_TAIL = """\
## What was measured apart

In this run the summary that all were given repeated itself, which compacter refuses. So its rows of a whole compaction
and of the growing conversation were measured once more, after the others', with another summary of the same length, and
so were the times of LlamaIndex on a quiet call, whose adapter was wrong at first. A peer that is "over" some seconds was
stopped by a limit on a machine with ten times as much work as cores.

## What was not measured

deepagents and context-guardian have no adapter yet; the first is built on LangChain's middleware. Memory of many live
conversations, streams, concurrency and answers that reach the model are not part of this run:
[`benchmarks/`](../benchmarks/README.md) has programs for some of them.
"""


def _versions(whole: Results) -> str:
    named = [f"{name} {version}" for name, version in whole["versions"].items() if version]
    return f"Versions: {', '.join(named)}."


def _missing(whole: Results) -> str:
    return f" Not installed in this run: {', '.join(whole['missing'])}." if whole["missing"] else ""


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines) + "\n"


def _time(nanoseconds: float) -> str:
    if nanoseconds < 1_000:
        return f"{nanoseconds:.0f} ns"
    for unit, size in (("us", 1e3), ("ms", 1e6), ("s", 1e9)):
        if nanoseconds < size * 1_000 or unit == "s":
            return f"{nanoseconds / size:.3g} {unit}"
    return ""


def _cell(found: Results | None, name: str, scale: float) -> str:
    if found is None:
        return "-"
    return _time(found[name] * scale) if name in found else str(found.get("failed", "-")).split(":")[0]


def _matrix(results: Results, kind: str, name: str, scale: float) -> tuple[list[str], list[list[str]]]:
    places = [place for place in results if place.startswith(f"{kind}/")]
    peers = list(dict.fromkeys(peer for place in places for peer in results[place]))
    rows = [[peer, *(_cell(results[place].get(peer), name, scale) for place in places)] for peer in peers]
    return [f"{int(place.split('/')[1]):,} messages" for place in places], rows


def _idle(results: Results, pictures: Path) -> str:
    head, rows = _matrix(results, "idle", "ns", 1)
    values = {peer: found["ns"] for peer, found in results.get("idle/2000", {}).items() if "ns" in found}
    (pictures / "idle.svg").write_text(bars("Time added to a call with nothing to do, 2,000 messages", values, _time))
    return (
        "## A call on which nothing happens\n\nTime added to the bare call. A peer that waits for the provider's refusal "
        "adds a `try`; one that counts\nbefore each call pays for each message. compacter binds arguments, looks for "
        "earlier compactions, and learns from the\nreply's usage.\n\n"
        f"![Time added to a call]({pictures.name}/idle.svg)\n\n{_table(['', *head], rows)}"
    )


def _fold(results: Results) -> str:
    head, rows = _matrix(results, "plan", "ms", 1e6)
    text = (
        "## One compaction\n\nChoosing what to fold, which `Compacter.plan` does alone; the others do not tell it apart from "
        f"the rest:\n\n{_table(['', *head], rows)}"
    )
    head, rows = _matrix(results, "fold", "ms", 1e6)
    return (
        f"{text}\nThe whole, with a summarizer that answers at once. compacter also checks the list that goes out "
        "against the provider's\nrules, checks the summary's claims, and fills what is left of its room with lines quoted "
        f"from the conversation; a real\nsummary takes seconds.\n\n{_table(['', *head], rows)}"
    )


def _grow(results: Results, pictures: Path) -> str:
    head = [
        "",
        "answered",
        "summaries",
        "summarizer's tokens",
        "refused",
        "uncached tokens",
        "broken lists",
        "never read",
    ]
    text = (
        "## A conversation that grows\n\nTurns with a tool each, through a window of 8,000 tokens. A caller *keeps* one "
        "list, and lets it be replaced where the\npeer does that; or it *resends* its whole history each time, as a "
        "stateless server does. *Never read*: messages that\nleft the request and were never shown to the summarizer. "
        "compacter's quotes of what was folded ([recall](recall.md)) are new with each\nquestion, so no prompt cache holds "
        "them: they are most of its uncached tokens, and `recall=None` turns them off. No peer\nquotes.\n"
    )
    for place, found in results.items():
        kind, *rest = place.split("/")
        if kind != "grow":
            continue
        style = "resends its whole history" if rest[1] == "resend" else "keeps one list"
        rows = []
        for peer, row in found.items():
            if "answered" not in row:
                rows.append([peer, str(row.get("failed", "-")), *[""] * 6])
                continue
            names = ("summaries", "summary_tokens", "refused", "uncached", "broken", "lost")
            stopped = f" ({row['stopped']})" if "stopped" in row else ""
            rows.append([peer, f"{row['answered']}{stopped}", *(f"{row[name]:,}" for name in names)])
        text += f"\n### {int(rest[0]):,} turns, a caller that {style}\n\n{_table(head, rows)}"
        if rest == ["200", "resend"]:
            values = {peer: float(row["summary_tokens"]) for peer, row in found.items() if row.get("summaries")}
            svg = bars("Tokens that summaries cost, 200 turns, history resent", values, lambda value: f"{value:,.0f}")
            (pictures / "grow.svg").write_text(svg)
            text += f"\n![Tokens that summaries cost]({pictures.name}/grow.svg)\n"
    return text


def _fault(results: Results) -> str:
    places = [place for place in results if place.startswith("fault/")]
    peers = list(dict.fromkeys(peer for place in places for peer in results[place]))

    def cell(row: Results | None) -> str:
        if row is None or "answered" not in row:
            return str((row or {}).get("failed", "-")).split(":")[0]
        if not row["answered"]:
            return f"raises `{row['error']}`"
        return f"answers; {row['lost']} messages lost" if row["lost"] else "answers"

    rows = [[peer, *(cell(results[place].get(peer)) for place in places)] for peer in peers]
    return (
        "## A summarizer that fails\n\nTwo hundred messages, twice the window. *Lost*: left the history that the program "
        "keeps, with no summary of them.\nlitellm trims and asks nobody.\n\n"
        f"{_table(['the summary is', *(place.split('/')[1] for place in places)], rows)}"
    )


def _pairs(results: Results) -> str:
    places = [place for place in results if place.startswith("pairs/")]
    peers = list(dict.fromkeys(peer for place in places for peer in results[place]))
    rows = []
    for peer in peers:
        found = [results[place].get(peer) or {} for place in places]
        names = ("cases", "broken", "question", "raised")
        rows.append([peer, *(str(sum(one.get(name, 0) for one in found)) for name in names)])
    return (
        "## Lists that a provider accepts\n\nTen conversations shaped as real ones are (parallel calls, ids used again, "
        "one long turn, large messages), one compaction\neach at ten ratios. *Broken*: the list that goes out is one that "
        "OpenAI's rules refuse.\n\n"
        f"{_table(['', 'compactions', 'broken', 'last question gone', 'raised'], rows)}"
    )


def _detect(results: Results) -> str:
    rows = []
    for peer, found in results.get("detect", {}).items():
        if "found" in found:
            shares = [f"{hits / most:.0%} of {most}" for hits, most in (found["found"], found["alarms"])]
            rows.append([peer, *shares])
    if not rows:
        return ""
    return (
        "## Is it a token limit?\n\nReal error texts of providers, gateways and servers; those of others' that do not look "
        "at errors are not here. The texts\nare third parties' and not part of this project, and compacter's detector was "
        "written with them at hand, so expect a\nlittle less on texts that it has not seen. One of them is told by an exception group alone, "
        "which this run does not build.\n\n"
        f"{_table(['', 'found', 'false alarms'], rows)}"
    )


# -- pictures ----------------------------------------------------------------------------------------------------------


def bars(title: str, values: dict[str, float], shown: Any) -> str:
    """A bar chart on a logarithmic scale, which follows the reader's light or dark theme."""
    ordered = sorted(values.items(), key=lambda pair: pair[1])
    least = math.log10(max(min(values.values(), default=1), 1e-9)) - 0.5
    most = math.log10(max(values.values(), default=10)) if values else 1
    height = 40 + 26 * len(ordered)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {height}" role="img" aria-label="{title}">',
        "<style>text{font:13px system-ui,sans-serif;fill:#1f2328}.bar{fill:#8b949e}.own{fill:#0969da}",
        "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.bar{fill:#6e7681}.own{fill:#58a6ff}}</style>",
        f"<title>{title}</title>",
        f'<text x="8" y="20" font-weight="600">{title} (logarithmic)</text>',
    ]
    for number, (name, value) in enumerate(ordered):
        top = 34 + 26 * number
        width = 6 + 420 * (math.log10(max(value, 1e-9)) - least) / max(most - least, 1e-9)
        own = "own" if name == "compacter" else "bar"
        parts += [
            f'<text x="180" y="{top + 15}" text-anchor="end">{name}</text>',
            f'<rect class="{own}" x="188" y="{top + 2}" width="{width:.0f}" height="18" rx="3"/>',
            f'<text x="{194 + width:.0f}" y="{top + 15}">{shown(value)}</text>',
        ]
    return "\n".join([*parts, "</svg>\n"])


# -- the history -------------------------------------------------------------------------------------------------------


def _ratios(whole: Results) -> Results:
    """Ratios to the twenty lines, which no release of ours changes."""
    results, version = whole["results"], whole["versions"].get("compacter", "")
    found: Results = {"date": whole["machine"]["date"], "version": version, "compared with": "twenty lines"}
    for place, name in (
        ("idle/2000", "ns"),
        ("plan/2000", "ms"),
        ("fold/2000", "ms"),
        ("grow/200/resend", "summary_tokens"),
        ("grow/200/keep", "uncached"),
    ):
        ours, theirs = (results.get(place, {}).get(peer, {}).get(name) for peer in ("compacter", "twenty lines"))
        if ours and theirs:
            found[f"{place} {name}"] = round(ours / theirs, 4)
    return found
