"""Basis of the other live tests: the server refuses requests that are too long, and ends when it
should.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from embedded_model import EmbeddedModel, embedded_model, why_unavailable

if TYPE_CHECKING:
    from pathlib import Path

LONG = [{"role": "user", "content": "The river runs past the old mill. " * 200}]
SHORT = [{"role": "user", "content": "Say hello."}]

PATHS = {
    "/v1/chat/completions": lambda messages: {"messages": messages, "max_tokens": 8},
    "/v1/responses": lambda messages: {"input": messages, "max_output_tokens": 8},
    "/v1/messages": lambda messages: {"messages": messages, "max_tokens": 8},
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("path", PATHS)
def test_a_refusal_has_both_numbers(model: EmbeddedModel, path: str, stream: bool) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        model.post(path, {"model": model.name, "stream": stream, **PATHS[path](LONG)})
    with refused.value:
        error: dict[str, Any] = json.load(refused.value)["error"]
    assert refused.value.code == 400
    assert error["type"] == "exceed_context_size_error"
    assert error["n_ctx"] == model.window
    if path == "/v1/chat/completions":
        assert error["n_prompt_tokens"] == model.count_tokens(LONG)
    assert f"({error['n_prompt_tokens']} tokens)" in error["message"]
    assert f"({model.window} tokens)" in error["message"]


def test_the_servers_count_is_what_usage_reports(model: EmbeddedModel) -> None:
    reply = model.post("/v1/chat/completions", {"messages": SHORT, "max_tokens": 8})
    assert reply["usage"]["prompt_tokens"] == model.count_tokens(SHORT)


def test_a_prompt_that_fits_is_answered_however_much_output_is_asked_for() -> None:
    """And the server is gone when the block is left."""
    # Prompt + max_tokens beyond the window is not refused here: the output just ends at the
    # window's edge.
    if reason := why_unavailable():
        pytest.skip(reason)
    with embedded_model(256) as own:
        prompt = [{"role": "user", "content": "mill " * (own.window - 68)}]
        assert own.window - 50 < own.count_tokens(prompt) < own.window
        reply = own.post(
            "/v1/chat/completions",
            {"messages": prompt, "max_tokens": own.window, "ignore_eos": True},
        )
    assert reply["choices"][0]["finish_reason"] == "length"
    assert reply["usage"]["total_tokens"] <= own.window
    with pytest.raises(OSError):  # noqa: PT011 - refused or reset, as the system says it
        own.post("/v1/chat/completions", {"messages": SHORT, "max_tokens": 1}, seconds=5)


def test_the_server_ends_when_its_parent_is_killed(root: Path) -> None:
    if reason := why_unavailable():
        pytest.skip(reason)
    program = (
        "from embedded_model import embedded_model\n"
        "with embedded_model() as model: print(model.url, flush=True); input()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(root / "examples")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    url = parent.stdout.readline().strip()
    parent.kill()
    parent.communicate()
    assert not _answers_for_long(url)


def _answers_for_long(url: str) -> bool:
    """Whether a server is still there after a minute; ``False`` as soon as it is gone."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(f"{url}/health", timeout=5).close()
        except OSError:
            return False
    return True
