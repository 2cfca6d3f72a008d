"""``compacter doctor``: check the packages, prices, memories and network settings that compacter
would use.
"""

from __future__ import annotations

import os
import platform
import re
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from rich.text import Text

from compacter import models
from compacter.errors import ConfigurationError
from compacter.memory.address import memory_at, sqlite_path
from compacter.tools.cli.terminal import print_json, print_table, results

State = Literal["ok", "note", "bad"]


class Finding(NamedTuple):
    """Result of one check."""

    name: str
    state: State
    text: str


_PACKAGES = (
    "litellm",
    "openai",
    "anthropic",
    "google-genai",
    "boto3",
    "redis",
    "opentelemetry-sdk",
)
_BAD_LITELLM = re.compile(r"1\.82\.[78]$|1\.107\.")
_MODELS = ("gpt-4o", "claude-sonnet-4-5", "gemini/gemini-2.5-pro")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_ADDRESSES = (
    "OPENAI_BASE_URL",
    "OPENAI_API_BASE",
    "AZURE_OPENAI_ENDPOINT",
    "ANTHROPIC_BASE_URL",
    "LITELLM_PROXY_API_BASE",
)


def run(asked: Sequence[str], memories: Sequence[str], *, as_json: bool) -> int:
    """Print all findings, and return the exit code: 1 if something is wrong."""
    found = [*_versions(), *_tables(asked), *_memories(memories), *_network()]
    bad = any(finding.state == "bad" for finding in found)
    if as_json:
        print_json([finding._asdict() for finding in found])
        return int(bad)
    marks = {"ok": ("ok", "green"), "note": ("note", "yellow"), "bad": ("BAD", "bold red")}
    console = results()
    print_table(
        console,
        [
            (Text(*marks[finding.state]), Text(finding.name, "bold"), Text(finding.text))
            for finding in found
        ],
    )
    console.print(
        "Something is wrong." if bad else "Nothing is wrong.",
        style="bold red" if bad else "bold green",
    )
    return int(bad)


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _versions() -> Iterator[Finding]:
    own = _version_of("llm-compacter") or "not installed as a package"
    yield Finding(
        "compacter", "ok", (f"{own}, Python {platform.python_version()}, {platform.system()}")
    )
    for package in _PACKAGES:
        found = _version_of(package)
        if package == "litellm" and _BAD_LITELLM.match(found):
            yield Finding(package, "bad", f"{found} is a known bad release; install another one")
        elif found:
            yield Finding(package, "ok", found)
        elif package == "litellm":
            yield Finding(
                package, "note", "not installed: no known windows or prices, no models by name"
            )


def _tables(asked: Sequence[str]) -> Iterator[Finding]:
    count = models.known()
    state: State = "ok" if count else "note"
    yield Finding(
        "price table",
        state,
        f"{count:,} models" if count else "litellm's table was not found",
    )
    for model in asked or (_MODELS if count else ()):
        window = models.window(model)
        price = models.prices(model)
        if window is None:
            text = (
                "unknown window: the first refusal may state it; otherwise set trigger_tokens "
                "to a number of tokens"
            )
            yield Finding(model, "bad" if asked else "note", text)
            continue
        words = f"{window:,} tokens"
        if price and price[0]:
            cached = "" if price[1] is None else f", {price[1] * 1e6:g} cached"
            words += (
                f"; USD for a million: {price[0] * 1e6:g} read{cached}, {price[2] * 1e6:g} written"
            )
        yield Finding(model, "ok", words)


def _memories(named: Sequence[str]) -> Iterator[Finding]:
    for address in named:
        shown = _without_password(address)
        begin = time.perf_counter()
        try:
            words = _try_address(address)
        except Exception as error:
            if isinstance(error, ConfigurationError) and sqlite_path(address) is None:
                raise  # It is not an address: a mistake, as in ``compacter serve --memory``.
            yield Finding(shown, "bad", _without_password(f"{type(error).__name__}: {error}"))
        else:
            yield Finding(
                shown,
                "ok",
                words or (f"read and written in {1000 * (time.perf_counter() - begin):.0f} ms"),
            )


def _try_address(address: str) -> str:
    file = sqlite_path(address)
    if file is not None and file != ":memory:" and not Path(file).exists():
        parent = Path(file).parent
        if not os.access(parent, os.W_OK):
            raise PermissionError(f"the folder {parent} does not exist or cannot be written")
        return "will be created at its first use"
    memory: Any = memory_at(address)
    memory.find([uuid.uuid4().hex])
    # Written and deleted again: nothing is left behind.
    memory.claim(uuid.uuid4().hex, 2.0).release()
    return ""


def _without_password(text: str) -> str:
    return re.sub(r"(//)[^/@\s]{1,500}@", r"\1***@", text)


def _network() -> Iterator[Finding]:
    for name in _PROXIES:
        value = os.environ.get(name) or os.environ.get(name.lower())
        if value:
            yield Finding(
                name, "note", (f"used for requests to providers: {_without_password(value)}")
            )
    for name in _ADDRESSES:
        value = os.environ.get(name)
        if not value:
            continue
        try:
            known = urlsplit(value).hostname
        except ValueError:
            known = None
        state: State = "note" if known else "bad"
        yield Finding(
            name, state, _without_password(value) if known else "is not a URL with a host"
        )
    if "litellm" in sys.modules or find_spec("litellm") is None:
        return
    if os.environ.get("LITELLM_LOCAL_MODEL_COST_MAP", "").lower() != "true":
        text = "is not set: importing litellm fetches a price list over the network"
        yield Finding("LITELLM_LOCAL_MODEL_COST_MAP", "note", text)
