"""The page of the server in a real browser: it tells what is new, and leaves a reader where they
are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import openai
import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")

Serve = Callable[..., Any]
Talk = Callable[..., Any]


@pytest.fixture
def serving(serve: Serve, openai_server: Any) -> Any:
    return serve(
        f"{openai_server.url}/v1",
        texts=True,
        summarizer=lambda messages, **_: "The keel is of oak.",
    )


@pytest.fixture
def compact(serving: Any, talk: Talk) -> Callable[[str], None]:
    """Has a conversation compacted once more."""
    turns: dict[str, int] = {}

    def compact(about: str) -> None:
        turns[about] = turns.get(about, 0) + 20
        with openai.OpenAI(base_url=f"{serving.url}/v1", api_key="k", max_retries=0) as client:
            client.chat.completions.create(model="m", messages=talk(turns[about], about))

    return compact


def opened(
    browser: Browser, url: str, theme: Literal["light", "dark"] = "light", **options: Any
) -> Page:
    shown = browser.new_context(
        viewport={"width": 1280, "height": 500}, color_scheme=theme, **options
    ).new_page()
    shown.set_default_timeout(60_000)
    shown.goto(f"{url}/compacter")
    return shown


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("conversations", [0, 5])
def test_axe_finds_no_violation(
    browser: Browser,
    serving: Any,
    compact: Callable[[str], None],
    conversations: int,
    theme: Literal["light", "dark"],
) -> None:
    for number in range(conversations):
        compact(f"pier {number}")
    # The page's own policy keeps axe out as well.
    shown = opened(browser, serving.url, theme, bypass_csp=True)
    shown.locator("header").wait_for()
    found = axe.Axe().run(shown)
    assert found.violations_count == 0, found.generate_report()


def test_what_is_new_appears_and_what_a_reader_did_stays(
    browser: Browser, serving: Any, compact: Callable[[str], None]
) -> None:
    for number in range(5):
        compact(f"pier {number}")
    complaints: list[str] = []
    shown = opened(browser, serving.url)
    shown.on("console", lambda message: complaints.append(message.text))
    shown.on("pageerror", lambda error: complaints.append(str(error)))
    first = shown.locator("details.story").nth(0)
    second = shown.locator("details.story").nth(1)
    second.locator("summary").first.click()
    first.locator("details.text summary").click()
    shown.locator("table.sortable thead th", has_text="Saved").locator("button").click()
    first.locator("details.text summary").focus()
    shown.evaluate("scrollTo(0, 120)")  # Above the rows that are added: browsers keep what is seen.
    top = shown.evaluate("scrollY")
    for what in ("pier 0", "pier 1", "lamps"):
        compact(what)
    shown.locator("details.story").nth(5).wait_for()
    for story in (first, second):
        story.locator("span", has_text="2 compactions").wait_for()
    assert first.locator("tbody tr").count() == 2
    assert shown.locator("details.story[open]").count() == 2
    assert first.locator("details.text[open]").count() == 1
    assert "The keel is of oak." in first.locator("pre").first.inner_text()
    assert shown.locator('th[aria-sort="descending"]').inner_text().startswith("Saved")
    assert shown.evaluate(
        "document.activeElement.closest('details.story') === document.querySelector('#c1')"
    )
    assert shown.evaluate("scrollY") == top
    assert complaints == []


def test_a_server_that_has_ended_is_told(browser: Browser, serving: Any) -> None:
    shown = opened(browser, serving.url)
    shown.route("**/*", lambda route: route.abort())
    shown.locator("[role=status]", has_text="does not respond").wait_for()
    shown.unroute("**/*")
    shown.locator("[role=status]", has_text="does not respond").wait_for(state="detached")


def test_nothing_is_sent_again_while_nothing_has_happened(
    serving: Any, compact: Callable[[str], None]
) -> None:
    head = "GET /compacter HTTP/1.1\nHOST\nConnection: close\n"
    tag = serving.ask(f"{head}\n").partition(b"etag: ")[2].partition(b"\r\n")[0].decode()
    asked = f"{head}If-None-Match: {tag}\n\n"
    assert serving.ask(asked).startswith(b"HTTP/1.1 304 ")
    compact("lamps")
    assert serving.ask(asked).startswith(b"HTTP/1.1 200 ")
