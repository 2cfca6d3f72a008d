"""Draw the picture of the report in ``docs/cli.md``: four conversations with a scripted model.

``python docs/make_report.py``. It needs Chromium, as the tests of the report do.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from compacter import Compacter
from compacter.events import Event
from compacter.testing import ScriptedModel
from compacter.tools.report import page, read_lines, stories

PICTURE = Path(__file__).parent / "images" / "report.png"
SIZE = {"width": 1180, "height": 1140}
BEGUN = 1_790_000_000.0
"""Unix time of the first call; a turn takes a minute."""
SUMMARY = " ".join(
    f"Lighthouse {number} has {20 + number} metres and lamp {number % 7}." for number in range(24)
)


def events() -> list[str]:
    """The events of four conversations, as lines of JSON."""
    lines: list[str] = []
    minutes = 0

    def keep(event: Event) -> None:
        fields = json.loads(event.model_dump_json())
        time = BEGUN + minutes * 60
        lines.append(json.dumps({"event": type(event).__name__, "time": time, **fields}))

    def reply(messages: list[dict[str, str]]) -> str:
        return SUMMARY if len(messages) < 3 else "It is in the register. " * 20

    for number, turns in enumerate((230, 190, 120, 210), 1):
        model = ScriptedModel(window=8_000, replies=reply)
        compacter = Compacter(on_event=keep, conversation=f"register-{number}", recall=None)
        completion = compacter.wrap(model.completion)
        messages = [{"role": "system", "content": "You keep a register of lighthouses."}]
        for turn in range(turns):
            minutes += 1
            text = f"Lighthouse {turn}: {20 + turn % 40} metres, lamp {turn % 7}. " * 6
            messages.append({"role": "user", "content": text})
            answer = completion(model="gpt-4o", messages=messages)
            messages.append(answer["choices"][0]["message"])
    return lines


def main() -> None:
    """Write the picture."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        report = Path(folder) / "report.html"
        report.write_text(page(stories(read_lines(events())[0])), encoding="utf-8")
        chromium = started.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        shown = chromium.new_page(viewport=SIZE)
        shown.goto(report.as_uri())
        shown.screenshot(path=PICTURE)
        chromium.close()


if __name__ == "__main__":
    main()
