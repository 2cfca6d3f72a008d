"""Another language: OpenAI's SDK for Node, with another base URL and nothing else."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent / "node"


def test_nodes_sdk_is_answered(
    serve: Callable[..., Any], openai_server: Any, words: str, refusing: str
) -> None:
    node = shutil.which("node")
    if node is None or not (FOLDER / "node_modules" / "openai").is_dir():
        pytest.skip("no node, or its SDK is not installed (make node)")
    openai_server.refuse = refusing
    serving = serve(f"{openai_server.url}/v1")
    told = subprocess.run(
        [node, str(FOLDER / "talk.mjs"), f"{serving.url}/v1"],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    found = json.loads(told.stdout)
    assert found["answers"] == [words] * 4
    assert found["refusal"] == "BadRequestError 400 context_length_exceeded"
    assert {sent["authorization"] for sent in openai_server.headers} == {"Bearer sk-node"}
