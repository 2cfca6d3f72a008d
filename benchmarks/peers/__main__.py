"""The same work for compacter and its peers, in one run: ``make peers``, ``make peers
PEERS="langchain strands"``.

Each peer runs in an environment of its own, in a process that stays. Timed rows go from one peer to
the next, and the best of each peer's rounds counts; rows that count run for two peers at a time.
Each piece of work has a limit, and who is over it is not asked for a larger piece of the kind. What
is not installed is named and left out. Results are kept in ``results.json``, so that parts can be
run again alone: ``--rows a,c``. Writes ``docs/benchmarks.md``, its pictures, and with ``--release``
a line of ``benchmarks/history.jsonl``; ``--report`` writes these from what is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import report

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SAVED = HERE / "results.json"
PEERS = {
    "compacter": "",
    "compacter without quotes": "",
    "usual loop": "",
    "gollem (port)": "",
    "litellm": "",
    "langchain": "langchain",
    "deepagents": "deepagents",
    "strands": "strands",
    "pydantic-ai-harness": "pydantic-ai-harness",
    "llama-index": "llama-index",
    "haystack": "haystack",
    "semantic-kernel": "semantic-kernel",
    "agent-framework": "agent-framework",
    "context-guardian": "context-guardian",
}
"""Peer -> its environment; empty: the project's own."""
OWN = ("compacter", "compacter without quotes")
CORES = 2
SETTINGS: dict[str, Any] = {
    "as it comes": {},
    "recall=None": {"recall": None},
    "recall=0.05": {"recall": 0.05},
    "recall=0.25": {"recall": 0.25},
    "compact_ratio=0.5": {"compact_ratio": 0.5},
    "compact_ratio=0.9": {"compact_ratio": 0.9},
    "trigger_tokens=7_200": {"trigger_tokens": 7_200},
}
"""Options of compacter's whose effect is told: (l)."""

Ask = dict[str, Any]


