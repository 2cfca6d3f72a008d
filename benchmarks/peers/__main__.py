"""The same work for compacter and its peers, in one run: ``make peers``, ``make peers PEERS="langchain strands"``.

Each peer runs in an environment of its own, in a process that stays; the rounds go from one to the next, so that a busy
machine is busy for all, and the best of each peer's rounds counts. What is not installed is named and left out. Writes
``docs/benchmarks.md``, its pictures, and with ``--release`` a line of ``benchmarks/history.jsonl``.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import report

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PEERS = {
    "compacter": "", "compacter without quotes": "", "twenty lines": "", "gollem (port)": "", "litellm": "",
    "langchain": "langchain", "strands": "strands", "pydantic-ai-harness": "pydantic-ai-harness",
    "llama-index": "llama-index", "haystack": "haystack", "semantic-kernel": "semantic-kernel",
    "agent-framework": "agent-framework",
}  # fmt: skip
"""Peer -> its environment; empty: the project's own."""

Ask = dict[str, Any]


class Worker:
    """A peer's process. One that takes too long is ended and begun again."""

    def __init__(self, name: str, python: Path) -> None:
        self.name, self.python = name, python
        self.process: subprocess.Popen[bytes] | None = None
        self.version = ""

    def start(self) -> bool:
        module = "peer_" + self.name.partition(" (")[0].replace(" ", "_").replace("-", "_")
        self.process = subprocess.Popen(
            [self.python, HERE / "worker.py", module],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=HERE,
        )  # fmt: skip
        greeting = self._line(120)
        self.version = str(greeting.get("version", ""))
        return "failed" not in greeting

    def ask(self, asked: Ask, seconds: float) -> dict[str, Any]:
        if self.process is None or self.process.poll() is not None:
            self.start()
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(asked).encode() + b"\n")
        self.process.stdin.flush()
        return self._line(seconds)

    def _line(self, seconds: float) -> dict[str, Any]:
        assert self.process is not None
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        line = self.process.stdout.readline() if ready else b""
        if line:
            found: dict[str, Any] = json.loads(line)
            return found
        self.stop()
        return {"failed": f"over {seconds:.0f} s" if not ready else "it ended"}

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@dataclass(frozen=True, slots=True)
class Asked:
    """One piece of work."""

    place: str
    """Where it stands in the results."""
    ask: Ask
    times: int = 1
    seconds: float = 40
    """A peer that takes longer is not asked for more of the kind."""
    only: str = ""

    @property
    def kind(self) -> str:
        """What stays the same when the work gets larger."""
        first, _, *rest = [*self.place.split("/"), ""]
        return "/".join([first, *rest]) if first in {"idle", "fold", "grow"} else self.place


def plan(*, quick: bool) -> Iterator[Asked]:
    """All the work, the smaller first."""
    for size in (20, 200, 2_000, 20_000):
        yield Asked(f"idle/{size}", {"task": "idle", "size": size}, times=3)
    for size in (200, 2_000) if quick else (200, 2_000, 20_000, 100_000):
        # The others do not tell planning apart from the rest.
        yield Asked(f"plan/{size}", {"task": "fold", "size": size, "whole": False}, times=3, only="compacter")
        if size < 100_000:
            yield Asked(f"fold/{size}", {"task": "fold", "size": size}, seconds=12)
    for kind in ("empty", "raises", "overflows", "inflates", "refuses"):
        yield Asked(f"fault/{kind}", {"task": "fault", "kind": kind})
    for tenth in range(1, 11):
        yield Asked(f"pairs/{tenth / 10}", {"task": "pairs", "ratio": tenth / 10})
    texts = Path(os.environ.get("COMPACTER_DATA", ROOT.parent / "shared" / "data"), "token_limit_errors.jsonl")
    if texts.is_file():
        yield Asked("detect", {"task": "detect", "file": str(texts)})
    for turns in (200,) if quick else (200, 2_000):
        yield from growing(turns)


def growing(turns: int) -> Iterator[Asked]:
    """A conversation, by a caller that keeps one list and by one that resends its history."""
    for style in ("keep", "resend"):
        ask = {"task": "grow", "turns": turns, "resend": style == "resend"}
        yield Asked(f"grow/{turns}/{style}", ask, seconds=60)


def better(one: dict[str, Any] | None, other: dict[str, Any]) -> dict[str, Any]:
    """The better of two rounds, by the least time."""
    for name in ("ns", "ms"):
        if one is not None and name in one and name in other:
            return min(one, other, key=lambda found: found[name])
    return other if one is None or "failed" in one else one


def main() -> None:
    """Run, and write what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peers", nargs="*", help="names; all where none is given")
    parser.add_argument("--quick", action="store_true", help="leave out what takes longest")
    parser.add_argument("--resume", action="store_true", help="go on with the saved results of a run that was ended")
    parser.add_argument("--release", action="store_true", help="add a line to benchmarks/history.jsonl")
    options = parser.parse_args()
    saved = HERE / "results.json"
    results: dict[str, Any] = {}
    if options.resume and saved.exists():
        results = json.loads(saved.read_text(encoding="utf-8"))["results"]
    workers, missing = started(options.peers)
    late: set[tuple[str, str]] = set()
    for asked in plan(quick=options.quick):
        if asked.place in results:
            continue
        begun = time.monotonic()
        for _ in range(asked.times):
            for worker in workers:
                if (worker.name, asked.kind) in late or asked.only not in {"", worker.name}:
                    continue
                found = worker.ask(asked.ask, asked.seconds)
                if str(found.get("failed", "")).startswith("over"):
                    late.add((worker.name, asked.kind))
                row = results.setdefault(asked.place, {})
                row[worker.name] = better(row.get(worker.name), found)
        print(f"{asked.place}: {time.monotonic() - begun:.0f} s", flush=True)
        whole = {
            "machine": report.machine(),
            "versions": {worker.name: worker.version for worker in workers},
            "missing": missing,
            "results": results,
        }
        saved.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    for worker in workers:
        worker.stop()
    report.write(ROOT, json.loads(saved.read_text(encoding="utf-8")), release=options.release)


def started(names: list[str]) -> tuple[list[Worker], list[str]]:
    """The peers that are there, and the names of those that are not."""
    venv = Path(os.environ.get("VENV", ROOT / ".venv"))
    workers, missing = [], []
    for name, env in PEERS.items():
        if names and name.partition(" (")[0] not in {*names, "compacter", "compacter without quotes"}:
            continue
        python = Path(f"{venv}-peers", env, "bin", "python") if env else Path(sys.executable)
        worker = Worker(name, python)
        if python.exists() and worker.start():
            workers.append(worker)
        else:
            missing.append(name)
            print(f"{name} is not installed, and left out: make peers PEERS={env or name!r}")
    return workers, missing


if __name__ == "__main__":
    main()
