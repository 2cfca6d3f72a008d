"""How many small faults of the code do the tests notice? A random sample of Cosmic Ray's mutants, one at a time.

    make mutants ROOMS="overflow call" SAMPLE=100

Cosmic Ray, in an environment of its own, makes the mutants. They are tried in the environment of the tests: each in a
child process, which imports the changed text in place of the file and runs the tests that reach the changed statement,
the quickest first, until one fails. The files stay as they are. Prints every survivor with its line, then the share of
the killed ones. `tests/README.md` explains those that survive on purpose.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import gc
import importlib
import importlib.machinery
import itertools
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "middleware/compacter"
OF_THE_PROJECT = re.compile("test_(examples|manual|packaging|peers|reference|site|structure)")
"""Tests of what lies around the code."""
ROOMS = ("messages", "compaction", "call", "overflow", "memory", "recall", "summary")
TESTS = [
    *(f"tests/{name}" for name in (*ROOMS, "promises", "properties", "clients")),
    *sorted(
        str(path.relative_to(ROOT)) for path in ROOT.glob("tests/test_*.py") if not OF_THE_PROJECT.match(path.stem)
    ),
]
"""Tests that every mutant is tried against, those of its own room first."""
UNSEEN = re.compile(r"BitOr|RemoveDecorator|UnaryOperator_Delete")
"""Operators that mostly change annotations (``int | None``) or the typing of decorators, which no test can see."""
DECLARES = re.compile(r"\s*(?:@dataclass|(?:async )?def |\*,$|if TYPE_CHECKING:)")
"""Lines on which a mutant changes ``slots=True``, the ``*`` of a signature or an import for types: no fault of what the
code does."""
IMPORTED_ONCE = (
    *("pytest", "hypothesis", "coverage", "pydantic", "structlog", "tenacity", "redis", "starlette", "uvicorn"),
    *("openai.types.responses", "anthropic.types.beta", "google.genai", "litellm"),
)
PYTEST = [
    "-q",
    *("-p", "no:cacheprovider", "-p", "no:randomly"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # These are imported once, before the children are forked.
    f"--rootdir={ROOT}",
]
SECONDS = 120
"""A mutant that takes more processor time, or ten times as long by the clock, does not end: it is noticed."""
MOST_SECONDS = 60
"""What the tests of one mutant may take together; the longest are left out."""


class Mutant(NamedTuple):
    """One small fault: its file below the package, its line, the operator that made it, and the file's whole text."""

    file: str
    row: int
    operator: str
    text: str


def make(room: str, sample: int, seed: int) -> list[Mutant]:
    """A sample of the mutants that Cosmic Ray makes of a room."""
    commands: Any = importlib.import_module("cosmic_ray.commands")
    mutating: Any = importlib.import_module("cosmic_ray.mutating")
    plugins: Any = importlib.import_module("cosmic_ray.plugins")
    work: Any = importlib.import_module("cosmic_ray.work_db")
    found: list[Any] = []
    for path in sorted((PACKAGE / room).glob("*.py")):
        lines = path.read_text().splitlines()
        with work.use_db(":memory:", work.WorkDB.Mode.create) as store:
            commands.init([path], store, {})
            specs = [spec for item in store.work_items for spec in item.mutations]
        specs.sort(key=lambda spec: (spec.start_pos, spec.operator_name, spec.occurrence))
        found += [
            spec
            for spec in specs
            if not UNSEEN.search(spec.operator_name) and not DECLARES.match(lines[spec.start_pos[0] - 1])
        ]
    mutants = []
    for spec in random.Random(seed).sample(found, min(sample, len(found))):
        operator = plugins.get_operator(spec.operator_name)(**spec.operator_args)
        text = mutating.mutate_code(Path(spec.module_path).read_text(), operator, spec.occurrence)
        name = str(Path(spec.module_path).relative_to(PACKAGE))
        # Cosmic Ray takes the ``*`` of a signature for a product, and compares literals by ``is``.
        with contextlib.suppress(SyntaxError), warnings.catch_warnings():
            warnings.simplefilter("error", SyntaxWarning)
            compile(text, name, "exec", dont_inherit=True)
            mutants.append(Mutant(name, spec.start_pos[0], spec.operator_name.split("/")[-1], text))
    return sorted(mutants)


