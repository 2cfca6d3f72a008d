"""Builds the manual as a site: HTML, a Markdown twin of each page, and `llms.txt`. `make docs` runs
it.

The pages are written to be read in the repository, where a link may lead to an example or a test.
So they are copied first: a linked file outside `docs/` becomes a page under `source/`, and links
are turned there. A quote that begins with `[!WARNING]` (or `NOTE`, `TIP`) becomes a callout.
Between `<!-- tabs -->` and `<!-- end of tabs -->` each line in bold begins a tab. The Markdown
twins have both as they stand in the repository. Zensical then reads `mkdocs.yml`, makes the site,
and fails on a link or an anchor that leads nowhere.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from html import escape
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent
CONFIG = ROOT / "mkdocs.yml"
LINK = re.compile(r"\]\(([^()\s#:]+)(#[^()\s]*)?\)")
FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
CALLOUT = re.compile(r"^> \[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\]$")
TABS, END_OF_TABS = "<!-- tabs -->", "<!-- end of tabs -->"
TAB = re.compile(r"^\*\*([^*]+)\*\*$")
ROW = re.compile(r"^\| \[[^][]*\]\(([^()#]+)\) \| (.+) \|$", re.MULTILINE)
EMPTY_HEAD = re.compile(r"<thead>\s*<tr>\s*(?:<th[^>]*>\s*</th>\s*)+</tr>\s*</thead>\s*")
TEST = re.compile(r"<code>tests/[\w/.:]+::test_(\w+)</code>")
LANGUAGES = {".py": "python", ".jsonl": "json", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml"}


class BrokenManualError(Exception):
    """A link to a file that the repository does not have, or a page that the navigation misses."""


def placed(file: PurePosixPath) -> PurePosixPath:
    """Where a file of the repository stands in the site's sources: pages of `docs/` at the top,
    others by `source/`.
    """
    if file.is_relative_to("docs"):
        return file.relative_to("docs")
    place = "source" / file
    return place if file.suffix in {".md", ".png", ".svg"} else place.with_name(f"{place.name}.md")


def target(page: PurePosixPath, link: str) -> PurePosixPath:
    """The file of the repository that a link on a page names; a folder stands for its README."""
    file = PurePosixPath(os.path.normpath(page.parent / link))
    if (ROOT / file).is_dir():
        file /= "README.md"
    if file.is_absolute() or ".." in file.parts or not (ROOT / file).is_file():
        message = f"{page}: there is no file {link!r}"
        raise BrokenManualError(message)
    return file


def turned(page: PurePosixPath, text: str) -> tuple[str, set[PurePosixPath]]:
    """A page with its links as the site needs them, and the files that they name. Code blocks stay
    as they are.
    """
    named: set[PurePosixPath] = set()

    def turn(link: re.Match[str]) -> str:
        file = target(page, link[1])
        named.add(file)
        return f"]({os.path.relpath(placed(file), placed(page).parent)}{link[2] or ''})"

    lines, fence = [], ""
    for line in text.splitlines(keepends=True):
        mark = FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        lines.append(line if fence or mark else LINK.sub(turn, line))
    return "".join(lines), named


def shown(file: PurePosixPath) -> str:
    """The text of a page: a Markdown file itself, any other file as a code block under its name."""
    text = (ROOT / file).read_text(encoding="utf-8")
    if file.suffix == ".md":
        return text
    return f"# {file}\n\n````{LANGUAGES.get(file.suffix, 'text')}\n{text}````\n"


def gather(sources: Path) -> None:
    """Write every page of `docs/`, and every file that is linked from one, to the folder of the
    site's sources.
    """
    waiting = {PurePosixPath(file.relative_to(ROOT)) for file in (ROOT / "docs").rglob("*.md")}
    # The style shows the dark picture in place of the light one, which pages name.
    waiting |= {
        PurePosixPath("docs/styles/manual.css"),
        PurePosixPath("docs/images/sawtooth-dark.svg"),
    }
    done: set[PurePosixPath] = set()
    while waiting:
        file = waiting.pop()
        done.add(file)
        place = sources / placed(file)
        place.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix in {".png", ".svg", ".css"}:
            shutil.copyfile(ROOT / file, place)
            continue
        text, named = turned(file, shown(file))
        place.write_text(text, encoding="utf-8")
        waiting |= named - done


def with_callouts_and_tabs(text: str) -> str:
    """Return a page with its callouts and tabs in the form that Zensical reads."""
    lines: list[str] = []
    fence, in_callout, in_tabs = "", False, False
    for line in text.splitlines():
        mark = FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        tab = TAB.match(line) if in_tabs and not fence else None
        if fence:
            lines.append(f"    {line}" if in_tabs and line else line)
        elif line in {TABS, END_OF_TABS}:
            in_tabs = line == TABS
        elif callout := CALLOUT.match(line):
            in_callout = True
            lines += [f"!!! {callout[1].lower()}", ""]
        elif in_callout and line.startswith(">"):
            lines.append(f"    {line[1:].strip()}".rstrip())
        elif tab:
            lines.append(f'=== "{tab[1]}"')
        else:
            in_callout = False
            lines.append(f"    {line}" if in_tabs and line else line)
    return "\n".join(lines) + "\n"


def in_order(nav: list[Any]) -> list[tuple[str, list[str]]]:
    """Sections of the navigation, each with its pages. Pages outside of a section are one of their
    own.
    """
    sections: list[tuple[str, list[str]]] = []
    for entry in nav:
        ((title, value),) = entry.items()
        pages = (
            [page for item in value for page in item.values()]
            if isinstance(value, list)
            else [value]
        )
        sections.append((title, pages))
    return sections


def check_navigation(config: dict[str, Any], sources: Path) -> None:
    """Every page of `docs/` is in the navigation, and nothing else. Zensical does not look
    at this.
    """
    listed = {page for _, pages in in_order(config["nav"]) for page in pages}
    there = {str(page.relative_to(sources)) for page in sources.rglob("*.md")}
    there = {page for page in there if not page.startswith("source/")}
    if wrong := sorted(listed ^ there):
        message = f"mkdocs.yml: nav and docs/ differ by {', '.join(wrong)}"
        raise BrokenManualError(message)


def index_for_models(config: dict[str, Any], sources: Path) -> str:
    """The text of `llms.txt` (https://llmstxt.org): every page of the navigation, with a word on
    what it is about.

    That is what the manual's first page says of it, else the page's own first sentence.
    """
    said = dict(ROW.findall((sources / "index.md").read_text(encoding="utf-8")))
    lines = [f"# {config['site_name']}", "", f"> {config['site_description']}"]
    for title, pages in in_order(config["nav"]):
        lines += ["", f"## {title}", ""]
        for page in pages:
            heading, _, rest = (sources / page).read_text(encoding="utf-8").partition("\n")
            sentence = " ".join(rest.strip().split("\n\n")[0].split()).split(". ")[0].rstrip(".:")
            about = said.get(page) or (sentence if sentence[:1].isalpha() else "")
            plain = re.sub(r"\[([^][]*)\]\([^()]*\)", r"\1", about)
            lines.append(f"- [{heading.removeprefix('# ')}]({page}){': ' if plain else ''}{plain}")
    return "\n".join(lines) + "\n"


class Markup(HTMLParser):
    """A strict reader of a page: every element is closed by its own tag, and code holds no page."""

    VOID = frozenset(
        [
            "area",
            "base",
            "br",
            "circle",
            "col",
            "embed",
            "hr",
            "img",
            "input",
            "link",
            "meta",
            "path",
            "source",
        ]
    )
    PAGE = frozenset(("article", "div", "h1", "h2", "h3", "h4", "main", "section", "table"))

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002 - its signature
        """Note an element that begins."""
        if tag in self.PAGE and "code" in self.open:
            self.faults.append(f"line {self.getpos()[0]}: <{tag}> inside <code>")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Note an element that ends."""
        if tag in self.VOID:
            return
        if self.open[-1:] == [tag]:
            self.open.pop()
            return
        inner = self.open[-1] if self.open else "nothing"
        self.faults.append(f"line {self.getpos()[0]}: </{tag}> closes <{inner}>")
        if tag in self.open:
            while self.open.pop() != tag:
                pass


def faults_of(html: str) -> list[str]:
    """Return what is wrong with the markup of a page."""
    markup = Markup()
    markup.feed(html)
    markup.close()
    return [*markup.faults, *(f"<{tag}> is never closed" for tag in markup.open)]


def without_empty_heads(html: str) -> str:
    """Return a page whose tables have no head where no column has a name."""
    return EMPTY_HEAD.sub("", html)


NUMBER = re.compile(
    r"(?:[-+$]?\d[\d,]*(?:\.\d+)?(?: (?:of [\d,]+|%|ms|us|s|MB|KB|kB|GB))?|none|-|)(?: \([^)]*\))?"
)
"""Text of a cell in a column of numbers."""
TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
TABLE_ROW = re.compile(r"<tr>.*?</tr>", re.DOTALL)
HEADING = re.compile(r"<th[^>]*>(.*?)</th>", re.DOTALL)
CELL = re.compile(r"<td(?=( style)?[ >=])")
TEXT = re.compile(r"<td[^>]*>(.*?)</td>", re.DOTALL)
OPTION = re.compile(r"<tr>\s*<td[^>]*><code>([a-z_]+)</code></td>\s*<td[^>]*>(?:<code>|in-process)")
"""A row of an option, with its default."""
_WIDE = 6
"""Columns of a table that needs smaller letters where it has more."""


def with_headings_in_cells(html: str) -> str:
    """Return a page of whose tables each cell has its column's heading as ``data-head``, which is
    shown where a row is a block.
    """
    return TABLE.sub(lambda found: _named(found[0]), html)


def _text(cell: str) -> str:
    return re.sub(r"<[^>]+>", "", cell).strip()


def _named(table: str) -> str:
    names = list(map(_text, HEADING.findall(table)))
    rows = [list(map(_text, TEXT.findall(row))) for row in TABLE_ROW.findall(table)]
    columns = list(zip(*(row for row in rows if len(row) == len(names)), strict=True))
    numbers = [
        any(re.match(r"\d", text) for text in texts) and all(map(NUMBER.fullmatch, texts))
        for texts in columns
    ]
    most = [max((_share(text) for text in texts), default=0) for texts in columns]

    def row(found: re.Match[str]) -> str:
        texts = list(map(_text, TEXT.findall(found[0])))
        at = iter(range(len(texts)))

        def cell(begin: re.Match[str]) -> str:
            column = next(at, -1)
            if not any(names):
                return "<td"
            marks = f'<td data-head="{escape(names[column] if column < len(names) else "")}"'
            if column < len(numbers) and numbers[column] and not begin[1]:
                share = _share(texts[column]) / (most[column] or 1)
                marks += f' class="number" style="--share: {share:.3f}"'
            return marks

        marked = CELL.sub(cell, found[0])
        if texts[:1] == ["compacter"]:
            marked = marked.replace("<tr>", '<tr class="ours">', 1)
        if option := OPTION.match(found[0]):
            marked = marked.replace("<tr", f'<tr id="{option[1]}"', 1)
        return marked

    def heading(found: re.Match[str]) -> str:
        column = next(heads)
        is_number = column < len(numbers) and numbers[column]
        return found[0].replace("<th", '<th class="number"', 1) if is_number else found[0]

    heads = iter(range(len(names)))
    table = re.sub(r"<th[ >].*?</th>", heading, TABLE_ROW.sub(row, table), flags=re.DOTALL)
    wide = "wide" if len(names) > _WIDE else ""
    return f'<div class="{wide}">{table}</div>' if wide else table


def _share(text: str) -> float:
    """Return the number with which a cell begins; of ``3 of 12`` a quarter."""
    found = re.match(r"(\d[\d,]*(?:\.\d+)?)(?![\d.])(?: of (\d[\d,]*))?", text)
    if not found:
        return 0.0
    whole = float((found[2] or "1").replace(",", ""))
    return float(found[1].replace(",", "")) / (whole or 1)


def with_tests_in_words(html: str) -> str:
    """Return a page that names tests by the sentence that their names are."""
    return TEST.sub(lambda test: test[1].replace("_", " "), html)


ALL_WORDS = re.compile(r'(\(\w+,)"and"(,\w+=>\(\{field:"\*")')


def with_any_word(worker: str) -> str:
    """Return Zensical's search such that pages with any of the words are found, those with most of
    them first. By itself it finds nothing where one word of a question is nowhere.

    Raises ``BrokenManualError`` where its code has no such place any more.
    """
    changed, places = ALL_WORDS.subn(r'\1"or"\2', worker)
    if places != 1:
        raise BrokenManualError("the search of this version of Zensical has another form")
    return changed


def options_of(page: Path, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return an item of the search for each option, which leads to its row."""
    like = next((item for item in items if item["location"] == page.name), None)
    if like is None:
        return []
    rows = re.findall(r'<tr id="([a-z_]+)">(.*?)</tr>', page.read_text("utf-8"), re.DOTALL)
    return [
        {
            **like,
            "location": f"{page.name}#{name}",
            "level": 3,
            "title": f"The option {name}",
            "text": _text(" ".join(TEXT.findall(row))),
        }
        for name, row in rows
    ]


def with_version(html: str, version: str) -> str:
    """Return a page with the version in its header."""
    return re.sub(
        r'(md-header__topic">\s*<span class="md-ellipsis">\s*compacter)(?=\s*<)',
        rf"\1 {version}",
        html,
        count=1,
    )


def finish(site: Path) -> None:
    """Mend each page and the search, check markup, and leave tests and sources out of the search.

    Raises ``BrokenManualError`` with the faults of the first page that has some.
    """
    for worker in site.glob("assets/javascripts/workers/search.*.js"):
        worker.write_text(with_any_word(worker.read_text(encoding="utf-8")), encoding="utf-8")
    about = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    version = about["project"]["version"]
    for page in sorted(site.rglob("*.html")):
        html = without_empty_heads(page.read_text(encoding="utf-8"))
        html = with_version(with_tests_in_words(with_headings_in_cells(html)), version)
        page.write_text(html, encoding="utf-8")
        if faults := faults_of(html):
            raise BrokenManualError(f"{page.relative_to(site)}: {'; '.join(faults[:5])}")
    search = site / "search.json"
    index = json.loads(search.read_text(encoding="utf-8"))
    items = [item for item in index["items"] if not item["location"].startswith("source/")]
    index["items"] = [*options_of(site / "options.html", items), *items]
    search.write_text(json.dumps(index, separators=(",", ":")), encoding="utf-8")


def main() -> int:
    """Build the site; 1 where a link or the navigation is broken, Zensical's own code where it
    finds fault.
    """
    config = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
    sources, site = ROOT / config["docs_dir"], ROOT / config["site_dir"]
    for folder in (sources, site):
        shutil.rmtree(folder, ignore_errors=True)
    try:
        gather(sources)
        check_navigation(config, sources)
    except BrokenManualError as error:
        print(f"make_site: {error}", file=sys.stderr)
        return 1
    twins = {page: page.read_text(encoding="utf-8") for page in sorted(sources.rglob("*.md"))}
    for page, text in twins.items():
        page.write_text(with_callouts_and_tabs(text), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "zensical",
        "build",
        "--clean",
        "--strict",
        "--config-file",
        str(CONFIG),
    ]
    if code := subprocess.run(command, check=False).returncode:
        return code
    try:
        finish(site)
    except BrokenManualError as error:
        print(f"make_site: {error}", file=sys.stderr)
        return 1
    for page, text in twins.items():
        (site / page.relative_to(sources)).write_text(text, encoding="utf-8")
    (site / "llms.txt").write_text(index_for_models(config, sources), encoding="utf-8")
    print(f"{len(twins)} pages in {site.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