class Worker:
    """A peer's process. One that takes too long is ended and begun again."""

    def __init__(self, name: str, python: Path) -> None:
        self.name = name
        self.python = python
        self.process: subprocess.Popen[bytes] | None = None
        self.greeting: dict[str, Any] = {}

    def start(self) -> bool:
        module = "peer_" + short(self.name).replace("-", "_")
        self.process = subprocess.Popen(
            [self.python, HERE / "worker.py", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=HERE,
        )
        self.greeting = self._line(120)
        return "failed" not in self.greeting

    def ask(self, asked: Ask, seconds: float) -> dict[str, Any]:
        if (self.process is None or self.process.poll() is not None) and not self.start():
            return {"failed": "it did not start again"}
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
            with self.process as process:
                process.kill()
            self.process = None

    def weigh(self) -> dict[str, Any]:
        """What importing takes, and installing; both by other processes of the same environment."""
        package = self.greeting["package"]
        imports = self.greeting["imports"]
        if not package:
            return {}
        found: dict[str, Any] = {"import_ms": self._import(imports) - self._import("pass")}
        found |= self._weighed(package)
        if package == "llm-compacter":
            found["dependencies_ms"] = self._import(
                "import pydantic, structlog, tenacity"
            ) - self._import("pass")
            found["without_litellm"] = self._weighed(package, "litellm")
        return found

    def _import(self, code: str) -> float:
        """Milliseconds of a process that does that, the least of seven, or of as many as begin
        within two seconds.
        """
        best = float("inf")
        until = time.monotonic() + 2
        command: list[str | Path] = [self.python, "-W", "ignore", "-c", code]
        for _ in range(7):
            begun = time.perf_counter()
            subprocess.run(
                command, check=True, capture_output=True, cwd=ROOT / "middleware", timeout=60
            )
            best = min(best, time.perf_counter() - begun)
            if time.monotonic() > until:
                break
        return best * 1000

    def _weighed(self, *names: str) -> dict[str, Any]:
        command: list[str | Path] = [self.python, HERE / "weigh.py", *names]
        found: dict[str, Any] = json.loads(
            subprocess.run(command, check=True, capture_output=True, timeout=60).stdout
        )
        return found


@dataclass(frozen=True, slots=True)
class Asked:
    """One piece of work."""

    row: str
    """Its letter."""
    place: str
    """Where it stands in the results."""
    ask: Ask
    times: int = 1
    seconds: float = 10
    """A peer that takes longer is not asked for more of the kind."""
    only: tuple[str, ...] = ()
    timed: bool = True

    @property
    def kind(self) -> str:
        """What stays the same when the work gets larger."""
        first, _, *rest = [*self.place.split("/"), ""]
        return "/".join([first, *rest]) if first in {"idle", "fold", "grow", "live"} else self.place


def plan(*, quick: bool) -> Iterator[Asked]:
    """All the work: what counts before what is timed, the smaller before the larger."""
    yield from counting(quick=quick)
    yield from traffic(quick=quick)
    for size in (20, 200, 2_000, 20_000):
        yield Asked("a", f"idle/{size}", {"task": "idle", "size": size}, times=2 if quick else 3)
    for size in (200, 2_000) if quick else (200, 2_000, 20_000, 100_000):
        # The others do not tell planning apart from the rest.
        yield Asked(
            "b",
            f"plan/{size}",
            {"task": "fold", "size": size, "whole": False},
            times=3,
            only=OWN[:1],
        )
        if size < 100_000:
            yield Asked("b", f"fold/{size}", {"task": "fold", "size": size}, times=2)


def counting(*, quick: bool) -> Iterator[Asked]:
    """What a busy machine does not change."""
    for kind in ("empty", "raises", "overflows", "inflates", "refuses", "hangs"):
        yield Asked(
            "d",
            f"fault/{kind}",
            {"task": "fault", "kind": kind},
            seconds=8 if kind == "hangs" else 30,
            timed=False,
        )
    for tenth in range(1, 11):
        yield Asked(
            "i",
            f"pairs/{tenth / 10}",
            {"task": "pairs", "ratio": tenth / 10},
            seconds=30,
            timed=False,
        )
    texts = str(ROOT / "benchmarks" / "errors.jsonl")
    yield Asked("k", "detect", {"task": "detect", "file": texts}, seconds=30, timed=False)
    for percent in (10, 20):
        yield Asked(
            "j",
            f"answers/{percent}",
            {"task": "answers", "share": percent / 100},
            seconds=40,
            timed=False,
        )
    for writer in ("even", "attentive"):
        work = {"task": "tasks", "summarizer": writer}
        yield Asked("n", f"tasks/{writer}", work, seconds=150, timed=False)
    for said, options in SETTINGS.items():
        ask = {"task": "setting", "options": options}
        yield Asked("l", f"settings/{said}", ask, seconds=60, only=OWN[:1], timed=False)
    for turns in (200,) if quick else (200, 2_000):
        for style in ("keep", "resend"):
            ask = {
                "task": "grow",
                "turns": turns,
                "resend": style == "resend",
                "seconds": 30 if turns == 200 else 60,
            }
            yield Asked("c", f"grow/{turns}/{style}", ask, seconds=90, timed=False)


def traffic(*, quick: bool) -> Iterator[Asked]:
    """What a server has to do, and what an installation weighs."""
    tasks = {"task": "crowd", "callers": 1_000, "conversations": 25, "threads": False}
    yield Asked("h", "crowd/tasks", tasks, seconds=40)
    threads = {"task": "crowd", "callers": 64, "conversations": 8, "threads": True}
    yield Asked("h", "crowd/threads", threads, seconds=25)
    yield Asked("f", "weight", {})
    yield Asked("g", "stream", {"task": "stream"}, times=2)
    for size in (60,) if quick else (60, 1_000):
        live = {"task": "live", "conversations": 1_000, "size": size, "seconds": 4}
        yield Asked("e", f"live/1000x{size}", live, seconds=40)


def better(one: dict[str, Any] | None, other: dict[str, Any]) -> dict[str, Any]:
    """The better of two rounds, figure by figure where these are times."""
    if one is None or "failed" in one or "failed" in other:
        return other if one is None or "failed" in one else one
    found = dict(other)
    if "ms" in one and "ms" in other:
        found["ms"] = min(one["ms"], other["ms"])
    if "beside" in one and "beside" in other:
        found["beside"] = {
            name: [min(pair) for pair in zip(both, one["beside"][name], strict=True)]
            for name, both in other["beside"].items()
        }
    return found


def run(asked: Asked, workers: list[Worker], late: set[tuple[str, str]]) -> dict[str, Any]:
    """One piece of work by each of the peers."""

    def answered(worker: Worker) -> dict[str, Any] | None:
        if (worker.name, asked.kind) in late or worker.name not in (asked.only or {worker.name}):
            return None
        found = worker.ask(dict(asked.ask), asked.seconds) if asked.ask else worker.weigh()
        if str(found.get("failed", "")).startswith("over") or str(
            found.get("stopped", "")
        ).endswith(" s"):
            late.add((worker.name, asked.kind))
        return found

    row: dict[str, Any] = {}
    for _ in range(asked.times):
        with ThreadPoolExecutor(1 if asked.timed else CORES) as pool:
            for worker, found in zip(workers, pool.map(answered, workers), strict=True):
                if found is not None:
                    row[worker.name] = better(row.get(worker.name), found)
    for found in row.values():
        found |= {name: ours - bare for name, (ours, bare) in found.pop("beside", {}).items()}
    return row


def main() -> None:
    """Run, and write what came of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "peers", nargs="*", help=("names; all where none is given, and compacter always")
    )
    parser.add_argument(
        "--rows", default="", help=("letters of the rows to run, as a,c; all where none is given")
    )
    parser.add_argument("--quick", action="store_true", help="leave out what takes longest")
    parser.add_argument(
        "--minutes", type=float, default=25, help=("begin nothing new after so many; default 25")
    )
    parser.add_argument(
        "--release",
        action="store_true",
        help=("write the version's line of benchmarks/history.jsonl"),
    )
    parser.add_argument(
        "--model", action="store_true", help=("row m alone: the demo's model writes and answers")
    )
    parser.add_argument(
        "--report", action="store_true", help=("run nothing, and write the page from what is kept")
    )
    options = parser.parse_args()
    if unknown := set(options.peers) - {short(name) for name in PEERS}:
        parser.error(
            f"no such peer: {', '.join(sorted(unknown))}; there are {', '.join(map(short, PEERS))}"
        )
    whole: dict[str, Any] = {"versions": {}, "missing": [], "rows": {}, "results": {}}
    if SAVED.exists():
        whole |= json.loads(SAVED.read_text(encoding="utf-8"))
    if options.model:
        sys.path.append(str(ROOT / "examples"))
        from embedded_model import embedded_model

        with embedded_model() as model:
            ask = {
                "task": "answers",
                "share": 0.4,
                "length": 7_000,
                "each": 2,
                "url": model.api_base,
            }
            measure(whole, options, [Asked("m", "model/40", ask, seconds=300)])
    elif not options.report:
        measure(whole, options, plan(quick=options.quick))
    report.write(ROOT, whole, release=options.release)


def measure(whole: dict[str, Any], options: argparse.Namespace, work: Iterable[Asked]) -> None:
    """The rows that are asked for, by the peers that are there; what is kept of others stays."""
    workers, missing = started(options.peers)
    whole["missing"] = missing
    whole["versions"] |= {worker.name: worker.greeting["version"] for worker in workers}
    late: set[tuple[str, str]] = set()
    until = time.monotonic() + options.minutes * 60
    wanted = set(options.rows.replace(",", " ").split())
    for asked in work:
        if wanted and asked.row not in wanted:
            continue
        if time.monotonic() > until:
            print(f"{asked.place}: not run, {options.minutes:.0f} minutes are over", flush=True)
            continue
        begun = time.monotonic()
        old = whole["results"].get(asked.place, {})
        new = run(asked, workers, late)
        kept = {
            name: found
            for name, found in old.items()
            if name not in {worker.name for worker in workers}
        }
        whole["results"][asked.place] = {
            name: found for name in PEERS if (found := new.get(name, kept.get(name)))
        }
        whole["rows"][asked.row] = report.machine()
        print(f"{asked.place}: {time.monotonic() - begun:.0f} s", flush=True)
        SAVED.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    for worker in workers:
        worker.stop()


def short(name: str) -> str:
    """A peer's name on the command line."""
    return name.partition(" (")[0].replace(" ", "-")


def started(names: list[str]) -> tuple[list[Worker], list[str]]:
    """The peers that are there, and the names of those that are not."""
    venv = Path(os.environ.get("VENV", ROOT / ".venv"))
    workers = []
    missing = []
    for name, env in PEERS.items():
        if names and name not in OWN and short(name) not in names:
            continue
        python = (
            Path(f"{venv}-peers", env, "bin", "python").absolute() if env else Path(sys.executable)
        )
        worker = Worker(name, python)
        if python.exists() and worker.start():
            workers.append(worker)
        else:
            missing.append(name)
            print(
                f"{name} is not installed, and left out: make peers PEERS={env or name!r}",
                flush=True,
            )
    return workers, missing


if __name__ == "__main__":
    main()
