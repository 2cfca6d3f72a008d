"""How many small faults of the code do the tests notice? Cosmic Ray puts in a random sample of them, one at a time.

    make mutants ROOMS="overflow call" SAMPLE=100

Each mutant is tried in a copy of the checkout, against the tests of its room and the promises. Prints every survivor
with its line, then the share of the killed ones. `tests/README.md` explains those that survive on purpose.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
TESTS = {
    "messages": "tests/messages tests/promises",
    "compaction": "tests/compaction tests/promises tests/test_bad_input.py tests/test_events.py tests/call",
    "call": "tests/call tests/promises tests/test_wrapping.py tests/test_streams.py tests/test_events.py tests/clients",
    "overflow": "tests/overflow",
    "memory": "tests/memory",
    "recall": "tests/recall",
    "summary": "tests/summary",
}
"""Tests that a room's mutants are tried against."""
UNSEEN = ("ReplaceBinaryOperator_BitOr", "RemoveDecorator", "ReplaceUnaryOperator_Delete")
"""Operators that mostly change annotations (``int | None``) or the typing of decorators, which no test can see."""

CONFIG = """\
[cosmic-ray]
module-path = "middleware/compacter/{room}"
timeout = 120.0
excluded-modules = []
test-command = "{python} -m pytest -x -q -p no:randomly -p no:cacheprovider {tests}"
[cosmic-ray.distributor]
name = "local"
"""


def run(room: str, sample: int, seed: int, place: Path) -> tuple[int, int]:
    """Try a sample of one room's mutants; how many were killed, and of how many."""
    config, session = place / f"{room}.toml", place / f"{room}.sqlite"
    tests = " ".join(path for path in TESTS[room].split() if (place / path).exists())
    config.write_text(CONFIG.format(room=room, tests=tests, python=ROOT / ".venv/bin/python"))
    tool = Path(sys.executable).parent / "cosmic-ray"
    # The tests must pass in the copy as it is; otherwise every mutant would seem killed.
    subprocess.run([tool, "baseline", config], cwd=place, check=True)
    subprocess.run([tool, "init", config, session], cwd=place, check=True, stdout=subprocess.DEVNULL)
    with sqlite3.connect(session) as store:
        rows = store.execute("select job_id, operator_name from mutation_specs").fetchall()
        wanted = [job for job, operator in rows if not any(name in operator for name in UNSEEN)]
        keep = set(random.Random(seed).sample(wanted, min(sample, len(wanted))))
        others = [(job,) for job, _ in rows if job not in keep]
        store.executemany("delete from mutation_specs where job_id = ?", others)
        store.executemany("delete from work_items where job_id = ?", others)
    subprocess.run([tool, "exec", config, session], cwd=place, check=True)
    with sqlite3.connect(session) as store:
        results = store.execute(
            "select s.module_path, s.start_pos_row, s.operator_name, r.test_outcome, r.diff from mutation_specs s "
            "join work_results r on r.job_id = s.job_id order by 1, 2"
        ).fetchall()
    for module, row, operator, outcome, diff in results:
        if "SURVIVED" in str(outcome).upper():
            changed = [
                line for line in (diff or "").splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")
            ]
            print(f"survived {module}:{row} {operator}", *changed, sep="\n    ")
    survived = sum("SURVIVED" in str(result[3]).upper() for result in results)
    return len(results) - survived, len(results)


def main() -> None:
    """Try the rooms one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="+", choices=list(TESTS))
    parser.add_argument("--sample", type=int, default=60, help="mutants of each room")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    killed = tried = 0
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "checkout"
        shutil.copytree(ROOT, place, ignore=shutil.ignore_patterns(".venv*", ".git", ".mypy_cache", ".ruff_cache"))
        for room in options.rooms:
            dead, all_ = run(room, options.sample, options.seed, place)
            print(f"{room}: {dead} of {all_} killed")
            killed, tried = killed + dead, tried + all_
    print(f"{killed} of {tried} killed, {killed / max(1, tried):.0%}")


if __name__ == "__main__":
    main()
