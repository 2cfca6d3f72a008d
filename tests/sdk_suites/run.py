"""Run the suites of SDKs bare and with every client wrapped, and tell what only fails when wrapped.

Run: ``python tests/sdk_suites/run.py FOLDER ...``, each an unpacked source distribution or a
checkout of the OpenAI or Anthropic SDK. Tests that fail bare as well (they want a server, or files
that a distribution lacks) are not counted. Exits with 1 if one fails only when wrapped, and is not
among ``KNOWN``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
TESTS = ("client", "streaming", "response", "legacy_response", "middleware")
PYTEST = (sys.executable, "-m", "pytest", "-q", "-rfE", "-n", "auto", "-o", "addopts=")
KNOWN = {
    "test_copy_keeps_every_constructor_argument": "compares vars(): a copy has its own methods",
    "test_copy_of_a_client_built_from_the_environment": "compares vars() as well",
    "test_unrelated_errors_raise_and_the_same_call_again_sends_the_turn_once": (
        "its error says that the request is too long, so the turn is sent again, compacted"
    ),
}
"""Tests that fail by design, with the reason."""


def failures(folder: Path, *options: str) -> set[str]:
    """Return the tests of a suite that fail, by name."""
    files = [
        f"tests/test_{name}.py" for name in TESTS if (folder / f"tests/test_{name}.py").exists()
    ]
    alias = ("-p", "tests._alias_httpx") if (folder / "tests/_alias_httpx.py").exists() else ()
    done = subprocess.run(
        [*PYTEST, *alias, *options, *files, "tests/lib"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{HERE}{os.pathsep}{folder}"},
        capture_output=True,
        text=True,
        check=False,
    )
    outcome = done.stdout.strip().splitlines()[-1]
    sys.stdout.write(f"{folder.name} {' '.join(options)}: {outcome}\n")
    sys.stdout.flush()
    return set(re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE))


def main(folders: list[str]) -> int:
    """Run each suite twice, and print what fails only when wrapped."""
    faults = 0
    for name in folders:
        folder = Path(name).resolve()
        bare = failures(folder)
        for test in sorted(failures(folder, "-p", "wrap_clients") - bare):
            known = next((KNOWN[part] for part in KNOWN if part in test), None)
            faults += known is None
            sys.stdout.write(f"  {test}: {known or 'FAILS ONLY WHEN WRAPPED'}\n")
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
