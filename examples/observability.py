"""Events on the screen, in a file of JSON lines, and in the program's own log."""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from pathlib import Path

from compacter import Compacter
from compacter.observe import JsonLines
from compacter.testing import ScriptedModel


def main() -> None:
    """Compact one long list, and show what each of them got."""
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="log    %(message)s")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.jsonl"
        compacter = Compacter(
            summarizer="extractive",
            on_event=[lambda event: print("print ", event), JsonLines(path)],
            logger=logging.getLogger("app"),
        )
        messages = [
            {"role": "user", "content": f"Line {number} of a long list of things to do."}
            for number in range(60)
        ]
        compacter.wrap(ScriptedModel(window=400).completion)("any-model", messages)

        for line in path.read_text().splitlines():
            event = json.loads(line)
            print("file  ", event["event"], "at", event["time"])
            assert "long list" not in line  # sizes and counts, and no text of a message


if __name__ == "__main__":
    main()
