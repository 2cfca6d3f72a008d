"""The settings of ``compacter serve``: its command line, and its configuration file, in TOML.

The names in a file are those of the command line, which takes precedence. Further options of
``Compacter`` may stand in its table ``options``.
"""

from __future__ import annotations

import argparse
import difflib
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from compacter.errors import ConfigurationError
from compacter.gateway import AHEAD
from compacter.gateway.checks import checked
from compacter.gateway.serve.upstream import Upstream, parse_upstreams
from compacter.options import CompacterOptions, Options

PORT = 8484
DRAIN = 120.0
"""Seconds: longer than nearly all answers, and about as long as a cluster waits by default."""


class ServeOptions(CompacterOptions, total=False):
    """Options of the server, beside those of ``Compacter``."""

    ratio: float
    """The option ``compact_ratio``."""
    prepare: float
    """The option ``prepare_tokens``, a share of the window; 0 makes nothing ahead."""
    memory_encryption: str | None
    dry_run: bool
    caller_names: Iterable[str]
    keyless: str
    origins: Iterable[str]
    aws_region: str | None
    class_header: str
    body_timeout: float


class RunOptions(ServeOptions, total=False):
    """Options of ``run``: also where the server listens, and what it shows."""

    host: str
    """Address to listen on. Anyone who can reach it can use the upstreams, with a key of their
    own."""
    port: int
    """Port to listen on; 0 for a free one, which is printed."""
    show_text: bool
    """Whether the page shows summaries, which quote messages, to anyone who can reach it."""
    drain: float
    """Seconds that requests in progress have at the end."""
    log: str
    """``text`` or ``json``, one object a line, on standard error."""


class Settings(BaseModel):
    """The server's own settings."""

    model_config = ConfigDict(frozen=True, validate_default=True)

    upstream: Annotated[tuple[Upstream, ...], BeforeValidator(parse_upstreams)] = ()
    memory_encryption: str | None = None
    """Keys with which an address in ``memory`` encrypts: ``file:PATH``, one a line, or
    ``env:NAME``. The first one encrypts, all decrypt."""
    dry_run: bool = False
    """Whether only to report what would be compacted, and change nothing."""
    caller_names: Annotated[
        frozenset[str], AfterValidator(lambda names: frozenset(map(str.lower, names)))
    ] = frozenset()
    """Names of further headers or query parameters that identify callers."""
    keyless: Literal["connection", "shared"] = "connection"
    """Reach of summaries for callers without a key: ``connection`` for one connection, ``shared``
    for all summaries, on a machine with one user."""
    origins: Annotated[
        frozenset[str],
        AfterValidator(lambda origins: frozenset(one.lower().rstrip("/") for one in origins)),
    ] = frozenset()
    """Origins of other sites whose web pages may use the server, such as
    ``https://chat.example.com``."""
    aws_region: str | None = None
    """Region for which requests that are signed for AWS are authorized anew, with the API key or
    the credentials that boto3 finds: whoever reaches the server uses these. ``None`` passes signed
    requests on unread."""
    class_header: str = ""
    """Header whose value is the class that a caller's figures are counted for; a proxy in front of
    the server sets it."""
    body_timeout: float = Field(default=300.0, gt=0)
    """Seconds in which the body of an inspected request must arrive, and the longest pause in any
    other body: 64 MiB over a slow line (2 Mbit/s) take 270."""
    host: str = "127.0.0.1"
    port: int = Field(default=PORT, ge=0, le=65_535, strict=True)
    log: Literal["text", "json"] = "text"
    show_text: bool = False
    drain: float = Field(default=DRAIN, ge=0)


_SHORT = {"ratio": "compact_ratio", "prepare": "prepare_tokens"}


def read_settings(given: Mapping[str, Any]) -> tuple[Settings, dict[str, Any]]:
    """Return the server's own settings, and the options of ``Compacter``, which are not checked.

    Raises:
        ConfigurationError: A setting is invalid; the message names it.
    """
    names = Settings.model_fields
    options = {_SHORT.get(name, name): given[name] for name in given if name not in names}
    return checked(Settings, {name: given[name] for name in given if name in names}), options


