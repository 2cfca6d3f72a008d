"""The plug-in with which ``make sdk-suites`` runs the SDKs' own suites."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SUITE = """
import anthropic, openai, pytest

@pytest.mark.parametrize("kind", [openai.OpenAI, openai.AsyncAzureOpenAI, anthropic.Anthropic])
def test_client(kind):
    options = {"azure_endpoint": "http://a", "api_version": "1"} if "Azure" in kind.__name__ else {}
    client = kind(api_key="none", **options)
    assert type(client) is kind
    for each in (client, client.copy(), client.with_options(timeout=9)):
        assert "__compacter__" in vars(each)
        assert each.api_key == "none"
"""


def test_every_client_of_a_suite_is_wrapped(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "wrap_clients", "--rootdir", str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert "3 passed" in done.stdout
