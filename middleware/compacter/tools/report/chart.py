"""Sawtooth chart of a conversation as SVG: the size of its requests before and after each
compaction.

The SVG stretches with the page, so it contains no text: labels are HTML beside it, readable on any
screen. Sizes are known only at compactions; between two of them the line is straight.
"""

from __future__ import annotations

from html import escape

from compacter.text.table import plural
from compacter.tools.report.figures import Story

WIDTH = 1000
HEIGHT = 240


def sawtooth(story: Story, key: str) -> str:
    """Return a figure with the chart of one conversation; empty if it has no compactions.

    Args:
        story: The conversation.
        key: Id that is unique in the page.
    """
    teeth = [(compaction.before, compaction.after) for compaction in story.compactions]
    if not teeth:
        return ""
    top = _round_up(max([*(before for before, _ in teeth), story.window or 0]))
    step = WIDTH / len(teeth)

    def y(tokens: float) -> str:
        return f"{HEIGHT * (1 - tokens / top):.1f}"

    points = [f"0,{HEIGHT}"]
    drops = []
    for place, (before, after) in enumerate(teeth, 1):
        x = f"{place * step - step / 4:.1f}"
        points += [f"{x},{y(before)}", f"{x},{y(after)}"]
        drops.append(f"M{x},{y(before)}V{y(after)}")
    points.append(f"{WIDTH},{y(teeth[-1][1])}")
    line = " ".join(points)
    count = plural(len(story.compactions), "compaction")
    title = f"{count}, requests of up to {story.largest:,} tokens"
    limit = f'<span class="key limit">window of {story.window or 0:,} tokens</span>' * bool(
        story.window
    )
    window = f'<path class="limit" d="M0,{y(story.window)}H{WIDTH}"/>' if story.window else ""
    return f"""<figure class="chart">
<div class="scale" aria-hidden="true">{_scale(story, top)}</div>
<div class="plot"><svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" \
aria-labelledby="{key}-t"><title id="{key}-t">{escape(title)}</title>
<path class="grid" d="M0,{HEIGHT / 2}H{WIDTH}M0,0H{WIDTH}"/>\
<path class="axis" d="M0,{HEIGHT}H{WIDTH}"/>
<polygon class="area" points="{line} {WIDTH},{HEIGHT}"/>{window}
<polyline class="size" points="{line}"/><path class="drop" d="{"".join(drops)}"/></svg></div>
<div class="along" aria-hidden="true"><span>first call</span>\
<span>compactions, in order of time</span><span>compaction {len(story.compactions):,}</span></div>
<figcaption><span class="key size">size of the request, tokens</span>\
<span class="key drop">compaction</span>\
{limit}\
<span class="note">sizes are known at compactions; between them the line is straight</span>\
</figcaption>
</figure>
"""


def _scale(story: Story, top: int) -> str:
    """Return the labels of the vertical axis. Heights in percent are classes: the page allows no
    style attributes.
    """
    height = round(100 * (story.window or 0) / top)
    shown = [
        f'<span class="at{at}">{_short(top * at / 100)}</span>'
        for at in (0, 50, 100)
        if abs(at - height) > 8
    ]
    if story.window:
        shown.append(f'<span class="at{height} limit-label">{_short(story.window)}</span>')
    return "".join(shown)


def _round_up(tokens: int) -> int:
    """Return a round number above ``tokens``, for the end of the scale."""
    power = int(10 ** max(0, len(str(tokens)) - 2))
    return max(2, -(-int(tokens * 1.05) // power) * power)


def _short(tokens: float) -> str:
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if tokens >= size:
            return f"{tokens / size:.1f}".removesuffix(".0") + unit
    return f"{tokens:.0f}"
