"""How many small faults of the code do the tests notice? A random sample of Cosmic Ray's mutants,
one at a time.

    make mutants ROOMS="overflow call" SAMPLE=100

Cosmic Ray, in an environment of its own, makes the mutants. They are tried in the environment of
the tests: each in a child process, which runs the tests that reach the changed statement, the
quickest first, until one fails. The files do not change. Prints every survivor with its line, then
the share of the killed ones. `tests/README.md` explains those that survive on purpose.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import gc
import importlib
import importlib.machinery
import inspect
import itertools
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import deque
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "middleware/compacter"
OF_THE_PROJECT = re.compile("test_(examples|manual|packaging|peers|reference|site|structure)")
"""Tests of what lies around the code."""
ROOMS = ("messages", "compaction", "call", "overflow", "memory", "recall", "summary", "text")
TESTS = [
    *(f"tests/{name}" for name in (*ROOMS, "promises", "properties", "clients")),
    *sorted(
        str(path.relative_to(ROOT))
        for path in ROOT.glob("tests/test_*.py")
        if not OF_THE_PROJECT.match(path.stem)
    ),
]
"""Tests that every mutant is tried against, those of its own room first."""
UNSEEN = re.compile(r"BitOr|RemoveDecorator|UnaryOperator_Delete")
"""Operators that mostly change annotations (``int | None``) or the typing of decorators, which no
test can see."""
DECLARES = re.compile(r"\s*(?:@dataclass|(?:async )?def |\*,$|if TYPE_CHECKING:)")
"""Lines on which a mutant changes ``slots=True``, the ``*`` of a signature or an import for types:
no fault of what the code does."""
PYTEST = [
    "-q",
    *("-p", "no:cacheprovider", "-p", "no:randomly"),
    f"--rootdir={ROOT}",
]
SECONDS = 120
"""A mutant that takes more processor time, or three times as long by the clock, does not end: it is
noticed."""
MOST_SECONDS = 60
"""Seconds that the tests of one mutant may take together; the longest are left out."""


class Mutant(NamedTuple):
    """One small fault: its file below the package, its line, the operator that made it, and the
    file's whole text.
    """

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
            if not UNSEEN.search(spec.operator_name)
            and not DECLARES.match(lines[spec.start_pos[0] - 1])
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


class Reach:
    """Which test reaches which line, and how long each takes: found by one run with coverage.

    A test that fails there, as those that measure a time may, is left out and named.
    """

    def __init__(self, session: Any) -> None:
        self._lines: dict[str, dict[int, set[str]]] = {}
        with tempfile.TemporaryDirectory() as folder:
            told = Path(folder) / "seconds.json"
            data = Path(folder) / "data"
            next(outcomes([lambda: self._measure(session, told, data)], seconds=3600))
            self.seconds: dict[str, float] = json.loads(told.read_text())
            coverage: Any = importlib.import_module("coverage")
            read = coverage.CoverageData(str(data))
            read.read()
            for file in read.measured_files():
                by_line = read.contexts_by_lineno(file)
                self._lines[file] = {
                    line: {each.split("|")[0] for each in found} for line, found in by_line.items()
                }

    def tests_of(self, mutant: Mutant) -> list[str]:
        """The tests that reach the statement of a mutant, the quickest first; all where it runs at
        import.
        """
        path = PACKAGE / mutant.file
        lines = self._lines.get(str(path), {})
        first, last = _statement(path.read_text(), mutant.row)
        reached = {
            test for line in range(first, last + 1) for test in lines.get(line, ())
        } & self.seconds.keys()
        quickest = sorted(reached if first else self.seconds, key=self.seconds.__getitem__)
        spent = itertools.accumulate(map(self.seconds.__getitem__, quickest))
        return [
            test
            for test, sum_so_far in zip(quickest, spent, strict=True)
            if sum_so_far <= MOST_SECONDS
        ]

    @staticmethod
    def _measure(session: Any, told: Path, data: Path) -> int:
        coverage: Any = importlib.import_module("coverage")
        measured = coverage.Coverage(
            data_file=str(data), source_pkgs=["compacter"], config_file=False
        )
        measured.start()
        seconds: dict[str, float] = {}
        failed = []
        for item, following in zip(session.items, [*session.items[1:], None], strict=True):
            measured.switch_context(item.nodeid)
            began = time.perf_counter()
            faults = session.testsfailed
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            seconds[item.nodeid] = time.perf_counter() - began
            if session.testsfailed > faults:
                failed.append(item.nodeid)
        measured.stop()
        measured.save()
        told.write_text(
            json.dumps({test: spent for test, spent in seconds.items() if test not in failed})
        )
        print("left out:", *failed, sep="\n    ", file=sys.stderr)
        return 0


class Attempts:
    """A plugin of pytest that tries mutants instead of running the tests once.

    The tests are imported once. Each mutant has a child process, in which the functions that it
    changes get its code.
    """

    def __init__(self, mutants: list[Mutant]) -> None:
        self._mutants = mutants
        self.noticed: list[bool] = []

    def pytest_runtestloop(self, session: Any) -> bool:
        reach = Reach(session)
        items = {item.nodeid: item for item in session.items}
        tests = [reach.tests_of(mutant) for mutant in self._mutants]
        # The tests' own ``conftest.py`` freezes what was collected, and so hides it from the next
        # line.
        gc.unfreeze()
        functions = [each for each in gc.get_objects() if isinstance(each, FunctionType)]
        # Objects from before are not garbage of the tests: to look through it takes longer than
        # they do.
        gc.freeze()
        all_items = [items[test] for test in reach.seconds]
        some = self._mutants[0]._replace(text=(PACKAGE / self._mutants[0].file).read_text())
        unchanged = [
            lambda: _failed(session, all_items),
            lambda: begin_anew(some, [*reach.seconds][:100]),
        ]
        if any(outcomes(unchanged, seconds=3600)):
            sys.exit("the tests fail without any mutant")

        def attempt(mutant: Mutant, names: list[str]) -> int:
            if put_in(mutant, functions):
                return _failed(session, [items[name] for name in names])
            return begin_anew(mutant, names)

        works = [
            functools.partial(attempt, *each) for each in zip(self._mutants, tests, strict=True)
        ]
        for mutant, names, outcome in zip(self._mutants, tests, outcomes(works), strict=True):
            self.noticed.append(outcome != 0)
            if not outcome:
                before = (PACKAGE / mutant.file).read_text().splitlines()
                after = mutant.text.splitlines()
                old, new = next(
                    ((old, new) for old, new in zip(before, after, strict=False) if old != new),
                    ("", ""),
                )
                print(
                    (f"survived {mutant.file}:{mutant.row} {mutant.operator} ({len(names)} tests)"),
                    file=sys.stderr,
                )
                print(f"    - {old.strip()}\n    + {new.strip()}", file=sys.stderr, flush=True)
        return True


def _failed(session: Any, items: list[Any]) -> int:
    """Run tests until one fails: 1 then, 0 if none does."""
    for item, following in zip(items, [*items[1:], None], strict=False):  # ``items`` may be empty.
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return 1
    return 0


def put_in(mutant: Mutant, functions: list[FunctionType]) -> bool:
    """Give those of ``functions`` that a mutant changes its code; False if it changes more than
    functions.
    """
    place = str(PACKAGE / mutant.file)
    real = compile((PACKAGE / mutant.file).read_text(), place, "exec", dont_inherit=True)
    changed = list(_changed(real, compile(mutant.text, place, "exec", dont_inherit=True)))
    codes = {old: new for old, new in changed if new is not None}
    known = [each for each in functions if each.__code__ in codes]
    if len(codes) < len(changed) or {each.__code__ for each in known} != codes.keys():
        return False
    for function in known:
        function.__code__ = codes[function.__code__]
    return True


def _changed(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType | None]]:
    """The functions that differ, outermost ones, with their new code; None beside what runs at
    import.
    """
    inner = [
        (a, b)
        for a, b in zip(old.co_consts, new.co_consts, strict=False)
        if isinstance(a, CodeType) and a != b
    ]
    if old.co_flags & inspect.CO_OPTIMIZED:
        yield old, new
    elif (
        len(old.co_consts) != len(new.co_consts)
        or old.co_code != new.co_code
        or old.co_names != new.co_names
        or any(
            not isinstance(a, CodeType) and (type(a), a) != (type(b), b)
            for a, b in zip(old.co_consts, new.co_consts, strict=True)
        )
    ):
        yield old, None
    else:
        for a, b in inner:
            yield from _changed(a, b)


def begin_anew(mutant: Mutant, tests: list[str]) -> int:
    """Run tests in an interpreter of its own that imports the text of a mutant: not 0 if
    one fails.
    """
    program = [sys.executable, __file__, mutant.file.split("/")[0], "--anew"]
    told = json.dumps([mutant, tests])
    return subprocess.run(
        program, input=told, text=True, cwd=ROOT, stdout=subprocess.DEVNULL, check=False
    ).returncode


def run_anew() -> int:
    """The process of ``begin_anew``: mutant and tests come by standard input."""
    told, tests = json.load(sys.stdin)
    mutant = Mutant(*told)
    place = str(PACKAGE / mutant.file)
    real = importlib.machinery.SourceFileLoader.get_code

    def get_code(loader: importlib.machinery.SourceFileLoader, name: str) -> Any:
        if loader.path == place:
            return compile(mutant.text, place, "exec", dont_inherit=True)
        return real(loader, name)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[assignment, method-assign]
    pytest: Any = importlib.import_module("pytest")

    class Chosen:
        def pytest_collection_modifyitems(self, items: list[Any]) -> None:
            order = {test: number for number, test in enumerate(tests)}
            items[:] = sorted(
                (item for item in items if item.nodeid in order),
                key=lambda item: order[item.nodeid],
            )

    return int(
        pytest.main(
            [*PYTEST, "-x", *sorted({test.split("::")[0] for test in tests})], plugins=[Chosen()]
        )
    )


def outcomes(works: Iterable[Callable[[], int]], *, seconds: float = SECONDS) -> Iterator[int]:
    """Results of ``works``, in order, in a forked child that prints nothing; -1 where it takes too
    long.

    As many run at once as there are processors. Seconds are of the processor, so that a busy
    machine is not taken for a fault.
    """
    waiting = deque(works)
    running: deque[tuple[int, float]] = deque()
    while waiting or running:
        while waiting and len(running) < (os.cpu_count() or 1):
            running.append((_fork(waiting.popleft(), seconds), time.monotonic() + 3 * seconds))
        child, deadline = running.popleft()
        while not (done := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < deadline:
            time.sleep(0.02)
        if not done[0]:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        yield os.waitstatus_to_exitcode(done[1]) if done[0] else -1


def _fork(work: Callable[[], int], seconds: float) -> int:
    """Begin ``work`` in a child process."""
    child = os.fork()
    if child:
        return child
    outcome = 1
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))
        outcome = work()
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(outcome)


def _statement(text: str, row: int) -> tuple[int, int]:
    """First and last line of the statement at ``row``, of its head where others stand in it; 0, 0
    outside functions.
    """
    found = (0, 0)
    for function in ast.walk(ast.parse(text)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if (
                    isinstance(node, ast.stmt)
                    and node is not function
                    and node.lineno <= row <= (node.end_lineno or 0)
                ):
                    body = getattr(node, "body", None)
                    last = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or row
                    if row <= last and node.lineno >= found[0]:
                        found = (node.lineno, last)
    return found


def attempt_all() -> None:
    """Try the mutants that standard input has, by room, in the environment of the tests."""
    by_room = {
        room: [Mutant(*each) for each in mutants] for room, mutants in json.load(sys.stdin).items()
    }
    pytest: Any = importlib.import_module("pytest")
    attempts = Attempts([mutant for mutants in by_room.values() for mutant in mutants])
    pytest.main([*PYTEST, *TESTS], plugins=[attempts])
    noticed = iter(attempts.noticed)
    for room, mutants in by_room.items():
        killed = sum(itertools.islice(noticed, len(mutants)))
        print(
            f"{room}: {killed} of {len(mutants)} noticed, {killed / max(1, len(mutants)):.0%}",
            flush=True,
        )


def main() -> None:
    """Try the rooms one after the other."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rooms", nargs="+", choices=ROOMS)
    parser.add_argument("--sample", type=int, default=60, help="mutants of each room")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--attempt", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--anew", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.anew:
        sys.exit(run_anew())
    if options.attempt:
        attempt_all()
        return
    mutants = {room: make(room, options.sample, options.seed) for room in options.rooms}
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(str(ROOT / each) for each in ("middleware", "examples"))
    }
    program = [ROOT / ".venv/bin/python", __file__, *options.rooms, "--attempt"]
    subprocess.run(
        program, input=json.dumps(mutants), text=True, cwd=ROOT, env=environment, check=True
    )


if __name__ == "__main__":
    main()
