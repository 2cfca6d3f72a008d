"""What the three runs look like in a terminal, and as the picture of the manual."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from .model import WINDOW
from .runs import Need, Run
from .world import Job

STEPS = "▁▂▃▄▅▆▇█"
PANEL = 26
"""Columns of a run: three of them stand side by side in a terminal of 80."""
FAIR = (
    "A program plays the model: it does a job by the newest line of its request that answers it. "
    "It cannot know what is not in the request."
)
SAME = (
    "The usual loop is the one that everybody writes first. It has the same summarizer as "
    "compacter: a program that keeps some of the lines that it reads."
)
WHO = {"user": "the user asks", "tool": "the queue says", "agent": "the agent says"}
WHERE = {"quote": "", "summary": "  (in the summary)"}


def opening(jobs: Sequence[Job]) -> RenderableType:
    """Return what is about to be seen."""
    asked = sum(job.fact is not None for job in jobs)
    first = (
        f"One agent, {len(jobs)} steps, a window of {WINDOW:,} tokens. {asked} late steps need "
        "something that was said early, once."
    )
    return Group(Text(first, "bold"), Text(FAIR, "dim"), Text(SAME, "dim"))


def picture(runs: Sequence[Run], width: int) -> RenderableType:
    """Return the three runs side by side; under one another where the terminal is narrow."""
    each = max(PANEL, width // 3 - 1)
    return Columns([_panel(run, each) for run in runs], padding=(0, 0), width=each)


def _panel(run: Run, width: int) -> Panel:
    inner = width - 2
    size = run.sizes[-1] if run.sizes else 0
    filled = min(inner, round(inner * size / WINDOW))
    total = sum(job.fact is not None for job in run.jobs)
    rows = Table.grid(expand=True)
    for row in (
        Text(f"newest {inner} requests", "dim"),
        Text(_sawtooth(run.sizes, inner), "cyan"),
        Text("the window now", "dim"),
        Text("█" * filled, "blue") + Text("·" * (inner - filled), "dim"),
        Text(f"{size:,} of {WINDOW:,} tokens"),
        Text(f"{run.tokens:,} tokens sent"),
        Text(f"summaries: {run.summaries:,}"),
        Text(f"late needs met: {run.right} of {total}"),
        _marks(run, total),
        *_state(run),
    ):
        rows.add_row(row)
    return Panel(rows, title=run.name, title_align="left", width=width, padding=0)


def _state(run: Run) -> tuple[Text, Text]:
    if run.ended:
        where, _, code = run.ended.rpartition(" ")
        return Text(where, "bold red"), Text(code, "bold red")
    if len(run.sizes) == len(run.jobs):
        return Text("finished", "bold green"), Text("the queue is empty", "green")
    return Text("at work", "bold green"), Text(f"step {len(run.sizes)} of {len(run.jobs)}", "green")


def _marks(run: Run, total: int) -> Text:
    marks = Text()
    for need in run.needs:
        marks.append("✓" if need.is_right else "✗", "green" if need.is_right else "red")
    marks.append("·" * (total - len(run.needs)), "dim")
    return marks


def _sawtooth(sizes: Sequence[int], width: int) -> str:
    newest = sizes[-width:]
    return "".join(STEPS[min(7, size * 8 // WINDOW)] for size in newest).ljust(width)


def closing(runs: Sequence[Run]) -> RenderableType:
    """Return two late needs that only the last run met: question, quoted line and answer."""
    *_, loop, wrapped = runs
    missed = {need.step for need in loop.needs if not need.is_right}
    met = [need for need in wrapped.needs if need.is_right and need.step in missed]
    met.sort(key=lambda need: need.place != "quote")  # What was fetched for the need comes first.
    rows = Table.grid(padding=(0, 1))
    for need in met[:2]:
        rows.add_row("question", _question(need))
        rows.add_row("quoted" if need.place == "quote" else "kept", _line(need))
        rows.add_row("answer", Text(need.used, "bold green"))
        rows.add_row("", "")
    return Group(Text(f"Asked late, and missed by {loop.name}:", "bold"), rows)


def _question(need: Need) -> Text:
    return Text(f"step {need.step}, {WHO[need.fact.asked_by]}: {need.fact.need}")


def _line(need: Need) -> Text:
    found = re.search(re.escape(need.used), need.line)
    begin = max(0, found.start() - 50) if found else 0
    line = Text(f"{'…' if begin else ''}{need.line[begin : begin + 100]}")
    line.highlight_regex(re.escape(need.used), "bold black on green")
    return line + Text(WHERE.get(need.place, "  (not compacted yet)"), "dim")


def plain(runs: Sequence[Run]) -> str:
    """Return the outcome as lines, where there is no terminal."""
    lines = []
    for run in runs:
        total = sum(job.fact is not None for job in run.jobs)
        state = run.ended or _state(run)[0].plain
        lines.append(
            f"{run.name:14} {state}; {run.right} of {total} late needs met, "
            f"{run.tokens:,} tokens sent, summaries: {run.summaries}"
        )
    return "\n".join(lines)


# -- the picture of the manual ---------------------------------------------------------------------


class Colours(NamedTuple):
    """Colours of one scheme; the background is the page's own."""

    quiet: str
    bare: str
    request: str
    window: str


