"""The README and the quick start: what their examples print is what stands below them."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
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


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_an_example_prints_what_stands_below_it(page: str) -> None:
    outputs = list(shown_and_printed(page))
    assert outputs
    for shown, printed in outputs:
        assert steady(printed) == steady(shown)


def test_the_readme_is_about_a_hundred_lines() -> None:
    assert len(read("README.md").splitlines()) <= 120


def test_its_picture_is_what_the_program_draws() -> None:
    program = runpy.run_path(str(ROOT / "docs" / "make_pictures.py"))
    sizes = program["measure"]()
    assert max(sizes.requests) <= program["WINDOW"] < max(sizes.histories)
    for scheme, colours in program["SCHEMES"].items():
        shown = read(f"docs/images/sawtooth-{scheme}.svg")
        assert program["draw"](sizes, colours) == shown, "run `python docs/make_pictures.py`"


def test_the_manual_says_of_each_option_that_it_is_of_the_first_ten_or_who_needs_it() -> None:
    introduction = read("docs/options.md").partition("## How much is compacted")[0]
    first, _, rest = introduction.partition("**The first ten**")[2].partition("**The rest**")
    ten = set(re.findall(r"`([a-z_]+)`", first))
    others = set(re.findall(r"`([a-z_]+)(?:=None)?`", rest))
    table = read("README.md").partition("## Ten options")[2]
    assert ten == set(re.findall(r"^\| `([a-z_]+)` \|", table, re.MULTILINE))
    older = {"summary_prompt", "max_summary_tokens", "summary_request"}  # of Summarize
    assert ten | others == set(Options.model_fields) - older
    assert not ten & others
