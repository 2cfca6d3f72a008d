"""``after_compaction``: a coding agent's five newest files are read again behind each summary."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from compacter import Compacter, CompactionEvent
from compacter.testing import ScriptedModel, ScriptedSummarizer

MOST_FILES = 5


def read_step(number: int, path: Path) -> list[dict[str, Any]]:
    """Return the agent's call of its tool, and the result."""
    call = {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": "read_file", "arguments": json.dumps({"path": str(path)})},
    }
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": path.read_text()},
    ]


def read_again(event: CompactionEvent) -> list[dict[str, str]]:
    """Return the newest of the files whose text was compacted, as they are now, newest first."""
    calls = (call for message in event.discarded for call in message.get("tool_calls") or ())
    paths = [json.loads(call["function"]["arguments"])["path"] for call in calls]
    newest = list(dict.fromkeys(reversed(paths)))[:MOST_FILES]
    return [
        {"role": "user", "content": f"{path} is now:\n{Path(path).read_text()}"} for path in newest
    ]


def main() -> None:
    """Read twelve files, change one, and see what the model gets after the compaction."""
    model = ScriptedModel(window=2_000)
    compacter = Compacter(
        summarizer=ScriptedSummarizer("Twelve modules were read; the bug is in module 7."),
        after_compaction=read_again,
    )
    completion = compacter.wrap(model.completion)
    with tempfile.TemporaryDirectory() as folder:
        messages: list[dict[str, Any]] = [{"role": "user", "content": "Find the bug."}]
        for number in range(12):
            path = Path(folder, f"module_{number}.py")
            path.write_text(f"LIMIT = {number}\n" + "# a long comment\n" * 50)
            messages += read_step(number, path)
        Path(folder, "module_7.py").write_text("LIMIT = 700  # mended meanwhile\n")
        completion("any-model", messages)

    for message in model.requests[-1].messages:
        text = str(message["content"]).replace(folder, "")
        print(f"{message['role']:9} {text.splitlines()[:2]}")


if __name__ == "__main__":
    main()