SCHEMES = {
    "light": Colours("#8c959f", "#6e7781", "#0969da", "#cf222e"),
    "dark": Colours("#7d8590", "#8b949e", "#58a6ff", "#ff7b72"),
}
WIDE = 820
HIGH = 300
LEFT = 64
TOP = 40
FLOOR = 260
END = 802


def draw(runs: Sequence[Run], colours: Colours) -> str:
    """Return the tokens of each request as SVG: the bare client ends, compacter goes on."""
    bare, _, wrapped = runs
    steps = len(wrapped.jobs)
    top = WINDOW * 1.15

    def at(step: int, tokens: float) -> tuple[float, float]:
        return LEFT + (END - LEFT) * step / steps, FLOOR - (FLOOR - TOP) * tokens / top

    def points(sizes: Sequence[int]) -> str:
        return " ".join("{:.1f},{:.1f}".format(*at(*each)) for each in enumerate(sizes))

    line = at(0, WINDOW)[1]
    x, _ = at(len(bare.sizes), 0)
    asked = sum(job.fact is not None for job in wrapped.jobs)
    rows = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}" role="img" '
            'font-family="system-ui, sans-serif" font-size="16">'
        ),
        "<title>Tokens of each request of an agent at work</title>",
        (
            f'<polygon points="{LEFT},{FLOOR} {points(wrapped.sizes)} {END},{FLOOR}" '
            f'fill="{colours.request}" fill-opacity="0.15"/>'
        ),
        (
            f'<polyline points="{points(wrapped.sizes)}" fill="none" stroke="{colours.request}" '
            'stroke-width="2"/>'
        ),
        (
            f'<polyline points="{points(bare.sizes)} {x:.1f},{line:.1f}" fill="none" '
            f'stroke="{colours.bare}" stroke-width="2" stroke-dasharray="5 4"/>'
        ),
        f'<line x1="{LEFT}" x2="{END}" y1="{line:.1f}" y2="{line:.1f}" stroke="{colours.window}"/>',
        f'<line x1="{LEFT}" x2="{END}" y1="{FLOOR}" y2="{FLOOR}" stroke="{colours.quiet}"/>',
        _label(x + 8, line - 10, f"a bare client, {bare.ended}", colours.bare),
        _label(LEFT - 8, line + 5, f"{WINDOW:,}", colours.window, "end"),
        _label(LEFT - 8, FLOOR + 5, "0", colours.quiet, "end"),
        _label(
            END,
            FLOOR - 12,
            f"with compacter: {steps} steps, {wrapped.right} of {asked} late needs right",
            colours.request,
            "end",
        ),
        _label(LEFT, HIGH - 14, "step 1", colours.quiet),
        _label(END, HIGH - 14, f"step {steps}", colours.quiet, "end"),
        "</svg>",
    ]
    return "\n".join(rows) + "\n"


def _label(x: float, y: float, text: str, colour: str, anchor: str = "start") -> str:
    place = f'x="{x:.0f}" y="{y:.0f}"'
    return f'<text {place} fill="{colour}" text-anchor="{anchor}">{text}</text>'


def write_pictures(runs: Sequence[Run], folder: Path) -> None:
    """Write the picture for light and for dark screens."""
    for scheme, colours in SCHEMES.items():
        path = folder / f"sawtooth-{scheme}.svg"
        path.write_text(draw(runs, colours), encoding="utf-8")
