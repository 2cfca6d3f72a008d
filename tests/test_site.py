"""The manual can be made into a site: links lead to files, the navigation has each page. `make
docs` does the rest.
"""

from __future__ import annotations

import re
import runpy
from collections import Counter
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
SITE = runpy.run_path(str(ROOT / "docs" / "make_site.py"))
PAGE = PurePosixPath("docs/frameworks/index.md")


@pytest.fixture(scope="module")
def config() -> dict[str, Any]:
    settings: dict[str, Any] = SITE["yaml"].safe_load(
        (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    )
    return settings


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("manual")
    SITE["gather"](folder)
    return folder


def test_every_link_of_the_manual_leads_to_a_page_of_the_site(sources: Path) -> None:
    pages = list(sources.rglob("*.md"))
    links = [(page, link[1]) for page in pages for link in SITE["LINK"].finditer(prose(page))]
    assert len(links) > 150
    assert [(page.name, link) for page, link in links if not (page.parent / link).is_file()] == []


def test_every_anchor_of_the_manual_is_a_heading(sources: Path) -> None:
    headings = {page.resolve(): set(anchors(page)) for page in sources.rglob("*.md")}
    gone = [
        f"{page.name}: {link[1]}{link[2]}"
        for page in headings
        for link in re.finditer(r"\]\(([^()\s#:]*)(#[^()\s]+)\)", prose(page))
        if link[2][1:] not in headings.get((page.parent / (link[1] or page.name)).resolve(), ())
    ]
    assert not gone


def anchors(page: Path) -> Iterator[str]:
    """The anchors of a page's headings, as the site makes them."""
    seen: Counter[str] = Counter()
    for heading in re.findall(r"(?m)^#+ (.+)$", prose(page)):
        words = re.sub(r"[^\w\s-]", "", re.sub(r"\]\([^()]*\)", "", heading)).strip().lower()
        anchor = re.sub(r"[-\s]+", "-", words)
        yield anchor if not seen[anchor] else f"{anchor}_{seen[anchor]}"
        seen[anchor] += 1


def prose(page: Path) -> str:
    """A page without its code blocks."""
    return "".join(
        part
        for number, part in enumerate(page.read_text(encoding="utf-8").split("```"))
        if number % 2 == 0
    )


def test_the_navigation_has_each_page(config: dict[str, Any], sources: Path) -> None:
    SITE["check_navigation"](config, sources)


def test_a_page_that_the_navigation_lacks_is_named(config: dict[str, Any], sources: Path) -> None:
    with pytest.raises(SITE["BrokenManualError"], match=r"clients\.md"):
        SITE["check_navigation"]({"nav": [{"Home": "index.md"}]}, sources)


@pytest.mark.parametrize("link", ["nowhere.md", "../../../etc/passwd", "../images"])
def test_a_link_that_leads_nowhere_is_named(link: str) -> None:
    with pytest.raises(SITE["BrokenManualError"], match="there is no file"):
        SITE["turned"](PAGE, f"See [this]({link}).")


def test_a_link_out_of_the_manual_leads_to_the_sources_in_the_site() -> None:
    text, named = SITE["turned"](
        PAGE, "[one](../../examples/quickstart.py), [two](../clients.md#vendors-in-particular)"
    )
    assert text == (
        "[one](../source/examples/quickstart.py.md), [two](../clients.md#vendors-in-particular)"
    )
    assert named == {PurePosixPath("examples/quickstart.py"), PurePosixPath("docs/clients.md")}


def test_code_blocks_stay_as_they_are() -> None:
    block = "````python\n```\ncall[0](nothing.md)\n````\n"
    assert SITE["turned"](PAGE, block) == (block, set())


CALLOUT = "> [!WARNING]\n> Not here.\n> Nor there.\n\nMore.\n"
TABS = """\
<!-- tabs -->

**Sync**

```python
call()

**no tab**
```

**Async**

Text.

<!-- end of tabs -->
After.
"""


def test_callouts_and_tabs_get_the_form_that_the_site_reads() -> None:
    """A page is plain Markdown in the repository and has callouts and tabs in the site."""
    turn = SITE["with_callouts_and_tabs"]
    assert turn(CALLOUT) == "!!! warning\n\n    Not here.\n    Nor there.\n\nMore.\n"
    assert turn(TABS) == (
        '\n=== "Sync"\n\n    ```python\n    call()\n\n    **no tab**\n    ```\n\n'
        '=== "Async"\n\n    Text.\n\nAfter.\n'
    )
    assert turn(f"```\n{CALLOUT}```\n") == f"```\n{CALLOUT}```\n"


def test_the_index_for_models_has_each_page_of_the_navigation(
    config: dict[str, Any], sources: Path
) -> None:
    index = SITE["index_for_models"](config, sources)
    assert index.startswith("# compacter\n\n> ")
    assert (
        "- [Options](options.md): every option of `Compacter`, its default, and what it does\n"
        in index
    )
    assert index.count("\n- [") == sum(len(pages) for _, pages in SITE["in_order"](config["nav"]))


@pytest.mark.parametrize(
    ("html", "fault"),
    [
        ("<p><code>call_id=</p>", "</p> closes <code>"),
        ("<code><article></article></code>", "<article> inside <code>"),
        ("<ul><li>one", "<li> is never closed"),
        ("</div>", "</div> closes <nothing>"),
    ],
)
def test_markup_that_is_not_closed_is_told(html: str, fault: str) -> None:
    assert fault in "; ".join(SITE["faults_of"](html))


def test_the_search_takes_any_word_or_says_that_it_has_changed() -> None:
    worker = 'parser:n=>Yt(n,"and",s=>({field:"*",value:1}))'
    assert SITE["with_any_word"](worker) == worker.replace('"and"', '"or"')
    with pytest.raises(SITE["BrokenManualError"], match="another form"):
        SITE["with_any_word"](worker.replace("and", "all"))


def test_whole_markup_has_no_fault() -> None:
    assert SITE["faults_of"]('<main><p>a<br>b <code>c</code><img src="d"></p></main>') == []


def test_a_table_without_names_of_columns_has_no_head() -> None:
    body = "<tbody><tr><td>a</td></tr></tbody>"
    bare = f"<table><thead>\n<tr>\n<th></th>\n<th style='x'></th></tr></thead>{body}</table>"
    named = f"<table><thead><tr><th>a</th><th></th></tr></thead>{body}</table>"
    assert SITE["without_empty_heads"](bare) == f"<table>{body}</table>"
    assert SITE["without_empty_heads"](named) == named


def test_each_cell_of_a_table_with_names_of_columns_has_its_own() -> None:
    head = "<table><thead><tr><th></th><th>a <code>b</code></th></tr></thead>"
    table = f"{head}<tr><td>x</td><td style='y'>1</td></tr></table>"
    named = SITE["with_headings_in_cells"](table)
    assert '<td data-head="">x</td><td data-head="a b" style=' in named
    bare = "<table><tr><td>x</td></tr></table>"
    assert SITE["with_headings_in_cells"](bare) == bare


def test_a_test_is_named_by_its_sentence() -> None:
    link = '<a href="x"><code>tests/a/test_b.py::TestC::test_what_is_not_there</code></a>'
    assert SITE["with_tests_in_words"](link) == '<a href="x">what is not there</a>'
    other = "<code>tests/a/test_b.py</code>"
    assert SITE["with_tests_in_words"](other) == other


def test_headings_of_the_reference_are_bare_names() -> None:
    pages = [page.read_text(encoding="utf-8") for page in (ROOT / "docs/reference").glob("*.md")]
    headings = [line for page in pages for line in page.splitlines() if line.startswith("## `")]
    headings += [line for page in pages for line in page.splitlines() if line.startswith("###")]
    assert len(headings) > 100
    assert [
        line
        for line in headings
        if not line.rstrip("`").replace("_", "").split("`")[-1].replace(".", "").isalnum()
    ] == []


def test_the_files_that_contributing_names_are_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w/]+\.(?:py|txt|jsonl|toml))`", text))
    there = [
        f"/{path.relative_to(ROOT).as_posix()}"
        for folder in ("middleware", "tests", "requirements")
        for path in (ROOT / folder).rglob("*.*")
    ] + ["/pyproject.toml"]
    gone = {name for name in named if not any(path.endswith(f"/{name}") for path in there)}
    assert named
    assert not gone


def test_the_functions_that_contributing_names_are_in_their_files() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    package = ROOT / "middleware" / "compacter"
    named = re.findall(r"`([\w/]+\.py)`, `([\w.]+)`", text)
    gone = [
        (file, name)
        for file, name in named
        if not all(
            re.search(rf"\b(?:def|class) {part}\b", (package / file).read_text(encoding="utf-8"))
            for part in name.split(".")
        )
    ]
    assert len(named) > 5
    assert not gone


TABLE = """<table><thead><tr><th>peer</th><th>right</th><th>of all</th><th>by</th></tr></thead>
<tbody><tr><td>compacter</td><td>0.97</td><td>59 of 60</td><td>1.0.0</td></tr>
<tr><td>loop</td><td>0.5</td><td>-</td><td>2</td></tr></tbody></table>"""


def test_numbers_stand_at_the_right_and_our_row_is_marked() -> None:
    """A column of numbers has a bar for each, as long as its share of the column's largest."""
    shown = SITE["with_headings_in_cells"](TABLE)
    assert '<tr class="ours"><td data-head="peer">compacter</td>' in shown
    assert shown.count('class="ours"') == 1
    assert '<td data-head="right" class="number" style="--share: 0.515">0.5</td>' in shown
    assert '<td data-head="of all" class="number" style="--share: 0.000">-</td>' in shown
    assert '<td data-head="by">1.0.0</td>' in shown
    assert '<th class="number">right</th>' in shown


def test_each_option_has_an_anchor_and_an_item_of_the_search(tmp_path: Path) -> None:
    row = (
        "<tr><td><code>timeout</code></td><td><code>None</code></td><td>Limit in seconds.</td></tr>"
    )
    page = tmp_path / "options.html"
    page.write_text(SITE["with_headings_in_cells"](f"<table>{row}</table>"), encoding="utf-8")
    like = {"location": "options.html", "level": 1, "title": "Options", "text": "", "path": ["a"]}
    (item,) = SITE["options_of"](page, [like])
    assert item["location"] == "options.html#timeout"
    assert item["title"] == "The option timeout"
    assert item["text"] == "timeout None Limit in seconds."
    assert item["path"] == ["a"]


def test_the_header_has_the_version() -> None:
    html = '<div class="md-header__topic">\n<span class="md-ellipsis">\n  compacter\n </span>'
    assert "compacter 0.5.0\n" in SITE["with_version"](html, "0.5.0")
