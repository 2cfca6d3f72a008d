"""Write ``docs/examples.md``: what each program in ``examples/`` prints.

``python docs/make_examples.py``. A test runs the same programs, and holds the page to it but for
times, which differ from run to run, and the seals of summaries.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "examples.md"
NOT_SHOWN = ("embedded_model",)
"""A model's words depend on the machine."""
MOST_LINES = 8
"""A longer output is shown without its middle."""
_HEAD = """\
# Examples

Each is a small program that runs offline in seconds, on a scripted model with a small window. Its
output is below it.
"""


def names() -> list[str]:
    """The examples that the page shows, in order."""
    found = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
    return [name for name in found if name not in NOT_SHOWN]


def printed(name: str) -> str:
    """What an example prints, logs included."""
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / f"{name}.py"],
        env=os.environ | {"PYTHONPATH": str(ROOT / "middleware"), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=True,
    )
    return trimmed(done.stdout)


def trimmed(text: str) -> str:
    """The text without empty lines around it, and spaces at the ends of its lines."""
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def steady(text: str) -> str:
    """The text without durations, moments and seals."""
    text = re.sub(r"\d+(?:\.\d+)? (?:s|ms)\b", "0.1 s", text)
    text = re.sub(r"\b\d{10}\.\d+\b", "1767225600.0", text)
    return re.sub(r"(\[compacter: [^\]]+\]) [0-9a-f]{8}", r"\1 5ea1ed00", text)


def section(name: str, output: str) -> str:
    """The part of the page for one example."""
    source = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    about = " ".join((ast.get_docstring(ast.parse(source)) or "").split("\n\n")[0].split()).replace(
        "``", "`"
    )
    link = f"[`examples/{name}.py`](../examples/{name}.py)"
    title = name.replace("_", " ").capitalize().replace("Openai", "OpenAI")
    return f"## {title}\n\n{about} {link}:\n\n```text\n{shortened(output)}\n```\n"


def shortened(output: str) -> str:
    """An output without the middle of a long one."""
    lines = output.splitlines()
    if len(lines) <= MOST_LINES:
        return output
    return "\n".join([*lines[: MOST_LINES - 4], "...", *lines[-3:]])


def main() -> None:
    """Write the page."""
    parts = [section(name, steady(printed(name))) for name in names()]
    PAGE.write_text("\n".join([_HEAD, *parts]), encoding="utf-8")


if __name__ == "__main__":
    main()
