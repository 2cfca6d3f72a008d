"""The configuration file of ``compacter serve``, in TOML.

Its names are those of the command line; what is given there wins. The table ``options`` holds
further options of ``Compacter``.
"""

from __future__ import annotations

import difflib
import tomllib
from pathlib import Path
from typing import Any

from compacter.errors import ConfigurationError

NAMES = (
    "upstream",
    "host",
    "port",
    "summarizer",
    "ratio",
    "prepare",
    "memory",
    "memory_encryption",
    "memory_quotes",
    "dry_run",
    "show_text",
    "drain",
    "log",
    "max_body",
    "header_timeout",
    "body_timeout",
    "max_summaries",
    "max_summaries_each",
    "caller_names",
    "keyless",
    "origins",
    "aws_region",
    "class_header",
)
"""Settings of a file; those of the command line have dashes for underscores."""
_TABLE = "options"


def read_config(path: str) -> dict[str, Any]:
    """Return the settings in a file. Raises ``ConfigurationError`` that names the file, and what is
    wrong in it.
    """
    try:
        given = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"--config {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"--config {path}: it is not a text file") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"--config {path}: it is not TOML: {error}") from None
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
