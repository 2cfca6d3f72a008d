"""Agent programs that nobody here wrote, in a window that is too small for their task: ``make
agents``, ``make agents AGENTS="codex pi"``.

Each is asked to run twelve commands that print 1,500 tokens each. The model is pretended; its
window is real: what an agent sends first, and 9,000 tokens more. Each runs twice, alone and through
``compacter serve`` with its defaults. Results are kept in ``results.json``; the table in
``docs/serve.md`` is written from them, and ``--report`` does only that.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from model import COMMANDS, DONE, Json, Model, serving
from programs import PROGRAMS, Program, clean_environment

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SAVED = HERE / "results.json"
PAGE = ROOT / "docs" / "serve.md"
BEGIN = "<!-- agents: written by make agents -->\n"
END = "<!-- end of agents -->\n"
# Seconds for one run. The slowest program takes about one a command on a busy machine.
_LONGEST = 300


def main() -> None:
    """Run the programs that are named, or all; then write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="all where none is named")
    parser.add_argument("--report", action="store_true", help="only write the table")
    options = parser.parse_args()
    results: Json = json.loads(SAVED.read_text("utf-8")) if SAVED.exists() else {}
    for program in () if options.report else PROGRAMS:
        if options.names and program.name.lower().replace(" ", "-") not in options.names:
            continue
        if not program.installed:
            print(f"{program.name} is not installed, and left out", flush=True)
            results.setdefault(program.name, {"missing": "not installed"})
            continue
        results[program.name] = compare(program)
        print(f"{program.name}: {json.dumps(results[program.name])}", flush=True)
        SAVED.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}{table(results)}{END}{after}", encoding="utf-8")


def compare(program: Program) -> Json:
    """Return what happened without the server and with it."""
    result: Json = {"version": version(program)}
    for name in ("without", "with"):
        model = Model()
        with contextlib.ExitStack() as stack:
            url = stack.enter_context(serving(model))
            if name == "with":
                url = stack.enter_context(passed_through(url))
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="compacter-agent-"))
            said = run(program, url, Path(folder))
        result["window"] = model.window
        result[name] = {
            "finished": model.finished and DONE in said,
            "commands": model.commands,
            "requests": model.requests,
            "refused": model.refused,
            "others": model.others,
        }
        if not result[name]["finished"]:
            print(said[-500:], flush=True)
    return result


def version(program: Program) -> str:
    """Return the version that a program states."""
    with tempfile.TemporaryDirectory() as home:
        environment = {"PATH": os.environ["PATH"], "HOME": home}
        told = subprocess.run(
            [program.executable, "--version"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_LONGEST,
        )
    found = re.search(r"\d+(?:\.\d+)+", told.stdout + told.stderr)
    return found[0] if found else ""


def run(program: Program, url: str, home: Path) -> str:
    """Return all that a program prints, until it ends or its time is over."""
    work = home / "work"
    work.mkdir()
    start = program.start(program.executable, url, home)
    process = subprocess.Popen(
        start.command,
        env=clean_environment(home, start),
        cwd=work,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        return process.communicate(timeout=_LONGEST)[0]
    except subprocess.TimeoutExpired:
        # The programs start others, which hold the pipe open.
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0] + "\nit did not end"


@contextlib.contextmanager
def passed_through(upstream: str) -> Generator[str]:
    """The server as a program, with its defaults; yields its address."""
    command = [sys.executable, "-m", "compacter", "serve", "--upstream", upstream, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            lines = iter(process.stderr)
            found = next(
                match for line in lines if (match := re.search(r"(http://\S+?)/ -> ", line))
            )
            threading.Thread(target=list, args=(lines,), daemon=True).start()
            yield found[1]
        finally:
            process.terminate()


def table(results: dict[str, Any]) -> str:
    """Return the table of the results."""
    lines = [
        "| program | protocol | window | without it | with it |",
        "|---|---|---|---|---|",
    ]
    for program in PROGRAMS:
        name = program.name
        result = results.get(name, {"missing": "not tried"})
        if "missing" in result:
            lines.append(f"| {name} | {program.protocol} | | {result['missing']} | |")
            continue
        told = [_told(result[how]) for how in ("without", "with")]
        shown = f"{name} {result['version']}"
        lines.append(
            f"| {shown} | {program.protocol} | {result['window']:,} | {told[0]} | {told[1]} |"
        )
    return "\n".join(lines) + "\n"


def _told(result: Json) -> str:
    if not result["finished"]:
        return f"stops after {result['commands']} of {COMMANDS} commands"
    return f"finishes: {result['requests']} requests, {result['refused']} refused"


if __name__ == "__main__":
    started = time.monotonic()
    main()
    print(f"{time.monotonic() - started:.0f} seconds")
