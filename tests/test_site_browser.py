"""Each page of the site in a real browser, on a phone and a desk, in both schemes: nothing leaves
the screen, no text lies on another. `make docs` builds the site and runs this.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
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


@pytest.mark.skipif(not PAGES, reason="the site is not built (make docs)")
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
