"""The figures that pages state: one file for all of them, and the sentences that have them.

``make bench`` and ``make peers`` end with this program. It takes the JSON lines of the benchmarks
that were run (``build/bench``) and the results of the peers into ``figures.json``, and then writes
the figures into the sentences of README, manual and site. ``tests/test_figures.py`` holds both
together, so a figure is never changed by hand: run the benchmark again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Figures = dict[str, Any]

ROOT = Path(__file__).parent.parent
FILE = ROOT / "benchmarks" / "figures.json"
CHART = ROOT / "docs" / "images" / "proof.svg"
PEERS = ROOT / "benchmarks" / "peers" / "results.json"
OUTPUTS = ROOT / "build" / "bench"
"""Output of each program of the last ``make bench``, as ``overhead.txt``."""
OURS = ("compacter", "compacter without quotes")
LOOPS = ("usual loop", "gollem (port)")
"""Peers that are no libraries, but written by hand."""
_WORDS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
_WORDS += ["eleven", "twelve", "thirteen", "fourteen", "fifteen"]

SENTENCES = (
    (
        "README.md",
        "| {model_compacter} of {model_asked} | the usual loop {model_loop} of {model_asked}; ",
    ),
    ("README.md", "; the whole history in a large window {model_full} |"),
    ("README.md", "| {right} | the usual loop {usual}; the best of {libraries} libraries {next} |"),
    ("README.md", "Users have reported {limits} errors that mean "),
    ("README.md", " are recognized, with {alarms} false alarms: "),
    ("README.md", "| {found} of {limits} | the best other detector: {best_found} of {limits}, "),
    ("README.md", "best other detector: {best_found} of {limits}, {best_alarms} false alarms |"),
    (
        "README.md",
        "right of {model_asked}: the usual loop {model_loop}, the whole history in a large window ",
    ),
    (
        "README.md",
        ', the whole history in a large window {model_full}, compacter {model_compacter}" src',
    ),
    ("README.md", "(docs/benchmarks.md#what-it-costs) {dollars_extractive} dollars with it, "),
    ("README.md", " dollars with it, {dollars_compacter} with a model's summaries, "),
    ("README.md", " a model's summaries, {dollars_whole} with the whole history |"),
    ("docs/benchmarks.md", "; 12 cars a run, {model_seeds}. `make bench-model`"),
    ("docs/benchmarks.md", "| full history, window 16,384 | {model_full} of {model_asked} |"),
    ("docs/benchmarks.md", "| the usual loop | {model_loop} of {model_asked} |"),
    (
        "docs/benchmarks.md",
        "| compacter, the model summarizes | {model_compacter} of {model_asked} |",
    ),
    ("docs/benchmarks.md", "| compacter, no summarizer | {model_extractive} of {model_asked} |"),
    ("docs/benchmarks.md", "| LoCoMo, window 10 % | {locomo} of {locomo_asked} answers | "),
    ("docs/benchmarks.md", " answers | {locomo_without} with `recall=None` |"),
    ("docs/benchmarks.md", "| COMPINT, window 25 % | {constraints} % of {constraints_asked} | "),
    ("docs/benchmarks.md", " | inside a message in the middle {constraints_middle} % |"),
    ("docs/benchmarks.md", "The next request has {kept_share} % of their sentences, and "),
    ("docs/benchmarks.md", " sentences, and {kept_whole} of {kept_summaries} summaries whole. "),
    ("docs/benchmarks.md", "\nthat nobody gave: {kept_authority} of these stand there as a rule"),
    ("docs/benchmarks.md", "| the whole history, in a window that holds it | {cost_whole} |"),
    ("docs/benchmarks.md", "| cut: the oldest 70 % dropped | {cost_cut} |"),
    ("docs/benchmarks.md", "| the usual loop | {cost_loop} |\n"),
    ("docs/benchmarks.md", "\n| compacter | {cost_compacter} |\n"),
    ("docs/benchmarks.md", "| compacter, summaries of transcripts | {cost_transcripts} |"),
    ("docs/benchmarks.md", "| compacter, `for_agents()` | {cost_agents} |"),
    ("docs/benchmarks.md", '| compacter, `summarizer="extractive"` | {cost_extractive} |'),
    ("docs/index.md", "the same work for compacter and {others} others |"),
    (
        "docs/events.md",
        "\n{hook} microseconds for 100 messages of a chat, {hook_agent} for an agent's.",
    ),
    (
        "docs/detector.md",
        "Of the {limits} token limits among them it finds {found}, with",
    ),
    ("benchmarks/README.md", "with compacter and {others} others: `make peers`"),
    ("benchmarks/README.md", "| sync | {sync} microseconds (the least that any wrapper can do: "),
    ("benchmarks/README.md", "(the least that any wrapper can do: {sync_any}) |"),
    ("benchmarks/README.md", "| async | {async} microseconds ({async_any}) |"),
    ("benchmarks/README.md", "| an `on_event` hook | {hook} | {hook_agent} | {hook_1000} |"),
    ("benchmarks/README.md", "| `trigger_tokens` | {trigger} | | {trigger_1000} |"),
    ("benchmarks/README.md", "| compacter | {grow_compacter} |"),
    ("benchmarks/README.md", "| compacter, `recall=None` | {grow_quiet} |"),
    ("benchmarks/README.md", "| compacter, `memory=None` | {grow_forgetful} |"),
    ("benchmarks/README.md", "| the usual loop | {grow_loop} |"),
)
"""Page, and a sentence of it with names of figures, which begins and ends with other words."""


def collect() -> Figures:
    """Return the figures, with those of what was run last."""
    figures: Figures = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    for output in sorted(OUTPUTS.glob("*.txt")):
        *_, last = output.read_text(encoding="utf-8").splitlines()
        found = json.loads(last)
        if "skipped" not in found:
            figures[output.stem] = found
    figures["peers"] = of_peers(json.loads(PEERS.read_text(encoding="utf-8"))["results"])
    return dict(sorted(figures.items()))


def of_peers(results: Figures) -> Figures:
    """Return what pages state of the results of ``make peers``."""
    others = [name for name in results["answers/10"] if name not in OURS]
    resend = results["grow/200/resend"]
    keep = results["grow/200/keep"]
    weight = results["weight"]["compacter"]
    tasks = [results["tasks/even"], results["tasks/attentive"]]
    kinder = {
        name: max((row[name] for row in tasks), key=lambda row: row["right"])
        for name in ("compacter", *others)
    }
    detect = {name: row for name, row in results["detect"].items() if name not in OURS}
    best = max(detect.values(), key=lambda row: row["found"][0] / row["found"][1])
    return {
        "others": len(others),
        "libraries": len([name for name in others if name not in LOOPS]),
        "answers": {
            "asked": results["answers/10"]["compacter"]["asked"],
            "compacter": results["answers/10"]["compacter"]["reached"],
            "best_other": max(results["answers/10"][name]["reached"] for name in others),
            "compacter_at_20": results["answers/20"]["compacter"]["reached"],
            "best_other_at_20": max(results["answers/20"][name]["reached"] for name in others),
        },
        "tasks": {
            "compacter": kinder["compacter"]["right"],
            "usual_loop": kinder["usual loop"]["right"],
            "best_other": max(kinder[name]["right"] for name in others if name != "usual loop"),
            "tokens": kinder["compacter"]["sent"] / kinder["usual loop"]["sent"],
        },
        "summaries": {
            "resend": [resend[name]["summaries"] for name in ("compacter", "usual loop")],
            "keep": [keep[name]["summaries"] for name in ("compacter", "usual loop")],
        },
        "detect": {
            "others": len(detect),
            "compacter": results["detect"]["compacter"],
            "best_other": best,
        },
        "megabytes": {
            "whole": round(weight["mb"]),
            "without_litellm": round(weight["without_litellm"]["mb"]),
        },
    }


def stated(figures: Figures) -> dict[str, str]:
    """Return the figures as pages write them."""
    peers = figures["peers"]
    answers = peers["answers"]
    detector = figures["detector"]
    best = peers["detect"]["best_other"]
    ours, theirs = peers["summaries"]["resend"]
    asking = figures["locomo"]
    constraints = figures["constraints"]
    kept = figures["kept"]
    tasks = figures["tasks"]["tasks"]["rows"]
    quiet = {row["messages"]: row for row in figures["overhead"]["added_us"]}
    watched = {row["messages"]: row for row in figures["overhead"]["watched_us"]}
    most = max(row[kind] for row in quiet.values() for kind in ("sync", "async"))
    return {
        "libraries": _WORDS[peers["libraries"]],
        "others": _WORDS[peers["others"]],
        "kept": str(answers["compacter"]),
        "asked": str(answers["asked"]),
        "best": str(answers["best_other"]),
        "kept20": str(answers["compacter_at_20"]),
        "best20": str(answers["best_other_at_20"]),
        **_of_model(figures.get("real_agent")),
        **_of_growing(figures["growing"]),
        **_of_cost(figures["cost"]["cost"]["ways"]),
        "locomo": str(asking["found"]["with quotes"]),
        "locomo_without": str(asking["found"]["recall=None"]),
        "locomo_asked": str(asking["asked"]),
        "constraints": _percent(constraints["kept"]),
        "constraints_middle": _percent(constraints["places"]["inside, middle"]),
        "constraints_asked": f"{constraints['asked']:,}",
        "kept_share": _percent(kept["kept"]),
        "kept_whole": str(kept["whole"]),
        "kept_summaries": str(kept["summaries"]),
        "kept_refused": str(kept["refused"]),
        "kept_authority": str(kept["authority"]),
        "distracted": f"{tasks['compacter, even']['distracted']:.2f}",
        "right": f"{peers['tasks']['compacter']:.2f}",
        "usual": f"{peers['tasks']['usual_loop']:.2f}",
        "next": f"{peers['tasks']['best_other']:.2f}",
        "tokens": f"{peers['tasks']['tokens']:.2f}",
        "resend": str(theirs // ours),
        "texts": str(detector["token_limits"] + detector["other_errors"]),
        "providers": str(detector["providers"]),
        "found": str(detector["found"]["compacter"]),
        "limits": str(detector["token_limits"]),
        "alarms": _WORDS[detector["alarms"]["compacter"]],
        "detectors": _WORDS[peers["detect"]["others"]],
        "best_found": str(best["found"][0]),
        "best_alarms": _WORDS[best["alarms"][0]],
        "quiet": "less than a microsecond" if most < 1 else f"{most:.1f} microseconds",
        "sync": f"{quiet[100]['sync']:.2f}",
        "sync_any": f"{quiet[100]['sync_any']:.2f}",
        "async": f"{quiet[100]['async']:.2f}",
        "async_any": f"{quiet[100]['async_any']:.2f}",
        "hook": f"{watched[100]['on_event']:.0f}",
        "hook_agent": f"{watched[100]['on_event_agent']:.0f}",
        "hook_1000": f"{watched[1000]['on_event']:.0f}",
        "trigger": f"{watched[100]['trigger_tokens']:,.0f}",
        "trigger_1000": f"{watched[1000]['trigger_tokens']:,.0f}",
    }


def _percent(share: float) -> str:
    return f"{share * 100:.0f}"


def _of_model(found: Figures | None) -> dict[str, str]:
    """Return what a real model got right over all seeds; dashes if it was never run."""
    names = {
        "model_full": "full history",
        "model_loop": "loop",
        "model_compacter": "compacter",
        "model_extractive": "compacter, no model",
    }
    rows = found["rows"] if found else []
    ways = {way: [row for row in rows if row["way"] == way] for way in names.values()}
    right = {
        way: str(sum(row["right"] for row in each) if each else "-") for way, each in ways.items()
    }
    asked = max((sum(row["of"] for row in each) for each in ways.values()), default=0)
    seeds = [str(seed) for seed in sorted({row["seed"] for row in rows})]
    return {
        **{name: right[way] for name, way in names.items()},
        "model_asked": str(asked or "-"),
        "model_seeds": f"seed{'s' * (len(seeds) > 1)} {' and '.join(seeds) or '-'}",
    }


def _of_growing(rows: list[Figures]) -> dict[str, str]:
    """Return a row of the table for each way."""
    names = ("grow_compacter", "grow_quiet", "grow_forgetful", "grow_loop")
    columns = ("requests", "refused", "summaries", "summarizer_tokens", "uncached_tokens")
    cells = (" | ".join(f"{row[column]:,}" for column in columns) for row in rows)
    return dict(zip(names, cells, strict=True))


def _of_cost(rows: list[Figures]) -> dict[str, str]:
    """Return dollars and known names of each way, for each window."""
    names = {
        "cost_whole": "the whole history",
        "cost_cut": "cut: the newest 30 %",
        "cost_loop": "the usual loop",
        "cost_compacter": "compacter",
        "cost_transcripts": "compacter, transcripts",
        "cost_agents": "compacter, for_agents()",
        "cost_extractive": "compacter, extractive",
    }
    cells = {
        way: [f"{row['dollars']:.2f} | {row['known']:.1%}" for row in rows if row["way"] == way]
        for way in names.values()
    }
    said = {name: " | ".join(cells[way]).replace("%", " %") for name, way in names.items()}
    dollars = {name.replace("cost", "dollars"): row.partition(" ")[0] for name, row in said.items()}
    return said | dollars


def pattern(sentence: str) -> re.Pattern[str]:
    """Return what matches a sentence with any figures."""
    cells = re.sub(r"\\\{(grow|cost)_\w+\\\}", r"[\\d.,|% ]+", re.escape(sentence))
    return re.compile(re.sub(r"\\\{\w+\\\}", r"[^|\\n]+?", cells))


_STYLE = """\
text { font: 15px system-ui, sans-serif; fill: #24292f; }
.bar { fill: #8c959f; }
.ours { fill: #1a7f37; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .bar { fill: #6e7681; }
  .ours { fill: #3fb950; }
}
"""
_BARS = (
    ("the usual loop", "model_loop"),
    ("whole history, large window", "model_full"),
    ("compacter, without a summarizer", "model_extractive"),
    ("compacter", "model_compacter"),
)


def chart(said: Mapping[str, str]) -> str:
    """Return a bar for each way in which the real model was tried, as SVG."""
    lines = []
    for row, (label, name) in enumerate(_BARS):
        y = 44 + 30 * row
        right = said[name]
        width = 340 * int(right) / int(said["model_asked"]) if right.isdigit() else 0
        kind = "ours" if label.startswith("compacter") else "bar"
        lines += [
            f'<text x="270" y="{y + 15}" text-anchor="end">{label}</text>',
            f'<rect class="{kind}" x="282" y="{y}" width="{width:.0f}" height="20" rx="2"/>',
            f'<text x="{292 + width:.0f}" y="{y + 15}">{right}</text>',
        ]
    title = f"A real model as an agent: right of {said['model_asked']}"
    return "\n".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 170" role="img">',
            f"<title>{title}</title>",
            f"<style>\n{_STYLE}</style>",
            f'<text x="10" y="24">{title}</text>',
            *lines,
            "</svg>\n",
        ]
    )


def main() -> None:
    """Write ``figures.json`` and the pages. Raises ``SystemExit`` if a page lacks its sentence."""
    figures = collect()
    FILE.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    said = stated(figures)
    for name, sentence in SENTENCES:
        page = ROOT / name
        text = page.read_text(encoding="utf-8")
        standing = pattern(sentence).findall(text)
        if len(standing) != 1:
            raise SystemExit(f"{name} has {len(standing)} sentences such as: {sentence}")
        page.write_text(text.replace(standing[0], sentence.format(**said)), encoding="utf-8")
    CHART.write_text(chart(said), encoding="utf-8")


if __name__ == "__main__":
    main()
