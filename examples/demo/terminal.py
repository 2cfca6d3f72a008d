"""The demo as a moving picture of a terminal, for the README: ``make pictures``."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console, RenderableType

from .runs import make_runs
from .show import closing, opening, picture
from .world import make_jobs

WIDTH = 80
EVERY = 8
"""Steps from one frame to the next."""
SECONDS = 0.4
"""Time of a frame; the last one stays."""
LINE = 24.4
"""Height of a line in the picture."""
PARTS = ("styles", "backgrounds", "matrix", "width")
BETWEEN = "\n<!-- part -->\n"
STYLE = """\
text { font: 20px ui-monospace, Menlo, Consolas, monospace; white-space: pre; }
@media (prefers-reduced-motion: no-preference) {
  .frame { visibility: hidden; animation: show 0s step-end forwards; }
  .last { animation: wait 0s; }
}
@media (prefers-reduced-motion: reduce) { .frame { visibility: hidden; } }
@keyframes show { from { visibility: visible; } to { visibility: hidden; } }
@keyframes wait { from { visibility: hidden; } to { visibility: hidden; } }
"""


class Shot(NamedTuple):
    """What stands in the terminal at one moment, as SVG."""

    lines: int
    parts: dict[str, str]


def film(steps: int) -> str:
    """Return the demo of so many steps as SVG: some frames, and the last one with its end."""
    jobs = make_jobs(steps)
    runs = make_runs(jobs)
    head = _shot("head", opening(jobs))
    together = itertools.zip_longest(*(run.steps() for run in runs))
    frames = [
        _shot(f"f{step}", picture(runs, WIDTH))
        for step, _ in enumerate(together)
        if step % EVERY == EVERY - 1
    ]
    frames.append(_shot("last", picture(runs, WIDTH), "", closing(runs)))
    return _drawn(head, frames)


def _shot(name: str, *shown: RenderableType) -> Shot:
    console = Console(
        width=WIDTH,
        record=True,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
    )
    for each in shown:
        console.print(each)
    lines = console.export_text(clear=False).count("\n")
    template = BETWEEN.join(f"{{{part}}}" for part in PARTS)
    svg = console.export_svg(code_format=template, unique_id=name)
    # A clip path for each line would be half of the file, and nothing is longer than its line.
    parts = re.sub(r' clip-path="[^"]*"', "", svg).split(BETWEEN)
    return Shot(lines, dict(zip(PARTS, parts, strict=True)))


def _drawn(head: Shot, frames: Sequence[Shot]) -> str:
    width = float(head.parts["width"])
    height = (head.lines + frames[-1].lines + 1) * LINE
    top = 12 + head.lines * LINE
    styles = [STYLE, head.parts["styles"]]
    groups = [f'<g transform="translate(10, 12)">{head.parts["matrix"]}</g>']
    for number, frame in enumerate(frames):
        is_last = frame is frames[-1]
        begin = number * SECONDS
        timing = f"animation-duration: {begin}s" if is_last else f"animation-delay: {begin:.1f}s"
        if not is_last:
            timing += f"; animation-duration: {SECONDS}s"
        styles.append(frame.parts["styles"])
        groups += [
            (
                f'<g class="{"last" if is_last else "frame"}" style="{timing}" '
                f'transform="translate(10, {top:.1f})">'
            ),
            frame.parts["backgrounds"],
            frame.parts["matrix"],
            "</g>",
        ]
    return "\n".join(
        [
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
                'role="img">'
            ),
            "<title>make demo: a bare client, the usual loop, and compacter, side by side</title>",
            "<style>",
            *styles,
            "</style>",
            f'<rect width="{width:.0f}" height="{height:.0f}" rx="8" fill="#0c0c0c"/>',
            *groups,
            "</svg>\n",
        ]
    )


def write_film(steps: int, folder: Path) -> None:
    """Write the picture of a terminal with a demo of so many steps."""
    (folder / "demo.svg").write_text(film(steps), encoding="utf-8")
