"""Draws the picture of the README from a real run: `python docs/make_pictures.py`.

A caller resends its whole history for 200 turns to a scripted model with a window of 8,000 tokens.
The picture shows the tokens of that history and the tokens of each request that was accepted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from compacter import Compacter
from compacter.testing import ScriptedModel

IMAGES = Path(__file__).parent / "images"
WINDOW = 8_000
TURNS = 200

WIDTH = 820
HEIGHT = 300
LEFT = 64
RIGHT = 18
TOP = 44
BOTTOM = 40


class Colours(NamedTuple):
    """Colours of one scheme; the background is the page's own."""

    quiet: str
    history: str
    request: str
    window: str


SCHEMES = {
    "light": Colours("#8c959f", "#afb8c1", "#0969da", "#cf222e"),
    "dark": Colours("#7d8590", "#6e7681", "#58a6ff", "#ff7b72"),
}


class Sizes(NamedTuple):
    """Tokens of each turn: of the whole history, and of the request that was accepted."""

    histories: list[int]
    requests: list[int]


def measure() -> Sizes:
    """Run the conversation and return the sizes of its turns, in tokens."""
    model = ScriptedModel(window=WINDOW)
    completion = Compacter(summarizer="extractive").wrap(model.completion)
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You keep a ship's log."}]
    sizes = Sizes([], [])
    for turn in range(TURNS):
        words = " ".join(f"leg {turn}.{part} of {part * turn % 97} miles," for part in range(26))
        messages.append({"role": "user", "content": f"Day {turn}: {words} and a calm night."})
        reply = completion(model="any-model", messages=messages)
        messages.append(reply["choices"][0]["message"])
        sizes.histories.append(sum(len(message["content"]) for message in messages) // 4)
        sizes.requests.append(reply["usage"]["prompt_tokens"])
    return sizes


def path(values: list[int], most: int) -> str:
    """Return the points of a line through the values, in the picture's coordinates."""
    across = (WIDTH - LEFT - RIGHT) / (len(values) - 1)
    up = (HEIGHT - TOP - BOTTOM) / most
    points = (
        f"{LEFT + turn * across:.1f},{HEIGHT - BOTTOM - min(value, most) * up:.1f}"
        for turn, value in enumerate(values)
    )
    return " ".join(points)


def draw(sizes: Sizes, colours: Colours) -> str:
    """Return the picture as SVG."""
    most = WINDOW * 2
    floor = HEIGHT - BOTTOM
    window = floor - (floor - TOP) / 2
    inside = sum(size <= most for size in sizes.histories)
    requests = path(sizes.requests, most)
    end = WIDTH - RIGHT
    # The history leaves the picture at twice the window; an arrow says so.
    out = path(sizes.histories, most).split()[inside - 1].split(",")[0]
    rows = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            'font-family="system-ui, sans-serif" font-size="17">'
        ),
        "<title>Tokens of each request over 200 turns</title>",
        (
            f'<polygon points="{LEFT},{floor} {requests} {end},{floor}" fill="{colours.request}" '
            'fill-opacity="0.18"/>'
        ),
        f'<polyline points="{requests}" fill="none" stroke="{colours.request}" stroke-width="2"/>',
        (
            f'<polyline points="{clip(sizes, most)}" '
            f'fill="none" stroke="{colours.history}" stroke-width="2" stroke-dasharray="5 4"/>'
        ),
        (
            f'<line x1="{LEFT}" x2="{end}" y1="{window}" y2="{window}" stroke="{colours.window}" '
            'stroke-width="1.5"/>'
        ),
        f'<line x1="{LEFT}" x2="{end}" y1="{floor}" y2="{floor}" stroke="{colours.quiet}"/>',
        label(LEFT - 8, window + 4, f"{WINDOW:,}", colours.window, anchor="end"),
        label(LEFT - 8, floor + 4, "0", colours.quiet, anchor="end"),
        label(end, window - 8, "the model's window, tokens", colours.window, anchor="end"),
        label(float(out) - 22, TOP + 10, "the program's history", colours.quiet, anchor="end"),
        label(
            end, floor - 12, "the requests that the provider accepts", colours.request, anchor="end"
        ),
        label(LEFT, HEIGHT - 14, "turn 1", colours.quiet),
        label(end, HEIGHT - 14, f"turn {TURNS}", colours.quiet, anchor="end"),
        "</svg>",
    ]
    return "\n".join(rows) + "\n"


def clip(sizes: Sizes, most: int) -> str:
    """Return the points of the history's line up to the top of the picture."""
    points = path(sizes.histories, most).split()
    inside = sum(size <= most for size in sizes.histories)
    return " ".join(points[: inside + 1])


def label(x: float, y: float, text: str, colour: str, anchor: str = "start") -> str:
    """Return a line of text at this place."""
    return f'<text x="{x:.0f}" y="{y:.0f}" fill="{colour}" text-anchor="{anchor}">{text}</text>'


def main() -> None:
    """Write a picture for each scheme."""
    sizes = measure()
    for scheme, colours in SCHEMES.items():
        (IMAGES / f"sawtooth-{scheme}.svg").write_text(draw(sizes, colours), encoding="utf-8")


if __name__ == "__main__":
    main()
