"""Does compacter work with each minor release of pydantic that ``pyproject.toml`` allows?

    make newest

Programs pin pydantic for the sake of others. For each version it makes an environment with nothing
but what compacter's core needs, and there makes a `Compacter` with every option that is checked,
compacts, and reads the event. Ends with 1 if anything failed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
# The floor, the last one of each minor release, and the first of 2.12, to which others pin.
VERSIONS = ("2.7.0", "2.8.2", "2.9.2", "2.10.6", "2.11.10", "2.12.0", "2.12.5", "2.13.4")
BESIDE = ("cachetools", "structlog", "tenacity>=9,<10", "rich")
PROGRAM = """
import pydantic
from compacter import Compacter, History
from compacter.errors import ConfigurationError
from compacter.options.checks import CHECKS
from compacter.testing import ScriptedModel

for name in CHECKS:
    try:
        Compacter(**{name: object()})
    except ConfigurationError as error:
        assert str(error).startswith(f"{name}: "), error
    else:
        assert name in ("logger", "on_event", "on_compaction"), name
events = []
compacter = Compacter(compact_ratio=0.6, prepare_tokens=None, on_event=events.append)
model = ScriptedModel(window=300, replies="Number 7 is a line of the talk.")
messages = [{"role": "user", "content": f"Number {n}: a line."} for n in range(90)]
compacter.wrap(model.completion)("m", messages)
assert compacter.totals.rounds == 1
assert any('"messages_before":90' in event.model_dump_json() for event in events), events
assert compacter.plan(messages).cut
history = History()
history.restore(History(messages).snapshot())
assert list(history) == messages
print("pydantic", pydantic.VERSION, "works")
"""


def main() -> int:
    """Try each version, and return 1 if one failed."""
    uv = sys.argv[1]
    failed = []
    for version in VERSIONS:
        with tempfile.TemporaryDirectory() as place:
            python = str(Path(place, "bin", "python"))
            wanted = [f"pydantic=={version}", *BESIDE]
            for command in (
                [uv, "venv", "--quiet", "--python", sys.executable, place],
                [uv, "pip", "install", "--quiet", "--python", python, *wanted],
                [python, "-c", PROGRAM],
            ):
                environment = {**os.environ, "PYTHONPATH": str(ROOT / "middleware")}
                if subprocess.run(command, check=False, env=environment).returncode:
                    failed.append(version)
                    break
    sys.stderr.write("".join(f"pydantic {version} failed\n" for version in failed))
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
