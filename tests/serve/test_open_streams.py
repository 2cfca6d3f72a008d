"""Streams that end leave nothing behind: ``benchmarks/streams.py`` does it with two thousand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

STREAMS = 100
# Megabytes by which the server may grow after its streams were opened, over several times as many
# streams: what its allocator keeps, and far less than if each left its buffers.
MOST = 12


@pytest.mark.skipif(sys.platform != "linux", reason="a process's memory is read from /proc")
def test_the_memory_of_open_streams_is_flat(root: Path) -> None:
    program = root / "benchmarks" / "streams.py"
    options = [f"--streams={STREAMS}", "--minutes=0.1", "--pause=0.05"]
    done = subprocess.run(
        [sys.executable, program, *options],
        env={**os.environ, "PYTHONPATH": str(root / "middleware")},
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    found = json.loads(done.stdout)
    first, *_, last = found["mb"].values()
    assert found["broken"] == 0
    assert found["whole"] >= STREAMS
    assert last < first + MOST
