"""The page in a real browser: both themes, a phone and a desk, accessible, quick, and usable on
paper.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from compacter.tools.report import page, read_lines, stories

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page
    from tests.report.conftest import Lines

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")

PHONE = (390, 844)
DESK = (1280, 900)


def opened(
    browser: Browser,
    path: Path,
    size: tuple[int, int] = DESK,
    theme: Literal["light", "dark"] = "light",
    **options: Any,
) -> Page:
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme=theme, **options
    )
    shown = context.new_page()
    shown.set_default_timeout(60_000)
    shown.goto(path.as_uri())
    return shown


@pytest.fixture
def report(tmp_path: Path, lines: Lines) -> Path:
    path = tmp_path / "report.html"
    path.write_text(page(stories(read_lines(lines())[0])), encoding="utf-8")
    return path


@pytest.mark.parametrize(("size", "theme"), [(PHONE, "light"), (DESK, "dark")])
def test_axe_finds_no_violation(
    browser: Browser, report: Path, size: tuple[int, int], theme: Literal["light", "dark"]
) -> None:
    # The page's own policy keeps axe out as well.
    shown = opened(browser, report, size, theme, bypass_csp=True)
    shown.locator("details.text summary").first.click()
    found = axe.Axe().run(shown)
    assert found.violations_count == 0, found.generate_report()


def test_the_page_never_scrolls_sideways_and_a_phone_shows_what_is_known_of_the_line(
    browser: Browser, report: Path
) -> None:
    shown = opened(browser, report, PHONE)
    assert shown.get_by_text("sizes are known at compactions").first.is_visible()
    for width, height in ((320, 600), PHONE, DESK):
        shown.set_viewport_size({"width": width, "height": height})
        assert shown.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("size", [PHONE, DESK])
def test_the_cards_leave_no_empty_cell(
    browser: Browser, report: Path, size: tuple[int, int]
) -> None:
    shown = opened(browser, report, size)
    covered = shown.evaluate(
        "const box = document.querySelector('.cards').getBoundingClientRect();"
        "const cards = [...document.querySelectorAll('.cards div')];"
        "const area = (each) => each.width * each.height;"
        "cards.map((card) => area(card.getBoundingClientRect())).reduce((a, b) => a + b)"
        " / area(box)"
    )
    assert covered > 0.95


def test_nothing_is_fetched_and_nothing_is_complained_of(browser: Browser, report: Path) -> None:
    context = browser.new_context()
    shown = context.new_page()
    asked: list[str] = []
    said: list[str] = []
    shown.on("request", lambda request: asked.append(request.url))
    shown.on("console", lambda message: said.append(message.text))
    shown.on("pageerror", lambda error: said.append(str(error)))
    shown.goto(report.as_uri())
    assert asked == [report.as_uri()]
    assert said == []


def test_a_click_on_a_column_sorts_and_another_one_turns_it_round(
    browser: Browser, report: Path
) -> None:
    shown = opened(browser, report)
    first = shown.locator("table.sortable tbody tr th").first
    head = shown.locator("table.sortable thead th", has_text="Failures")
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert first.inner_text() == "0" * 16
    head.locator("button").press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert shown.locator("table.sortable tbody tr").first.locator("td").nth(6).inner_text() == "2"


def test_a_link_opens_its_conversation(browser: Browser, tmp_path: Path, lines: Lines) -> None:
    path = tmp_path / "report.html"
    path.write_text(page(stories(read_lines(lines(conversations=5))[0])), encoding="utf-8")
    shown = opened(browser, path)
    assert shown.locator("details.story[open]").count() == 3
    shown.locator('a[href="#c4"]').click()
    shown.locator("#c4[open]").wait_for()
    assert shown.locator("#c4 svg").first.is_visible()


def test_paper_shows_every_conversation(browser: Browser, tmp_path: Path, lines: Lines) -> None:
    path = tmp_path / "report.html"
    path.write_text(page(stories(read_lines(lines(conversations=5))[0])), encoding="utf-8")
    shown = opened(browser, path)
    shown.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert shown.locator("details.story[open]").count() == 5
    shown.evaluate("dispatchEvent(new Event('afterprint'))")
    assert shown.locator("details.story[open]").count() == 3
    shown.emulate_media(media="print")
    # A4 between the margins that browsers leave.
    shown.set_viewport_size({"width": 718, "height": 1000})
    shown.evaluate("dispatchEvent(new Event('beforeprint'))")
    wide = (
        "[...document.querySelectorAll('.scroll')].filter(box => box.scrollWidth > "
        "box.clientWidth + 1).length"
    )
    assert shown.evaluate(wide) == 0
    assert shown.pdf(prefer_css_page_size=True).startswith(b"%PDF")


@pytest.mark.parametrize("conversations", [1, 500])
def test_ten_thousand_events_are_one_page_that_opens(
    browser: Browser, tmp_path: Path, lines: Lines, conversations: int
) -> None:
    # How long it takes is measured in benchmarks/report.py.
    records, _ = read_lines(
        lines(conversations=conversations, compactions=-(-10_000 * 3 // 7 // conversations))
    )
    assert len(records) >= 10_000
    path = tmp_path / "report.html"
    path.write_text(page(stories(records)), encoding="utf-8")
    assert path.stat().st_size < 8_000_000
    shown = opened(browser, path)
    assert shown.locator("details.story").count() >= conversations
    shown.context.close()


def test_a_filter_leaves_the_conversations_with_the_words(browser: Browser, tmp_path: Path) -> None:
    lines = [
        json.dumps(
            {
                "event": "CompactionEvent",
                "conversation": f"talk {number}",
                "original_tokens": 900,
                "compacted_tokens": 300,
            }
        )
        for number in range(250)
    ]
    path = tmp_path / "many.html"
    path.write_text(page(stories(read_lines(lines)[0])), encoding="utf-8")
    shown = opened(browser, path)
    rows = shown.locator("table.sortable tbody tr:visible")
    assert rows.count() == 100
    shown.get_by_role("button", name="Show 100 more").click()
    assert rows.count() == 200
    shown.get_by_role("searchbox").fill("talk 24")
    assert rows.count() == 13  # 24, 124, 224, and 240 to 249
