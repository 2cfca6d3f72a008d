"""``compacter doctor``: check the packages, prices, memories and network settings that compacter
would use.
"""

from __future__ import annotations

import os
import platform
import re
import uuid
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rich.text import Text

from compacter.errors import ConfigurationError
from compacter.memory.address import memory_of, sqlite_path
from compacter.runtime import models
from compacter.tools.cli.terminal import print_json, print_table, results


class Finding(NamedTuple):
    """Result of one check of ``compacter doctor``."""

    name: str
    state: Literal["ok", "note", "bad"]
    text: str


_STYLES = {"ok": "green", "note": "yellow", "bad": "bold red"}
_PACKAGES = ("llm-compacter", "litellm", "openai", "anthropic", "google-genai", "boto3", "redis")
_VARIABLES = (
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("OPENAI_BASE_URL", "OPENAI_API_BASE", "AZURE_OPENAI_ENDPOINT", "ANTHROPIC_BASE_URL"),
)
"""Variables of the environment that decide where requests go."""


def run(*, model: Sequence[str] | None, memory: Sequence[str] | None, as_json: bool) -> int:
    """Print all findings, and return the exit code: 1 if something is wrong, else 0."""
    findings = [*_versions(), *_tables(model or ()), *map(_memory, memory or ()), *_network()]
    bad = any(finding.state == "bad" for finding in findings)
    if as_json:
        print_json([finding._asdict() for finding in findings])
        return int(bad)
    console = results()
    rows = [
        (Text(state, _STYLES[state]), Text(name, "bold"), Text(text))
        for name, state, text in findings
    ]
    print_table(console, rows)
    console.print("Something is wrong." if bad else "Nothing is wrong.")
    return int(bad)


def _versions() -> Iterator[Finding]:
    yield Finding("Python", "ok", f"{platform.python_version()}, {platform.system()}")
    for package in _PACKAGES:
        try:
            yield Finding(package, "ok", version(package))
        except PackageNotFoundError:
            if package == "litellm":
                text = "not installed: no known windows or prices, no models by name"
                yield Finding(package, "note", text)


def _tables(asked: Sequence[str]) -> Iterator[Finding]:
    for model in asked:
        window = models.window(model)
        price = models.prices(model)
        if window is None:
            text = "unknown window: the first refusal may state it; else set trigger_tokens"
            yield Finding(model, "bad", text)
            continue
        text = f"{window:,} tokens"
        if price and price[0]:
            text += f"; USD for a million: {price[0] * 1e6:g} read, {price[2] * 1e6:g} written"
        yield Finding(model, "ok", text)


def _memory(address: str) -> Finding:
    name = _without_password(address)
    file = sqlite_path(address)
    if file is not None and file != ":memory:" and not Path(file).exists():
        if os.access(Path(file).parent, os.W_OK):
            return Finding(name, "ok", "will be created at its first use")
        return Finding(name, "bad", f"the folder {Path(file).parent} cannot be written")
    try:
        memory: Any = memory_of(address)
        memory.find([uuid.uuid4().hex])
        # Write a record and delete it again.
        memory.claim(uuid.uuid4().hex, 2.0).release()
    except Exception as error:
        if isinstance(error, ConfigurationError) and file is None:
            raise  # It is not an address: a mistake, as in ``compacter serve --memory``.
        return Finding(name, "bad", _without_password(f"{type(error).__name__}: {error}"))
    return Finding(name, "ok", "read and written")


def _without_password(text: str) -> str:
    return re.sub(r"(//)[^/@\s]{1,500}@", r"\1***@", text)


def _network() -> Iterator[Finding]:
    for name in _VARIABLES:
        value = os.environ.get(name) or os.environ.get(name.lower())
        if value:
            yield Finding(name, "note", _without_password(value))