def read_config(path: str) -> dict[str, Any]:
    """Return the settings in a file. Raises ``ConfigurationError`` that names the file and the
    fault.
    """
    try:
        settings = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        repr(settings)  # Raises if the nesting is too deep to print.
        settings |= {**settings.pop("options", {}), **settings}
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise ConfigurationError(f"--config {path} cannot be read as TOML: {error}") from None
    known = {*Settings.model_fields, *Options.model_fields, *_SHORT}
    for name in settings:
        if name.replace("-", "_") not in known:
            near = difflib.get_close_matches(name, known, 1)
            question = f"; did you mean {near[0]}?" if near else ""
            raise ConfigurationError(f"--config {path}: {name} is unknown{question}")
    names = {name: name.replace("-", "_") for name in settings}
    return {_SHORT.get(names[name], names[name]): value for name, value in settings.items()}


_COMMAND_LINE = f"""\
what it does
  upstream URL: where requests go, such as https://api.openai.com/v1; several, each NAME=URL, are \
reached under /NAME
  config FILE: a TOML file with these options
  summarizer MODEL: a model of the same upstream that writes summaries, or "extractive" for no \
model (the model that is called)
  ratio SHARE: share of the history that is compacted (0.7)
  prepare SHARE: share of the window from which the next summary is made in the background \
({AHEAD}); 0 makes none ahead
  memory PLACE: sqlite:PATH or redis://HOST:PORT/DB, where compactions outlive the server (this \
process)
  memory-encryption SOURCE: keys that encrypt what is stored: file:PATH, one a line, the first one \
writes; or env:NAME (plain text)
  aws-region REGION: sign Bedrock's requests anew, with this machine's AWS credentials (passed on \
unread)
  dry-run: change nothing, only report what would be compacted
where it listens, and to whom
  host ADDRESS: where to listen (127.0.0.1)
  port NUMBER: the port ({PORT}); 0 takes a free one
  caller-name NAME: a further header or query parameter that identifies callers
  keyless WHAT: what callers without a key share: the summaries of their connection, or, on a \
machine with one user, all (connection)
  allow-origin ORIGIN: another site whose web pages may use the server, such as \
https://chat.example.com
  body-timeout SECONDS: time for a request's body (300)
  drain SECONDS: time for open requests at the end ({DRAIN:g})
what it shows
  log FORM: text or json (text)
  class-header NAME: a header whose value is the class that a caller's figures are counted for
  show-text: show the text of summaries on the page at /compacter
"""
"""Groups of options; each option with its value (empty for a switch) and its help."""
_HOW: dict[str, dict[str, Any]] = {
    "upstream": {"action": "append"},
    "ratio": {"type": float, "dest": _SHORT["ratio"]},
    "prepare": {"type": float, "dest": _SHORT["prepare"]},
    "port": {"type": int},
    "caller-name": {"action": "append", "dest": "caller_names"},
    "keyless": {"choices": ("connection", "shared")},
    "allow-origin": {"action": "append", "dest": "origins"},
    "log": {"choices": ("text", "json")},
}


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line, which returns settings by their names."""
    made = argparse.ArgumentParser(
        "compacter serve",
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
        description="A pass-through for the OpenAI (chat completions, responses), Anthropic "
        "(messages), Gemini, Ollama and Bedrock protocols. If the upstream says that a request "
        "is too long, the oldest part of its history is compacted into a summary, and it is sent "
        "again.",
        epilog="Example: compacter serve --upstream https://api.openai.com/v1 --memory "
        "sqlite:compacter.db",
    )
    place = made.add_argument_group()
    for line in _COMMAND_LINE.splitlines():
        if not line.startswith(" "):
            place = made.add_argument_group(line)
            continue
        option, _, text = line.strip().partition(": ")
        name, _, takes = option.partition(" ")
        how: dict[str, Any] = {"metavar": takes} if takes else {"action": "store_true"}
        place.add_argument(f"--{name}", help=text, **{**how, **_HOW.get(name, {})})
    return made