class Baseline:
    """Which test reaches which line, and how long each takes: found by one run with coverage.

    A test that fails there, as those that measure a time may, is left out and named.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._lines: dict[str, dict[int, set[str]]] = {}
        with tempfile.TemporaryDirectory() as folder:
            told, data = Path(folder) / "seconds.json", Path(folder) / "data"
            _in_child(lambda: self._measure(told, data), seconds=3600)
            self.seconds = json.loads(told.read_text())
            coverage: Any = importlib.import_module("coverage")
            read = coverage.CoverageData(str(data))
            read.read()
            for file in read.measured_files():
                by_line = read.contexts_by_lineno(file)
                self._lines[file] = {line: {each.split("|")[0] for each in found} for line, found in by_line.items()}

    def tests_of(self, mutant: Mutant) -> tuple[list[str], list[str]]:
        """The tests that reach the statement of a mutant, the quickest first; all where it runs at import.

        Those of its room stand apart: most mutants need no other, and to read test files takes longer than to run them.
        """
        path = PACKAGE / mutant.file
        lines = self._lines.get(str(path), {})
        first, last = _statement(path.read_text(), mutant.row)
        reached = {test for line in range(first, last + 1) for test in lines.get(line, ())} & self.seconds.keys()
        quickest = sorted(reached if first else self.seconds, key=self.seconds.__getitem__)
        spent = itertools.accumulate(map(self.seconds.__getitem__, quickest))
        chosen = [test for test, sum_so_far in zip(quickest, spent, strict=True) if sum_so_far <= MOST_SECONDS]
        own = [test for test in chosen if test.startswith(f"tests/{mutant.file.split('/')[0]}/")]
        return own, [test for test in chosen if test not in set(own)]

    def _measure(self, told: Path, data: Path) -> int:
        import coverage
        import pytest

        seconds: dict[str, float] = {}
        failed: set[str] = set()
        measured = coverage.Coverage(data_file=str(data), source_pkgs=["compacter"], config_file=False)

        class Watch:
            def pytest_runtest_logstart(self, nodeid: str) -> None:
                measured.switch_context(nodeid)

            def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
                seconds[report.nodeid] = seconds.get(report.nodeid, 0.0) + report.duration
                if report.failed:
                    failed.add(report.nodeid)

        measured.start()
        pytest.main([*PYTEST, *TESTS], plugins=[Watch()])
        measured.stop()
        measured.save()
        told.write_text(json.dumps({test: spent for test, spent in seconds.items() if test not in failed}))
        print("left out:", *failed, sep="\n    ", file=sys.stderr)
        return 0


def is_noticed(mutant: Mutant, tests: list[str], *, seconds: float = SECONDS) -> bool:
    """Whether one of the tests fails, or the run does not end."""

    def attempt() -> int:
        import pytest

        place, real = str(PACKAGE / mutant.file), importlib.machinery.SourceFileLoader.get_code

        def get_code(loader: importlib.machinery.SourceFileLoader, name: str) -> Any:
            if loader.path == place:
                return compile(mutant.text, place, "exec", dont_inherit=True)
            return real(loader, name)

        importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[assignment, method-assign]
        order = {test: number for number, test in enumerate(tests)}

        class Chosen:
            def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
                items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])

        return int(pytest.main([*PYTEST, "-x", *sorted({test.split("::")[0] for test in tests})], plugins=[Chosen()]))

    return bool(tests) and _in_child(attempt, seconds=seconds) != 0


def _statement(text: str, row: int) -> tuple[int, int]:
    """First and last line of the statement at ``row``, of its head where others stand in it; 0, 0 outside functions."""
    found = (0, 0)
    for function in ast.walk(ast.parse(text)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.stmt) and node is not function and node.lineno <= row <= (node.end_lineno or 0):
                    body = getattr(node, "body", None)
                    last = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or row
                    if row <= last and node.lineno >= found[0]:
                        found = (node.lineno, last)
    return found


def _in_child(work: Any, *, seconds: float) -> int:
    """What ``work`` returns in a forked child that prints nothing; less than 0 where it takes too long.

    Seconds are of the processor, so that a busy machine is not taken for a fault.
    """
    child = os.fork()
    if not child:
        gc.freeze()  # What was known before is no garbage of the tests: to look through it takes longer than they do.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))
        outcome = 1
        try:
            outcome = work()
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(outcome)
    deadline = time.monotonic() + 10 * seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return -1


def attempt_all() -> None:
    """Try the mutants that standard input has, by room, in the environment of the tests."""
    by_room = {room: [Mutant(*each) for each in mutants] for room, mutants in json.load(sys.stdin).items()}
    for name in IMPORTED_ONCE:
        importlib.import_module(name)
    baseline = Baseline()
    some = next(iter(by_room.values()))[0]
    if is_noticed(some._replace(text=(PACKAGE / some.file).read_text()), list(baseline.seconds), seconds=3600):
        sys.exit("the tests fail without any mutant")
    for room, mutants in by_room.items():
        killed = sum(_is_told(mutant, baseline.tests_of(mutant)) for mutant in mutants)
        print(f"{room}: {killed} of {len(mutants)} noticed, {killed / max(1, len(mutants)):.0%}", flush=True)


def _is_told(mutant: Mutant, groups: tuple[list[str], ...]) -> bool:
    """Whether a mutant is noticed; one that survives is printed."""
    if any(is_noticed(mutant, tests) for tests in groups):
        return True
    before, after = (PACKAGE / mutant.file).read_text().splitlines(), mutant.text.splitlines()
    old, new = next(((old, new) for old, new in zip(before, after, strict=False) if old != new), ("", ""))
    print(f"survived {mutant.file}:{mutant.row} {mutant.operator} ({sum(map(len, groups))} tests)")
    print(f"    - {old.strip()}\n    + {new.strip()}", flush=True)
    return False


def main() -> None:
    """Try the rooms one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="+", choices=ROOMS)
    parser.add_argument("--sample", type=int, default=60, help="mutants of each room")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--attempt", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.attempt:
        attempt_all()
        return
    mutants = {room: make(room, options.sample, options.seed) for room in options.rooms}
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(str(ROOT / each) for each in ("middleware", "examples"))}
    program = [ROOT / ".venv/bin/python", __file__, *options.rooms, "--attempt"]
    subprocess.run(program, input=json.dumps(mutants), text=True, cwd=ROOT, env=environment, check=True)


if __name__ == "__main__":
    main()
