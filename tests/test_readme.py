"""The README and the quick start: what their examples print is what stands below them."""

from __future__ import annotations

import contextlib
import html
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kit import Server

from compacter.options import Options

ROOT = Path(__file__).parent.parent
TEXT = re.compile(r">([^<]+)</text>")
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


@pytest.mark.parametrize("page", ["docs/quickstart.md", "docs/summaries.md", "docs/recall.md"])
def test_an_example_prints_what_stands_below_it(page: str) -> None:
    outputs = list(shown_and_printed(page))
    assert outputs
    for shown, printed in outputs:
        assert steady(printed) == steady(shown)


@pytest.mark.parametrize("page", ["openai", "anthropic"])
@pytest.mark.parametrize("window", [1_000, 1_000_000])
def test_a_page_of_a_client_makes_a_few_calls_and_runs_in_any_window(
    page: str, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader with a real key pays for a few calls, and no window of a model ends in an error."""
    blocks = [text for language, text in BLOCK.findall(read(f"docs/clients/{page}.md"))]
    with Server(window=window, replies="Timber, salt and cloth.") as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
        monkeypatch.setenv("OPENAI_API_KEY", "scripted")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "scripted")
        namespace: dict[str, Any] = {"__name__": "page"}
        for block in blocks:
            exec(compile(block, page, "exec"), namespace)  # noqa: S102
        namespace["client"].close()
        assert 0 < len(provider.model.requests) <= 5
    assert not re.search(r"(?m)^\s*(assert|while) ", "".join(blocks))


def test_the_readme_is_at_most_ninety_lines() -> None:
    assert len(read("README.md").splitlines()) <= 90


def test_the_readme_shows_what_its_program_prints() -> None:
    """A line that begins with `#>` is the output of the line above it."""
    ((_, program),) = BLOCK.findall(read("README.md"))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "README", "exec"), {"__name__": "page"})  # noqa: S102
    assert re.findall(r"(?m)^#> (.*)$", program) == printed.getvalue().splitlines()


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
    """A bare client ends, the usual loop forgets, and a wrapped call goes on and knows more."""
    bare, loop, wrapped = runs
    assert "context_length_exceeded" in bare.ended
    assert len(loop.sizes) == len(wrapped.sizes) == 120
    assert wrapped.right > loop.right
    assert len(loop.needs) == len(wrapped.needs) == 10


def lines_of_demo(runs: Any, width: int) -> list[str]:
    from rich.console import Console

    from demo import show

    console = Console(width=width, file=io.StringIO(), record=True)
    console.print(show.picture(runs, width))
    console.print(show.closing(runs))
    return [line.rstrip() for line in console.export_text().splitlines()]


@pytest.mark.parametrize("width", [80, 132])
def test_the_demo_stands_side_by_side_and_its_bars_have_labels(runs: Any, width: int) -> None:
    """A terminal of 80 columns has room for the three runs."""
    lines = lines_of_demo(runs, width)
    assert [run.name in lines[0] for run in runs] == [True] * 3
    assert max(map(len, lines)) <= width
    bars = [number for number, line in enumerate(lines) if re.search("[▁█]", line)]
    assert len(bars) == 2
    assert all(len(re.findall("newest|window", lines[bar - 1])) == 3 for bar in bars)


def test_the_demo_ends_with_question_line_and_answer(runs: Any) -> None:
    """The answer of a late need stands in the line above it."""
    end = "\n".join(lines_of_demo(runs, 80)).partition("Asked late")[2]
    asked = re.findall(r"question (.+?)\n(?:quoted|kept) (.+?)\nanswer +(\S+)", end, re.DOTALL)
    assert len(asked) == 2
    assert all(answer in " ".join(line.split()) for _, line, answer in asked)


def last_screen(film: str) -> list[str]:
    """The texts of a film's last frame, which has the results of the runs and the end."""
    last = film.partition('<g class="last"')[2]
    return [html.unescape(text).replace("\N{NO-BREAK SPACE}", " ") for text in TEXT.findall(last)]


def test_its_film_ends_as_the_demo_ends(runs: Any) -> None:
    """A reader who runs the demo sees the figures of the picture."""
    from demo import terminal

    shown = read("docs/images/demo.svg")
    assert last_screen(shown) == last_screen(terminal.film(120)), "run `make pictures`"
    end = "".join(last_screen(shown))
    assert [f"{run.tokens:,} tokens sent" in end for run in runs] == [True] * 3
    assert f"{runs[-1].right} of {len(runs[-1].needs)}" in end
    assert "url(" not in shown
    assert shown.count("<g class=") > 10


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
