"""How long a browser takes to open a report of ten thousand events, one conversation or 500. Aimed
at: under 2 seconds.

Run: ``python benchmarks/report.py``. It needs Chromium and the package ``playwright``. Each figure
is the best of four.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from compacter import CompactionEvent
from compacter.tools.report import page, read_lines, stories

EVENTS = 10_000
RUNS = 4


def lines(conversations: int) -> list[str]:
    """Events as ``JsonLines`` writes them."""
    written: list[str] = []
    for number in range(EVENTS):
        event = CompactionEvent(
            model="gpt-4o",
            conversation=f"conversation {number % conversations}",
            attempt=1,
            original_data_size=32_000 + 37 * (number % 7),
            compacted_data_size=13_000,
            summary=(
                "The user keeps a register of lighthouses. Decided: heights in metres, lamps "
                "by their makers."
            ),
            trigger="token_limit",
            strategy="summarize",
            ratio=0.7,
            messages_before=61,
            messages_after=24,
            first_removed=2,
            last_removed=40,
            original_tokens=8_050,
            compacted_tokens=3_250,
            limit=8_000,
            cost=0.0146,
            duration=1.4,
        )
        fields = json.loads(event.model_dump_json())
        written.append(
            json.dumps({"event": "CompactionEvent", "time": 1_700_000_000 + number * 30, **fields})
        )
    return written


def opened(browser: Browser, path: Path) -> float:
    """Seconds until the page is loaded and laid out."""
    shown = browser.new_page()
    began = time.perf_counter()
    shown.goto(path.as_uri(), wait_until="load")
    shown.evaluate("document.body.getBoundingClientRect().height")
    taken = time.perf_counter() - began
    shown.close()
    return taken


def main() -> None:
    """Print one line for each number of conversations."""
    chromium = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if chromium is None:
        print("no Chromium on this machine; on Debian: apt-get install chromium")
        return
    with sync_playwright() as started, tempfile.TemporaryDirectory() as folder:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for conversations in (1, 500):
            path = Path(folder) / f"{conversations}.html"
            began = time.perf_counter()
            path.write_text(page(stories(read_lines(lines(conversations))[0])), encoding="utf-8")
            made = time.perf_counter() - began
            seconds = min(opened(browser, path) for _ in range(RUNS))
            size = path.stat().st_size / 1e6
            print(
                f"{conversations:4} conversations: opened in {seconds:.2f} s, made in "
                f"{made:.2f} s, {size:.1f} MB"
            )
        browser.close()


if __name__ == "__main__":
    main()
