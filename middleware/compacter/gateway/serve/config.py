"""The options of ``compacter serve``, and its configuration file, in TOML.

The names in a file are those of the command line; what is given there wins. The table ``options``
holds further options of ``Compacter``.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from compacter.errors import ConfigurationError
from compacter.options import CompacterOptions

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
    """Keys with which an address in ``memory`` encrypts: ``file:PATH``, one a line, or
    ``env:NAME``. The first one encrypts, all decrypt."""
    memory_quotes: bool
    """Whether the lines that summaries quote are stored there too."""
    dry_run: bool
    """Whether only to report what would be compacted, and change nothing."""
    caller_names: Iterable[str]
    """Names of further headers or query parameters that tell callers apart."""
    keyless: str
    """What callers without a key share: ``connection`` for nothing beyond a connection, ``shared``
    for all summaries, on a machine with one user."""
    origins: Iterable[str]
    """Origins of other sites whose web pages may use the server, such as
    ``https://chat.example.com``."""
    aws_region: str | None
    """Region for which requests that are signed for AWS are authorized anew, with the API key or
    the credentials that boto3 finds: whoever reaches the server uses these. ``None`` passes signed
    requests on unread."""
    class_header: str
    """Header whose value is the class that a caller's figures are counted for; what stands before
    the server sets it."""
    max_body: int | None
    header_timeout: float
    body_timeout: float
    max_summaries: int
    max_summaries_each: int


SHORT = {"ratio": "compact_ratio", "prepare": "prepare_tokens"}
"""Shorter names of options."""
FIXED = ("host", "port", "log", "show_text", "drain")
"""Settings that a running server keeps."""
_OWN = ServeOptions.__annotations__.keys() - CompacterOptions.__annotations__.keys()
NAMES = ("upstream", "summarizer", "memory", *FIXED, *sorted(_OWN))
"""Settings of a file; those of the command line have dashes for underscores."""
_TABLE = "options"


def read_config(path: str) -> dict[str, Any]:
    """Return the settings in a file. Raises ``ConfigurationError`` that names the file, and what is
    wrong in it.
    """
    try:
        given = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        repr(given)  # What cannot be shown, as it is nested too deeply, cannot be a setting.
    except OSError as error:
        raise ConfigurationError(f"--config {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"--config {path}: it is not a text file") from None
    except ValueError as error:  # Also a number of ten thousand digits.
        raise ConfigurationError(f"--config {path}: it is not TOML: {error}") from None
    except RecursionError:
        raise ConfigurationError(f"--config {path}: it is nested too deeply") from None
    options = given.pop(_TABLE, {})
    if not isinstance(options, dict):
        raise ConfigurationError(f"--config {path}: {_TABLE} takes a table")
    settings = {name.replace("-", "_"): value for name, value in given.items()}
    for name in settings:
        if name not in NAMES:
            near = difflib.get_close_matches(name, NAMES, 1)
            question = f"; did you mean {near[0]}?" if near else f"; known: {', '.join(NAMES)}"
            raise ConfigurationError(f"--config {path}: {name} is unknown{question}")
    twice = [name for name in options if name in NAMES]
    if twice:
        raise ConfigurationError(f"--config {path}: {twice[0]} stands above, and not in [{_TABLE}]")
    return {**options, **settings}
