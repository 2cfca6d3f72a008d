"""Runs in a peer's environment: a line of JSON in, a line out. ``python worker.py
peer_langchain``.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import json
import logging
import os
import sys
import tomllib
import warnings
from pathlib import Path

ROOT = Path(__file__).parents[2]
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "middleware")]
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)


def version_of(package: str) -> str:
    """What is installed; of the project itself, what its sources say."""
    if package == "llm-compacter":
        return str(
            tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
                "version"
            ]
        )
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(package) if package else ""
    return ""


def main() -> None:
    """Answer until the input ends."""
    out = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        adapter = importlib.import_module(sys.argv[1]).Adapter
        work = importlib.import_module("work")
        greeting = {
            "package": adapter.package,
            "imports": adapter.imports,
            "version": version_of(adapter.package),
        }
        print(json.dumps(greeting), file=out, flush=True)
        for line in sys.stdin:
            asked = json.loads(line)
            try:
                answer = work.TASKS[asked.pop("task")](adapter, **asked)
            except Exception as error:  # noqa: BLE001 - told in the table
                answer = {"failed": f"{type(error).__name__}: {error}"[:300]}
            print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
