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
FAIR = (
    "A program plays the model: it acts on the newest line of its request that answers a job. What "
    "is not in the request is out of reach for every model."
)
SAME = (
    "Twenty lines and compacter have the same summarizer, a program that keeps lines of what it "
    "reads."
)


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
    each = max(34, width // 3 - 1)
    return Columns([_panel(run, each) for run in runs], padding=(0, 0), width=each)


def _panel(run: Run, width: int) -> Panel:
    inner = width - 4
    size = run.sizes[-1] if run.sizes else 0
    full = round(inner * size / WINDOW)
    rows = Table.grid(expand=True)
    rows.add_row(Text(_sawtooth(run.sizes, inner), "cyan"))
    rows.add_row(Text("█" * full, "blue") + Text("·" * (inner - full), "dim"))
    rows.add_row(Text(f"request: {size:,} of {WINDOW:,} tokens"))
    rows.add_row(Text(f"sent: {run.tokens:,} tokens, {run.summaries:,} summaries"))
    rows.add_row(Text("needed late: ") + _marks(run))
    state = Text(run.ended, "bold red") if run.ended else Text(_state(run), "bold green")
    rows.add_row(state)
    return Panel(rows, title=run.name, title_align="left", width=width)


def _state(run: Run) -> str:
    done = len(run.sizes) == len(run.jobs)
    return "finished: the queue is empty" if done else f"step {len(run.sizes)} of {len(run.jobs)}"


def _marks(run: Run) -> Text:
    marks = Text()
    for need in run.needs:
        marks.append("✓" if need.is_right else "✗", "green" if need.is_right else "red")
    total = sum(job.fact is not None for job in run.jobs)
    marks.append("·" * (total - len(run.needs)), "dim")
    return marks.append(f"  {run.right} of {total}")


def _sawtooth(sizes: Sequence[int], width: int) -> str:
    newest = sizes[-width:]
    return "".join(STEPS[min(7, size * 8 // WINDOW)] for size in newest).ljust(width)


def closing(runs: Sequence[Run]) -> RenderableType:
    """Return two late needs that only the last run met, with the lines that answered them."""
    *_, twenty, wrapped = runs
    missed = {need.step for need in twenty.needs if not need.is_right}
    met = [need for need in wrapped.needs if need.is_right and need.step in missed]
    met.sort(key=lambda need: need.place != "quote")  # What was fetched for the need comes first.
    rows = [row for need in met[:2] for row in _answered(need)]
    return Group(*rows)


def _answered(need: Need) -> list[Text]:
    asked = {"user": "the user asks", "tool": "the queue says", "agent": "the agent says"}
    who = asked[need.fact.asked_by]
    where = {"quote": "quoted from what was compacted", "summary": "in the summary"}
    found = re.search(re.escape(need.used), need.line)
    begin = max(0, found.start() - 90) if found else 0
    line = Text(f"  {'…' if begin else ''}{need.line[begin : begin + 160]}")
    line.highlight_regex(re.escape(need.used), "bold black on green")
    return [
        Text(f"Step {need.step}, {who}: {need.fact.need}", "bold"),
        line,
        Text(f"  ({where.get(need.place, 'still in the history')})\n", "dim"),
    ]


def plain(runs: Sequence[Run]) -> str:
    """Return the outcome as lines, where there is no terminal."""
    lines = []
    for run in runs:
        total = sum(job.fact is not None for job in run.jobs)
        lines.append(
            f"{run.name:14} {run.ended or _state(run)}; {run.right} of {total} late needs right, "
            f"{run.tokens:,} tokens sent, {run.summaries} summaries"
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
