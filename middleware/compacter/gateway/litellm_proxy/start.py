"""What is looked at once, when the proxy starts: names in the config, and whether the memory
answers.
"""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterator, Mapping
from typing import Any

from compacter.errors import ConfigurationError

_PATH = "callback_settings.compacter"


def check_names(config: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Check that every model group which the settings name is in the config.

    A config without a list, or with models in a database, says nothing about names.

    Args:
        config: The proxy's config file.
        given: Value of ``callback_settings.compacter``.

    Raises:
        ConfigurationError: A name is unknown; the message has the nearest one.
    """
    groups = _groups(config)
    if not groups or (config.get("general_settings") or {}).get("store_model_in_db"):
        return
    for path, name in _name_groups(given):
        if not any(fnmatch.fnmatchcase(name, group) for group in groups):
            near = difflib.get_close_matches(name, groups, 1)
            question = (
                f"; did you mean {near[0]!r}?" if near else f"; known: {_list_groups(groups)}"
            )
            raise ConfigurationError(f"{path}: there is no model group {name!r}{question}")


def _groups(config: Mapping[str, Any]) -> list[str]:
    """Return the names of model groups, wildcards and aliases in a config."""
    entries = config.get("model_list")
    groups = [
        str(entry["model_name"])
        for entry in entries or ()
        if isinstance(entry, Mapping) and entry.get("model_name")
    ]
    aliases = (config.get("router_settings") or {}).get("model_group_alias")
    return sorted({*groups, *(aliases if groups and isinstance(aliases, Mapping) else ())})


def _name_groups(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the model groups that the settings name, each with its path."""
    for name in given.get("model_groups") or ():
        yield f"{_PATH}.model_groups.{name}", str(name)
    tables = [(_PATH, given)]
    for kind in ("model_groups", "teams", "keys"):
        tables.extend(
            (f"{_PATH}.{kind}.{name}", table)
            for name, table in (given.get(kind) or {}).items()
            if isinstance(table, Mapping)
        )
    for path, table in tables:
        writer = table.get("summarizer")
        if isinstance(writer, str) and writer != "extractive":
            yield f"{path}.summarizer", writer


def _list_groups(groups: list[str]) -> str:
    most = 12
    more = f" and {len(groups) - most} more" if len(groups) > most else ""
    return f"{', '.join(groups[:most])}{more}"
