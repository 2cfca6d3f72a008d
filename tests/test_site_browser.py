"""Each page of the site in a real browser, on a phone and a desk, in both schemes: nothing leaves
the screen, no text lies on another; and the search finds what users ask. `make docs` builds the
site and runs this.
"""

from __future__ import annotations

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

SITE = Path(__file__).parent.parent / "build" / "site"
PAGES = sorted(page for page in SITE.rglob("*.html") if "source" not in page.parts)
SIZES = {"phone": (390, 844), "desk": (1280, 900)}

LOOK = """
() => {
    const faults = [];
    const width = document.documentElement.clientWidth;
    const scrolls = element => {
        for (let at = element; at; at = at.parentElement)
            if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(at).overflowX)) return true;
        return false;
    };
    const read = 'article :is(h1, h2, h3, h4, p, li, td, th, pre)';
    const blocks = [...document.querySelectorAll(read)];
    const seen = [];
    for (const block of blocks) {
        const box = block.getBoundingClientRect();
        if (!box.width || !box.height || scrolls(block.parentElement)) continue;
        const words = block.textContent.trim().slice(0, 40);
        if (box.right > width + 1) faults.push(`leaves the screen: ${words}`);
        for (const [other, place] of seen) {
            if (other.contains(block) || block.contains(other)) continue;
            const across = Math.min(box.right, place.right) - Math.max(box.left, place.left);
            const down = Math.min(box.bottom, place.bottom) - Math.max(box.top, place.top);
            if (across > 2 && down > 2) faults.push(`lies on another: ${words}`);
        }
        seen.push([block, box]);
        if (seen.length > 12) seen.shift();  // What may lie on a block stands near it.
    }
    if (document.documentElement.scrollWidth > width + 1) faults.push('the page scrolls sideways');
    return faults.slice(0, 5);
}
"""


pytestmark = pytest.mark.skipif(not PAGES, reason="the site is not built (make docs)")

RESULTS = """
() => [...document.querySelectorAll('*')].filter(element => element.shadowRoot)
    .flatMap(host => [...host.shadowRoot.querySelectorAll('a')])
    .map(link => link.href.replace(/^[a-z]+:..[^/]+./, '').replace(/[?][^#]*/, ''))
"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its signature
        """Say nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The site over HTTP, as its search reads a file."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ("off for one call", "troubleshooting.html#off-for-one-call"),
        ("disable for one call", "troubleshooting.html#off-for-one-call"),
        ("see what was dropped", "troubleshooting.html#see-what-was-dropped"),
        ("is my data sent", "troubleshooting.html#is-my-data-sent-anywhere"),
        ("known windows", "windows.html"),
        ("context window of gpt-4o", "windows.html#context-window-of-each-model"),
        ("option timeout", "options.html#timeout"),
        ("telemetry", "troubleshooting.html#is-my-data-sent-anywhere"),
    ],
)
def test_the_search_finds_what_users_ask(
    browser: Browser, address: str, words: str, place: str
) -> None:
    page = browser.new_page()
    page.goto(f"{address}/index.html")
    page.wait_for_load_state("networkidle")
    page.keyboard.press("/")
    page.keyboard.type(words)
    page.wait_for_function(f"place => ({RESULTS})()[0] === place", arg=place)
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_nothing_leaves_the_screen_or_lies_on_another_text(
    browser: Browser, size: str, scheme: Literal["light", "dark"]
) -> None:
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = context.new_page()
    faults = {}
    for path in PAGES:
        page.goto(path.as_uri())
        faults[str(path.relative_to(SITE))] = page.evaluate(LOOK)
    context.close()
    assert {name: found for name, found in faults.items() if found} == {}


CUT = """
() => [...document.querySelectorAll('article :is(table:not([class]), pre > code)')]
    .flatMap(element => [element, element.parentElement, element.parentElement.parentElement])
    .filter(element => element.scrollWidth > element.clientWidth + 1 && element.clientWidth)
    .map(element => element.textContent.trim().slice(0, 40))
"""
"""Tables and blocks of code with a part that only scrolling shows."""


def test_no_table_or_block_of_the_manual_is_cut_at_1280_pixels(browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    faults = {}
    for path in PAGES:
        page.goto(path.as_uri())
        faults[str(path.relative_to(SITE))] = page.evaluate(CUT)
    page.close()
    assert {name: found for name, found in faults.items() if found} == {}
