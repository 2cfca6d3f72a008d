"""The README and the quick start: what their examples print is what stands below them."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compacter.options import Options

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"```(python|text)\n(.*?)```", re.DOTALL)


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def steady(text: str) -> str:
    """The text without what differs from run to run: durations and seals."""
    text = re.sub(r"\d+(?:\.\d+)? (?:s|ms)\b", "N s", text)
    return re.sub(r"(\[compacter: [^\]]+\]) [0-9a-f]+", r"\1 SEAL", text)


def shown_and_printed(page: str) -> Iterator[tuple[str, str]]:
    """Each output that a page shows, and what the program above it prints, in one namespace."""
    namespace: dict[str, Any] = {"__name__": "page"}
    printed = io.StringIO()
    for language, text in BLOCK.findall(read(page)):
        if language == "text":
            yield text, printed.getvalue()
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(text, page, "exec"), namespace)  # noqa: S102


@pytest.mark.parametrize("page", ["docs/quickstart.md"])
def test_an_example_prints_what_stands_below_it(page: str) -> None:
    outputs = list(shown_and_printed(page))
    assert outputs
    for shown, printed in outputs:
        assert steady(printed) == steady(shown)


def test_the_readme_is_about_a_hundred_lines() -> None:
    assert len(read("README.md").splitlines()) <= 120


def words(picture: str) -> list[str]:
    """The words of a picture, without what a run decides."""
    return [re.sub(r"\d[\d,]*", "N", text) for text in re.findall(r">([^<]+)</t", picture)]


@pytest.fixture(scope="module")
def runs() -> Any:
    from demo import runs, world

    made = runs.make_runs(world.make_jobs(120))
    for run in made:
        for _ in run.steps():
            pass
    return made


def test_its_picture_is_one_of_the_demo(runs: Any) -> None:
    from demo import show

    for scheme, colours in show.SCHEMES.items():
        shown = read(f"docs/images/sawtooth-{scheme}.svg")
        assert words(show.draw(runs, colours)) == words(shown), "run `make pictures`"


def test_the_demo_shows_what_it_promises(runs: Any) -> None:
    """A bare client ends, twenty lines forget, and a wrapped call goes on and knows more."""
    bare, twenty, wrapped = runs
    assert "context_length_exceeded" in bare.ended
    assert len(twenty.sizes) == len(wrapped.sizes) == 120
    assert wrapped.right > twenty.right
    assert len(twenty.needs) == len(wrapped.needs) == 10


def test_a_need_is_met_only_by_a_line_of_its_request(runs: Any) -> None:
    needs = [need for run in runs for need in run.needs]
    assert {need.used == "unknown" for need in needs} == {True, False}
    for need in needs:
        assert bool(need.line) == (need.used != "unknown"), need
        assert need.used in (need.line or "unknown")


def test_the_manual_says_of_each_option_that_it_is_of_the_first_five_or_who_needs_it() -> None:
    introduction = read("docs/options.md").partition("## How much is compacted")[0]
    first, _, rest = introduction.partition("**The first five**")[2].partition("**The rest**")
    five = set(re.findall(r"`([a-z_]+)`", first))
    others = set(re.findall(r"`([a-z_]+)(?:=None|=0)?`", rest))
    table = read("README.md").partition("## Five options")[2]
    assert five == set(re.findall(r"^\| `([a-z_]+)` \|", table, re.MULTILINE))
    assert five | others == set(Options.model_fields)
    assert not five & others
