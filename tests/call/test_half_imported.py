"""A call while another thread is inside the import of a module that compacter looks at."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# The module stops inside its import, as a large one does for a second, until the call is over.
HALF = """
import builtins
builtins.begun.set()
builtins.go_on.wait()
"""
CALL = """
import builtins, sys, threading

name, asynchronous = sys.argv[1], sys.argv[2] == "async"
from compacter import Compacter
from compacter.testing import ScriptedModel

if asynchronous:
    import asyncio
assert name not in sys.modules
builtins.begun, builtins.go_on = threading.Event(), threading.Event()
threading.Thread(target=__import__, args=(name,), daemon=True).start()
builtins.begun.wait()
assert name in sys.modules
model = ScriptedModel(window=300, replies=lambda messages: "Number 7 is a line of the talk.")
messages = [{"role": "user", "content": f"Number {n}: a line."} for n in range(90)]
compacter = Compacter(prepare_tokens=200)
if asynchronous:
    reply = asyncio.run(compacter.wrap(model.acompletion)("m", messages))
else:
    reply = compacter.wrap(model.completion)("m", messages)
assert "go_on" in vars(builtins) and not builtins.go_on.is_set()
print(reply["choices"][0]["message"]["content"], compacter.totals.rounds)
builtins.go_on.set()
"""


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("asyncio", "sync"),
        *((name, kind) for name in ("trio", "structlog", "litellm") for kind in ("sync", "async")),
    ],
)
def test_a_call_that_overflows_meanwhile_is_answered(name: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.py").write_text(HALF)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{CALL}"
    done = subprocess.run(
        [sys.executable, "-c", code, name, kind],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Number 7 is a line")
    assert "compacter" not in done.stderr  # Neither a log entry nor a traceback.
