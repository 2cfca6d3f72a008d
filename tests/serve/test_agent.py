"""An agent's command line, a program that nobody here can change: it dies of its window, and
through us it does not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.clients import loopback

PROGRAM = Path(f"{sys.prefix}-agents", "node_modules", ".bin", "codex")
WINDOW = 8_500
STEPS = 10
"""Tokens of four characters; commands that the model has the agent run, each of about 700 tokens.
"""


def model(server: loopback.Provider, path: str, body: dict[str, Any]) -> loopback.Answer:
    """A model that asks for one command after the other, and then says that it is done."""
    if not path.endswith("/responses"):
        return loopback.json_answer({"object": "list", "data": []})
    shared = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": body["model"],
        "parallel_tool_calls": True,
    }
    if len(json.dumps(body["input"])) // 4 > WINDOW:
        error = {
            "code": "context_length_exceeded",
            "message": ("Your input exceeds the context window of this model."),
        }
        return events(
            ("response.failed", {**shared, "status": "failed", "output": [], "error": error})
        )
    done = sum(len(asked.get("tools", ())) > 0 for asked in server.bodies[:-1])
    if not body.get("tools"):
        item = message("They counted.")
    elif done < STEPS:
        arguments = json.dumps({"cmd": f"seq {done}000 {done}400"})
        item = {
            "id": f"fc_{done}",
            "type": "function_call",
            "status": "completed",
            "call_id": f"call_{done}",
            "name": "exec_command",
            "arguments": arguments,
        }
    else:
        item = message("All of it is counted.")
    usage = {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 9,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 18,
    }
    whole = {**shared, "status": "completed", "output": [item], "usage": usage}
    if not body.get("stream"):
        return loopback.json_answer(whole)
    begun = {
        "type": "response.output_item.done",
        "output_index": 0,
        "item": item,
        "sequence_number": 0,
    }
    return loopback.sse(
        [("response.output_item.done", begun), *sent(("response.completed", whole))]
    )


def message(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


def sent(*named: tuple[str, dict[str, Any]]) -> list[tuple[str | None, object]]:
    return [
        (name, {"type": name, "sequence_number": 1, "response": response})
        for name, response in named
    ]


def events(*named: tuple[str, dict[str, Any]]) -> loopback.Answer:
    return loopback.sse(sent(*named))


def counted(url: str, home: Path, *words: str) -> str:
    """What the agent says at the end of ten commands; ``words`` in place of the request
    for these.
    """
    asked = words or ("Count in ten steps.",)
    settings = {
        "model_provider": '"p"',
        "model_providers.p.name": '"p"',
        "model_providers.p.base_url": f'"{url}/v1"',
        "model_providers.p.wire_api": '"responses"',
        "model_providers.p.env_key": '"KEY"',
    }
    home.mkdir(exist_ok=True)
    told = subprocess.run(
        [
            PROGRAM,
            "exec",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
            "-m",
            "m",
            *(part for name, value in settings.items() for part in ("-c", f"{name}={value}")),
            *asked,
        ],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "CODEX_HOME": str(home),
            "KEY": "sk-agent",
        },
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return told.stdout + told.stderr


@pytest.fixture
def upstream() -> Iterator[loopback.Provider]:
    if not PROGRAM.exists():
        pytest.skip("the agent is not installed (make agents)")
    with loopback.serving(model) as server:
        yield server


def test_without_it_the_agent_runs_out_of_room(upstream: loopback.Provider, tmp_path: Path) -> None:
    assert "ran out of room" in counted(upstream.url, tmp_path / "home")


def test_with_it_the_agent_finishes(
    serve: Callable[..., Any], upstream: loopback.Provider, tmp_path: Path
) -> None:
    serving = serve(f"{upstream.url}/v1")
    assert "All of it is counted." in counted(serving.url, tmp_path / "home")
    assert serving.board.numbers()["rounds"] >= 1
